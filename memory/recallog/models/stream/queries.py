"""The stream of an agent: what happened to it in particular, scored as its memories, and summarised.

The stream has the agent's own events and the events addressed to it, among the newest that the views retain, and its
newest reflections and insights. From the events that all agents of the space see, it has only the agent's own.
"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from heapq import nlargest
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from recallog.models.beliefs.queries import belief_logs, read_logs
from recallog.models.long_term.entry_lookup import entries_by_id
from recallog.models.tiers.summary import summarize_texts
from recallog.reading.read_session import Snapshot, position
from recallog.reading.readings import AgentReading
from recallog.reading.subject import of_agent, own_log
from recallog_projections.models.beliefs import beliefs
from recallog_projections.models.long_term import linking
from recallog_projections.models.long_term.kinds import CAPTURING
from recallog_projections.models.stream import insights
from recallog_projections.tables import LogName, RowKey
from recallog_projections.views import clock, episodic, settings
from recallog_projections.views.words import words_of
from recallog_schemas import Event, Position, codec, kinds
from recallog_schemas.models.beliefs import limits as beliefs_limits
from recallog_schemas.models.long_term import limits as long_term_limits
from recallog_schemas.models.stream import limits as stream_limits
from recallog_schemas.models.stream.views import InsightsView, StreamHit, StreamMemory, StreamRecall, StreamSummary
from recallog_schemas.timestamps import micros, moment_of

Class = Literal["observation", "reflection", "insight"]
OBSERVATION: Class = "observation"
REFLECTION: Class = "reflection"
INSIGHT: Class = "insight"

# The numbers are those of the memory model, section 1.2, row 17.
IMPORTANCE = {OBSERVATION: 0.5, REFLECTION: 0.7, INSIGHT: 0.9}
WEIGHT_OF_RECENCY, WEIGHT_OF_IMPORTANCE, WEIGHT_OF_RELEVANCE = 0.3, 0.3, 0.4
RELEVANCE_WITHOUT_QUERY = 0.5
_HALF_LIFE = 24 * 3_600 * 1_000_000
_DECIMALS = 6


class _Memory(NamedTuple):
    """One memory of the stream."""

    offset: int
    at: int
    text: str
    type: Class
    event: str
    kind: str
    agent: str
    turn: int
    importance: float
    """The importance of its kind when it was published."""


@dataclass(frozen=True, slots=True)
class _Score:
    total: float
    recency: float
    importance: float
    relevance: float


async def recall(reading: AgentReading, query: str | None, limit: int, now: datetime | None) -> StreamRecall:
    """The `limit` memories of the stream with the highest scores."""
    space, agent, log_events = reading.space, reading.agent, reading.log_events
    snapshot = await _read(reading)
    at = now or snapshot.time_of(space, agent)
    memories = [*_events(snapshot, space, agent, log_events), *_insights(snapshot, space, agent)]
    words = None if query is None else words_of(query)
    scored = [(_score(memory, words, memory.at if at is None else micros(at)), memory) for memory in memories]
    best = nlargest(limit, scored, key=lambda one: (one[0].total, one[1].offset, one[1].importance))
    return StreamRecall(
        **await of_agent(reading, snapshot),
        query=query,
        now=at,
        memories=tuple(
            StreamHit(
                **_fields(snapshot.partition, memory),
                score=round(score.total, _DECIMALS),
                recency=round(score.recency, _DECIMALS),
                importance=score.importance,
                relevance=round(score.relevance, _DECIMALS),
            )
            for score, memory in best
        ),
    )


async def newest_insights(reading: AgentReading, limit: int) -> InsightsView:
    """The newest `limit` insights of an agent, oldest first."""
    space, agent = reading.space, reading.agent
    log = LogName(insights.INSIGHTS.name, space, agent)
    snapshot = await reading.snapshot(
        [RowKey(settings.AGENTS.name, space, agent)], [own_log(space, agent), (log, limit)]
    )
    found = _insights(snapshot, space, agent)
    return InsightsView(
        **await of_agent(reading, snapshot),
        insights=tuple(StreamMemory(**_fields(snapshot.partition, memory)) for memory in found),
    )


async def summarize(reading: AgentReading, since: datetime | None, until: datetime | None) -> StreamSummary:
    """The summary of what happened to an agent in a span of time, made without a model.

    Calls of tools whose entries were forgotten are left out.
    """
    space, agent, log_events = reading.space, reading.agent, reading.log_events
    first, end = (None if moment is None else micros(moment) for moment in (since, until))

    async def read(session: AgentReading) -> StreamSummary:
        snapshot = await _read(session)
        within = [
            memory
            for memory in _events(snapshot, space, agent, log_events)
            if (first is None or memory.at >= first) and (end is None or memory.at < end)
        ]
        calls = [memory.event for memory in within if memory.kind == CAPTURING]
        found = await entries_by_id(session, space, calls) if calls else {}
        lost = {id_ for id_, entry in found.items() if linking.is_lost(entry.ref)}
        memories = [memory for memory in within if memory.event not in lost]
        sources = nlargest(long_term_limits.ENTRY_SOURCES_MAX, memories, key=attrgetter("importance", "offset"))
        tails = snapshot.tail(episodic.OWN, space, agent), snapshot.tail(episodic.SHARED, space)
        kept_from = episodic.kept_from(*tails)
        return StreamSummary(
            **await of_agent(session, snapshot),
            since=since,
            until=until,
            text=summarize_texts([(memory.text, memory.importance) for memory in memories]) if memories else "",
            memories=len(memories),
            sources=tuple(memory.event for memory in sorted(sources, key=attrgetter("offset"))),
            kept_from=None if kept_from is None else position(snapshot.partition, kept_from),
            stored=None,
        )

    return await reading.steady(read)


async def _read(reading: AgentReading) -> Snapshot:
    space, agent, log_events = reading.space, reading.agent, reading.log_events
    return await reading.snapshot(
        [RowKey(settings.AGENTS.name, space, agent), *clock.keys(space, agent)],
        [
            *episodic.logs(space, agent, log_events),
            *belief_logs(space, agent, beliefs_limits.BELIEFS_KEPT),
            (LogName(insights.INSIGHTS.name, space, agent), stream_limits.INSIGHTS_KEPT),
        ],
    )


def _events(snapshot: Snapshot, space: str, agent: str, log_events: int) -> Sequence[_Memory]:
    """The newest `log_events` events of the stream that have a text, in the order of the ledger."""
    found = {memory.offset: memory for memory in _all(snapshot, space, agent) if memory.text.strip()}
    return [found[offset] for offset in sorted(found)[-log_events:]]


def _all(snapshot: Snapshot, space: str, agent: str) -> Iterator[_Memory]:
    for row in read_logs(snapshot, space, agent):
        event = codec.decode(row.data)
        yield _of_event(row.offset, event, event.text, kinds.kind_of(event.kind).importance)
    name = agent.encode()
    for log, owner in ((episodic.OWN, agent), (episodic.SHARED, "")):
        for memory in log.decode_all(snapshot.tail(log, space, owner).entries):
            if log is episodic.SHARED and name not in memory.data and b"\\" not in memory.data:
                continue  # an event of another agent: most events need not be decoded
            event = codec.decode(memory.data)
            is_its = log is episodic.OWN or event.agent == agent
            if is_its and kinds.kind_of(event.kind).recalled:
                text = event.text if memory.text is None else memory.text
                yield _of_event(memory.offset, event, text, memory.importance)


def _of_event(offset: int, event: Event, text: str, importance: float) -> _Memory:
    type_ = REFLECTION if event.kind == beliefs.KIND else OBSERVATION
    return _Memory(offset, micros(event.at), text, type_, event.id, event.kind, event.agent, event.turn, importance)


def _insights(snapshot: Snapshot, space: str, agent: str) -> Sequence[_Memory]:
    """The insights in the snapshot, oldest first."""
    importance = kinds.kind_of(beliefs.KIND).importance
    return [
        _Memory(row.offset, row.at, row.text, INSIGHT, row.event, beliefs.KIND, agent, row.turn, importance)
        for row in insights.INSIGHTS.decode_all(snapshot.tail(insights.INSIGHTS, space, agent).entries)
    ]


def _score(memory: _Memory, words: Set[str] | None, now: int) -> _Score:
    recency = 0.5 ** (max(0, now - memory.at) / _HALF_LIFE)
    importance = IMPORTANCE[memory.type]
    relevance = RELEVANCE_WITHOUT_QUERY
    if words is not None:
        relevance = len(words & words_of(memory.text)) / len(words) if words else 0.0
    total = WEIGHT_OF_RECENCY * recency + WEIGHT_OF_IMPORTANCE * importance + WEIGHT_OF_RELEVANCE * relevance
    return _Score(total, recency, importance, relevance)


def _fields(partition: int, memory: _Memory) -> dict[str, Any]:
    """The fields of the view of a memory."""
    return {
        "id": memory.event,
        "type": memory.type,
        "text": memory.text,
        "kind": memory.kind,
        "agent": memory.agent,
        "at": moment_of(memory.at),
        "turn": memory.turn,
        "position": Position(partition, memory.offset),
    }
