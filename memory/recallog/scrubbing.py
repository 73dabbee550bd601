"""Scrubbing: secrets, e-mail addresses, phone numbers and card numbers are replaced before texts are stored.

Keys and tokens are recognised by the shapes that their issuers publish, and by their names in configuration
(`AWS_SECRET_ACCESS_KEY=`); card numbers by their issuers' prefixes and their check digit. docs/privacy/scrubbing.md has
the measured recall and the number of false matches.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Self, get_args

from pydantic.fields import FieldInfo

from recallog_projections import notices
from recallog_schemas import Event, kinds
from recallog_schemas.errors import SettingsError
from recallog_schemas.kinds.payload import Encoded
from recallog_schemas.names import OneForm
from recallog_schemas.views import count_noun

Counts = Mapping[str, int]
"""The number of replacements, by their sort."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The pattern of one sort of secret or personal data."""

    pattern: re.Pattern[str]
    """Its group `it`, or the whole match, is replaced."""
    needle: str
    """A part that each match contains: only texts that contain it are searched. "" means all texts."""
    accepts: Callable[[re.Match[str]], bool]
    """Whether a match of the pattern is really of this sort."""


def _is_random(found: re.Match[str]) -> bool:
    """Whether the match contains digits and letters, as generated texts do."""
    value = found[found.lastgroup or 0]
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _is_payment_card(found: re.Match[str]) -> bool:
    digits = [int(each) for each in found[0] if each.isdigit()]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0 and len(set(digits)) > 1


def _is_address(found: re.Match[str]) -> bool:
    """Whether it is an e-mail address, and not `git@github.com:recallog`, `oven@2x.png`, `react@18.2.0-rc.a`,
    `x@weight.t()` or the user in a URL."""
    name, _, domain = found[0].partition("@")
    after = found.string[found.end() : found.end() + 1]
    in_url = _OPEN_URL.search(found.string, max(0, found.start() - _URL_CHARS), found.start())
    return not ((name == "git" and after == ":") or after in ("(", "[") or in_url or _NOT_A_DOMAIN.match(domain))


_URL_CHARS = 80
_OPEN_URL = re.compile(r"://[^\s/]*$")
_NOT_A_DOMAIN = re.compile(r"\d+\.\d|\dx\.|.*\.(?:png|jpe?g|gif|svg|webp|js|ts|css|json|toml|ya?ml|lock|txt|local)$")
_RULES: Mapping[str, Callable[[re.Match[str]], bool]] = {
    "": lambda _: True,
    "is_random": _is_random,
    "is_payment_card": _is_payment_card,
    "is_address": _is_address,
}


@cache
def shapes() -> Mapping[str, Sequence[Shape]]:
    """The shapes by their sorts, from `scrubbing.toml`."""
    sorts = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return {
        sort: [
            Shape(re.compile(each["pattern"]), each.get("needle", ""), _RULES[each.get("accepts", "")])
            for each in listed
        ]
        for sort, listed in sorts.items()
    }


MARKS = {"secrets": "[SECRET]", "emails": "[EMAIL]", "cards": "[CARD]", "phones": "[PHONE]"}
"""The replacements, in the order in which they are made: the digits of a key are not a phone number."""
_NOUNS = {
    "secrets": ("secret",),
    "emails": ("e-mail address", "e-mail addresses"),
    "cards": ("card number",),
    "phones": ("phone number",),
}


@dataclass(frozen=True, slots=True)
class Scrubber:
    """Replaces the sorts of data that a setting names."""

    sorts: tuple[str, ...]

    @classmethod
    def of(cls, setting: str) -> "Self | None":
        """The scrubber of `RECALLOG_SCRUB`: sorts, separated by commas; None if it names none.

        Raises `SettingsError`.
        """
        named = {each.strip() for each in setting.split(",")} - {""}
        if unknown := sorted(named - MARKS.keys()):
            raise SettingsError(f"RECALLOG_SCRUB: {unknown[0]!r} is not one of {', '.join(MARKS)}")
        return cls(tuple(sort for sort in MARKS if sort in named)) if named else None

    def scrub(self, text: str) -> tuple[str, Counts]:
        """The text with everything replaced, and the number of replacements."""
        counts: Counter[str] = Counter()
        return self._scrub_text(text, counts), counts

    def scrub_value(self, value: Any) -> tuple[Any, Counts]:
        """A JSON value with its strings scrubbed. The names of fields are not changed."""
        counts: Counter[str] = Counter()
        return self._value(value, counts), counts

    def scrub_event(self, event: Event) -> tuple[Event, Counts]:
        """An event whose payload is scrubbed, except for the fields that its kind defines as names or ids."""
        counts: Counter[str] = Counter()
        names = _names_of(event.kind)
        payload = {
            name: value if name in names else self._value(value, counts) for name, value in event.payload.items()
        }
        return (event.model_copy(update={"payload": payload}) if counts else event), counts

    def scrub_events(self, events: Iterable[Event]) -> list[Event]:
        """Scrubbed events. The caller of the operation is informed of the number of replacements."""
        found = [self.scrub_event(event) for event in events]
        _tell(sum((Counter(counts) for _, counts in found), Counter()))
        return [event for event, _ in found]

    def scrub_given(self, value: Any) -> Any:
        """A value of a caller, scrubbed. The caller is informed of the number of replacements."""
        scrubbed, counts = self.scrub_value(value)
        _tell(counts)
        return scrubbed

    def _value(self, value: Any, counts: Counter[str]) -> Any:
        if isinstance(value, str):
            return self._scrub_text(value, counts)
        if isinstance(value, Mapping):
            return {name: self._value(each, counts) for name, each in value.items()}
        return [self._value(each, counts) for each in value] if isinstance(value, list | tuple) else value

    def _scrub_text(self, text: str, counts: Counter[str]) -> str:
        for sort in self.sorts:
            for shape in shapes()[sort]:
                if shape.needle in text:
                    text = _replace_matches(text, sort, shape, counts)
        return text


def _tell(counts: Counts) -> None:
    if counts:
        notices.tell("scrub", f"replaced before it was stored: {describe_counts(counts)}")


def describe_counts(counts: Counts) -> str:
    """The counts in words: `2 secrets, 1 e-mail address`."""
    return ", ".join(count_noun(count, *_NOUNS[sort]) for sort, count in sorted(counts.items()) if count)


def _replace_matches(text: str, sort: str, shape: Shape, counts: Counter[str]) -> str:
    def replacement(found: re.Match[str]) -> str:
        if not shape.accepts(found):
            return found[0]
        counts[sort] += 1
        group = "it" if "it" in shape.pattern.groupindex else 0
        start, end = (each - found.start() for each in found.span(group))
        return found[0][:start] + MARKS[sort] + found[0][end:]

    return shape.pattern.sub(replacement, text)


@lru_cache(maxsize=1_024)
def _names_of(kind: str) -> frozenset[str]:
    """The fields of a kind's payload whose texts are names, ids, or parts of JSON."""
    fields = kinds.kind_of(kind).payload.model_fields
    return frozenset(name for name, field in fields.items() if _has_names(field.annotation, field.metadata))


def _has_names(annotation: object, metadata: Iterable[object] = ()) -> bool:
    """Whether a type, or a part of it, is for texts in which nothing may be replaced."""
    if isinstance(annotation, FieldInfo):
        return _has_names(annotation.annotation, annotation.metadata)
    parts = (*get_args(annotation), *metadata)
    return isinstance(annotation, OneForm | Encoded) or any(map(_has_names, parts))
