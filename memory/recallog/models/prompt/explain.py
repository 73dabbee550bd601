"""Explanations: whether the prompt of an agent shows an event, and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from recallog.models.long_term import entry_presence
from recallog.models.long_term.entry_lookup import FoundEntry, entries_by_id
from recallog.models.prompt.queries import MEMORY_HEADING, ContextRequest, compose
from recallog.queries import event_lookup, salient
from recallog.queries.event_lookup import PastMemory
from recallog.queries.salient import Ranking
from recallog.reading.read_session import Snapshot
from recallog.reading.readings import AgentReading, SpaceReading
from recallog_projections.models.long_term import tables
from recallog_projections.tables import RowKey, Tail
from recallog_projections.views import activity, episodic
from recallog_schemas import Position, codec, kinds, limits
from recallog_schemas.kinds import SalienceWeights
from recallog_schemas.models.prompt.views import Explanation
from recallog_schemas.validation import is_text
from recallog_schemas.views import Salient
from recallog_streams import dead_letters
from recallog_streams.ledgers.ledger import record_at


@dataclass(frozen=True, slots=True)
class _Verdict:
    verdict: str
    why: str


@dataclass(frozen=True, slots=True)
class _Seen:
    """Known facts about an event that the logs may have dropped."""

    visible: bool | None
    """Whether the agent may see it; None: unknown."""
    newer: int | None
    """The number of newer events that the agent may see; None if it is unknown, or if the agent may not see the
    event."""


async def _find_position(reading: SpaceReading, event_id: str) -> Position | None:
    """The position of the event. A ledger without unique ids is searched only if the views do not know the id."""
    if not is_text(event_id):
        return None
    if not reading.ledger.unique_ids:
        offset = (await event_lookup.find_offsets(reading, reading.space, [event_id])).get(event_id)
        if offset is not None:
            return Position(reading.partition, offset)
    return await reading.ledger.find(reading.space, event_id)


async def explain(reading: AgentReading, event_id: str, request: ContextRequest) -> Explanation:
    """Explain one event for an agent, by the prompt that `request` composes for it."""
    space, agent = reading.space, reading.agent
    found = await _find_position(reading, event_id)
    rows = [RowKey(activity.SPACES.name, space), *entry_presence.rows(space)]
    if found is not None:
        rows.append(RowKey(dead_letters.TABLE.name, "", "", dead_letters.key_of(found.offset)))
    composed = await compose(reading, request, rows=rows, first_read=reading.log_events)
    snapshot, query = composed.snapshot, composed.salience_query
    related = composed.related or await salient.find_related(snapshot, reading.searcher, space, agent, query)
    ranking = salient.rank(snapshot, space, agent, query, related, more=reading.log_events)
    window = composed.own.window or limits.WINDOW_EVENTS
    offset = found.offset if found is not None and found.offset <= snapshot.processed else None
    sections = () if offset is None else composed.prompt.sections_of(offset)
    memory, rank = _score_event(snapshot, reading, ranking, offset)
    entry = None
    if offset is not None and entry_presence.has_entries(snapshot, space):
        entry = (await entries_by_id(reading, space, [event_id])).get(event_id)
        entry = entry if entry is not None and entry.is_shown_to(agent) else None
    seen = _Seen(None, None)
    if entry is None:
        seen = await _count_seen(snapshot, reading, offset, visible=memory is not None or bool(sections))
    newer = seen.newer
    if entry is not None:
        verdict = _of_entry(agent, entry, sections)
    elif memory is None and not sections:
        verdict = await _absent(snapshot, reading, found, seen)
    elif memory is not None and memory.event.is_erased:
        verdict = _Verdict("erased", "its content was erased, so no prompt shows it")
    elif composed.own.use_salience:
        verdict = _by_salience(ranking, rank, newer, sections)
    else:
        verdict = _by_age(agent, newer, window, sections)
    return Explanation(
        **snapshot.computed_at,
        space=space,
        agent=agent,
        known=composed.reflection.known,
        dates=composed.reflection.dates,
        event_id=event_id,
        verdict=verdict.verdict,
        why=verdict.why,
        position=None if verdict.verdict == "unknown" else found,
        sections=sections,
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


def _of_entry(agent: str, entry: FoundEntry, sections: Sequence[str]) -> _Verdict:
    ref, row = entry
    if sections:
        return _Verdict("remembered", "it is an entry that the prompt recalls")
    if ref.owner != agent and entry.readable_by(agent) is None:
        return _Verdict("not_visible", f"it is an entry of another agent, which {agent} may not read")
    if ref.status == tables.DUPLICATE:
        return _Verdict("entry", f"it has no entry of its own: {ref.of} has the same text, or nearly the same")
    if row is None or ref.status != tables.LIVE:
        return _Verdict("entry", f"it is {ref.status}" + (f": {ref.reason}" if ref.reason else ""))
    return _Verdict("entry", "it is kept on purpose: in no window and without salience, and found by recall")


def _tails(snapshot: Snapshot, reading: AgentReading) -> tuple[Tail, Tail]:
    return snapshot.tail(episodic.OWN, reading.space, reading.agent), snapshot.tail(episodic.SHARED, reading.space)


def _score_event(
    snapshot: Snapshot, reading: AgentReading, ranking: Ranking, offset: int | None
) -> tuple[Salient | None, int | None]:
    """The event with its salience, and its rank. Both are None if the logs do not have it; the rank is None if it is
    not scored."""
    visible = episodic.merge(*_tails(snapshot, reading))
    list_index = next((number for number, memory in enumerate(visible) if memory.offset == offset), None)
    if list_index is None:
        return None, None
    # Both logs together may contain more events than are scored.
    scored = len(ranking.memories) - len(visible) + list_index
    rank = 1 + [number for _, number in ranking.order].index(scored) if scored >= 0 else None
    return ranking.salient(snapshot, visible[list_index]), rank


async def _count_seen(snapshot: Snapshot, reading: AgentReading, offset: int | None, *, visible: bool) -> _Seen:
    """How many events are newer than the one at `offset`. `visible` is true if the event is known to be visible.

    If the logs have dropped some of them, the space is folded up to the event, unless it is too large.
    """
    if offset is None:
        return _Seen(False, None)
    tails = _tails(snapshot, reading)
    newer = episodic.newer_than(offset, *tails)
    if newer is not None:
        return _Seen(visible, newer if visible else None)
    row = snapshot.row(activity.SPACES, reading.space)
    if row is None or row.events > limits.AS_OF_RECORDS_MAX:
        return _Seen(True if visible else None, None)
    past = PastMemory(reading)
    was_visible, total = await past.look_up_seen(offset)
    return _Seen(was_visible, sum(tail.total for tail in tails) - total if was_visible else None)


def _by_age(agent: str, newer: int | None, window: int, sections: Sequence[str]) -> _Verdict:
    if newer is not None and newer < window:
        return _Verdict(
            "remembered", f"it is among the newest {window:,} events that {agent} may see ({newer:,} newer)"
        )
    if MEMORY_HEADING in sections:
        return _Verdict(
            "remembered", f"it is among the newest {window:,} that {agent} may see and no other section shows"
        )
    if sections:
        return _Verdict("remembered", _elsewhere(newer))
    older = "too many" if newer is None else f"{newer:,}"
    return _Verdict(
        "out_of_window", f"of the events that {agent} may see {older} are newer, and the window holds {window:,}"
    )


def _by_salience(ranking: Ranking, rank: int | None, newer: int | None, sections: Sequence[str]) -> _Verdict:
    if sections and MEMORY_HEADING not in sections:
        return _Verdict("remembered", _elsewhere(newer))
    if rank is None:
        scored = len(ranking.memories)
        older = "more" if newer is None else f"{newer:,}"
        return _Verdict(
            "outscored", f"only the newest {scored:,} events are scored, and {older} newer ones are visible to it"
        )
    of = f"it ranks {rank:,} of {len(ranking.memories):,} by salience"
    if rank <= ranking.top_k:
        return _Verdict("remembered", f"{of}, and the strongest {ranking.top_k:,} are remembered")
    if sections:
        return _Verdict("remembered", f"{of}, and the strongest {ranking.top_k:,} that no other section shows are")
    weakest = ranking.order[ranking.top_k - 1][0]
    return _Verdict("outscored", f"{of}; the weakest of the strongest {ranking.top_k:,} has {weakest:.3f}")


def _elsewhere(newer: int | None) -> str:
    return "a section of the prompt shows it" + ("" if newer is None else f", though {newer:,} are newer")


async def _absent(snapshot: Snapshot, reading: AgentReading, found: Position | None, seen: _Seen) -> _Verdict:
    """The verdict on an event that is neither in the prompt nor in the logs of the agent."""
    space, agent, as_of = reading.space, reading.agent, reading.as_of
    data = await record_at(reading.ledger, found.partition, found.offset) if found is not None else None
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
    role = kinds.kind_of(event.kind).role
    if role == kinds.BOOKKEEPING:
        return _Verdict(role, f"{event.kind} is a bookkeeping kind, which no agent remembers")
    if role == kinds.ENTRY:
        return _Verdict(role, f"{event.kind} is kept on purpose; it is in no window and has no salience")
    kept_from = episodic.kept_from(*_tails(snapshot, reading))
    if kept_from is not None and found.offset < kept_from and seen.visible is not False:
        return _Verdict(
            "not_kept",
            f"the views keep what {agent} may see from {Position(found.partition, kept_from)} on, and it is older. "
            f"Query as of {found} to see whether it was remembered then",
        )
    return _Verdict(
        "not_visible", f"it is neither by {agent} nor addressed to {agent}, and was not shared when it was published"
    )
