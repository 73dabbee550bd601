"""Candidates from the index: the best by vector and by keyword, and their neighbours in the conversation."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from recallog.index.indexer import IndexSnapshot
from recallog.retrieval import ranking
from recallog.retrieval.by_words import inverse_frequency
from recallog.retrieval.channels import LATE_INTERACTION, SEMANTIC
from recallog.retrieval.query import QueryTerms, RecallQuery, query_terms
from recallog.retrieval.ranking import Candidate
from recallog_projections.index import points, terms
from recallog_projections.index.documents import point_id
from recallog_projections.index.embedders.embedder import Embedding, Passage
from recallog_projections.index.engines.engine import Hit, Search, Sparse
from recallog_schemas import limits

_ORDINAL = ("session", "ordinal")
_FIELDS = ("offset", "agent", "kind", "session", "ordinal", "turn", "at", "importance", "is_question", "text_key")


@dataclass(frozen=True, slots=True)
class IndexCandidates:
    """The candidates that the index returned."""

    candidates: list[Candidate]
    idf: dict[str, float]
    """By term of the query: its idf among the memories that the agent may see."""


async def find(index: IndexSnapshot, query: RecallQuery, words: QueryTerms) -> IndexCandidates:
    """The best memories of every channel and their neighbours, scored by every channel. Raises `IndexUnavailable`."""
    by_meaning = bool({SEMANTIC, LATE_INTERACTION} & query.channels)
    embedding = await _embedded(index, query, words) if by_meaning else None
    seeds, idf = await _seeds(index, query, words, embedding)
    ids = list(dict.fromkeys(_around(query.space, seeds)))
    if not ids:
        return IndexCandidates([], idf)
    late_interaction = (
        _late_interaction(embedding, words, idf)
        if index.token_vectors and embedding and LATE_INTERACTION in query.channels
        else None
    )
    return IndexCandidates(await _scored(index, query, ids, embedding, late_interaction, idf), idf)


async def _embedded(index: IndexSnapshot, query: RecallQuery, words: QueryTerms) -> Embedding:
    """The query's embedding, with token vectors of its content words only, like those of memories."""
    (embedding,) = await asyncio.to_thread(index.embedder.embed, [Passage(query.text)])
    used = [
        number
        for number, (start, end) in enumerate(embedding.token_spans)
        if any(first <= start and end <= last for first, last, _ in words.term_spans)
    ]
    vectors = embedding.token_vectors[used]
    spans = [embedding.token_spans[number] for number in used]
    return Embedding(points.blended(embedding.vector, vectors), spans, vectors, embedding.readable)


async def nearest(index: IndexSnapshot, query: RecallQuery, limit: int) -> list[int]:
    """Offsets of the memories with the highest cosine, best first, and newest first if it is equal."""
    embedding = await _embedded(index, query, query_terms(query.text, ()))
    search = Search(query.wanted(), limit, dense=embedding.vector, payload=("offset",))
    (hits,) = await index.engine.search(index.collection, [search])
    best_first = sorted(hits, key=lambda hit: (-hit.score, -hit.payload["offset"]))
    return [hit.payload["offset"] for hit in best_first]


async def events(index: IndexSnapshot, ids: Sequence[str]) -> dict[str, tuple[bytes, str | None]]:
    """The bytes of events, by the ids of their points, each with its declared text; None where its kind has none."""
    stored = await index.engine.retrieve(index.collection, ids, payload=("event", "text"))
    return {key: (str(point.payload["event"]).encode(), point.payload["text"]) for key, point in stored.items()}


async def _seeds(
    index: IndexSnapshot, query: RecallQuery, words: QueryTerms, embedding: Embedding | None
) -> tuple[list[Hit], dict[str, float]]:
    """The best hits of each channel, and the idf of each term of the query."""
    wanted, visible = query.wanted(), query.visible()
    best_of_each = max(limits.RECALL_CANDIDATES, query.top_k)
    searches = []
    if embedding is not None:
        searches.append(Search(wanted, best_of_each, dense=embedding.vector, payload=_ORDINAL))
    if words.terms:
        whole = _sparse(words.terms)
        searches.append(Search(wanted, best_of_each, sparse=whole, corpus=visible, payload=_ORDINAL, with_sparse=True))
    hits = await index.engine.search(index.collection, searches) if searches else []
    idf = await _frequencies(index, query, words, hits[-1]) if words.terms else {}
    return [hit for of_channel in hits for hit in of_channel], idf


async def _frequencies(
    index: IndexSnapshot, query: RecallQuery, words: QueryTerms, found: Sequence[Hit]
) -> dict[str, float]:
    """The idf of each term of the query among the memories that the agent may see.

    The engine computes document frequencies while it searches but does not return them. A hit's score is the sum of
    weight times idf over the terms that it has; the weights are known, so most idf values follow from the scores. For
    the terms that remain, one search each; a term that no memory has gets the idf of frequency 0.
    """
    idf = _solved(words.terms, found)
    unknown = [term for term in words.terms if term not in idf]
    if not unknown:
        return idf
    visible = query.visible()
    searches = [Search(visible, 1, sparse=_sparse([term]), corpus=visible, with_sparse=True) for term in unknown]
    for term, best in zip(unknown, await index.engine.search(index.collection, searches), strict=True):
        idf |= _solved([term], best)
    unused = [term for term in unknown if term not in idf]
    if unused:
        idf |= dict.fromkeys(unused, inverse_frequency(await index.engine.count(index.collection, visible), 0))
    return idf


def _solved(searched: Sequence[str], found: Sequence[Hit]) -> dict[str, float]:
    """The idf values that follow from the scores of hits of a search for the terms `searched`."""
    idf: dict[str, float] = {}
    left = [(hit.score, _weights(hit, searched)) for hit in found]
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


def _weights(hit: Hit, searched: Sequence[str]) -> dict[str, float]:
    """The stored weight of each of the terms `searched` that a hit has."""
    stored = _stored(hit)
    return {term: stored[dimension] for term in searched if (dimension := terms.dimension(term)) in stored}


def _stored(hit: Hit) -> dict[int, float]:
    if hit.sparse is None:
        raise ValueError("the search was made without `with_sparse`")
    return dict(zip(hit.sparse.indices, hit.sparse.values, strict=True))


def _around(space: str, seeds: Iterable[Hit]) -> Iterable[str]:
    for hit in seeds:
        session, ordinal = str(hit.payload["session"]), int(hit.payload["ordinal"])
        for other in range(max(0, ordinal - ranking.REACH), ordinal + ranking.REACH + 1):
            yield point_id(space, session, other)


def _late_interaction(embedding: Embedding, words: QueryTerms, idf: Mapping[str, float]) -> np.ndarray | None:
    """The token vectors of the query's content words, each scaled to its share of the sum of all weights."""
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
    query: RecallQuery,
    ids: Sequence[str],
    embedding: Embedding | None,
    late_interaction: np.ndarray | None,
    idf: Mapping[str, float],
) -> list[Candidate]:
    """The points `ids` that the agent may see, scored by every channel."""
    these = replace(query.visible(), ids=ids)
    # Without a vector of the query any vector will do: the points and their weights are needed, not the cosine.
    dense = embedding.vector if embedding is not None else np.zeros(index.embedder.dimension, np.float32)
    searches = [Search(these, len(ids), dense=dense, exact=True, payload=_FIELDS, with_sparse=True)]
    # One search for each token of the query, so that scores of neighbours can be combined token by token.
    searches += [
        Search(these, len(ids), token_vectors=token[None, :])
        for token in (late_interaction if late_interaction is not None else ())
    ]
    hits = await index.engine.search(index.collection, searches)
    worth = {terms.dimension(term): weight for term, weight in idf.items()}
    found = {hit.id: _candidate(hit, worth, meaning=SEMANTIC in query.channels) for hit in hits[0]}
    if late_interaction is not None:
        scores = {key: [0.0] * len(late_interaction) for key in found}
        for number, of_token in enumerate(hits[1:]):
            for hit in of_token:
                if hit.id in scores:
                    scores[hit.id][number] = max(0.0, hit.score)
        for key, each in found.items():
            each.late_interaction = scores[key]
    return list(found.values())


def _candidate(hit: Hit, worth: Mapping[int, float], *, meaning: bool) -> Candidate:
    """A candidate from a hit; `worth` maps the dimension of each term of the query to its idf."""
    payload, stored = hit.payload, _stored(hit)
    shared = [number for number in worth if number in stored]
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
        text_key=payload["text_key"],
        semantic=hit.score if meaning else None,
        keyword=sum(stored[number] * worth[number] for number in shared),
        coverage=sum(worth[number] for number in shared) / (sum(worth.values()) or 1.0),
    )


def _sparse(searched: Sequence[str]) -> Sparse:
    return terms.sparse(dict.fromkeys(searched, 1.0))
