"""Equal texts: the rules by which an entry duplicates another one, and a migration repeats an earlier entry.

A rule has a number, which the event states (`recallog_schemas.rules`). A rule never changes:
entries of old ledgers are judged as they were. Rule 1 compares characters, after Unicode normalisation (NFC) and with
white space collapsed. Rule 2 also ignores what says nothing about the content:

- full-width and half-width forms, ligatures, curly quotes, invisible characters; spaces between Chinese or Japanese and
  Latin letters or digits; breaks of wrapped lines
- the full stop or exclamation mark that ends the text
- capitals, if one of the texts is written without any (or in capitals alone) and the other begins like a sentence;
  otherwise only that of the first word

Rule 3 compares as the event says (`dedup`): "exact" characters and lines, "off" nothing, and "normalised" as rule 2
does, but with one form for each number, date, time, quantity and contraction, and without articles (`normalising`).

Everything else may be the one detail in which two facts differ: signs, numbers, units, other punctuation, the order of
words, superscripts, indentation, capitals inside or throughout a word, and whatever is attached to a digit or symbol,
such as identifiers, paths and code. In doubt two texts are different: an entry too many can be merged later, but one
that is lost cannot be found again.
"""

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from recallog_projections.text_cache import cached_if_short
from recallog_schemas import names

NEVER_DEDUPLICATED = frozenset({"tool_usage", "summary", "experience"})
"""The types of entries of which equal ones are kept: each of them records something that happened."""

Comparison = Literal["collapsed", "written", "off", "exact", "normalised"]
"""How texts are compared: as rule 1 does, as rule 2 does, or in one of the ways of rule 3."""
NORMALISING = 3
"""The first rule by which facts and lessons are compared in their normal form."""
_NORMALISED_TYPES = frozenset({"fact", "lesson"})

_FORMS = re.compile(r"<(?:wide|narrow|initial|medial|final|isolated)>")
"""Decompositions of characters that differ from others in their width or their place in a word alone."""
_LIGATURES = range(0xFB00, 0xFB07)
_WRITTEN = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2026": "...", "\u2010": "-", "\u2011": "-"}
    | dict.fromkeys("\u00ad\u200b\u2060\ufeff", "")  # soft hyphen, zero-width space, word joiner, byte order mark
)
_HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# Patterns with Han characters are compiled when they are first used, which takes milliseconds: every command imports
# this module.
_AROUND_HAN = rf"(?<=[{_HAN}]) (?=[A-Za-z0-9])|(?<=[A-Za-z0-9]) (?=[{_HAN}])"
_PIECES = rf"[{_HAN}]+|[^\s{_HAN}]+|\s+"
_AROUND_WORDS = ",;:.!?\"'()[]"
_END = r"(?<=[^\W\d_]{2})[.!。]+$|(?<=[" + _HAN + r"])[.!。]+$|(?<=[^\s.])[.。]$"
"""The punctuation that may end a text: any after a word, one full stop after a number or a sign."""
_STOPS = frozenset(".!?。")
_UNIT_CHARS = 3
"""A word of at most this many letters after a number may be its unit."""
_SHOUTED_WORDS = 3
"""In a text of at least this many words, all in capitals, the capitals carry no meaning."""


@dataclass(frozen=True, slots=True)
class TextForm:
    """The properties of a text that decide which texts equal it. Texts with different keys are not equal by any
    rule."""

    key: str
    """Digest of the text without anything that some rule ignores."""
    exact: str
    """Digest of the text as rule 1 compares it."""
    layout: str
    """Digest of the line breaks that are not those of wrapped lines; "" without one."""
    case: str
    """"" if its capitals say nothing; else "+" if it begins like a sentence, or "-", and the digest of its form."""


@cached_if_short
def form_of(text: str) -> TextForm:
    collapsed = _collapse_spaces(text)
    folded, case = _normalise_writing(collapsed)
    return TextForm(digest(folded), _short(collapsed), _layout(text), case)


def normal_form_of(text: str) -> TextForm:
    """The form of the text that rule 3 compares with others."""
    plain, normal = _normal(text)
    return form_of(text if normal == plain or "\n" in text.strip() else normal)


def normal_text(text: str) -> str:
    """The text in one line, with one form for each character, number, date and so on."""
    return _normal(text)[1]


@cached_if_short
def _normal(text: str) -> tuple[str, str]:
    from recallog_projections.models.long_term import normalising  # every command imports this module, few need that

    plain = _plain(_collapse_spaces(text))
    return plain, normalising.normalise(plain)


def comparison(rule: int, type_: str, dedup: str | None) -> Comparison:
    """How the text of an entry is compared with others, by the rule of its event, and what the event says itself."""
    if type_ in NEVER_DEDUPLICATED:
        return "off"
    if rule < NORMALISING:
        return "collapsed" if rule == 1 else "written"
    return dedup or ("normalised" if type_ in _NORMALISED_TYPES else "exact")  # type: ignore[return-value]


def are_equal(how: Comparison, one: TextForm, other: TextForm) -> bool:
    """Whether two texts with one key are equal."""
    if how == "collapsed":
        return one.exact == other.exact
    same = one.exact == other.exact if how == "exact" else _fits(one.case, other.case)
    return same and one.layout == other.layout


def _fits(one: str, other: str) -> bool:
    return one[1:] == other[1:] or {one[:1], other[:1]} == {"", "+"}


def digest_key(
    type_: str, key: str, audience: Sequence[str] = (), *, shared: bool = False, subject: str | None = None
) -> str:
    """The key under which an entry of the type `type_` is listed with those of its owner that it may duplicate or
    supersede: those with one `key`, of a text or of a statement.

    An entry that other agents may read is not a duplicate of one that others, or fewer, may read: `audience` are their
    names, sorted and without the owner. Nor is one about a person (`subject`) a duplicate of one about another person.
    """
    readers = "*" if shared else names.join_names(",", *audience)
    return f"{type_}/{digest(readers, subject or '', key)}"


def text_key(text: str) -> str:
    """The key of a text, whatever the type and the readers of the entry that has it. It is that of rule 1."""
    return digest(_collapse_spaces(text))


def _collapse_spaces(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


# Rule 2


def _normalise_writing(collapsed: str) -> tuple[str, str]:
    """A text as rule 2 compares it: with the capitals that may say nothing in lower case, and `TextForm.case`."""
    text = _plain(collapsed)
    text = text if text.isascii() else re.sub(_AROUND_HAN, "", text)
    text = re.sub(_END, "", text) if text.endswith((".", "!", "。")) else text
    pieces = re.findall(_PIECES, text)
    capital = [number for number, piece in enumerate(pieces) if piece != piece.lower()]
    if not capital:
        return text, ""
    shouted = _is_shouted(pieces)
    first = next((number for number, piece in enumerate(pieces) if _core(piece)), -1)
    soft = {number for number in capital if _is_soft(pieces, number, is_first=number == first, shouted=shouted)}
    folded = [piece.lower() if number in soft else piece for number, piece in enumerate(pieces)]
    if shouted or not soft:
        return "".join(folded), ""
    cased = [folded[n] if n == first else piece for n, piece in enumerate(pieces)]
    return "".join(folded), ("+" if first in soft else "-") + _short("".join(cased))


@cached_if_short
def _plain(collapsed: str) -> str:
    """The text with one form for each character, quote and space."""
    if collapsed.isascii():
        return collapsed
    plain = re.sub(r"[^\x00-\x7f]", _usual, collapsed).translate(_WRITTEN)
    return _collapse_spaces(plain)


def _usual(found: re.Match[str]) -> str:
    char = found[0]
    if ord(char) in _LIGATURES or _FORMS.match(unicodedata.decomposition(char)):
        return unicodedata.normalize("NFKC", char)
    return char


def _core(piece: str) -> str:
    """The piece without punctuation at its ends."""
    return piece.strip(_AROUND_WORDS).strip()


def _is_shouted(pieces: Sequence[str]) -> bool:
    words = 0
    for core in map(_core, pieces):
        if len(core) > 1 and _parts(core):
            if not core.isupper():
                return False
            words += 1
    return words >= _SHOUTED_WORDS


def _parts(core: str) -> Sequence[str]:
    """The parts of a word, such as those of "well-known"; () if it has anything but letters."""
    if core.isalpha():
        return (core,)
    parts = re.split(r"['-]", core)
    return parts if all(part and _is_letters(part) for part in parts) else ()


def _is_letters(text: str) -> bool:
    return text.isalpha() or all(char.isalpha() or unicodedata.combining(char) for char in text)


def _is_soft(pieces: Sequence[str], number: int, *, is_first: bool, shouted: bool) -> bool:
    """Whether the capitals of a piece may say nothing: those of a word that begins with one, or of all in a shout."""
    core = _core(pieces[number])
    parts, before = _parts(core), "".join(pieces[max(0, number - 2) : number]).rstrip()
    if not parts or (before[-1:].isdigit() and len(core) <= _UNIT_CHARS):
        return False
    if len(core) == 1:
        return core == core.lower() or (core in "AI" and (is_first or shouted))
    return shouted or all(part == part.lower() or _is_capitalised(part) for part in parts)


def _is_capitalised(part: str) -> bool:
    return len(part) > 1 and part[1:] == part[1:].lower()


def _layout(text: str) -> str:
    """A digest of the places and the indentation of the line breaks that count."""
    if "\n" not in text and "\r" not in text:
        return ""
    kept: list[str] = []
    words, before = 0, ""
    for line in text.strip().splitlines():
        said = line.strip()
        if not said:
            continue
        indentation = line[: len(line) - len(line.lstrip())]
        if before and (indentation or not _is_wrapped(before[-1], said[0])):
            kept.append(f"{words}{indentation}")
        words += len(said.split())
        before = said
    return _short("\n".join(kept)) if kept else ""


def _is_wrapped(last: str, first: str) -> bool:
    """Whether a line that begins with `first` continues a line that ends with `last`."""
    return (first.islower() and (last.isalpha() or last == ",")) or (first.isalpha() and last in _STOPS)


def _short(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def digest(*parts: str) -> str:
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()
