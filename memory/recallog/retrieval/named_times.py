"""The times that a question names, as its answer reports them: how each was understood, and whether memories of it
exist."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from recallog.index.indexer import IndexSnapshot
from recallog.retrieval import time_relations
from recallog.retrieval.candidates import Candidate
from recallog.retrieval.query import QueryTerms, RecallQuery
from recallog.retrieval.time_relations import RelatedTime
from recallog.retrieval.time_scope import TimeScope, TimeSpan
from recallog_projections.index.language import questions
from recallog_schemas import Event
from recallog_schemas.timestamps import micros, moment_of
from recallog_schemas.views import NamedTime, RecallHit, RecallView


async def events_of(times: Sequence[RelatedTime], ask: Callable[[str], Awaitable[RecallView]]) -> Mapping[str, Event]:
    """The memories that report the events which a question names, by the words that name them. `ask` searches for them.

    Weak memories and questions do not count: they do not report an event.
    """
    found = {}
    for words in dict.fromkeys(event for one in times for event in one.events):
        hits = (await ask(words)).hits
        telling = (hit.event for hit in hits if not hit.weak and not questions.is_question(hit.text))
        event = next(telling, None)
        if event is not None:
            found[words] = event
    return found


def words_beside(
    question: str, times: Sequence[RelatedTime], scope: TimeScope | None, terms_of: Callable[[str], QueryTerms]
) -> tuple[QueryTerms, TimeScope | None]:
    """The terms of a question that names times, and its scope. `terms_of` are the terms of a part of the question.

    "Session" in "our last session" is not a term. If a question asks for nothing but a time, there are no terms. The
    words that name an event remain terms, because memories from before and after it may contain them.
    """
    conversations = [one for one in times if one.expressions and one.expressions[0].conversation is not None]
    words = terms_of(time_relations.without_times(question, conversations))
    if scope is None or not scope.spans or any(one.events for one in times):
        return words, scope
    if terms_of(time_relations.beyond_times(question, times)).terms:
        return words, scope
    return replace(words, terms=(), term_spans=()), replace(scope, is_all=True)


async def name_times(
    scope: TimeScope | None,
    query: RecallQuery,
    found: Sequence[Candidate],
    index: IndexSnapshot | None,
    hits: Sequence[RecallHit],
) -> tuple[NamedTime, ...]:
    """The times of a scope. `found` are the memories that were compared; the index may contain more."""
    return tuple(
        [
            NamedTime(
                words=span.words,
                ranges=tuple(tuple(None if end is None else moment_of(end) for end in ends) for ends in span.ranges),
                sessions=tuple(span.sessions),
                event=span.event,
                hits=sum(not hit.weak and span.holds(hit.event.session or "", micros(hit.at)) for hit in hits),
                has_memories=await _has_memories(span, query, found, index),
            )
            for span in (() if scope is None else scope.spans)
        ]
    )


async def _has_memories(
    span: TimeSpan, query: RecallQuery, found: Sequence[Candidate], index: IndexSnapshot | None
) -> bool:
    """Whether there is a memory of this time that the agent may see and that passes the filters of the query."""
    if any(query.wants(each) and span.holds(each.session, each.at) for each in found):
        return True
    if index is None:
        return False
    within = [each for wanted in query.make_filters() for each in span.filters(wanted, afterwards=False)]
    return any([await index.engine.has_any(index.collection, each) for each in within])
