"""Salience as it is asked for: which of the events that an agent may see matter most to it now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recallog import retrieval
from recallog.index.semantic_index import SemanticIndex
from recallog.reading.read_session import ReadSession, Snapshot
from recallog.reading.time_travel import AsOf
from recallog_projections.projection import RowKey
from recallog_projections.views import episodic, salience, settings
from recallog_projections.views.episodic import RememberedEvent
from recallog_projections.views.salience import Weights
from recallog_projections.views.settings import AgentSettings
from recallog_schemas import limits
from recallog_schemas.errors import IndexUnavailable
from recallog_schemas.kinds import SalienceWeights
from recallog_schemas.views import Salient, SalientView

MEANING = "meaning"
WORDS = "words"


@dataclass(frozen=True, slots=True)
class SalienceQuery:
    """What is asked. None is the agent's own setting, or the space's present turn."""

    query: str = ""
    top_k: int | None = None
    turn: int | None = None
    as_of: AsOf | None = None


@dataclass(frozen=True, slots=True)
class Related:
    """How events are related to a question."""

    ranked: Mapping[int, float] | None
    """Relevance by offset; None: their words are compared."""
    by: str | None
    """What relevance is by, for people; None where there is no index that it could be by."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The candidates of one agent, scored at one moment."""

    memories: Sequence[RememberedEvent]
    """In ledger order."""
    order: Sequence[tuple[float, int]]
    """Salience and place in `memories` of the strongest, strongest first."""
    query: str
    turn: int
    top_k: int
    weights: Weights
    related: Related

    def chosen(self) -> list[RememberedEvent]:
        """The strongest, in ledger order."""
        return [self.memories[list_index] for list_index in sorted(list_index for _, list_index in self.order)]

    def salient(self, snapshot: Snapshot, memory: RememberedEvent) -> Salient:
        """One event with its score and each of its terms."""
        scored = salience.score(memory, self.query, self.turn, self.weights, self.related.ranked)
        shown = snapshot.remembered(memory.offset, memory.data, memory.text)
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
    """What `rank` looks at besides the logs of `episodic`."""
    return [RowKey(settings.AGENTS.name, space, agent), RowKey(salience.CLOCK.name, space)]


async def related(
    snapshot: Snapshot, asking: SemanticIndex | None, space: str, agent: str, asked: SalienceQuery
) -> Related:
    """What the index finds related to the question, among the events that were looked up for `agent`.

    The index must have decided all that the views have: an event that it does not know would count as unrelated. It is
    asked only where it is being served already, since salience goes on without it.
    """
    if asking is None:
        return Related(None, None)
    if not asked.query.strip():
        return Related(None, WORDS)
    question = retrieval.question.RecallQuery.about(space, agent, asked.query, asked.as_of)
    try:
        opened = await asking.open(snapshot.partition, start=False)
        if (behind := snapshot.processed - opened.checkpoint) > 0:
            return Related(None, f"{WORDS}: the index is {behind:,} positions behind")
        found = await retrieval.by_index.nearest(opened, question, limits.RECALL_CANDIDATES)
    except IndexUnavailable as error:
        return Related(None, f"{WORDS}: {error}")
    known = {memory.offset for memory in snapshot.memories(space, agent)}
    return Related(salience.by_rank([offset for offset in found if offset in known]), MEANING)


def rank(snapshot: Snapshot, space: str, agent: str, asked: SalienceQuery, related: Related, more: int = 0) -> Ranking:
    """The strongest of the events that were looked up for `agent`, and `more` than it would remember of them."""
    own = snapshot.row(settings.AGENTS, space, agent) or AgentSettings()
    turn = clock(snapshot, space) if asked.turn is None else asked.turn
    weights = Weights(**(own.salience_weights or {}))
    memories = snapshot.memories(space, agent)
    top_k = asked.top_k or own.salience_top_k or limits.SALIENT_EVENTS
    order = salience.strongest(memories, asked.query, turn, weights, top_k + more, related.ranked)
    return Ranking(memories, order, asked.query, turn, top_k, weights, related)


def clock(snapshot: Snapshot, space: str) -> int:
    """The space's turn: the highest that it has seen."""
    row = snapshot.row(salience.CLOCK, space)
    return row.turn if row else 0


async def salient(
    reading: ReadSession, asking: SemanticIndex | None, space: str, agent: str, asked: SalienceQuery, candidates: int
) -> SalientView:
    """The strongest of the newest `candidates` events that `agent` may see, in ledger order."""
    snapshot = await reading.snapshot(rows(space, agent), episodic.logs(space, agent, candidates))
    ranking = rank(snapshot, space, agent, asked, await related(snapshot, asking, space, agent, asked))
    return SalientView(
        **snapshot.computed_at,
        space=space,
        agent=agent,
        query=ranking.query,
        turn=ranking.turn,
        top_k=ranking.top_k,
        weights=SalienceWeights(**ranking.weights._asdict()),
        considered=len(ranking.memories),
        relevance_by=ranking.related.by,
        memories=tuple(ranking.salient(snapshot, memory) for memory in ranking.chosen()),
    )
