"""The fold of messages, removals and compactions into conversations, and when one must be compacted."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import ClassVar

import msgspec

from recallog_projections.models.conversations import rendering, tables, thresholds
from recallog_projections.models.conversations.tables import (
    COMPACTIONS,
    DUE,
    MESSAGES,
    NEWEST,
    PARTS,
    REFS,
    REFUSALS,
    REMOVED,
    STATES,
    ChunkRow,
    CompactionRow,
    ConversationKey,
    ConversationRow,
    EventRef,
    MessageRef,
    MessageRow,
    NewestRow,
    SessionRow,
)
from recallog_projections.refusals import Refusal
from recallog_projections.rows import Rows
from recallog_projections.tables import RowKey
from recallog_projections.views import settings, visibility
from recallog_projections.views.due import Due
from recallog_projections.views.settings import FoldPlans
from recallog_schemas import Event, Record, limits, triggers
from recallog_schemas.models.conversations import limits as conversations_limits
from recallog_schemas.models.conversations.triggers import COMPACTION
from recallog_schemas.triggers import Trigger

KINDS = frozenset({rendering.USER_SAID, rendering.AGENT_SAID, rendering.TOOL_USED, rendering.ADDED})
"""The kinds of events that are messages."""
SHARED = ""
"""The owner of messages that the space shares."""

_SAID = frozenset({rendering.USER_SAID, rendering.AGENT_SAID})
"""The kinds of messages that agents other than the author may see in their conversations."""
_EMPTY = ConversationRow()
_NO_MESSAGES = NewestRow()
_REST_MICROS = conversations_limits.COMPACT_REST_SECONDS * 1_000_000


class Conversations:
    """Fold of the messages of sessions. A change that names a message of another conversation alters nothing.

    A conversation is due to be compacted when more than 20 messages were added to it, or more than 48,000 characters in
    more than 8; after a compaction, only later messages count. After three failures in a row it is not due for ten
    minutes of the events' time. Published and ingested events of a session are in its conversation, but do not count.
    """

    name: ClassVar[str] = "conversations"
    version: ClassVar[int] = 3
    ends_runs = triggers.CLOSINGS
    kinds = KINDS | triggers.CLOSINGS | {rendering.PART, rendering.REMOVAL, rendering.COMPACTION}
    tables = (MESSAGES, NEWEST, REFS, STATES, COMPACTIONS, DUE, PARTS, REMOVED, REFUSALS)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        space = run[0].event.space
        plans = settings.plans(rows, space)
        said = Counter[tuple[str, str]]()
        added = defaultdict[tuple[str, str], list[MessageRow]](list)
        for record in run:
            event = record.event
            if not record.reached:
                continue
            if event.kind in KINDS:
                if "within" in event.payload and rendering.is_within(event):
                    continue
                if event.session is not None and (owners := _owners(plans, event)):
                    row = _row(rows, record, event.session, owners)
                    for owner in owners:
                        added[owner, event.session].append(row)
                        if event.kind in _SAID and (owner == SHARED or SHARED not in owners):
                            said[owner, event.session] += 1
            elif event.kind == rendering.PART:
                at = (event.space, event.agent, _part_of(event))
                if rows.get(PARTS, *at) is None:
                    rows.put(PARTS, EventRef(record.offset), *at)
            elif event.kind in _JUDGED:
                refused = _JUDGED[event.kind](rows, record)
                if refused is not None:
                    rows.append(REFUSALS, Refusal(event.id, refused), event.space, event.agent)
            else:
                _close(rows, event, record.time)
        for (owner, session), messages in added.items():
            _append(rows, messages, said[owner, session], space, owner, session)

    def due(self, rows: Rows, record: Record) -> Iterable[Due]:
        """The compactions of the conversations that this message has made too long."""
        event = record.event
        if event.session is None or not rendering.is_added(event):
            return ()
        states = ((owner, rows.get(STATES, event.space, owner, event.session)) for owner in visibility.readers(event))
        due = [owner for owner, state in states if state is not None and state.due_at == record.offset]
        return [Due(COMPACTION, owner, cause=event.id) for owner in due]


def _append(rows: Rows, messages: Sequence[MessageRow], said: int, space: str, owner: str, session: str) -> None:
    """Append messages to a conversation; the newest ones become a chunk as soon as they fill it."""
    known = rows.get(NEWEST, space, owner, session) or _NO_MESSAGES
    newest, chunks, size = (*known.messages, *messages), known.chunks, conversations_limits.MESSAGES_OF_CHUNK
    while len(newest) >= size:
        rows.put(MESSAGES, ChunkRow(newest[:size]), space, owner, tables.chunk_key(session, newest[0].offset))
        newest, chunks = newest[size:], chunks + 1
    rows.put(NEWEST, NewestRow(known.said + said, chunks, newest), space, owner, session)


def _row(rows: Rows, record: Record, session: str, owners: tuple[str, ...]) -> MessageRow:
    """The row of a message in the conversations of `owners`; one that was added is counted there."""
    event = record.event
    if not rendering.is_added(event):
        return MessageRow(event.id, record.offset, event.agent, rendering.ROLE_OF_PLAIN[event.kind])
    row, chars = _make_message_row(record)
    _count(rows, record, session, row, chars, owners)
    return row


def _make_message_row(record: Record) -> tuple[MessageRow, int]:
    """The row of a message that was added, and its characters; a large one states its own."""
    event = record.event
    if parts := rendering.parts_of(event):
        digest, chars = _digest(event), _read_number(event, "chars")
    else:
        (message,) = rendering.messages_of(event, event.agent)
        digest, chars = rendering.digest_of(message), rendering.chars_of(message)
    return MessageRow(event.id, record.offset, event.agent, rendering.role_of(event), digest, parts), chars


def _count(rows: Rows, record: Record, session: str, row: MessageRow, chars: int, owners: tuple[str, ...]) -> None:
    """Count a message that was added in the conversations that it is in, and note where it is."""
    event, counted = record.event, 1
    for owner in owners:
        if owner == SHARED:
            continue
        state = rows.get(STATES, event.space, owner, session) or _EMPTY
        if row.role in rendering.INSTRUCTIONS and not state.begun:
            counted = chars = 0
        state = _judge_compaction(record, owner, _count_message(state, event, row, counted, chars))
        rows.put(STATES, state, event.space, owner, session)
        if state.due_at == record.offset:
            rows.put(DUE, SessionRow(session), event.space, owner, state.due)
    rows.put(REFS, MessageRef(session, record.offset, owners, counted, chars), event.space, "", event.id)


def _owners(plans: FoldPlans, event: Event) -> tuple[str, ...]:
    """The owners of the conversations that have the message; empty if there are none."""
    if event.kind not in _SAID:
        return (event.agent,)
    if event.audience is None and plans[event.kind].shared:
        return (SHARED, event.agent) if rendering.is_added(event) and event.kind == rendering.AGENT_SAID else (SHARED,)
    readers = visibility.readers(event)
    # The author of what a user says is a person, who has no conversation.
    return readers if event.kind == rendering.AGENT_SAID else tuple(each for each in readers if each != event.agent)


def is_message_of(event: Event, agent: str) -> bool:
    """Whether an event that `agent` may see is a message of its conversation, as `_owners` has decided.

    If the kind of what users say is not shared, an event that `agent` published in their name is in no conversation.
    """
    if event.kind == rendering.USER_SAID:
        return event.agent != agent or event.audience is None
    return event.kind == rendering.AGENT_SAID or (event.kind in KINDS and event.agent == agent)


def _count_message(state: ConversationRow, event: Event, row: MessageRow, counted: int, chars: int) -> ConversationRow:
    """The state with one more message."""
    return msgspec.structs.replace(
        state,
        ever=state.ever + 1,
        live=state.live + counted,
        count=state.count + counted,
        chars=state.chars + chars,
        turn=max(state.turn, event.turn),
        begun=state.begun or row.role not in rendering.INSTRUCTIONS,
    )


def _judge_compaction(record: Record, owner: str, state: ConversationRow) -> ConversationRow:
    """The state, with the trigger of its compaction if that is due now."""
    rests = record.time < state.rests_until
    if state.due or rests or not thresholds.DEFAULT.are_exceeded(state.count, state.chars, state.live):
        return state
    return msgspec.structs.replace(state, due=_trigger(record.event, owner).id, due_at=record.offset)


def _trigger(event: Event, owner: str) -> Trigger:
    return triggers.caused_by(COMPACTION, event.space, owner, event.id)


def _remove(rows: Rows, record: Record) -> str | None:
    """Remove a message from the conversation of the event's agent, or return why not. For a message
    that was not added, only the removal is stored."""
    event = record.event
    id_ = event.payload["id"]
    ref = rows.get(REFS, event.space, "", id_)
    session = event.session if ref is None else ref.session
    if rows.get(REMOVED, event.space, event.agent, id_) is not None:
        return tables.GONE
    if ref is not None and not {event.agent, SHARED} & {*ref.owners}:
        return tables.UNKNOWN
    rows.put(REMOVED, EventRef(record.offset), event.space, event.agent, id_)
    if session is None:
        return None
    state = rows.get(STATES, event.space, event.agent, session) or _EMPTY
    state = msgspec.structs.replace(state, removals=state.removals + 1)
    compaction = rows.get(COMPACTIONS, event.space, event.agent, session)
    if ref is not None and compaction is not None and ref.offset <= compaction.upto:
        if ref.offset == compaction.upto:  # the summary is removed with the last message that it covers
            rows.delete(COMPACTIONS, event.space, event.agent, session)
    elif ref is not None and event.agent in ref.owners:
        state = msgspec.structs.replace(state, live=max(state.live - ref.messages, 0))
        if compaction is None or ref.offset > compaction.offset:
            count, chars = max(state.count - ref.messages, 0), max(state.chars - ref.chars, 0)
            state = msgspec.structs.replace(state, count=count, chars=chars)
    rows.put(STATES, state, event.space, event.agent, session)
    return None


def _compact(rows: Rows, record: Record) -> str | None:
    """Let a summary replace the beginning of a conversation, or return why not."""
    event = record.event
    session, count = event.payload["session"], event.payload["count"]
    at = (event.space, event.agent, session)
    ref, before = rows.get(REFS, event.space, "", event.payload["upto"]), rows.get(COMPACTIONS, *at)
    if ref is None or ref.session != session or event.agent not in ref.owners:
        return tables.UNKNOWN
    if before is not None and ref.offset <= before.upto:
        return tables.COMPACTED
    state = rows.get(STATES, *at) or _EMPTY
    if event.payload.get("removals", state.removals) != state.removals:
        return tables.CHANGED
    covered = count + (0 if before is None else before.count)
    row = CompactionRow(
        event.id,
        record.offset,
        ref.offset,
        covered,
        event.payload["summary"],
        event.payload["by"],
        record.time,
        event.subject,
    )
    rows.put(COMPACTIONS, row, *at)
    state = msgspec.structs.replace(state, live=max(state.live - count, 0), count=0, chars=0)
    rows.put(STATES, state, *at)
    return None


_JUDGED = {rendering.REMOVAL: _remove, rendering.COMPACTION: _compact}


def _find_closed(event: Event) -> Trigger | None:
    """The trigger of a compaction that the event closes; None if it closes none."""
    trigger = triggers.named_by(event)
    return trigger if trigger is not None and trigger.kind == COMPACTION else None


def _close(rows: Rows, event: Event, at: int) -> None:
    trigger = _find_closed(event)
    due = None if trigger is None else rows.get(DUE, event.space, event.agent, trigger.id)
    if trigger is None or due is None:
        return
    rows.delete(DUE, event.space, event.agent, trigger.id)
    state = rows.get(STATES, event.space, event.agent, due.session) or _EMPTY
    failures = state.failures + 1 if event.kind == triggers.FAILED else 0
    rests = failures >= conversations_limits.COMPACT_FAILURES
    rests_until = at + _REST_MICROS if rests else 0
    state = msgspec.structs.replace(state, due="", due_at=-1, failures=failures, rests_until=rests_until)
    rows.put(STATES, state, event.space, event.agent, due.session)


def _part_of(event: Event) -> str:
    return tables.part_key(event.payload["message"], event.payload["number"])


def _read_number(event: Event, field: str) -> int:
    """A number that the event of a large message states about it."""
    value = event.payload["parts"].get(field)
    return value if type(value) is int and value >= 0 else 0


def _digest(event: Event) -> str:
    value = event.payload["parts"].get("digest")
    return value if isinstance(value, str) and len(value) <= limits.ID_CHARS_MAX else ""


def keys_of(conversation: ConversationKey) -> Sequence[RowKey]:
    """The rows of the state of a conversation."""
    return RowKey(STATES.name, *conversation), RowKey(COMPACTIONS.name, *conversation)
