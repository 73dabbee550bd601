"""Hits that say the same thing: an entry, and the events and entries that it was made from."""

from collections.abc import Awaitable, Callable, Sequence

from recallog_schemas.views import RecallHit


async def best(
    wanted: int, ranked: int, hits_of: Callable[[int, int], Awaitable[Sequence[RecallHit]]]
) -> list[RecallHit]:
    """The `wanted` best hits, each said once. Where some say the same, further ones of the `ranked` follow.

    `hits_of(first, end)` answers those whose places in the ranking are from `first` to before `end`.
    """
    shown: list[RecallHit] = []
    found: list[RecallHit] = []
    while len(found) < wanted and len(shown) < ranked:
        shown += await hits_of(len(shown), min(ranked, len(shown) + wanted - len(found)))
        found = said_once(shown)
    return found


def said_once(hits: Sequence[RecallHit]) -> list[RecallHit]:
    """`hits`, best first, without those of which a better one is the source, or that are a source of a better one.

    The better hit names the others in `also`. A hit that is left out stands for nothing: of two sources of one entry
    that come before it, the first names the entry, and both remain.
    """
    kept: dict[str, RecallHit] = {}
    made_from: dict[str, str] = {}
    """By the id of a source: the kept entry that was made from it."""
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
    """The ids of what an entry was made from."""
    return hit.event.payload.get("sources") or () if hit.is_entry else ()
