"""The encodings of standard input and output: a console may be unable to show all stored characters.

Characters that the stream cannot encode are replaced by similar ones or by "?". JSON escapes them, and loses nothing.
"""

import codecs
import os
import sys
from collections.abc import Callable
from typing import TextIO

from recallog_schemas.visible import json_escape

_REPLACE, _ESCAPE = "recallog-replace", "recallog-escape"
_SIMILAR = {
    "→": "->", "←": "<-", "…": "...", "·": "-", "•": "-", "–": "-", "—": "-", "×": "x", "−": "-", "\u00a0": " ",
    "‘": "'", "’": "'", "‚": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"',
}  # fmt: skip
"""Replacements for the punctuation of Recallog's own lines."""


def prepare() -> None:
    """Let standard output and errors replace what they cannot encode, whatever PYTHONIOENCODING and the locale say."""
    codecs.register_error(_REPLACE, _replace_unencodable)
    codecs.register_error(_ESCAPE, _escape_unencodable)
    for stream, errors in ((sys.stdin, "replace"), (sys.stdout, _REPLACE), (sys.stderr, _REPLACE)):
        stream.reconfigure(errors=errors)  # type: ignore[union-attr]  # each is a TextIOWrapper, or `main` made it one


def use_utf8() -> None:
    """Restart the command in Python's UTF-8 mode if arguments and file names would be read as ASCII.

    Python chooses this mode itself in the locale C, unless PYTHONUTF8=0 forbids it. Standard input and output keep
    their encoding.
    """
    if os.name == "posix" and codecs.lookup(sys.getfilesystemencoding()).name == "ascii":
        os.environ.setdefault("PYTHONIOENCODING", sys.stdout.encoding)
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def json_for(stream: TextIO, text: str) -> str:
    """A JSON text with characters escaped that `stream` cannot encode; on a code page, all that are not ASCII.

    Programs that read JSON expect UTF-8, and the bytes of a code page are not UTF-8.
    """
    encoding = codecs.lookup(getattr(stream, "encoding", None) or "utf-8").name
    if not encoding.startswith("utf"):
        encoding = "ascii"
    return text if text.isascii() else text.encode(encoding, _ESCAPE).decode(encoding)


def _replace_unencodable(error: UnicodeError) -> tuple[str, int]:
    return _each(error, lambda character: _SIMILAR.get(character, "?"))


def _escape_unencodable(error: UnicodeError) -> tuple[str, int]:
    return _each(error, json_escape)


def _each(error: UnicodeError, replacement: Callable[[str], str]) -> tuple[str, int]:
    """The result of an encoding error handler: a replacement for each character, and the index to continue at."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(replacement(character) for character in error.object[error.start : error.end]), error.end
