"""Which of the candidates answer a question best. Pure: scores in, an order and its reasons out.

The weights were found on three public conversations and are not delicate; `docs/recall.md` has what each term is worth.
A candidate's own score is the weighted sum of its channels. Conversation structure comes on top: what was said around
it in its session, whether it follows a question, whether the question names its author, and how much of the question
its whole session speaks of.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from recallog_projections import salience
from recallog_schemas import kinds

SEMANTIC, KEYWORD, LATE, STRUCTURE, TEMPORAL, SALIENCE = (
    "semantic",
    "keyword",
    "late",
    "structure",
    "temporal",
    "salience",
)
CHANNELS = frozenset({SEMANTIC, KEYWORD, LATE, STRUCTURE, TEMPORAL, SALIENCE})
DEFAULT_CHANNELS = frozenset({SEMANTIC, KEYWORD, LATE, STRUCTURE})
WEIGHTED, RRF = "weighted", "rrf"
FUSIONS = (WEIGHTED, RRF)

REACH = 4
"""How many turns before and after a candidate count for it."""
RRF_K = 60
"""Cormack, Clarke and Buettcher, 2009; ranks from 1."""

_NEIGHBOUR = 0.4
_NEIGHBOUR_DECAY = 0.5
_ANSWER = 0.2
_AUTHOR = 0.3
_SESSION = 0.2
_TEMPORAL = 0.3
_SALIENCE = 0.3
_HALF_LIFE_DAYS = 7.0
_DAY = 86_400 * 1_000_000


@dataclass(slots=True)
class Candidate:
    """One memory, and what the channels say of it."""

    id: str
    """Its point's; "" where the index does not have it."""
    offset: int
    agent: str
    kind: str
    session: str
    place: int
    """Its ordinal in the session."""
    turn: int
    at: int
    """Microseconds since 1970."""
    asks: bool
    semantic: float | None = None
    """Cosine with the question; None where it is not known."""
    late: float | None = None
    """0 to 1: the mean, weighted by idf, of the best cosine of each word-piece of the question with one of its own."""
    keyword: float = 0.0
    """BM25."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a ranking needs of the question and of where it is asked."""

    authors: Collection[str] = ()
    """Agents that the question names."""
    sessions: Mapping[str, float] = field(default_factory=dict)
    """Of each session, the summed idf of the question's terms that are spoken of in it."""
    channels: Collection[str] = DEFAULT_CHANNELS
    fusion: str = WEIGHTED
    now: int = 0
    """The moment that age is measured from, microseconds since 1970: never the wall clock."""
    turn: int = 0
    """The turn that recency is measured from."""


@dataclass(frozen=True, slots=True)
class Ranked:
    candidate: Candidate
    score: float
    parts: Mapping[str, float]
    """What the score is the sum of."""


def rank(candidates: Sequence[Candidate], asked: Asked) -> list[Ranked]:
    """All candidates, best first; of equal ones the newer."""
    own = _reciprocal_ranks(candidates, asked) if asked.fusion == RRF else _weighted(candidates, asked)
    parts = _with_structure(candidates, own, asked) if STRUCTURE in asked.channels else own
    ranked = [Ranked(each, sum(terms.values()), terms) for each, terms in zip(candidates, parts, strict=True)]
    ranked.sort(key=lambda one: (-one.score, -one.candidate.offset))
    return ranked


def _weighted(candidates: Sequence[Candidate], asked: Asked) -> list[dict[str, float]]:
    """Channels normalised to 0..1 where they have no natural scale, and weighted."""
    weights = _weights(candidates, asked.channels)
    best = max((each.keyword for each in candidates), default=0.0) or 1.0
    found = []
    for each in candidates:
        terms = {}
        for name, weight in weights.items():
            value = _value(each, name, asked)
            terms[name] = weight * (value / best if name == KEYWORD else value)
        found.append(terms)
    return found


def _weights(candidates: Sequence[Candidate], channels: Collection[str]) -> dict[str, float]:
    known = {
        SEMANTIC: any(each.semantic is not None for each in candidates),
        LATE: any(each.late is not None for each in candidates),
    }
    used = {name for name in channels if known.get(name, True)}
    if LATE in used:
        weights = {KEYWORD: 0.4, SEMANTIC: 0.5, LATE: 0.8}
    elif SEMANTIC in used:
        weights = {KEYWORD: 0.5, SEMANTIC: 0.8}
    else:
        weights = {KEYWORD: 0.6}
    weights |= {TEMPORAL: _TEMPORAL, SALIENCE: _SALIENCE}
    return {name: weight for name, weight in weights.items() if name in used}


def _value(each: Candidate, channel: str, asked: Asked) -> float:
    if channel == KEYWORD:
        return each.keyword
    if channel == SEMANTIC:
        return max(each.semantic or 0.0, 0.0)
    if channel == LATE:
        return max(each.late or 0.0, 0.0)
    if channel == TEMPORAL:
        return math.exp(-math.log(2) * max(0, asked.now - each.at) / (_HALF_LIFE_DAYS * _DAY))
    importance, recency = kinds.kind_of(each.kind).importance, salience.recency(each.turn, asked.turn)
    weights = salience.Weights()
    return (weights.recency * recency + weights.importance * importance) / (weights.recency + weights.importance)


def _reciprocal_ranks(candidates: Sequence[Candidate], asked: Asked) -> list[dict[str, float]]:
    found: list[dict[str, float]] = [{} for _ in candidates]
    for name in _weights(candidates, asked.channels):
        values = [(_value(each, name, asked), each.offset, number) for number, each in enumerate(candidates)]
        hits = sorted((value for value in values if value[0] > 0), key=lambda value: (-value[0], -value[1]))
        for place, (_, _, number) in enumerate(hits, 1):
            found[number][name] = 1 / (RRF_K + place)
    return found


def _with_structure(
    candidates: Sequence[Candidate], own: Sequence[Mapping[str, float]], asked: Asked
) -> list[dict[str, float]]:
    scale = 1 / (RRF_K + 1) if asked.fusion == RRF else 1.0  # so that structure does not drown the ranks
    scores = [sum(terms.values()) for terms in own]
    places = {(each.session, each.place): number for number, each in enumerate(candidates)}
    most = max(asked.sessions.values(), default=0.0) or 1.0
    found = []
    for each, terms in zip(candidates, own, strict=True):
        more = dict(terms)
        around = 0.0
        for distance in range(1, REACH + 1):
            sides = [places.get((each.session, each.place + step)) for step in (-distance, distance)]
            better = max((scores[side] for side in sides if side is not None), default=0.0)
            around += _NEIGHBOUR * _NEIGHBOUR_DECAY ** (distance - 1) * better
        more["neighbours"] = around
        before = places.get((each.session, each.place - 1))
        if before is not None and candidates[before].asks:
            more["answer"] = _ANSWER * scores[before]
        if each.agent in asked.authors:
            more["author"] = _AUTHOR * scale
        if asked.sessions.get(each.session):
            more["session"] = _SESSION * scale * asked.sessions[each.session] / most
        found.append(more)
    return found
