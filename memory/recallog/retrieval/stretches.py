"""Hits from one stretch of a conversation: each names the better hit that is near to it."""

from collections.abc import Iterable, Sequence

from recallog.retrieval.candidates import Candidate
from recallog.retrieval.weights import REACH
from recallog_schemas.views import RecallHit


def join_stretches(hits: Sequence[RecallHit], candidates: Iterable[Candidate]) -> list[RecallHit]:
    """`hits`, best first, each with `near`: the best hit at most `REACH` turns away in its session.

    A hit that has a better one near to it is not named itself, so that further hits do not change the hits before them.
    """
    places = {each.offset: (each.session, each.ordinal) for each in candidates if not each.is_entry}
    best: dict[tuple[str, int], str] = {}
    found = []
    for hit in hits:
        session, ordinal = places.get(hit.position.offset, ("", -1))
        if ordinal < 0:
            found.append(hit)
            continue
        near = None
        for turn in range(ordinal - REACH, ordinal + REACH + 1):
            near = near or best.get((session, turn))
        if near is None:
            best[session, ordinal] = hit.event.id
        found.append(hit if near is None else hit.model_copy(update={"near": near}))
    return found
