"""Salient events: the events that matter most to an agent now, among the events that it may see."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from recallog import retrieval
from recallog.queries.timeline import bytes_of
from recallog.reading.read_session import Snapshot
from recallog.reading.readings import AgentReading
from recallog.reading.subject import of_agent
from recallog.reading.time_travel import AsOf
from recallog.retrieval.memory_index import FedIndex
from recallog.retrieval.searcher import Searcher
from recallog_projections.tables import RowKey
from recallog_projections.views import episodic, salience, settings
from recallog_projections.views.episodic import RememberedEvent
from recallog_projections.views.salience import Weights
from recallog_projections.views.settings import AgentSettings
from recallog_schemas import limits
from recallog_schemas.errors import IndexUnavailable
from recallog_schemas.kinds import SalienceWeights
from recallog_schemas.views import Salient, SalientView
from recallog_schemas.views.base import fitting

MEANING = "meaning"
WORDS = "words"
OWN_INDEX = "the index of this memory"


@dataclass(frozen=True, slots=True)
class SalienceQuery:
    """A query for salient events. A field that is None means the agent's setting, or the present turn of the space."""

    text: str = ""
    top_k: int | None = None
    turn: int | None = None
    as_of: AsOf | None = None


@dataclass(frozen=True, slots=True)
class Related:
    """The relevance of events to a query."""

    ranked: Mapping[int, float] | None
    """Relevance by offset; None if words are compared."""
    by: str | None
    """How relevance was computed, in words; None if the index is off."""
    failed: bool = False
    """Whether words are compared because the user's own index failed."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The candidates of one agent, scored at one moment."""

    memories: Sequence[RememberedEvent]
    """In ledger order."""
    order: Sequence[tuple[float, int]]
    """Salience and list index in `memories`, highest salience first."""
    query: str
    turn: int
    top_k: int
    weights: Weights
    related: Related

    def choose_strongest(self) -> list[RememberedEvent]:
        """The strongest, in ledger order."""
        return [self.memories[list_index] for list_index in sorted(list_index for _, list_index in self.order)]

    def fit(self) -> "Ranking":
        """The ranking of the strongest events that fit into one answer."""
        count = fitting(bytes_of(self.memories[list_index]) for _, list_index in self.order)
        return replace(self, order=self.order[:count])

    def salient(self, snapshot: Snapshot, memory: RememberedEvent) -> Salient:
        """One event with its score and each of its terms."""
        scored = salience.score(memory, self.query, self.turn, self.weights, self.related.ranked)
        shown = snapshot.make_remembered(memory.offset, memory.data, memory.text)
        return Salient.model_construct(
            position=shown.position,
            event=shown.event,
            text=shown.text,
            score=scored.total,
            relevance=scored.relevance,
            recency=scored.recency,
            importance=scored.importance,
        )


def rows(space: str, agent: str) -> list[RowKey]:
    """The rows that `rank` reads besides the logs of `episodic`."""
    return [RowKey(settings.AGENTS.name, space, agent), RowKey(salience.CLOCK.name, space)]


async def find_related(snapshot: Snapshot, searcher: Searcher, space: str, agent: str, query: SalienceQuery) -> Related:
    """Relevance by the index, or by the user's own index, for the events in `snapshot` that `agent` may see.

    The index must have processed all events that the views have, since an event that it does not know would count as
    unrelated. It is not started for this query, because salience works without it.
    """
    if searcher.relevance is not None:
        return await _by_own_index(snapshot, searcher.relevance, space, agent, query)
    index = searcher.index
    if index is None:
        return Related(None, None)
    if not query.text.strip():
        return Related(None, WORDS)
    question = retrieval.query.RecallQuery.from_text(space, agent, query.text, query.as_of)
    try:
        opened = await index.open(snapshot.partition)
        if (behind := snapshot.processed - opened.checkpoint + opened.unread) > 0:
            return Related(None, f"{WORDS}: the index is {behind:,} positions behind")
        events = replace(question, hidden=retrieval.sources.kinds_of_texts(searcher.sources))
        found = await retrieval.by_index.nearest(opened, events, limits.RECALL_CANDIDATES)
    except IndexUnavailable as error:
        retrieval.attempts.note(index, snapshot.partition, error)
        return Related(None, f"{WORDS}: {error}")
    by = MEANING if found.by_vectors else f"{WORDS}: the model cannot read the query"
    return Related(salience.by_rank(found.offsets, snapshot.memories(space, agent)), by)


async def _by_own_index(snapshot: Snapshot, fed: FedIndex, space: str, agent: str, query: SalienceQuery) -> Related:
    if not query.text.strip():
        return Related(None, WORDS)
    memories = snapshot.memories(space, agent)
    try:
        found = await fed.rank(space, memories, query.text)
    except Exception as error:  # noqa: BLE001 - a user's index may raise anything, and the agent's turn goes on
        return Related(None, f"{WORDS}: {OWN_INDEX} failed: {type(error).__name__}: {error}", failed=True)
    return Related(salience.by_rank(found, memories), OWN_INDEX)


def rank(snapshot: Snapshot, space: str, agent: str, query: SalienceQuery, related: Related, more: int = 0) -> Ranking:
    """The events in `snapshot` with the highest salience for `agent`: its `top_k`, and `more` beyond these."""
    own = snapshot.row(settings.AGENTS, space, agent) or AgentSettings()
    turn = clock(snapshot, space) if query.turn is None else query.turn
    weights = Weights(**(own.salience_weights or {}))
    memories = snapshot.memories(space, agent)
    top_k = query.top_k or own.salience_top_k or limits.SALIENT_EVENTS
    order = salience.strongest(memories, query.text, turn, weights, top_k + more, related.ranked)
    return Ranking(memories, order, query.text, turn, top_k, weights, related)


def clock(snapshot: Snapshot, space: str) -> int:
    """The present turn of the space: the highest turn of its events."""
    row = snapshot.row(salience.CLOCK, space)
    return row.turn if row else 0


async def salient(reading: AgentReading, query: SalienceQuery) -> SalientView:
    """The most salient of the newest `candidates` events that `agent` may see, in ledger order."""
    space, agent = reading.space, reading.agent
    snapshot = await reading.snapshot(rows(space, agent), episodic.logs(space, agent, reading.log_events))
    ranking = rank(snapshot, space, agent, query, await find_related(snapshot, reading.searcher, space, agent, query))
    shown = ranking.fit()
    return SalientView(
        **await of_agent(reading, snapshot),
        query=ranking.query,
        turn=ranking.turn,
        top_k=ranking.top_k,
        weights=SalienceWeights(**ranking.weights._asdict()),
        considered=len(ranking.memories),
        relevance_by=ranking.related.by,
        memories=tuple(ranking.salient(snapshot, memory) for memory in shown.choose_strongest()),
        left_out=len(ranking.order) - len(shown.order),
    )
