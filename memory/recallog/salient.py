"""Salience as it is asked for: which of the events that an agent may see matter most to it now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recallog.index.asking import Asking
from recallog.reading import Look, Reading
from recallog.recall import by_index
from recallog.recall.question import Question
from recallog.time_travel import AsOf
from recallog_projections import episodic, salience, settings
from recallog_projections.episodic import Memory
from recallog_projections.projection import Need
from recallog_projections.salience import Weights
from recallog_projections.settings import AgentSettings
from recallog_schemas import limits
from recallog_schemas.errors import IndexUnavailable
from recallog_schemas.kinds import SalienceWeights
from recallog_schemas.views import Salient, SalientView

MEANING = "meaning"
WORDS = "words"


@dataclass(frozen=True, slots=True)
class Asked:
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

    memories: Sequence[Memory]
    """In ledger order."""
    order: Sequence[tuple[float, int]]
    """Salience and place in `memories` of the strongest, strongest first."""
    query: str
    turn: int
    top_k: int
    weights: Weights
    related: Related

    def chosen(self) -> list[Memory]:
        """The strongest, in ledger order."""
        return [self.memories[place] for place in sorted(place for _, place in self.order)]

    def salient(self, look: Look, memory: Memory) -> Salient:
        """One event with its score and each of its terms."""
        scored = salience.score(memory, self.query, self.turn, self.weights, self.related.ranked)
        shown = look.remembered(memory.offset, memory.data)
        return Salient.model_construct(
            position=shown.position,
            event=shown.event,
            text=shown.text,
            score=scored.total,
            relevance=scored.relevance,
            recency=scored.recency,
            importance=scored.importance,
        )


def rows(space: str, agent: str) -> list[Need]:
    """What `rank` looks at besides the logs of `episodic`."""
    return [Need(settings.AGENTS.name, space, agent), Need(salience.CLOCK.name, space)]


async def related(look: Look, asking: Asking | None, space: str, agent: str, asked: Asked) -> Related:
    """What the index finds related to the question, among the events that were looked up for `agent`.

    The index must have decided all that the views have: an event that it does not know would count as unrelated. It is
    asked only where it is being served already, since salience goes on without it.
    """
    if asking is None:
        return Related(None, None)
    if not asked.query.strip():
        return Related(None, WORDS)
    question = Question.about(space, agent, asked.query, asked.as_of)
    try:
        opened = await asking.open(look.partition, start=False)
        if (behind := look.decided - opened.checkpoint) > 0:
            return Related(None, f"{WORDS}: the index is {behind:,} positions behind")
        found = await by_index.nearest(opened, question, limits.RECALL_CANDIDATES)
    except IndexUnavailable as error:
        return Related(None, f"{WORDS}: {error}")
    known = {memory.offset for memory in look.memories(space, agent)}
    return Related(salience.by_rank([offset for offset in found if offset in known]), MEANING)


def rank(look: Look, space: str, agent: str, asked: Asked, related: Related, more: int = 0) -> Ranking:
    """The strongest of the events that were looked up for `agent`, and `more` than it would remember of them."""
    own = look.row(settings.AGENTS, space, agent) or AgentSettings()
    turn = clock(look, space) if asked.turn is None else asked.turn
    weights = Weights(**(own.salience_weights or {}))
    memories = look.memories(space, agent)
    top_k = asked.top_k or own.salience_top_k or limits.SALIENT_EVENTS
    order = salience.strongest(memories, asked.query, turn, weights, top_k + more, related.ranked)
    return Ranking(memories, order, asked.query, turn, top_k, weights, related)


def clock(look: Look, space: str) -> int:
    """The space's turn: the highest that it has seen."""
    row = look.row(salience.CLOCK, space)
    return row.turn if row else 0


async def salient(
    reading: Reading, asking: Asking | None, space: str, agent: str, asked: Asked, candidates: int
) -> SalientView:
    """The strongest of the newest `candidates` events that `agent` may see, in ledger order."""
    look = await reading.look(rows(space, agent), episodic.logs(space, agent, candidates))
    ranking = rank(look, space, agent, asked, await related(look, asking, space, agent, asked))
    return SalientView(
        **look.computed_at,
        space=space,
        agent=agent,
        query=ranking.query,
        turn=ranking.turn,
        top_k=ranking.top_k,
        weights=SalienceWeights(**ranking.weights._asdict()),
        considered=len(ranking.memories),
        relevance_by=ranking.related.by,
        memories=tuple(ranking.salient(look, memory) for memory in ranking.chosen()),
    )
