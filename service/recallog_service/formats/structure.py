"""Structures: what a file of a format must contain, as patterns of its records.

A pattern is a value of JSON or TOML:

"message"                     that text; "tool-*" is a text that begins with "tool-"
"<text>"                      a text; also <number>, <nonzero>, <list>, <object>, <any> (the field is present), and
                              <none> (it is null or absent)
["user", "human"]             one of several patterns
{"type": "message", ...}      an object, or a text with the JSON of one, whose fields match
{"*": pattern}                a list with an element that matches
{"?": pattern}                an object with a field that matches
{"**": pattern}               a value that matches, or contains one that does, at most five levels below
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from recallog_service.formats.source import Sample

_KINDS: dict[str, Callable[[object], bool]] = {
    "<any>": lambda value: True,
    "<text>": lambda value: isinstance(value, str),
    "<number>": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "<nonzero>": lambda value: isinstance(value, int | float) and value not in (0, False),
    "<list>": lambda value: isinstance(value, list),
    "<object>": lambda value: isinstance(value, dict),
}
_SIGNS = (("*", list, "a list"), ("?", dict, "an object"))
_ABSENT = object()
_DEPTH_MAX = 5
_ELEMENTS_MAX = 50
"""Elements of a list that are examined. Transcripts of agents begin with various records."""


class Recognition(Protocol):
    """How a format recognises a file."""

    def fits(self, sample: Sample) -> bool:
        """Whether a file with this beginning is in the format."""

    def lacks(self, sample: Sample) -> tuple[float, str]:
        """How close a file is to the format, from 0 to 1, and the first difference in words."""


@dataclass(frozen=True, eq=False)
class Structure:
    """A file is in the format if one of its first documents or lines matches one of the patterns."""

    patterns: Sequence[object]
    among: int | None = None
    """Number of documents that are examined; None: all of the sample."""

    def fits(self, sample: Sample) -> bool:
        return any(not faults(self.patterns, each) for each in (*sample.documents, *sample.lines)[: self.among])

    def lacks(self, sample: Sample) -> tuple[float, str]:
        wrong = [
            (1 - len(found) / max(1, _size(pattern)), found[0])
            for each in sample.documents[: self.among or _ELEMENTS_MAX]
            for pattern in self.patterns
            if (found := faults(pattern, each))
        ]
        return max(wrong, key=lambda pair: pair[0], default=(0.0, "it has no JSON"))


def faults(pattern: object, value: object, path: str = "") -> list[str]:
    """Where `value` differs from `pattern`, in words; empty if it matches."""
    if isinstance(pattern, Mapping):
        return _of_object(pattern, value, path)
    if isinstance(pattern, Sequence) and not isinstance(pattern, str):
        return min((faults(each, value, path) for each in pattern), key=len)
    where = path or "the document"
    if pattern == "<none>":
        return [] if value is None or value is _ABSENT else [f"{where} is there"]
    if value is _ABSENT:
        return [f"{where} is absent"]
    if not isinstance(pattern, str):
        return [] if value is pattern else [f"{where} is not {json.dumps(pattern)}"]
    if pattern in _KINDS:
        return [] if _KINDS[pattern](value) else [f"{where} is not {pattern}"]
    beginning, star, _ = pattern.partition("*")
    fits = isinstance(value, str) and (value.startswith(beginning) if star else value == pattern)
    return [] if fits else [f'{where} is not "{pattern}"']


def _of_object(pattern: Mapping[str, Any], value: object, path: str) -> list[str]:
    if isinstance(value, str) and value.startswith("{"):
        value = _parse_json(value)
    where = path or "the document"
    if "**" in pattern:
        return [] if _is_in(value, pattern["**"], _DEPTH_MAX) else [f"{where} has none of its records"] * _size(pattern)
    for sign, kind, name in _SIGNS:
        if sign in pattern:
            if not isinstance(value, kind):
                return [f"{where} is not {name}"] * _size(pattern)
            inner = list(value.values()) if isinstance(value, dict) else value
            found = [faults(pattern[sign], each, f"{path}.{sign}".lstrip(".")) for each in inner[:_ELEMENTS_MAX]]
            return min(found, key=len, default=[f"{where} is empty"] * _size(pattern))
    if not isinstance(value, dict):
        return [f"{where} is not an object"] * max(1, _size(pattern))
    return [
        fault
        for name, expected in pattern.items()
        for fault in faults(expected, value.get(name, _ABSENT), f"{path}.{name}".lstrip("."))
    ]


def _is_in(value: object, pattern: object, depth: int) -> bool:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return not faults(pattern, value) or (
        depth > 0 and any(_is_in(each, pattern, depth - 1) for each in inner[:_ELEMENTS_MAX])
    )


def _size(pattern: object) -> int:
    """The number of fields that a pattern requires."""
    if isinstance(pattern, Mapping):
        return max(1, sum(map(_size, pattern.values())))
    return 0 if pattern == "<none>" else 1


def _parse_json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
