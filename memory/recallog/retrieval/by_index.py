"""Recall by the index: candidates by meaning and by words, widened by what was said around them."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from recallog.index.indexer import IndexSnapshot
from recallog.retrieval import ranking
from recallog.retrieval.by_words import inverse_frequency
from recallog.retrieval.channels import LATE_INTERACTION, SEMANTIC
from recallog.retrieval.question import RecallQuery, Words, words_of
from recallog.retrieval.ranking import Candidate
from recallog_projections.index import points, terms
from recallog_projections.index.documents import point_id
from recallog_projections.index.embedders.embedder import Embedding, Passage
from recallog_projections.index.engines.engine import Hit, Search, Sparse
from recallog_schemas import limits

_ORDINAL = ("session", "ordinal")
_FIELDS = ("offset", "agent", "kind", "session", "ordinal", "turn", "at", "importance", "is_question")


@dataclass(frozen=True, slots=True)
class IndexCandidates:
    """What the index knows about a question."""

    candidates: list[Candidate]
    idf: dict[str, float]
    """Of each term of the question, among what the asker may see."""


async def find(index: IndexSnapshot, question: RecallQuery, words: Words) -> IndexCandidates:
    """Every channel's best memories and their neighbours, each scored by every channel. Raises `IndexUnavailable`."""
    by_meaning = bool({SEMANTIC, LATE_INTERACTION} & question.channels)
    embedding = await _embedded(index, question, words) if by_meaning else None
    seeds, idf = await _seeds(index, question, words, embedding)
    ids = list(dict.fromkeys(_around(question.space, seeds)))
    if not ids:
        return IndexCandidates([], idf)
    late_interaction = (
        _late_interaction(embedding, words, idf)
        if index.token_vectors and embedding and LATE_INTERACTION in question.channels
        else None
    )
    return IndexCandidates(await _scored(index, question, ids, embedding, late_interaction, idf), idf)


async def _embedded(index: IndexSnapshot, question: RecallQuery, words: Words) -> Embedding:
    """The question as the index sees texts: its vector as theirs is made, its pieces those of its content words."""
    (embedding,) = await asyncio.to_thread(index.embedder.embed, [Passage(question.query, 0)])
    used = [
        number
        for number, (start, end) in enumerate(embedding.token_spans)
        if any(first <= start and end <= last for first, last, _ in words.term_spans)
    ]
    vectors = embedding.token_vectors[used]
    spans = [embedding.token_spans[number] for number in used]
    return Embedding(points.focused(embedding.vector, vectors), spans, vectors)


async def nearest(index: IndexSnapshot, question: RecallQuery, limit: int) -> list[int]:
    """The offsets of the memories that are nearest in meaning, nearest first; of equal ones the newer first."""
    embedding = await _embedded(index, question, words_of(question.query, ()))
    search = Search(question.wanted(), limit, dense=embedding.vector, payload=("offset",))
    (hits,) = await index.engine.search(index.collection, [search])
    best_first = sorted(hits, key=lambda hit: (-hit.score, -hit.payload["offset"]))
    return [hit.payload["offset"] for hit in best_first]


async def events(index: IndexSnapshot, ids: Sequence[str]) -> dict[str, tuple[bytes, str | None]]:
    """The events of points by their ids, each with its text by the declaration of its kind, where there is one."""
    stored = await index.engine.retrieve(index.collection, ids, payload=("event", "text"))
    return {key: (str(point.payload["event"]).encode(), point.payload["text"]) for key, point in stored.items()}


async def _seeds(
    index: IndexSnapshot, question: RecallQuery, words: Words, embedding: Embedding | None
) -> tuple[list[Hit], dict[str, float]]:
    """The best of each channel, and the idf of each term of the question."""
    wanted, visible = question.wanted(), question.visible()
    best_of_each = max(limits.RECALL_CANDIDATES, question.top_k)
    searches = []
    if embedding is not None:
        searches.append(Search(wanted, best_of_each, dense=embedding.vector, payload=_ORDINAL))
    if words.terms:
        whole = _sparse(words.terms)
        searches.append(Search(wanted, best_of_each, sparse=whole, corpus=visible, payload=_ORDINAL, with_sparse=True))
    hits = await index.engine.search(index.collection, searches) if searches else []
    idf = await _frequencies(index, question, words, hits[-1]) if words.terms else {}
    return [hit for of_channel in hits for hit in of_channel], idf


async def _frequencies(
    index: IndexSnapshot, question: RecallQuery, words: Words, found: Sequence[Hit]
) -> dict[str, float]:
    """The idf of each term of the question among what the asker may see.

    The engine counts how many texts have each term while it searches, and does not tell. But a hit's score is the sum
    of weight times idf of the terms it has: with the weights at hand, what is unknown follows term by term. What does
    not follow is asked for, term by term; a term that nobody used is as rare as can be.
    """
    idf = _solved(words.terms, found)
    unknown = [term for term in words.terms if term not in idf]
    if not unknown:
        return idf
    visible = question.visible()
    searches = [Search(visible, 1, sparse=_sparse([term]), corpus=visible, with_sparse=True) for term in unknown]
    for term, best in zip(unknown, await index.engine.search(index.collection, searches), strict=True):
        idf |= _solved([term], best)
    unused = [term for term in unknown if term not in idf]
    if unused:
        idf |= dict.fromkeys(unused, inverse_frequency(await index.engine.count(index.collection, visible), 0))
    return idf


def _solved(asked: Sequence[str], found: Sequence[Hit]) -> dict[str, float]:
    """The idf of those terms that follow from the scores of hits of all terms `asked`."""
    idf: dict[str, float] = {}
    left = [(hit.score, _weights(hit, asked)) for hit in found]
    while left:
        still = []
        for score, weights in left:
            unknown = [term for term in weights if term not in idf]
            if len(unknown) == 1:
                known = sum(weight * idf[term] for term, weight in weights.items() if term in idf)
                idf[unknown[0]] = max(0.0, score - known) / weights[unknown[0]]
            elif unknown:
                still.append((score, weights))
        if len(still) == len(left):
            break
        left = still
    return idf


def _weights(hit: Hit, asked: Sequence[str]) -> dict[str, float]:
    """The stored weight of each term `asked` that a hit has."""
    stored = _stored(hit)
    return {term: stored[number] for term in asked if (number := terms.number(term)) in stored}


def _stored(hit: Hit) -> dict[int, float]:
    if hit.sparse is None:
        raise ValueError("the hit's weights were not asked for")
    return dict(zip(hit.sparse.indices, hit.sparse.values, strict=True))


def _around(space: str, seeds: Iterable[Hit]) -> Iterable[str]:
    for hit in seeds:
        session, ordinal = str(hit.payload["session"]), int(hit.payload["ordinal"])
        for other in range(max(0, ordinal - ranking.REACH), ordinal + ranking.REACH + 1):
            yield point_id(space, session, other)


def _late_interaction(embedding: Embedding, words: Words, idf: Mapping[str, float]) -> np.ndarray | None:
    """The question's content word-pieces, each as long as its share of the weights of all of them."""
    of_word = [
        max(idf.get(term, 0.0) for first, last, term in words.term_spans if first <= start and end <= last)
        for start, end in embedding.token_spans
    ]
    weights = np.array(of_word, np.float32) ** ranking.LATE_IDF_POWER
    if not weights.any():
        return None
    scaled: np.ndarray = embedding.token_vectors * (weights / weights.sum())[:, None]
    return scaled[weights > 0]


async def _scored(
    index: IndexSnapshot,
    question: RecallQuery,
    ids: Sequence[str],
    embedding: Embedding | None,
    late_interaction: np.ndarray | None,
    idf: Mapping[str, float],
) -> list[Candidate]:
    """The candidates `ids` that the agent may see, scored by every channel."""
    these = replace(question.visible(), ids=ids)
    # Without a vector of the question any will do: it is the points and their weights that are wanted.
    dense = embedding.vector if embedding is not None else np.zeros(index.embedder.dimension, np.float32)
    searches = [Search(these, len(ids), dense=dense, exact=True, payload=_FIELDS, with_sparse=True)]
    # One search for each piece of the question: what a memory lacks of it, the ones around it may have.
    searches += [
        Search(these, len(ids), token_vectors=piece[None, :])
        for piece in (late_interaction if late_interaction is not None else ())
    ]
    hits = await index.engine.search(index.collection, searches)
    worth = [(terms.number(term), weight) for term, weight in idf.items()]
    found = {hit.id: _candidate(hit, worth, meaning=SEMANTIC in question.channels) for hit in hits[0]}
    if late_interaction is not None:
        scores = {key: [0.0] * len(late_interaction) for key in found}
        for number, of_piece in enumerate(hits[1:]):
            for hit in of_piece:
                if hit.id in scores:
                    scores[hit.id][number] = max(0.0, hit.score)
        for key, each in found.items():
            each.late_interaction = scores[key]
    return list(found.values())


def _candidate(hit: Hit, worth: Sequence[tuple[int, float]], *, meaning: bool) -> Candidate:
    """A hit with its keyword score, where a term's number is `worth` its idf."""
    payload, stored = hit.payload, _stored(hit)
    return Candidate(
        id=hit.id,
        offset=payload["offset"],
        agent=payload["agent"],
        kind=payload["kind"],
        session=payload["session"],
        ordinal=payload["ordinal"],
        turn=payload["turn"],
        importance=payload["importance"],
        at=payload["at"],
        is_question=payload["is_question"],
        semantic=hit.score if meaning else None,
        keyword=sum(stored[number] * idf for number, idf in worth if number in stored),
    )


def _sparse(asked: Sequence[str]) -> Sparse:
    return terms.sparse(dict.fromkeys(asked, 1.0))
