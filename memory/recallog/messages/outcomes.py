"""Whether the result of a tool call says that the call failed."""

import json
import re
from collections.abc import Mapping

_ERROR = re.compile(r"\s*(?:error|traceback \(most recent call last\))", re.IGNORECASE)
_EXIT_CODE = re.compile(
    r"\b(?:exit(?:ed)?(?: with)?(?: exit)?[ _]?(?:code|status)|return ?code)\W{1,3}([0-9]{1,10})\b", re.IGNORECASE
)
_SHELL_ERROR = re.compile(
    r"[\w./+-]+: (?:.*: )?(?:(?:command )?not found|no such file(?: or directory)?|permission denied)\W*$",
    re.IGNORECASE,
)
"""Messages of shells and POSIX tools: "ls: cannot access 'x': No such file or directory"."""
_EXIT_CODES = ("exit_code", "exitCode", "returncode", "return_code")
_OBJECT_CHARS_MAX = 100_000
"""Longer texts are not parsed to find an exit code."""


def is_failure(result: object) -> bool:
    """Whether a result begins like an error, has an exit code other than 0, or is an object with an error.

    An exit code in a text counts only in its first and last line, where agents write the exit code of a command. An
    error of a shell, such as "make: command not found", counts in the first line.
    """
    if isinstance(result, Mapping):
        return _says_failed(result)
    if not isinstance(result, str):
        return False
    if _ERROR.match(result):
        return True
    if result.startswith("{") and len(result) <= _OBJECT_CHARS_MAX:
        try:
            value = json.loads(result)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, Mapping):
            return _says_failed(value)
    lines = result.strip().splitlines()
    if lines and _SHELL_ERROR.match(lines[0]):
        return True
    codes = [found[1] for line in (*lines[:1], *lines[-1:]) if (found := _EXIT_CODE.search(line)) is not None]
    return any(int(code) != 0 for code in codes)


def _says_failed(result: Mapping[str, object]) -> bool:
    metadata = result.get("metadata")
    fields = {**metadata, **result} if isinstance(metadata, Mapping) else result
    codes = [fields.get(name) for name in _EXIT_CODES]
    nonzero = any(isinstance(code, int) and code != 0 for code in codes)
    return fields.get("is_error") is True or bool(fields.get("error")) or nonzero
