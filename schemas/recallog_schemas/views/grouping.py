"""Hits that belong together: those of one stretch of a conversation, and a memory with those that it supersedes."""

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from recallog_schemas.event import Position


class Groupable(Protocol):
    """A hit of recall or of search."""

    @property
    def key(self) -> str: ...
    @property
    def position(self) -> Position: ...
    @property
    def near(self) -> str | None: ...
    @property
    def superseded_by(self) -> str | None: ...


Hit = TypeVar("Hit", bound=Groupable)


def group_hits(hits: Iterable[Hit]) -> list[list[Hit]]:
    """The hits in groups; groups with better hits come first.

    The first hit of a group is the one that supersedes others, else the best one. The others follow in the order in
    which they were said; superseded ones come last.
    """
    by_key = {hit.key: hit for hit in hits}
    groups: dict[str, list[Hit]] = {}
    for hit in by_key.values():
        groups.setdefault(_first(hit, by_key), []).append(hit)
    return [[by_key[first], *_following(by_key[first], group)] for first, group in groups.items()]


def _first(hit: Hit, by_key: dict[str, Hit]) -> str:
    """The key of the first hit of the group of a hit."""
    seen = set[str]()
    while hit.key not in seen:
        seen.add(hit.key)
        for other in (hit.superseded_by, hit.near):
            if other is not None and other in by_key:
                hit = by_key[other]
                break
    return hit.key


def _following(first: Hit, group: Sequence[Hit]) -> list[Hit]:
    others = [hit for hit in group if hit is not first]
    return sorted(others, key=lambda hit: (hit.superseded_by is not None, hit.position.offset))
