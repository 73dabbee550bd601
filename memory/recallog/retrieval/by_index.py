"""Candidates from the index: the best by vector and by keyword, and their neighbours in the conversation."""

import asyncio
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from recallog.index.indexer import IndexSnapshot
from recallog.retrieval.by_words import inverse_frequency
from recallog.retrieval.candidates import Candidate
from recallog.retrieval.channels import LATE_INTERACTION, SEMANTIC
from recallog.retrieval.query import QueryTerms, RecallQuery, query_terms
from recallog.retrieval.time_scope import TimeScope
from recallog.retrieval.weights import LATE_IDF_POWER, REACH
from recallog_projections.index import identifiers, points, terms, token_codec
from recallog_projections.index.documents import ALONE, point_id
from recallog_projections.index.embedders.embedder import Embedder, Embedding, Vectors
from recallog_projections.index.engines.engine import EVERYBODY, Filter, Hit, Search, Sparse, in_points
from recallog_projections.index.language.character_forms import without_unused_forms
from recallog_schemas import limits
from recallog_schemas.errors import IndexDamaged

_ORDINAL = ("session", "ordinal")
_FIELDS = (
    *_ORDINAL,
    "offset",
    "agent",
    "kind",
    "turn",
    "at",
    "importance",
    "is_question",
    "length",
    "text_key",
    "entry",
)


@dataclass(frozen=True, slots=True)
class IndexCandidates:
    """The candidates that the index returned."""

    candidates: list[Candidate]
    idf: dict[str, float]
    """By term of the query: its idf among the memories that the agent may see."""
    sessions: dict[str, float]
    """By session: the summed idf of the query's terms that its best memories contain. Empty if vectors are compared."""


@dataclass(frozen=True, slots=True)
class NearestMemories:
    """The memories that are nearest to a query."""

    offsets: list[int]
    """Best first; of equal ones the newest first."""
    by_vectors: bool
    """Whether vectors were compared. If not, the model cannot read the query, and words were compared."""


@dataclass(frozen=True, slots=True)
class QuestionVectors:
    """The vectors of a question."""

    own: Embedding | None
    """From the model of the index, with token vectors of content words only, as memories have; None if the model cannot
    read the question."""
    multilingual: Vectors | None = None
    """The vector of the second model; None if there is no second model, or if no text needs it."""

    def __bool__(self) -> bool:
        return self.own is not None or self.multilingual is not None


async def find(
    index: IndexSnapshot, query: RecallQuery, words: QueryTerms, scope: TimeScope | None = None
) -> IndexCandidates:
    """The best memories of every channel and their neighbours, scored by every channel.

    With a `scope` the best memories in it are candidates too. Raises `IndexUnavailable`, and `IndexDamaged` for a
    payload that cannot be read.
    """
    asked, (by_terms, idf) = await asyncio.gather(
        embed_query(index, query, words) if compares_meaning(query) else _nothing(),
        _by_terms(index, query, words.terms, scope),
    )
    by_vector = await _by_vector(index, query, asked, words.terms, scope)
    with readable_payloads():
        sessions = {} if asked else _sessions(by_terms, idf)
        ids = list(dict.fromkeys(_around(query.space, [*by_vector, *by_terms])))
    if not ids:
        return IndexCandidates([], idf, sessions)
    late_interaction = (
        _late_interaction(asked.own, words, idf)
        if index.token_vectors and asked.own and LATE_INTERACTION in query.channels
        else None
    )
    with readable_payloads():
        candidates = await _score_points(index, query, ids, asked, late_interaction, idf)
    return IndexCandidates(candidates, idf, sessions)


def compares_meaning(query: RecallQuery) -> bool:
    """Whether the query is compared by vectors."""
    return bool({SEMANTIC, LATE_INTERACTION} & query.channels)


@contextmanager
def readable_payloads() -> Iterator[None]:
    """Raise `IndexDamaged` if a payload lacks a field, or if a field has the wrong type."""
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        raise IndexDamaged(f"a point of the index is damaged: {type(error).__name__}: {error}") from error


async def _nothing() -> QuestionVectors:
    return QuestionVectors(None)


async def embed_query(index: IndexSnapshot, query: RecallQuery, words: QueryTerms | None = None) -> QuestionVectors:
    """The query's vectors. With `words`, one half of each is the mean of its content words, as in vectors of memories.

    The second model reads a query that the first one cannot read. It reads every query if the agent may see texts that
    only the second model has read.
    """
    first = await index.questions.embedding(index.embedder, query.text)
    own = _of_content_words(first, words) if first.readable else None
    second = index.embedder.multilingual
    if second is None:
        return QuestionVectors(own)
    if own is not None and not await index.engine.has_any(
        index.collection, replace(query.visible(), only_multilingual=True)
    ):
        return QuestionVectors(own)
    other = _of_content_words(await index.questions.embedding(second, query.text), words)
    return QuestionVectors(own, other.vector)


def _of_content_words(embedding: Embedding, words: QueryTerms | None) -> Embedding:
    """The embedding with token vectors of content words only, whose mean is a half of its vector."""
    if words is None:
        return embedding
    used = [
        number
        for number, (start, end) in enumerate(embedding.token_spans)
        if any(first <= start and end <= last for first, last, _ in words.term_spans)
    ]
    vectors = embedding.token_vectors[used]
    spans = [embedding.token_spans[number] for number in used]
    return Embedding(points.blend(embedding.vector, vectors), spans, vectors)


async def nearest(index: IndexSnapshot, query: RecallQuery, limit: int) -> NearestMemories:
    """The memories with the highest cosine, or with most of the query's words if no model can read the query."""
    words = query_terms(query.text, ())
    asked = await embed_query(index, query, words)
    wanted, hits = query.make_filter(), list[Hit]()
    if asked:
        (hits,) = await by_meaning(index, asked, [wanted], limit, ("offset",))
    elif words.terms:
        search = Search(wanted, limit, sparse=sparse_of(words.terms), corpus=query.visible(), payload=("offset",))
        (hits,) = await index.engine.search(index.collection, [search])
    with readable_payloads():
        best_first = sorted(hits, key=lambda hit: (-hit.score, -hit.payload["offset"]))
    return NearestMemories([hit.payload["offset"] for hit in best_first[:limit]], by_vectors=bool(asked))


async def by_meaning(
    index: IndexSnapshot, asked: QuestionVectors, wanted: Sequence[Filter], limit: int, payload: Sequence[str]
) -> list[list[Hit]]:
    """For each filter the nearest points, best first, at most `limit` of each model. Scores are similarities, which can
    be compared across models."""
    searches, second = [], index.embedder.multilingual
    if asked.own is not None:
        searches += [Search(each, limit, dense=asked.own.vector, payload=payload) for each in wanted]
    if asked.multilingual is not None:
        searches += [
            Search(
                replace(each, only_multilingual=asked.own is not None),
                limit,
                dense=asked.multilingual,
                multilingual=True,
                payload=payload,
            )
            for each in wanted
        ]
    found = await index.engine.search(index.collection, searches)
    if asked.multilingual is None:
        return found
    scaled = [
        [msgspec.structs.replace(hit, score=second.similarity(hit.score)) for hit in hits]
        if search.multilingual and second is not None
        else hits
        for search, hits in zip(searches, found, strict=True)
    ]
    together = (chain.from_iterable(scaled[number :: len(wanted)]) for number in range(len(wanted)))
    return [sorted(hits, key=lambda hit: -hit.score) for hits in together]


async def events(
    index: IndexSnapshot, query: RecallQuery, chosen: Sequence[Candidate]
) -> dict[str, tuple[bytes, str | None]]:
    """The bytes of the events of candidates, each with its declared text or None, by the ids of their points.

    Checksums show that payloads and vectors are as the indexer wrote them. Whether the agent may see them is checked
    again, because the engine searches files that have no checksums. Texts of models are shown as the views have them,
    and their points may be replaced or deleted at any time. Raises `IndexDamaged`.
    """
    stored = await index.engine.retrieve(index.collection, [each.id for each in chosen], vectors=True)
    for each in chosen:
        point = stored.get(each.id)
        if point is None and each.is_entry:
            continue
        wrong = "it is missing" if point is None else points.damage(point)
        if point is not None and not wrong and not each.is_entry:
            wrong = _explain_misplaced(query, each, point.payload)
        if wrong:
            raise IndexDamaged(f"the memory at offset {each.offset} is damaged in the index: {wrong}")
    return {
        each.id: (str(stored[each.id].payload["event"]).encode(), stored[each.id].payload["text"])
        for each in chosen
        if not each.is_entry
    }


async def read_by_words(
    index: IndexSnapshot, query: RecallQuery, searched: Sequence[str], limit: int
) -> Iterable[tuple[bytes, str | None]]:
    """The visible events with the highest keyword scores for the terms `searched`, as `events` returns them. At most
    `limit` memories are read; entries among them are left out. The filters of the query do not apply."""
    visible = query.visible()
    search = Search(visible, limit, sparse=sparse_of(searched), corpus=visible, payload=_FIELDS, with_sparse=True)
    (hits,) = await index.engine.search(index.collection, [search])
    with readable_payloads():
        found = _candidates([_FoundPoint(hit, None, False) for hit in hits], _Worth.of({}))
    return (await events(index, query, [each for each in found if not each.is_entry])).values()


def _explain_misplaced(query: RecallQuery, candidate: Candidate, payload: Mapping[str, Any]) -> str:
    """Why an intact payload should not have been found as this candidate, in words; "" if it should."""
    if payload["space"] != in_points(query.space) or not {query.agent, EVERYBODY} & {*payload["readers"]}:
        return "the agent may not see it"
    return "it is another memory" if payload["offset"] != candidate.offset else ""


async def _by_terms(
    index: IndexSnapshot, query: RecallQuery, searched: Sequence[str], scope: TimeScope | None
) -> tuple[list[Hit], dict[str, float]]:
    """The memories with the best keyword scores, and the idf of each of the terms `searched`."""
    if not searched:
        return [], {}
    visible = query.visible()
    searches = idf_searches(searched, visible)
    whole = sparse_of(searched)
    searches += [
        Search(within, _best_of_each(query), sparse=whole, corpus=visible, payload=_ORDINAL, with_sparse=True)
        for within in (*query.make_filters(), *_scopes(query, scope))
    ]
    hits = await index.engine.search(index.collection, searches)
    idf = await frequencies(index, visible, searched, hits)
    return list(chain.from_iterable(hits[len(searched) :])), idf


async def _by_vector(
    index: IndexSnapshot,
    query: RecallQuery,
    asked: QuestionVectors,
    searched: Sequence[str],
    scope: TimeScope | None,
) -> list[Hit]:
    """The memories with the highest cosine. A query without terms finds any memories of its `scope` that no vector can
    find: all if the query has no vector, or those whose vectors are not computed yet."""
    wanted, limit = _scopes(query, scope), _best_of_each(query)
    found: list[list[Hit]] = []
    if asked:
        found += await by_meaning(index, asked, [*query.make_filters(), *wanted], limit, _ORDINAL)
    if not searched and (not asked or index.unread):
        without_vector = [replace(within, only_multilingual=bool(asked)) for within in wanted]
        searches = [Search(within, limit, payload=_ORDINAL) for within in without_vector]
        found += await index.engine.search(index.collection, searches)
    return list(chain.from_iterable(found))


def _scopes(query: RecallQuery, scope: TimeScope | None) -> list[Filter]:
    """The filters of the searches for candidates from the times that the query names."""
    return [] if scope is None else [each for wanted in query.make_filters() for each in scope.filters(wanted)]


def _best_of_each(query: RecallQuery) -> int:
    return max(limits.RECALL_CANDIDATES, query.top_k)


def idf_searches(searched: Sequence[str], corpus: Filter) -> list[Search]:
    """One search for each term, which yields its idf: the engine computes document frequencies without returning them.

    The idf refers to the whole corpus. A filter, which would be checked for each memory with the term, is not needed.
    """
    return [Search(None, 1, sparse=sparse_of([term]), corpus=corpus, with_sparse=True) for term in searched]


async def frequencies(
    index: IndexSnapshot, corpus: Filter, searched: Sequence[str], best: Sequence[Sequence[Hit]]
) -> dict[str, float]:
    """The idf of each of the terms `searched` among the points of `corpus`.

    `best` has the hits of `idf_searches`. The score of a term's best hit is the weight of the term in that memory times
    its idf. A term that does not occur in the collection gets the idf of frequency 0, unless another form of it counts.
    """
    found = [(term, hit.score, _terms_of(hit)) for term, hits in zip(searched, best, strict=False) for hit in hits]
    idf = {term: score / stored.values[stored.indices.index(terms.dimension(term))] for term, score, stored in found}
    unused = 0.0
    if len(idf) < len(searched):
        unused = inverse_frequency(await index.engine.estimate_count(index.collection, corpus), 0)
    return {term: idf.get(term, unused) for term in without_unused_forms(searched, idf)}


def _terms_of(hit: Hit) -> Sparse:
    """The stored terms of a hit."""
    if hit.sparse is None:
        raise ValueError("the search was made without `with_sparse`")
    return hit.sparse


def _sessions(hits: Iterable[Hit], idf: Mapping[str, float]) -> dict[str, float]:
    """By session: the summed idf of the query's terms that occur in one of its `hits`."""
    worth = {terms.dimension(term): weight for term, weight in idf.items()}
    found: dict[str, set[int]] = {}
    for hit in hits:
        if hit.payload["ordinal"] != ALONE:
            found.setdefault(str(hit.payload["session"]), set()).update(worth.keys() & _terms_of(hit).indices)
    return {session: sum(worth[dimension] for dimension in dimensions) for session, dimensions in found.items()}


def _around(space: str, seeds: Iterable[Hit]) -> Iterable[str]:
    for hit in seeds:
        session, ordinal = str(hit.payload["session"]), int(hit.payload["ordinal"])
        if ordinal == ALONE:
            yield hit.id
            continue
        for other in range(max(0, ordinal - REACH), ordinal + REACH + 1):
            yield point_id(space, session, other)


def _late_interaction(embedding: Embedding, words: QueryTerms, idf: Mapping[str, float]) -> np.ndarray | None:
    """The token vectors of the query's content words, each scaled to its share of the sum of all weights."""
    of_word = [
        max(idf.get(term, 0.0) for first, last, term in words.term_spans if first <= start and end <= last)
        for start, end in embedding.token_spans
    ]
    weights = np.array(of_word, np.float32) ** LATE_IDF_POWER
    if not weights.any():
        return None
    scaled: np.ndarray = embedding.token_vectors * (weights / weights.sum())[:, None]
    return scaled[weights > 0]


async def _score_points(
    index: IndexSnapshot,
    query: RecallQuery,
    ids: Sequence[str],
    asked: QuestionVectors,
    late_interaction: np.ndarray | None,
    idf: Mapping[str, float],
) -> list[Candidate]:
    """The points `ids` that the agent may see, scored by every channel."""
    fields = _FIELDS if late_interaction is None else (*_FIELDS, points.TOKENS, points.TOKEN_COUNTS)
    visible = query.visible()
    found: list[_FoundPoint] = []
    left = list(ids)
    for model, vector in _vectors(index, asked if SEMANTIC in query.channels else QuestionVectors(None)):
        # A search does not find points without such a vector, invisible points, and points that do not exist (the
        # neighbours of the first and last turns of sessions).
        if not left:
            break
        search = Search(
            replace(visible, ids=left),
            len(left),
            dense=vector,
            multilingual=model is not None and model is index.embedder.multilingual,
            exact=vector is not None,
            payload=fields,
            with_sparse=True,
        )
        (hits,) = await index.engine.search(index.collection, [search])
        similarity = model.similarity if search.multilingual and model is not None else None
        for hit in hits:
            cosine = None if model is None else hit.score if similarity is None else similarity(hit.score)
            found.append(_FoundPoint(hit, cosine, search.multilingual))
        known = {hit.id for hit in hits}
        left = [each for each in left if each not in known]
    candidates = _candidates(found, _Worth.of(idf))
    if late_interaction is not None:
        payloads = [each.hit.payload for each in found]
        for each, best in zip(candidates, _late_interactions(payloads, late_interaction), strict=True):
            if best is not None:
                each.passage, each.late_interaction = best
    return candidates


def _vectors(index: IndexSnapshot, asked: QuestionVectors) -> Iterator[tuple[Embedder | None, Vectors | None]]:
    """The models whose vectors score memories, each with the question's vector. (None, None) is last, for all other
    memories."""
    if asked.own is not None:
        yield index.embedder, asked.own.vector
    if asked.multilingual is not None:
        yield index.embedder.multilingual, asked.multilingual
    yield None, None


def _late_interactions(
    payloads: Sequence[Mapping[str, Any]], late_interaction: np.ndarray
) -> list[tuple[int, list[float]] | None]:
    """For each point, the highest dot product of each vector of `late_interaction` with one of the point's tokens.

    Only the passage with the highest sum counts; its number is returned too. None for a point without readable
    passages.
    """
    products = token_codec.dot_products([payload[points.TOKENS] for payload in payloads], late_interaction)
    passages = [
        (number, passage, count)
        for number, payload in enumerate(payloads)
        for passage, count in enumerate(payload[points.TOKEN_COUNTS])
        if count is not None
    ]
    maxima = np.maximum(_maxima(products, [count for _, _, count in passages]), 0.0)
    best: list[tuple[int, list[float]] | None] = [None] * len(payloads)
    sums = [-1.0] * len(payloads)
    for (number, passage, _), of_passage, total in zip(passages, maxima.tolist(), maxima.sum(axis=1), strict=True):
        if total > sums[number]:
            best[number], sums[number] = (passage, of_passage), total
    return best


def _maxima(rows: np.ndarray, counts: Sequence[int]) -> np.ndarray:
    """The maximum of each column over consecutive groups of `rows` with `counts` rows; 0 for a group without rows."""
    maxima = np.zeros((len(counts), rows.shape[1]), rows.dtype)
    filled = np.array(counts, np.int64) > 0
    if filled.any():
        starts = np.cumsum([0, *counts[:-1]])
        maxima[filled] = np.maximum.reduceat(rows, starts[filled])
    return maxima


class _FoundPoint(NamedTuple):
    hit: Hit
    cosine: float | None
    is_multilingual: bool


@dataclass(frozen=True, slots=True)
class _Worth:
    """The terms of a query, in the order of their dimensions."""

    dimensions: NDArray[np.uint32]
    idf: NDArray[np.float64]
    is_exact: NDArray[np.bool_]
    """Whether the term is an exact string, and not a word."""

    @classmethod
    def of(cls, idf: Mapping[str, float]) -> Self:
        by_dimension = {terms.dimension(term): (weight, identifiers.is_exact(term)) for term, weight in idf.items()}
        ordered = sorted(by_dimension)
        weights, exact = zip(*map(by_dimension.__getitem__, ordered), strict=True) if ordered else ((), ())
        return cls(np.array(ordered, np.uint32), np.array(weights, np.float64), np.array(exact, bool))

    def scores(self, points: Sequence[Sparse]) -> NDArray[np.float64]:
        """(3, points): BM25, and the shares of the idf of the query's words and of its exact strings that each point
        contains."""
        scores = np.zeros((3, len(points)))
        indices, weights = array("I"), array("f")
        for each in points:
            indices.extend(each.indices)
            weights.extend(each.values)
        if not indices or not len(self.dimensions):
            return scores
        dimensions = np.frombuffer(indices, np.uint32)
        places = np.searchsorted(self.dimensions, dimensions).clip(max=len(self.dimensions) - 1)
        (of_query,) = np.nonzero(self.dimensions[places] == dimensions)
        ends = np.cumsum([len(each.indices) for each in points])
        rows, terms_of = np.searchsorted(ends, of_query, side="right"), places[of_query]
        values = np.frombuffer(weights, np.float32)[of_query].astype(np.float64)
        idf, exact = self.idf[terms_of], self.is_exact[terms_of]
        scores[0] = np.bincount(rows, values * idf, len(points))
        for number, is_meant, of_all in ((1, ~exact, ~self.is_exact), (2, exact, self.is_exact)):
            scores[number] = np.bincount(rows, idf * is_meant, len(points)) / ((self.idf @ of_all) or 1.0)
        return scores


def _candidates(found: Sequence[_FoundPoint], worth: _Worth) -> list[Candidate]:
    """The candidates of points that searches found, without late interaction."""
    scored = worth.scores([_terms_of(each.hit) for each in found]).T.tolist()
    return [
        Candidate(
            id=hit.id,
            offset=payload["offset"],
            agent=payload["agent"],
            kind=payload["kind"],
            session=payload["session"],
            ordinal=payload["ordinal"],
            turn=payload["turn"],
            at=payload["at"],
            is_question=payload["is_question"],
            semantic=cosine,
            keyword=keyword,
            importance=payload["importance"],
            coverage=coverage,
            exact=exact,
            text_key=payload["text_key"],
            length=payload["length"],
            is_entry=payload["ordinal"] == ALONE,
            entry=payload["entry"] if payload["ordinal"] == ALONE else "",
            is_multilingual=is_multilingual,
        )
        for (hit, cosine, is_multilingual), (keyword, coverage, exact) in zip(found, scored, strict=True)
        for payload in [hit.payload]
    ]


def sparse_of(searched: Sequence[str]) -> Sparse:
    """The vector of a search for terms."""
    return terms.sparse(dict.fromkeys(searched, 1.0))
