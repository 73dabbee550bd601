"""The encodings of standard input and output: a console may be unable to show what a memory has.

A text loses the characters that its stream cannot encode: they become similar ones, or "?". JSON loses nothing.
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
"""What stands in for the punctuation of our own lines."""


def prepare() -> None:
    """Let standard output and errors replace what they cannot encode, whatever PYTHONIOENCODING and the locale say."""
    codecs.register_error(_REPLACE, _replace_unencodable)
    codecs.register_error(_ESCAPE, _escape_unencodable)
    for stream, errors in ((sys.stdin, "replace"), (sys.stdout, _REPLACE), (sys.stderr, _REPLACE)):
        stream.reconfigure(errors=errors)  # type: ignore[union-attr]  # each is a TextIOWrapper, or `main` made it one


def use_utf8() -> None:
    """Start the command again in Python's UTF-8 mode where arguments and names of files would be read as ASCII.

    Python chooses this mode itself in the locale C, unless PYTHONUTF8=0 forbids it. Standard input and output keep
    their encoding.
    """
    if os.name == "posix" and codecs.lookup(sys.getfilesystemencoding()).name == "ascii":
        os.environ.setdefault("PYTHONIOENCODING", sys.stdout.encoding)
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def json_for(stream: TextIO, text: str) -> str:
    """A JSON text in which what `stream` cannot encode is escaped; on a code page all that is not ASCII is.

    The program that reads it expects UTF-8, which the bytes of a code page are not.
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
    """What an error handler returns: something for each character that cannot be encoded, and where to go on."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(replacement(character) for character in error.object[error.start : error.end]), error.end
