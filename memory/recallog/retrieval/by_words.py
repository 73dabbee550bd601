"""Recall without an index: BM25 over what the views keep, which are the newest events that an agent may see."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from recallog.retrieval.query import micros
from recallog.retrieval.ranking import Candidate
from recallog_projections.index import documents, points, terms
from recallog_projections.views.episodic import RememberedEvent
from recallog_schemas import codec, limits

_BEHIND_THE_INDEX = 1 << 40
"""Places of what the index does not have yet: behind those of all that it has, which counts them otherwise."""


class _Read(NamedTuple):
    """What of a memory is compared; read once, since each question of each agent asks for it."""

    agent: str
    kind: str
    session: str
    at: int
    is_question: bool
    weights: dict[str, float] | None
    """None: it says nothing."""


_read: dict[tuple[bytes, str | None], _Read] = {}
"""By an event's bytes and the text that its space gives it."""


@dataclass(slots=True)
class KeywordCandidates:
    """Candidates whose words were compared."""

    candidates: list[Candidate]
    sessions: dict[str, float]
    """See `ranking.Asked`."""
    idf: dict[str, float]
    """Of each term of the question."""
    memories: dict[int, RememberedEvent]
    """By offset."""


def candidates(memories: Sequence[RememberedEvent], asked: Sequence[str], beyond: int = -1) -> KeywordCandidates:
    """Those of `memories` (in ledger order) beyond an offset that have words, scored by the terms `asked`.

    Their places count from what the agent may see: there is nothing else here.
    """
    read = [(memory, _of(memory)) for memory in memories]
    said = [(memory, kept, kept.weights) for memory, kept in read if kept.weights is not None]
    frequency = Counter(term for term in asked for _, _, weights in said if term in weights)
    idf = {term: inverse_frequency(len(said), frequency[term]) for term in asked}
    whole = sum(idf.values()) or 1.0
    ordinals: Counter[str] = Counter()
    found = KeywordCandidates([], {}, idf, {})
    spoken: dict[str, set[str]] = {}
    for memory, kept, weights in said:
        ordinal = ordinals[kept.session] + (_BEHIND_THE_INDEX if beyond >= 0 else 0)
        ordinals[kept.session] += 1
        matching = [term for term in asked if term in weights]
        spoken.setdefault(kept.session, set()).update(matching)
        if memory.offset <= beyond:
            continue
        found.memories[memory.offset] = memory
        found.candidates.append(
            Candidate(
                id="",
                offset=memory.offset,
                agent=kept.agent,
                kind=kept.kind,
                session=kept.session,
                ordinal=ordinal,
                turn=memory.turn,
                importance=memory.importance,
                at=kept.at,
                is_question=kept.is_question,
                keyword=sum(idf[term] * weights[term] for term in matching),
                coverage=sum(idf[term] for term in matching) / whole,
            )
        )
    found.sessions = {session: sum(idf[term] for term in matched) for session, matched in spoken.items()}
    return found


def inverse_frequency(texts: int, holding: int) -> float:
    """idf of a term that `holding` of `texts` texts have; the form that is never negative (as in Lucene)."""
    return math.log(1 + (texts - holding + 0.5) / (holding + 0.5))


def _of(memory: RememberedEvent) -> _Read:
    key = memory.data, memory.text
    kept = _read.get(key)
    if kept is None:
        event = codec.decode(memory.data)
        text = documents.clean(memory.text if memory.text is not None else event.text)
        at = micros(event.at)
        weights = terms.weights(points.terms_of(text, at)) if text else None
        kept = _Read(event.agent, event.kind, event.session or "", at, documents.is_question(text), weights)
        if len(_read) >= limits.CACHED_MEMORIES_MAX:
            _read.clear()
        _read[key] = kept
    return kept
