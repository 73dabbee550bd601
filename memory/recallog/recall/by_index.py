"""Recall by the index: candidates by meaning and by words, widened by what was said around them."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from recallog.index.asking import Opened
from recallog.recall.by_words import inverse_frequency
from recallog.recall.question import Question, Words
from recallog_projections.index import ranking, terms
from recallog_projections.index.documents import point_id
from recallog_projections.index.embedder import Embedding, Passage
from recallog_projections.index.engine import Hit, Search, Sparse
from recallog_projections.index.ranking import Candidate
from recallog_schemas import limits

_PLACE = ("session", "place")
_FIELDS = ("offset", "agent", "kind", "session", "place", "turn", "at", "asks")


@dataclass(frozen=True, slots=True)
class Found:
    """What the index knows about a question."""

    candidates: list[Candidate]
    sessions: dict[str, float]
    """See `ranking.Asked`."""
    idf: dict[str, float]
    """Of each term of the question."""


async def find(index: Opened, question: Question, words: Words) -> Found:
    """Every channel's best memories and their neighbours, each scored by every channel. Raises `IndexUnavailable`."""
    by_meaning = bool({ranking.SEMANTIC, ranking.LATE} & question.channels)
    embedding = (await asyncio.to_thread(index.embedder.embed, [Passage(question.query, 0)]))[0] if by_meaning else None
    seeds, sessions, idf = await _seeds(index, question, words, embedding)
    ids = list(dict.fromkeys(_around(question.space, seeds)))
    if not ids:
        return Found([], sessions, idf)
    late = _late(embedding, words, idf) if index.pieces and embedding and ranking.LATE in question.channels else None
    return Found(await _scored(index, question, words, ids, embedding, late), sessions, idf)


async def nearest(index: Opened, question: Question, limit: int) -> list[int]:
    """The offsets of the memories that are nearest in meaning, nearest first; of equal ones the newer first."""
    embedding = (await asyncio.to_thread(index.embedder.embed, [Passage(question.query)]))[0]
    search = Search(question.wanted(), limit, dense=embedding.vector, payload=("offset",))
    (hits,) = await index.engine.search(index.collection, [search])
    best_first = sorted(hits, key=lambda hit: (-hit.score, -hit.payload["offset"]))
    return [hit.payload["offset"] for hit in best_first]


async def events(index: Opened, ids: Sequence[str]) -> dict[str, bytes]:
    """The events of points by their ids."""
    stored = await index.engine.retrieve(index.collection, ids, payload=("event",))
    return {key: str(point.payload["event"]).encode() for key, point in stored.items()}


async def _seeds(
    index: Opened, question: Question, words: Words, embedding: Embedding | None
) -> tuple[list[Hit], dict[str, float], dict[str, float]]:
    """The best of each channel; what each session speaks of; the idf of each term of the question."""
    wanted, visible = question.wanted(), question.visible()
    best_of_each = max(limits.RECALL_CANDIDATES, question.top_k)
    searches = []
    if embedding is not None:
        searches.append(Search(wanted, best_of_each, dense=embedding.vector, payload=_PLACE))
    if words.terms:
        whole = _sparse(words.terms)
        searches.append(Search(wanted, best_of_each, sparse=whole, corpus=visible, payload=_PLACE))
    first = len(searches)
    for term in words.terms:
        one = _sparse([term])
        searches.append(Search(visible, 1, sparse=one, corpus=visible, with_sparse=True))
        searches.append(Search(visible, limits.RECALL_TERM_HITS, sparse=one, corpus=visible, payload=("session",)))
    hits = await index.engine.search(index.collection, searches) if searches else []
    idf: dict[str, float] = {}
    sessions: dict[str, float] = {}
    for number, term in enumerate(words.terms):
        best, holding = hits[first + 2 * number], hits[first + 2 * number + 1]
        if best:
            idf[term] = _idf(best[0], term)
            for session in {str(hit.payload["session"]) for hit in holding}:
                sessions[session] = sessions.get(session, 0.0) + idf[term]
    unseen = [term for term in words.terms if term not in idf]
    if unseen:
        rarest = inverse_frequency(await index.engine.count(index.collection, visible), 0)
        idf |= dict.fromkeys(unseen, rarest)
    return [hit for of_channel in hits[:first] for hit in of_channel], sessions, idf


def _idf(hit: Hit, term: str) -> float:
    """The term's idf among what the asker may see: the engine's score is idf times the weight that is stored."""
    if hit.sparse is None:
        raise ValueError("the hit's weights were not asked for")
    weights = dict(zip(hit.sparse.indices, hit.sparse.values, strict=True))
    return hit.score / weights[terms.number(term)]


def _around(space: str, seeds: Iterable[Hit]) -> Iterable[str]:
    for hit in seeds:
        session, place = str(hit.payload["session"]), int(hit.payload["place"])
        for other in range(max(0, place - ranking.REACH), place + ranking.REACH + 1):
            yield point_id(space, session, other)


def _late(embedding: Embedding, words: Words, idf: Mapping[str, float]) -> np.ndarray | None:
    """The question's content word-pieces, each as long as its share of the weights of all of them."""
    weights = np.zeros(len(embedding.pieces), np.float32)
    for number, (start, end) in enumerate(embedding.pieces):
        of_word = [idf.get(term, 0.0) for first, last, term in words.pieces if first <= start and end <= last]
        weights[number] = max(of_word, default=0.0) ** ranking.LATE_IDF_POWER
    total = float(weights.sum())
    if not total:
        return None
    used = weights > 0
    scaled: np.ndarray = embedding.piece_vectors[used] * (weights[used] / total)[:, None]
    return scaled


async def _scored(
    index: Opened,
    question: Question,
    words: Words,
    ids: Sequence[str],
    embedding: Embedding | None,
    late: np.ndarray | None,
) -> list[Candidate]:
    """The candidates `ids` that the agent may see, scored by every channel."""
    visible = question.visible()
    these = replace(visible, ids=ids)
    searches = []
    if embedding is not None:
        searches.append(Search(these, len(ids), dense=embedding.vector, exact=True, payload=_FIELDS))
    if words.terms:
        fields = () if embedding is not None else _FIELDS
        searches.append(Search(these, len(ids), sparse=_sparse(words.terms), corpus=visible, payload=fields))
    if late is not None:
        searches.append(Search(these, len(ids), pieces=late))
    hits = iter(await index.engine.search(index.collection, searches))
    found: dict[str, Candidate] = {}
    if embedding is not None:
        for hit in next(hits):
            found[hit.id] = replace(_candidate(hit.id, hit.payload), semantic=hit.score)
    if words.terms:
        for hit in next(hits):
            known = found.get(hit.id) or _candidate(hit.id, hit.payload)
            known.keyword = hit.score
            found[hit.id] = known
    if late is not None:
        for hit in next(hits):
            if hit.id in found:
                found[hit.id].late = hit.score
    return list(found.values())


def _candidate(key: str, payload: Mapping[str, Any]) -> Candidate:
    return Candidate(
        id=key,
        offset=payload["offset"],
        agent=payload["agent"],
        kind=payload["kind"],
        session=payload["session"],
        place=payload["place"],
        turn=payload["turn"],
        at=payload["at"],
        asks=payload["asks"],
    )


def _sparse(asked: Sequence[str]) -> Sparse:
    return terms.sparse(dict.fromkeys(asked, 1.0))
