"""Explanations: whether an agent remembers an event, and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from recallog.index.semantic_index import SemanticIndex
from recallog.queries import event_lookup, salient
from recallog.queries.salient import Ranking, SalienceQuery
from recallog.reading.known import knows
from recallog.reading.read_session import ReadSession, Snapshot
from recallog.reading.time_travel import AsOf
from recallog_projections.tables import RowKey
from recallog_projections.views import episodic, settings
from recallog_projections.views.episodic import RememberedEvent
from recallog_projections.views.settings import AgentSettings
from recallog_schemas import Position, codec, kinds, limits
from recallog_schemas.kinds import SalienceWeights
from recallog_schemas.views import Explanation, Salient
from recallog_streams import dead_letters
from recallog_streams.ledgers.ledger import Ledger, record_at


@dataclass(frozen=True, slots=True)
class _Verdict:
    verdict: str
    why: str


async def _found(reading: ReadSession, ledger: Ledger, space: str, event_id: str) -> Position | None:
    """The position of the event. A ledger without unique ids is searched only if the views do not know the id."""
    if not codec.is_text(event_id):
        return None
    if not ledger.unique_ids:
        offset = (await event_lookup.counted(reading, space, [event_id])).get(event_id)
        if offset is not None:
            return Position(reading.partition, offset)
    return await ledger.find(space, event_id)


async def explain(
    reading: ReadSession,
    ledger: Ledger,
    index: SemanticIndex | None,
    space: str,
    event_id: str,
    agent: str,
    query: SalienceQuery,
    candidates: int,
) -> Explanation:
    """Explain one event for `agent`; salience scores the newest `candidates` events."""
    found = await _found(reading, ledger, space, event_id)
    rows = salient.rows(space, agent)
    if found is not None:
        rows.append(RowKey(dead_letters.TABLE.name, "", "", dead_letters.key_of(found.offset)))
    snapshot = await reading.snapshot(rows, episodic.logs(space, agent, candidates))
    related = await salient.related(snapshot, index, space, agent, query)
    ranking = salient.rank(snapshot, space, agent, query, related, more=candidates)
    own = snapshot.row(settings.AGENTS, space, agent) or AgentSettings()
    window = own.window or limits.WINDOW_EVENTS
    visible = episodic.merge(snapshot.tail(episodic.OWN, space, agent), snapshot.tail(episodic.SHARED, space))
    list_index = _list_index(visible, found)
    newer = rank = None
    memory: Salient | None = None
    if list_index is None:
        verdict = await _absent(snapshot, ledger, space, agent, found, query.as_of)
    else:
        # Both logs together may hold more than are scored.
        newer = len(visible) - 1 - list_index
        scored = len(ranking.memories) - 1 - newer
        rank = 1 + [number for _, number in ranking.order].index(scored) if scored >= 0 else None
        memory = ranking.salient(snapshot, visible[list_index])
        verdict = _by_salience(ranking, rank, newer) if own.use_salience else _by_age(agent, newer, window)
    return Explanation(
        **snapshot.computed_at,
        space=space,
        agent=agent,
        known=await knows(reading, snapshot, space, agent),
        dates=settings.dates_of(own),
        event_id=event_id,
        verdict=verdict.verdict,
        why=verdict.why,
        position=None if verdict.verdict == "unknown" else found,
        in_episodic=newer is not None and newer < window,
        newer=newer,
        window=window,
        in_salient=rank is not None and rank <= ranking.top_k,
        rank=rank,
        top_k=ranking.top_k,
        considered=len(ranking.memories),
        query=ranking.query,
        turn=ranking.turn,
        weights=SalienceWeights(**ranking.weights._asdict()),
        memory=memory,
    )


def _list_index(memories: Sequence[RememberedEvent], found: Position | None) -> int | None:
    if found is None:
        return None
    return next((list_index for list_index, memory in enumerate(memories) if memory.offset == found.offset), None)


def _by_age(agent: str, newer: int, window: int) -> _Verdict:
    if newer < window:
        return _Verdict(
            "remembered", f"it is among the newest {window:,} events that {agent} may see ({newer:,} newer)"
        )
    return _Verdict(
        "out_of_window", f"of the events that {agent} may see {newer:,} are newer, and the window holds {window:,}"
    )


def _by_salience(ranking: Ranking, rank: int | None, newer: int) -> _Verdict:
    if rank is None:
        scored = len(ranking.memories)
        return _Verdict(
            "outscored", f"only the newest {scored:,} events are scored, and of those it may see {newer:,} are newer"
        )
    of = f"it ranks {rank:,} of {len(ranking.memories):,} by salience"
    if rank <= ranking.top_k:
        return _Verdict("remembered", f"{of}, and the strongest {ranking.top_k:,} are remembered")
    weakest = ranking.order[ranking.top_k - 1][0]
    return _Verdict("outscored", f"{of}; the weakest of the strongest {ranking.top_k:,} has {weakest:.3f}")


async def _absent(
    snapshot: Snapshot, ledger: Ledger, space: str, agent: str, found: Position | None, as_of: AsOf | None
) -> _Verdict:
    """The verdict on an event that is not among those that `agent` may see."""
    data = await record_at(ledger, found.partition, found.offset) if found is not None else None
    if found is None or data is None or found.offset > snapshot.processed:
        return _Verdict("unknown", f"there is no event of this id in {space}")
    letter = snapshot.row(dead_letters.TABLE, "", "", dead_letters.key_of(found.offset))
    if letter is not None:
        return _Verdict(
            "dead_letter", f"it could not be applied: {letter.reason}. See: recallog dead-letters show {found}"
        )
    event = codec.decode(data)
    if isinstance(as_of, datetime) and event.at > as_of:
        return _Verdict("unknown", f"there was no event of this id in {space} then: it happened later")
    if kinds.kind_of(event.kind).bookkeeping:
        return _Verdict("bookkeeping", f"{event.kind} is a bookkeeping kind, which no agent remembers")
    kept_from = episodic.kept_from(snapshot.tail(episodic.OWN, space, agent), snapshot.tail(episodic.SHARED, space))
    if kept_from is not None and found.offset < kept_from:
        return _Verdict(
            "not_kept",
            f"the views keep what {agent} may see from {Position(found.partition, kept_from)} on, and it is older. "
            f"Ask as of {found} to see whether it was remembered then",
        )
    return _Verdict(
        "not_visible", f"it is neither by {agent} nor addressed to {agent}, and was not shared when it was published"
    )
