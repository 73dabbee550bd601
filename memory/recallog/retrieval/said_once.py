"""Hits that say the same thing: an entry, and the events and entries that it was made from."""

from collections.abc import Awaitable, Callable, Sequence

from recallog_schemas.views import RecallHit


async def best(
    wanted: int, ranked: int, hits_of: Callable[[int, int], Awaitable[Sequence[RecallHit]]]
) -> list[RecallHit]:
    """The `wanted` best hits without repetitions. Further hits of the `ranked` ones take the places of repetitions.

    `hits_of(first, end)` returns the hits at the places `first` to `end` - 1 of the ranking.
    """
    shown: list[RecallHit] = []
    found: list[RecallHit] = []
    while len(found) < wanted and len(shown) < ranked:
        shown += await hits_of(len(shown), min(ranked, len(shown) + wanted - len(found)))
        found = said_once(shown)
    return found


def said_once(hits: Sequence[RecallHit]) -> list[RecallHit]:
    """`hits`, best first, without each hit that is a source of a better hit, or that was made from a better hit.

    The better hit names the others in `also`. A hit that was left out does not exclude others: if two sources of one
    entry come before it, the first source names the entry, and both sources remain.
    """
    kept: dict[str, RecallHit] = {}
    made_from: dict[str, str] = {}
    """By the id of a source: the entry made from it that was kept."""
    also: dict[str, list[str]] = {}
    for hit in hits:
        id_, sources = hit.event.id, _sources(hit)
        better = made_from.get(id_) or next((source for source in sources if source in kept), None)
        if better is not None:
            also.setdefault(better, []).append(id_)
            continue
        kept[id_] = hit
        for source in sources:
            made_from.setdefault(source, id_)
    if not also:
        return list(hits)
    return [hit.model_copy(update={"also": tuple(also.get(id_, ()))}) for id_, hit in kept.items()]


def _sources(hit: RecallHit) -> Sequence[str]:
    """The ids of the sources of an entry; empty for an event."""
    return hit.event.payload.get("sources") or () if hit.is_entry else ()
