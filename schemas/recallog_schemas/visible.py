"""Texts as a terminal or a page may show them: hidden characters, and those that change the screen, are written out.

These are control characters, overrides and marks of the direction of writing, characters without width, and tags. A
joiner stays where a writing system or an emoji needs it: once, after a letter of Persian or Hindi, or in 👩‍🚀.
"""

import re
import unicodedata
from collections.abc import Callable

# Control characters except tab and line feed, half surrogate pairs, and what Unicode calls default ignorable.
_HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_ONE = re.compile(f"[{_HIDDEN}]")
# The flags of England, Scotland and Wales are spelt in tags; no other text of tags is shown by a terminal.
_FLAGS = "|".join(
    f"\U0001f3f4{''.join(chr(0xE0000 + ord(letter)) for letter in region)}\U000e007f"
    for region in ("gbeng", "gbsct", "gbwls")
)
_FOUND = re.compile(f"{_FLAGS}|[{_HIDDEN}]")

_JOINERS, _EMOJI_JOINER = "\u200c\u200d", "\u200d"
_EMOJI_STYLES, _KEYCAP = "\ufe0e\ufe0f", "\u20e3"
_MONGOLIAN_VARIANTS = re.compile("[\u180b-\u180f]")
_MONGOLIAN_LETTER = re.compile("[\u1820-\u18aa]")
# The scripts whose letters join or form conjuncts: Arabic and its neighbours, those of India and South-East Asia.
_OF_A_JOINING_SCRIPT = re.compile(
    "[\u0600-\u0dff\u0f00-\u109f\u1700-\u18af\u1900-\u1cff\ua800-\ua8ff\ua980-\ua9df\uaa00-\uabff\ufb50-\ufdff"
    "\ufe70-\ufefc\U00010a00-\U00010fff\U00011000-\U00011fff\U0001e900-\U0001e95f]"
)


def visible(text: str) -> str:
    """The text with its hidden characters written out, for example "\\x1b" or "\\u202e"."""
    return _with_each(text, _escape)


def visible_json(text: str) -> str:
    """A JSON text with its hidden characters as escapes of JSON: it is parsed to the same value."""
    return _with_each(text, json_escape)


def json_escape(character: str) -> str:
    """A character as an escape of JSON, or as two beyond U+FFFF."""
    code = ord(character)
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    return f"\\u{0xD800 + (code - 0x10000 >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _with_each(text: str, escape: Callable[[str], str]) -> str:
    """The text with `escape` applied to its hidden characters."""

    def write_out(found: re.Match[str]) -> str:
        whole = len(found[0]) > 1
        return found[0] if whole or _is_needed(found[0], text, found.start()) else escape(found[0])

    return text if text.isascii() and text.isprintable() else _FOUND.sub(write_out, text)


def _is_needed(character: str, text: str, index: int) -> bool:
    """Whether a hidden character at `index` belongs to what the character before it shows. In a row of hidden
    characters, which could carry a text, only those of an emoji are needed."""
    before, after = text[index - 1 : index], text[index + 1 : index + 2]
    if character in _EMOJI_STYLES:
        return _is_picture(before) or (before in set("0123456789#*") and after == _KEYCAP)
    if character == _EMOJI_JOINER and _is_picture(after):
        return _is_picture(before) or (before in set(_EMOJI_STYLES) and _is_picture(text[index - 2 : index - 1]))
    if not before or _ONE.match(after):
        return False
    if character in _JOINERS:
        return _OF_A_JOINING_SCRIPT.match(before) is not None and unicodedata.category(before)[0] in "LM"
    return _MONGOLIAN_VARIANTS.match(character) is not None and _MONGOLIAN_LETTER.match(before) is not None


def _is_picture(character: str) -> bool:
    """Whether a character is an emoji, a symbol that can be shown as one, or a skin tone."""
    return character > "\x7f" and (
        unicodedata.category(character) in ("So", "Sm", "Po", "Pd", "Sk") or character == "\u2139"
    )
