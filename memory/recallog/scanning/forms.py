"""The forms in which bytes of a memory may hold a text: its spellings and encodings."""

import json
import unicodedata
from base64 import b64encode, urlsafe_b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from recallog_schemas.views import MarkerFound, ScannedPlace

Forms = Mapping[tuple[int, bytes], str]
"""The names of the forms of markers, by the number of the marker, from 1, and the bytes of the form."""

_BASE64_CHARS_MIN = 5
"""Shorter parts of a text in base64 occur by chance in any large file with base64, such as a sealed ledger."""
_BASE64_FIRST = (0, 2, 3)
"""The first character that depends only on the text, by the number of bytes before the text in its group of three."""


def search(place: str, pieces: Iterable[bytes], forms: Forms) -> ScannedPlace:
    """Search for forms in the bytes of a place."""
    counts: Counter[tuple[int, str]] = Counter()
    size_bytes = 0
    for piece in pieces:
        size_bytes += len(piece)
        for (marker, form), name in forms.items():
            if form in piece:
                counts[marker, name] += piece.count(form)
    found = (MarkerFound(marker=marker, form=name, count=count) for (marker, name), count in sorted(counts.items()))
    return ScannedPlace(place=place, bytes=size_bytes, found=tuple(found))


def forms_of(markers: Sequence[str]) -> Forms:
    """The forms of some texts. Equal forms have the name of the first one."""
    found: dict[tuple[int, bytes], str] = {}
    for number, marker in enumerate(markers, 1):
        for spelling, text in _spellings(marker).items():
            for encoding, data in _encode_forms(text):
                found.setdefault((number, data), f"{encoding}, {spelling}" if spelling else encoding)
    return found


def _spellings(marker: str) -> dict[str, str]:
    """The text unchanged, normalised, and in other cases. Views store stems of words only as digests."""
    folded = unicodedata.normalize("NFC", marker).casefold()
    found = {"": marker, "case-folded": folded, "lower case": marker.lower(), "upper case": marker.upper()}
    return found | {name: unicodedata.normalize(name, marker) for name in ("NFC", "NFD", "NFKC")}


def _encode_forms(text: str) -> Iterator[tuple[str, bytes]]:
    yield "UTF-8", text.encode()
    yield "UTF-16-LE", text.encode("utf-16-le")
    yield "UTF-16-BE", text.encode("utf-16-be")
    escaped = [json.dumps(text, ensure_ascii=ascii_only)[1:-1].encode() for ascii_only in (False, True)]
    yield from (("JSON", data) for data in escaped)
    for data in dict.fromkeys((text.encode(), *escaped)):
        for encode in (b64encode, urlsafe_b64encode):
            for before, first in enumerate(_BASE64_FIRST):
                encoded = encode(bytes(before) + data)
                # The last character before a padding depends on the bytes after the text.
                part = encoded.rstrip(b"=")[first : -1 if encoded.endswith(b"=") else None]
                if len(part) >= _BASE64_CHARS_MIN:
                    yield "base64", part
