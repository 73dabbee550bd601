"""Recall without an index: BM25 over the newest events that an agent may see, which the views retain."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recallog.retrieval.candidates import Candidate
from recallog.retrieval.channels import EVENT
from recallog.retrieval.sources import SourceText
from recallog.retrieval.term_cache import MemoryTerms, TermCache
from recallog_projections.index import documents, passages, points, terms
from recallog_projections.index.identifiers import exact_among
from recallog_projections.index.language import questions
from recallog_projections.index.language.character_forms import without_unused_forms
from recallog_projections.views.episodic import RememberedEvent
from recallog_schemas import codec, kinds
from recallog_schemas.timestamps import micros

_BEHIND_THE_INDEX = 1 << 40
"""Added to the ordinals of memories that the index has not processed yet. The index counts the ordinals of a session
differently, and these memories follow all that it has counted."""


@dataclass(slots=True)
class KeywordCandidates:
    """Candidates whose words were compared."""

    candidates: list[Candidate]
    sessions: dict[str, float]
    """By session: the summed idf of the query's terms that occur in it."""
    idf: dict[str, float]
    """By term of the query."""
    memories: dict[int, RememberedEvent]
    """By offset: the memories among the candidates that are events."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The memories and texts whose words are compared."""

    memories: Sequence[RememberedEvent] = ()
    """Memories of one generation, in ledger order. Their ordinals count only events that the agent may see."""
    texts: Sequence[SourceText] = ()
    """Texts of memory models."""
    beyond: int = -1
    """Only memories after this offset are candidates."""
    are_parts: bool = False
    """Whether the texts are parts of longer texts, each under a heading."""


def candidates(
    compared: Compared,
    generation: str,
    cache: TermCache,
    searched: Sequence[str],
    idf: Mapping[str, float] | None = None,
) -> KeywordCandidates:
    """The memories and texts of `compared` that contain words, scored by the terms `searched`.

    `idf` gives the idf of terms. The idf of any other term is computed among the memories and texts.
    """
    memories, texts, beyond, are_parts = compared.memories, compared.texts, compared.beyond, compared.are_parts
    read: list[tuple[RememberedEvent | SourceText, MemoryTerms]] = [
        (memory, cache.get(generation, memory.offset) or _terms_of(memory, generation, cache)) for memory in memories
    ]
    read += [(text, _terms_of_text(text, generation, cache, is_part=are_parts)) for text in texts]
    worded = [
        (memory, about, weights, [term for term in searched if term in weights])
        for memory, about in read
        if (weights := about.weights) is not None
    ]
    idf = _add_idf(idf or {}, searched, Counter([term for *_, matching in worded for term in matching]), len(worded))
    exact_terms = exact_among(idf)
    whole = sum(weight for term, weight in idf.items() if term not in exact_terms) or 1.0
    exact = sum(weight for term, weight in idf.items() if term in exact_terms) or 1.0
    ordinals: Counter[str] = Counter()
    found = KeywordCandidates([], {}, dict(idf), {})
    spoken: dict[str, set[str]] = {}
    for memory, about, weights, matching in worded:
        if isinstance(memory, RememberedEvent):
            ordinal = ordinals[about.session] + (_BEHIND_THE_INDEX if beyond >= 0 else 0)
            ordinals[about.session] += 1
            spoken.setdefault(about.session, set()).update(matching)
            if memory.offset <= beyond:
                continue
            found.memories[memory.offset] = memory
            type_ = EVENT
        else:
            ordinal, type_ = documents.ALONE, memory.type
        found.candidates.append(
            Candidate(
                id="",
                offset=memory.offset,
                agent=about.agent,
                kind=about.kind,
                session=about.session,
                ordinal=ordinal,
                turn=memory.turn,
                importance=memory.importance,
                at=about.at,
                is_question=about.is_question,
                length=about.length,
                text_key=about.text_key,
                keyword=sum(idf[term] * weights[term] for term in matching),
                coverage=sum(idf[term] for term in matching if term not in exact_terms) / whole,
                exact=sum(idf[term] for term in matching if term in exact_terms) / exact,
                is_entry=ordinal == documents.ALONE,
                type=type_,
            )
        )
    found.sessions = {session: sum(idf[term] for term in matched) for session, matched in spoken.items()}
    return found


def scores(
    texts: Sequence[SourceText],
    generation: str,
    cache: TermCache,
    searched: Sequence[str],
    idf: Mapping[str, float] | None,
) -> tuple[dict[int, float], Mapping[str, float]]:
    """By offset, the BM25 scores of the `texts` that contain a term of `searched`; and the idf of the terms.

    `idf` gives the idf of terms. The idf of any other term is computed among the texts.
    """
    weights = [_terms_of_text(text, generation, cache).weights or {} for text in texts]
    frequency = Counter([term for each in weights for term in searched if term in each])
    idf = _add_idf(idf or {}, searched, frequency, sum(map(bool, weights)))
    found = {
        text.offset: sum(idf[term] * each[term] for term in shared)
        for text, each in zip(texts, weights, strict=True)
        if (shared := [term for term in searched if term in each])
    }
    return found, idf


def _add_idf(idf: Mapping[str, float], searched: Sequence[str], used: Counter[str], texts: int) -> dict[str, float]:
    """`idf`, and the idf of the other terms `searched`. `used` counts those of `texts` texts that contain each term."""
    others = without_unused_forms([term for term in searched if term not in idf], {*idf, *used})
    return {**idf, **{term: inverse_frequency(texts, used[term]) for term in others}}


def inverse_frequency(texts: int, holding: int) -> float:
    """The idf of a term that `holding` of `texts` texts contain, in Lucene's form, which is never negative."""
    return math.log(1 + (texts - holding + 0.5) / (holding + 0.5))


def _terms_of_text(kept: SourceText, generation: str, cache: TermCache, *, is_part: bool = False) -> MemoryTerms:
    of_text = f"{generation}/{kept.version}"  # an entry keeps its offset when its text changes
    found = cache.get(of_text, kept.offset)
    if found is None:
        text = documents.clean(kept.text)
        found = MemoryTerms(
            kept.owner,
            kept.kind,
            kept.session or "",
            kept.at,
            questions.is_question(text),
            passages.length(text),
            documents.text_key(text),
            _weights_of_text(text, kept.at, is_part=is_part) if text else None,
        )
        cache.put(of_text, kept.offset, found)
    return found if found.agent == kept.owner else found._replace(agent=kept.owner)


def _weights_of_text(text: str, at: int, *, is_part: bool) -> dict[str, float]:
    return points.part_weights(text, at) if is_part else terms.weights(points.terms_of(text, at))


def _terms_of(memory: RememberedEvent, generation: str, cache: TermCache) -> MemoryTerms:
    event = codec.decode(memory.data)
    kind = kinds.kind_of(event.kind)
    is_found = kind.recalled and not event.is_erased
    text = documents.clean(memory.text if memory.text is not None else event.text) if is_found else ""
    at = micros(event.at)
    weights = None
    if text:
        of_text = points.terms_of(text, at)
        weights = terms.weights([*of_text, *points.detail_terms(event, of_text)])
    found = MemoryTerms(
        event.agent,
        event.kind,
        event.session or "",
        at,
        questions.is_question(text),
        documents.prose_length(text, kind),
        documents.text_key(text),
        weights,
    )
    cache.put(generation, memory.offset, found)
    return found
