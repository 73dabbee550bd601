"""Names that are probably misspelt: kinds of events, fields of payloads, agents; and times that are ahead.

All of them are allowed, since kinds and fields are open sets and an agent may only read. Therefore they are not errors,
but the caller gets the nearest known name; see `notices.tell`.
"""

import re
import time
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher, get_close_matches

from recallog_projections import notices
from recallog_schemas import Event, kinds
from recallog_schemas.event import ahead_of

_SIMILAR = 0.8
"""The least similarity, by `difflib`, of two words that are considered spellings of one word."""
_NUMBER = re.compile(r"\d+")
_IRREGULAR = {"speak": "spoke", "speaks": "spoke", "think": "thought", "thinks": "thought", "find": "found"}
"""Other forms of the verbs in kinds that are not similar to them."""
_ENDINGS = ("s", "ed", "ing")


def tell_ahead(events: Sequence[Event]) -> None:
    """Warn the caller about events that are dated more than a day ahead."""
    limit = ahead_of(time.time_ns() // 1_000_000)
    found = [event for event in events if event.at > limit]
    if found:
        first = f"the event {found[0].id} is dated more than a day ahead ({found[0].at.isoformat()}), and sets no clock"
        notices.tell("publish", first if len(found) == 1 else f"{first}; so are {len(found) - 1:,} more")


def field_of(event: Event) -> str | None:
    """A field of the payload that its kind does not have, if the kind has a field with a similar name that is absent;
    else None."""
    unknown = event.payload.keys() - _fields(event.kind)
    return next((name for name in unknown if near_field(event.kind, name) not in (None, *event.payload)), None)


def is_plain(event: Event) -> bool:
    """Whether the catalogue has the kind of an event and all fields of its payload, which is the case for most
    events."""
    return event.kind in kinds.CATALOGUE and event.payload.keys() <= _fields(event.kind)


@kinds.cache_by_catalogue
def near_kind(kind: str) -> str | None:
    """The kind of the catalogue that was probably meant; None if the kind is in the catalogue, or unlike all others."""
    if kind in kinds.CATALOGUE:
        return None
    words = kind.split(".")
    ranked = [(_likeness(words, known.split(".")), known) for known in kinds.CATALOGUE]
    best, known = max(ranked)
    return known if best else None


@kinds.cache_by_catalogue
def near_field(kind: str, name: str) -> str | None:
    """The field of a kind's payload that was probably meant."""
    return next(iter(get_close_matches(name, _fields(kind), 1, _SIMILAR)), None)


def near_agent(name: str, known: Iterable[str]) -> str | None:
    """The agent that was probably meant. Names that differ in a number are different names."""
    by_folded = {each.casefold(): each for each in known if _numbers(each) == _numbers(name)}
    similar = get_close_matches(name.casefold(), by_folded, 1, _SIMILAR)
    return by_folded[similar[0]] if similar else None


@kinds.cache_by_catalogue
def _fields(kind: str) -> frozenset[str]:
    return frozenset(kinds.CATALOGUE[kind].payload.model_fields) if kind in kinds.CATALOGUE else frozenset()


def _likeness(words: Sequence[str], known: Sequence[str]) -> float:
    """How similar two kinds are, from 0 to 1; 0 if any of their words are not similar."""
    if len(words) != len(known):
        return 0.0
    found = [_similarity(_IRREGULAR.get(one, one), other) for one, other in zip(words, known, strict=True)]
    return sum(found) / len(found) if min(found) >= _SIMILAR else 0.0


def _similarity(word: str, other: str) -> float:
    if word == other:
        return 1.0
    shorter, longer = sorted((word, other), key=len)
    if any(shorter.removesuffix("e") + ending == longer for ending in _ENDINGS):
        return _SIMILAR  # short words differ much by their endings: end, ended
    return SequenceMatcher(None, word, other).ratio()


def _numbers(name: str) -> list[str]:
    return _NUMBER.findall(name)
