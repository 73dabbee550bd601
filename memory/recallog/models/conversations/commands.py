"""Changes of conversations: messages are added and removed, and the beginning is replaced by a summary."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recallog.access import MemoryAccess
from recallog.commands.command import Judge
from recallog.commands.making import make_event
from recallog.messages.blocks import ToolCall, nonempty
from recallog.messages.mapping import own_id
from recallog.models import conversations
from recallog.models.conversations import adding, compaction
from recallog.models.conversations import reactor as reactor
from recallog.models.conversations import reading as stored
from recallog.models.conversations.queries import PlannedCompaction
from recallog.models.conversations.reading import ShownMessage
from recallog.models.conversations.summarizer import Summarizer
from recallog.operations.parameters import At
from recallog.queries import event_lookup
from recallog.reading.readings import AgentReading
from recallog_projections.models.conversations import projection, rendering, tables
from recallog_projections.models.conversations.tables import ConversationKey, ConversationRow, MessageRef, MessageRow
from recallog_projections.models.conversations.thresholds import Thresholds
from recallog_projections.tables import RowKey
from recallog_projections.views import activity
from recallog_schemas import Event, Position, limits
from recallog_schemas.errors import IdConflict
from recallog_schemas.models.conversations import limits as conversations_limits
from recallog_schemas.models.conversations.views import CompactionView, MessagesAdded, MessagesRemoved
from recallog_schemas.roles import ASSISTANT, USER

JUDGE = Judge(projection.Conversations, tables.REFUSALS)
"""The verdicts on removals and compactions."""
_TRIES = 50
"""How often `pop` searches again if other calls have removed the messages that it found."""
_SALTS = 3
"""How many ids a message may have. The first ones may be used by other events."""
_APPENDED = 1_000
"""Events in one append. A batch is written completely or not at all if an addition is interrupted."""


@dataclass(frozen=True, slots=True)
class _Given:
    """A message to add."""

    message: Mapping[str, Any]
    path: str
    digest: str
    own_id: str | None

    @property
    def instructs(self) -> bool:
        return rendering.role_in(self.message) in rendering.INSTRUCTIONS


@dataclass(frozen=True, slots=True)
class _Compared:
    """A message of the conversation, in the form in which it is compared with given ones."""

    instructs: bool
    digest: str


@dataclass(frozen=True, slots=True)
class _Present:
    """The state of the conversation when messages are added."""

    ever: int
    """How many messages were ever added."""
    turn: int
    """The highest turn of the agent and of the conversation."""
    known: frozenset[int]
    """The indexes of the given messages that are in the conversation already."""
    calls: Mapping[str, ToolCall]
    """The calls that the given results may answer, by id."""


@dataclass(frozen=True, slots=True)
class Addition:
    """Messages to add to a conversation."""

    messages: Sequence[Mapping[str, Any]]
    continues: bool
    """Whether messages without an id are always new, even if they repeat earlier ones."""
    turn: int | None
    subject: str | None
    """The person whose data all messages contain; None: for a message of a user, the person that its `name` names."""


async def add(
    access: MemoryAccess, conversation: ConversationKey, addition: Addition, after: Position | None
) -> MessagesAdded:
    """Add the messages that are not in the conversation yet. `after` is the position of an earlier call.

    Raises `InvalidArgument`, and `EventTooLarge` for a message of more than 16 MiB.
    """
    messages = addition.messages
    if access.scrubber is not None:  # before they are compared with stored messages, and split into parts
        messages = access.scrubber.scrub_given(messages)
    given = [_parse_given(message, f"messages.{number}") for number, message in enumerate(messages)]
    tried: list[str] | None = None
    salt = 0
    while True:
        present = await access.of_agent(
            conversation.space,
            conversation.agent,
            At(after=after),
            _present,
            conversation,
            given,
            continues=addition.continues,
        )
        events, ids = _events(conversation, given, present, salt, addition)
        try:
            await _check_free(access, conversation.space, ids)
            position = await _append(access, events)
        except IdConflict:
            if ids != tried:  # another process has added the same messages at another turn: they are known now
                tried = ids
            elif salt < _SALTS - 1:  # another event has the id of one of them
                salt += 1
            else:
                raise
            continue
        return MessagesAdded(added=len(ids), known=len(given) - len(ids), ids=tuple(ids), position=position)


async def _check_free(access: MemoryAccess, space: str, ids: Sequence[str]) -> None:
    """Raise `IdConflict` if other events have these ids and the ledger accepts repeated ids. The views would skip the
    messages."""
    if not access.components.ledger.unique_ids:
        taken = await access.of_space(space, At(), event_lookup.find_offsets, space, ids)
        if taken:
            raise IdConflict("another event has the id of a message", path="id", position=str(min(taken.values())))


def _parse_given(message: Mapping[str, Any], path: str) -> _Given:
    plain = adding.check_message(message, path)
    return _Given(plain, path, rendering.digest_of(plain), own_id(plain))


async def _append(access: MemoryAccess, events: Sequence[Event]) -> Position | None:
    position = None
    for start in range(0, len(events), _APPENDED):
        position = (await access.append(events[start : start + _APPENDED]))[-1]
    return position


def _events(
    conversation: ConversationKey,
    given: Sequence[_Given],
    present: _Present,
    salt: int,
    addition: Addition,
) -> tuple[list[Event], list[str]]:
    """The events of the new messages, and the ids that the caller gave the messages."""
    turn = addition.turn
    events: list[Event] = []
    ids: dict[str, None] = {}
    calls = dict(present.calls)
    now = present.turn if turn is None else turn
    for number, each in enumerate(given):
        calls |= adding.calls_by_id([each.message])
        if number in present.known:
            continue
        if rendering.role_in(each.message) == USER and turn is None and adding.says_something(each.message):
            now = min(now + 1, limits.TURN_MAX)
        ordinal = present.ever + len(ids)
        key = ("id", each.own_id) if each.own_id is not None else (ordinal, each.digest)
        id_ = adding.id_of(conversation, *key, *_salt_ids(salt))
        if id_ in ids:  # of two given messages with one id the first counts
            continue
        event = adding.MessageEvent(conversation, each.message, id_, now, addition.subject or _subject_of(each.message))
        events += adding.events_of(event, calls, each.path)
        ids[id_] = None
    return events, list(ids)


def _subject_of(message: Mapping[str, Any]) -> str | None:
    """The default person whose data a message contains: the user that is named as its author."""
    return nonempty(message.get("name")) if message.get("role") == USER else None


async def _present(
    reading: AgentReading,
    conversation: ConversationKey,
    given: Sequence[_Given],
    *,
    continues: bool,
) -> _Present:

    async def read(session: AgentReading) -> _Present:
        by_id = _of_own_ids(conversation, {each.own_id for each in given if each.own_id is not None})
        keys = projection.keys_of(conversation)
        refs = [RowKey(tables.REFS.name, conversation.space, "", id_) for id_ in by_id]
        agent = RowKey(activity.AGENTS.name, conversation.space, conversation.agent)
        snapshot = await session.snapshot([*keys, *refs, agent])
        span = snapshot.row(activity.AGENTS, conversation.space, conversation.agent)
        state = snapshot.row(tables.STATES, *conversation) or ConversationRow()
        refs_of = {id_: snapshot.row(tables.REFS, conversation.space, "", id_) for id_ in by_id}
        added = {by_id[id_] for id_, ref in refs_of.items() if _is_of(conversation, ref)}
        known = {number for number, each in enumerate(given) if each.own_id in added}
        if not continues and any(each.own_id is None for each in given):
            known |= await _align_messages(session, conversation, given)
        return _Present(
            state.ever,
            max(state.turn, 0 if span is None else span.turn),
            frozenset(known),
            await _calls(session, conversation, [each for number, each in enumerate(given) if number not in known]),
        )

    return await reading.steady(read)


def _salt_ids(salt: int) -> tuple[str, ...]:
    """An additional part of the key of a message id, if other events have its first ids."""
    return (f"salt {salt}",) if salt else ()


def _of_own_ids(conversation: ConversationKey, own: Iterable[str]) -> Mapping[str, str]:
    """The messages' own ids, by the ids that their events may have."""
    return {adding.id_of(conversation, "id", id_, *_salt_ids(salt)): id_ for id_ in own for salt in range(_SALTS)}


def _is_of(conversation: ConversationKey, ref: MessageRef | None) -> bool:
    """Whether the event with the id of a message is in the conversation. Another event may have the id."""
    return ref is not None and ref.session == conversation.session and conversation.agent in ref.owners


async def _align_messages(session: AgentReading, conversation: ConversationKey, given: Sequence[_Given]) -> set[int]:
    """The indexes of the given messages that are in the conversation: both begin alike, or it ends as they begin.

    Instructions are compared separately, since a program may change them from call to call. A message with the summary
    of a compaction, which `messages` has returned, counts as known.
    """
    said = [number for number, each in enumerate(given) if not each.instructs]
    digests = [given[number].digest for number in said]
    summaries = {number for number, each in enumerate(given) if compaction.is_summary(each.message)}
    beginning = await _some(session, conversation, len(said), newest_first=False)
    everything = [each.digest for each in beginning[: len(given)]]
    if everything == [each.digest for each in given[: len(everything)]]:
        return set(range(len(everything)))
    known = beginning
    begins = [each.digest for each in beginning if not each.instructs][: len(said)]
    if not summaries and begins == digests[: len(begins)]:
        count = len(begins)
    else:
        end = await _some(session, conversation, len(said), newest_first=True)
        known = [*beginning, *end]
        count = _overlap([each.digest for each in end if not each.instructs], digests)
    instructions = {each.digest for each in known if each.instructs}
    until = said[count] if count < len(said) else len(given)
    return summaries | {
        number for number in range(until) if not given[number].instructs or given[number].digest in instructions
    }


async def _some(
    session: AgentReading, conversation: ConversationKey, count: int, *, newest_first: bool
) -> list[_Compared]:
    """The first or the newest messages of a conversation, in their order: at least `count` that are not instructions,
    and the instructions next to them."""
    rows: list[MessageRow] = []
    others = 0
    page = min(count + 8, limits.SCAN_ITEMS)
    async for row in stored.rows_of(session, conversation, newest_first=newest_first, page=page):
        others += row.role not in rendering.INSTRUCTIONS
        if others > count:
            break
        rows.append(row)
    rows = rows[::-1] if newest_first else rows
    plain = await stored.read_messages(session, conversation, [row for row in rows if not row.digest])
    of_plain: dict[int, list[str]] = {}
    for each in plain:
        of_plain.setdefault(each.offset, []).append(rendering.digest_of(each.message))
    return [
        _Compared(row.role in rendering.INSTRUCTIONS, digest)
        for row in rows
        for digest in ([row.digest] if row.digest else of_plain[row.offset])
    ]


def _overlap(end: Sequence[str], begins: Sequence[str]) -> int:
    """The length of the longest prefix of `begins` with which `end` ends."""
    lengths = range(min(len(end), len(begins)), 0, -1)
    return next((length for length in lengths if list(end[len(end) - length :]) == list(begins[:length])), 0)


async def _calls(
    session: AgentReading, conversation: ConversationKey, given: Sequence[_Given]
) -> Mapping[str, ToolCall]:
    """The tool calls in the newest messages that are answered by results among the given messages."""
    wanted = {call for each in given for call in adding.called_by(each.message)}
    wanted -= adding.calls_by_id([each.message for each in given]).keys()
    found: dict[str, ToolCall] = {}
    if not wanted:
        return found
    rows: list[MessageRow] = []
    searched = 0
    async for row in stored.rows_of(session, conversation, newest_first=True, page=16):
        searched += 1
        if row.role == ASSISTANT and row.author == conversation.agent:
            rows.append(row)
        if len(rows) == 8 or searched >= conversations_limits.MESSAGE_CALLS_SEARCHED:
            found |= await _calls_in(session, conversation, rows)
            rows = []
            if wanted <= found.keys() or searched >= conversations_limits.MESSAGE_CALLS_SEARCHED:
                return found
    return found | await _calls_in(session, conversation, rows)


async def _calls_in(
    session: AgentReading, conversation: ConversationKey, rows: Sequence[MessageRow]
) -> dict[str, ToolCall]:
    shown = await stored.read_messages(session, conversation, rows)
    return adding.calls_by_id([each.message for each in shown])


async def remove(
    access: MemoryAccess, conversation: ConversationKey, ids: Sequence[str], after: Position | None
) -> "Removed":
    """Remove messages from a conversation, by the ids of their events or their own. Other ids are ignored."""
    wanted = {*ids, *_of_own_ids(conversation, ids)}

    async def choose_messages(session: AgentReading) -> list[MessageRow]:
        return [row async for row in stored.rows_of(session, conversation) if row.id in wanted]

    return _sum_removed([await _take(access, conversation, choose_messages, after)])


async def pop(
    access: MemoryAccess, conversation: ConversationKey, newest: int | None, after: Position | None
) -> "Removed":
    """Remove the newest messages from a conversation; None: all of them.

    If several callers remove messages, the first in the ledger gets a message, and the others get earlier ones.
    """
    left = newest

    async def choose_messages(session: AgentReading) -> list[MessageRow]:
        rows: list[MessageRow] = []
        async for row in stored.rows_of(session, conversation, newest_first=True, page=left or limits.SCAN_ITEMS):
            rows.append(row)
            if len(rows) == left:
                break
        return rows[::-1]

    parts: list[_Taken] = []
    for _ in range(_TRIES):
        parts.append(await _take(access, conversation, choose_messages, after))
        after = parts[-1].position
        if left is None or after is None or not (left := left - len(parts[-1].ids)):
            break
    return _sum_removed(parts)


@dataclass(frozen=True, slots=True)
class Removed:
    """The answer about messages that were removed from a conversation, and the ids of all events that contain them."""

    answer: MessagesRemoved
    events: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Taken:
    """Messages that one call has removed from a conversation, oldest first."""

    ids: Sequence[str]
    """The ids of their events."""
    events: Sequence[str]
    """The ids of their events, and of the parts of large messages."""
    messages: Sequence[ShownMessage]
    position: Position | None
    """The position of the last event; None if the conversation does not have such messages."""


async def _take(
    access: MemoryAccess,
    conversation: ConversationKey,
    chosen: Callable[[AgentReading], Awaitable[list[MessageRow]]],
    after: Position | None,
) -> _Taken:
    """Remove the chosen messages from a conversation, except those that another call removes first."""

    parts: dict[str, int] = {}

    async def read(session: AgentReading) -> list[ShownMessage]:
        rows = await chosen(session)
        parts.update((row.id, row.parts) for row in rows)
        return await stored.read_messages(session, conversation, rows)

    at = At(after=after)
    found = await access.of_agent(conversation.space, conversation.agent, at, AgentReading.steady, read)
    ids = list(dict.fromkeys(each.id for each in found))
    taken, position = set[str](), None
    for start in range(0, len(ids), _APPENDED):
        part = ids[start : start + _APPENDED]
        events = [_event(conversation, rendering.REMOVAL, {"id": id_}) for id_ in part]
        verdict = await JUDGE.publish(access, events)
        taken |= {id_ for id_, reasons in zip(part, verdict.reasons, strict=True) if not reasons}
        position = verdict.position
    ids = [id_ for id_ in ids if id_ in taken]
    of_events = [id_ for message in ids for id_ in (message, *adding.part_ids(message, parts[message]))]
    return _Taken(ids, of_events, [each for each in found if each.id in taken], position)


def _sum_removed(parts: Sequence[_Taken]) -> Removed:
    """The answer to a call that has removed messages in several steps, the newest messages first."""
    oldest_first = [part for part in reversed(parts) if part.ids]
    answer = MessagesRemoved(
        removed=tuple(id_ for part in oldest_first for id_ in part.ids),
        messages=tuple(dict(each.message) for part in oldest_first for each in part.messages),
        position=next((part.position for part in reversed(parts) if part.position is not None), None),
    )
    return Removed(answer, [id_ for part in oldest_first for id_ in part.events])


def _event(conversation: ConversationKey, kind: str, payload: Mapping[str, Any], **envelope: Any) -> Event:
    return make_event(conversation.space, conversation.agent, kind, payload, session=conversation.session, **envelope)


async def compact(
    access: MemoryAccess,
    conversation: ConversationKey,
    summarizer: Summarizer | None,
    thresholds: Thresholds,
    after: Position | None,
) -> CompactionView:
    """Replace the beginning of a conversation by a summary if it is longer than `thresholds` allow."""
    planned: PlannedCompaction = await access.of_agent(
        conversation.space,
        conversation.agent,
        At(after=after),
        conversations.queries.plan_compaction,
        conversation,
        thresholds,
    )
    plan = planned.plan
    if planned.upto is None:
        return CompactionView(compacted=0, kept=len(plan.kept), summary=None, by=None, failed=None, position=None)
    summary, by, failed = await reactor.summarize_plan(plan, summarizer)
    payload = reactor.payload_of(conversation.session, planned, summary, by)
    about = {} if planned.subject is None else {"subject": planned.subject}
    keys = await access.keys_at(conversation.space, planned.offsets)
    verdict = await JUDGE.publish(access, [_event(conversation, rendering.COMPACTION, payload, **about)], keys=keys)
    position = verdict.position
    if verdict.reasons[0]:  # another compaction came first, or a message was removed
        return CompactionView(compacted=0, kept=len(plan.kept), summary=None, by=None, failed=failed, position=position)
    return CompactionView(
        compacted=len(plan.head),
        kept=len(plan.kept),
        summary=str(summary),
        by=by,
        failed=failed,
        position=position,
    )
