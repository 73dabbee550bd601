"""Text rules: functions from the payload of an event to its text, each named by a short description of its rule."""

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from pydantic_core import from_json

from recallog_schemas import limits

TextRule = Callable[[Mapping[str, Any]], str]
"""From a payload to its text; "" if it has none. Its `__name__` describes the rule to readers."""

_PATH = r"[\w-]+(?:\.[\w-]+)*"
_FIELD = re.compile(_PATH)
_ESCAPED = re.compile(r'\\(["\\nrt])')
_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_TEMPLATE = re.compile(rf"(?P<escaped>{{{{|}}}})|{{(?P<path>{_PATH})}}|(?P<stray>[{{}}])")


def first_of(*fields: str) -> TextRule:
    """The first of `fields` that holds a string."""

    def text(payload: Mapping[str, Any]) -> str:
        for field in fields:
            value = payload.get(field)
            if isinstance(value, str):
                return value
        return ""

    return _name_rule(text, " or ".join(f"{{{field}}}" for field in fields))


def tool_text(payload: Mapping[str, Any]) -> str:
    """`tool(arguments): result`, at most 800 characters.

    Arguments are written as `name=value`, a single `command` as itself. A call without arguments has no parentheses. A
    failed call says so: `tool(arguments): failed: error`. A call that succeeded without a result says `ok`. Long
    arguments are cut at the end, long outcomes in the middle, since errors and summaries are often last.
    """
    return _tool_text(payload, limits.TOOL_TEXT_CHARS_MAX, limits.TOOL_ARGUMENTS_CHARS)


def tool_details(payload: Mapping[str, Any]) -> str:
    """As `tool_text`, at most 8,000 characters."""
    return _tool_text(payload, limits.TOOL_DETAILS_CHARS_MAX, limits.TOOL_DETAILS_CHARS_MAX // 2)


def _tool_text(payload: Mapping[str, Any], chars_max: int, arguments_chars: int) -> str:
    tool = _beginning(payload["tool"], limits.TOOL_NAME_CHARS_MAX)
    arguments, outcome = _arguments(payload.get("arguments"), chars_max), _outcome(payload, chars_max)
    left = chars_max - len(tool)
    if arguments is not None:
        left -= len("()")
        outcome_chars = len(": ") + len(outcome) if outcome else 0
        arguments = _beginning(arguments, max(arguments_chars, left - outcome_chars))
        tool, left = f"{tool}({arguments})", left - len(arguments)
    return f"{tool}: {_both_ends(outcome, left - len(': '))}" if outcome else tool


tool_text.__name__ = tool_details.__name__ = "{tool}({arguments}): {result}"


def _arguments(arguments: object, chars_max: int) -> str | None:
    """The arguments of a tool call, for readers; None if there are none. JSON in a string is read as JSON."""
    if arguments is None:
        return None
    if isinstance(arguments, str):
        arguments = _parse_arguments(arguments)
    if isinstance(arguments, dict):
        if len(arguments) == 1 and "command" in arguments:
            command = arguments["command"]
            return (
                " ".join([_plain(word, chars_max) for word in command])
                if isinstance(command, list | tuple)
                else _plain(command, chars_max)
            )
        return ", ".join([f"{name}={_plain(value, chars_max)}" for name, value in arguments.items()])
    if isinstance(arguments, list | tuple):
        return ", ".join([_plain(value, chars_max) for value in arguments])
    return _plain(arguments, chars_max)


def _parse_arguments(arguments: str) -> object:
    """The JSON object or list that `arguments` contain, else `arguments` themselves."""
    try:
        value = from_json(arguments)  # unlike that of `json.loads`, its depth limit does not depend on the stack
    except ValueError:
        return arguments
    return value if isinstance(value, dict | list) else arguments


def _outcome(payload: Mapping[str, Any], chars_max: int) -> str:
    """What a tool call led to; "" if that is unknown."""
    ok, error, result = payload.get("ok"), payload.get("error"), payload.get("result")
    said = "" if result is None else _plain(result, chars_max).strip()
    if error is not None:
        said = f"{_plain(error, chars_max)}\n{said}".strip()
    if ok is False or (ok is None and error):
        return f"failed: {said}" if said else "failed"
    return said or ("ok" if ok else "")


def _plain(value: object, chars_max: int) -> str:
    """A string as it is; anything else as JSON whose strings are not escaped, so that their words can be searched.

    At most `2 * chars_max` characters of the JSON are returned.
    """
    if isinstance(value, str):
        return value
    if type(value) is int:
        return str(value)
    written = json.dumps(value, ensure_ascii=False)[: 2 * chars_max]
    return _ESCAPED.sub(lambda found: _ESCAPES[found[1]], written)


def _beginning(text: str, chars_max: int) -> str:
    return text if len(text) <= chars_max else f"{text[: chars_max - 1]}…"


def _both_ends(text: str, chars_max: int) -> str:
    if len(text) <= chars_max:
        return text
    end = (chars_max - len(" … ")) // 2
    return f"{text[: chars_max - len(' … ') - end]} … {text[-end:]}"


@lru_cache(maxsize=1024)
def make_rule(rule: str) -> TextRule:
    """The rule that a space declares: a payload field (`note`, `order.item`), or a template (`{customer} ordered`).

    A placeholder is a plain lookup through JSON objects. A string is inserted as it is, anything else as compact JSON,
    a missing field or null as "". `{{` and `}}` are literal braces. The text is cut at 8,000 characters. Raises
    `ValueError` for anything else, such as format specifications.
    """
    parts = _parts(f"{{{rule}}}" if _FIELD.fullmatch(rule) else rule)
    if not any(path for _, path in parts):
        raise ValueError(f"{rule!r} names no payload field")

    def text(payload: Mapping[str, Any]) -> str:
        found, length = [], 0
        for literal, path in parts:
            part = literal if path is None else _value(payload, path)[: limits.DECLARED_TEXT_CHARS_MAX]
            found.append(part)
            length += len(part)
            if length >= limits.DECLARED_TEXT_CHARS_MAX:  # no need to write more large values as JSON
                break
        return "".join(found)[: limits.DECLARED_TEXT_CHARS_MAX]

    return _name_rule(text, rule)


def _parts(template: str) -> list[tuple[str, list[str] | None]]:
    """Literal texts, and the paths of placeholders."""
    parts: list[tuple[str, list[str] | None]] = []
    end = 0
    for found in _TEMPLATE.finditer(template):
        if found["stray"]:
            raise ValueError(f"a single {found['stray']} at character {found.start() + 1} belongs to no placeholder")
        parts.append((template[end : found.start()], None))
        parts.append((found["escaped"][0], None) if found["escaped"] else ("", found["path"].split(".")))
        end = found.end()
    parts.append((template[end:], None))
    return parts


def _value(payload: Mapping[str, Any], path: list[str]) -> str:
    value: Any = payload
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _name_rule(rule: TextRule, description: str) -> TextRule:
    rule.__name__ = description
    return rule
