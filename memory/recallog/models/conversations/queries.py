"""Conversations: the messages of a session as a model reads them, and what a compaction would replace."""

from collections.abc import Sequence
from dataclasses import dataclass

from recallog.models.conversations import compaction
from recallog.models.conversations import reading as stored
from recallog.models.conversations.compaction import CompactionPlan
from recallog.models.conversations.reading import ShownMessage
from recallog.reading.read_session import ReadSession
from recallog.reading.readings import AgentReading
from recallog.reading.subject import of_agent, own_log
from recallog_projections.models.conversations import projection, rendering, tables
from recallog_projections.models.conversations.tables import ConversationKey, MessageRow
from recallog_projections.models.conversations.thresholds import DEFAULT, Thresholds
from recallog_projections.tables import RowKey
from recallog_projections.views import settings
from recallog_schemas.errors import OutOfRange
from recallog_schemas.models.conversations.views import ConversationView


@dataclass(frozen=True, slots=True)
class PlannedCompaction:
    """A compaction that is possible now."""

    plan: CompactionPlan
    upto: str | None
    """The id of the last message that is replaced; None if nothing is replaced."""
    subject: str | None
    """The person whose data all of it is."""
    removals: int
    """The number of messages that were removed from the conversation so far."""
    offsets: frozenset[int]
    """The offsets of the messages, and of the previous compaction, that it replaces."""


async def messages(
    reading: AgentReading, conversation: ConversationKey, before: str | None, *, whole: bool
) -> ConversationView:
    """The conversation, or the part of it before the message with the id `before`. With `whole`, the messages that a
    compaction has replaced are included, and its summary is not. Raises `OutOfRange` if no message has that id."""

    async def read(session: AgentReading) -> ConversationView:
        keys = [*projection.keys_of(conversation), _settings_of(conversation)]
        snapshot = await session.snapshot(keys, [own_log(conversation.space, conversation.agent)])
        compacted = None if whole else snapshot.row(tables.COMPACTIONS, *conversation)
        found = await _read_shown(session, conversation, compacted)
        if before is not None:
            end = next((number for number, each in enumerate(found) if each.id == before), None)
            if end is None:
                text = f"before: the conversation has no message {before!r}; leave it out to begin at the end"
                raise OutOfRange(text, path="before")
            found = found[:end]
        return ConversationView(
            **await of_agent(session, snapshot),
            session=conversation.session,
            messages=tuple(dict(each.message) for each in found),
            ids=tuple(each.id for each in found),
            compacted=0 if compacted is None else compacted.count,
            chars=sum(rendering.chars_of(each.message) for each in found),
        )

    return await reading.steady(read)


async def plan_compaction(
    reading: AgentReading, conversation: ConversationKey, thresholds: Thresholds = DEFAULT
) -> PlannedCompaction:
    """What a compaction would replace now."""

    async def read(session: AgentReading) -> PlannedCompaction:
        snapshot = await session.snapshot(projection.keys_of(conversation))
        compacted = snapshot.row(tables.COMPACTIONS, *conversation)
        found = await _read_shown(session, conversation, compacted)
        later = None if compacted is None else sum(each.offset > compacted.offset for each in found)
        plan = compaction.plan([each.message for each in found], thresholds, later)
        # Published and ingested messages stay if no added message follows: a compaction refers to an added message.
        behind = next((count for count in range(len(plan.head)) if _last(found, plan, count).added), len(plan.head))
        plan = plan.without(behind)
        state = snapshot.row(tables.STATES, *conversation) or tables.ConversationRow()
        replaced = found[: len(found) - len(plan.kept)]
        subjects = {each.subject for each in replaced if each.message not in plan.instructions}
        return PlannedCompaction(
            plan,
            replaced[-1].id if plan.head else None,
            next(iter(subjects)) if len(subjects) == 1 else None,
            state.removals,
            frozenset(
                each.offset if compacted is None or each.id != compacted.id else compacted.offset for each in replaced
            ),
        )

    return await reading.steady(read)


def _last(found: Sequence[ShownMessage], plan: CompactionPlan, fewer: int) -> ShownMessage:
    """The last message to replace when `fewer` messages are kept."""
    return found[len(found) - len(plan.kept) - fewer - 1]


async def _read_shown(
    session: AgentReading, conversation: ConversationKey, compacted: tables.CompactionRow | None
) -> Sequence[ShownMessage]:
    """The messages as a model reads them. After a compaction, they begin with the instructions that stay, and its
    summary."""
    if compacted is None:
        return await stored.read_messages(
            session, conversation, [row async for row in stored.rows_of(session, conversation)]
        )
    instructions = await stored.read_messages(
        session, conversation, await _instructions(session, conversation, compacted.upto)
    )
    rows: list[MessageRow] = []
    async for row in stored.rows_of(session, conversation, newest_first=True):
        if row.offset <= compacted.upto:
            break
        rows.append(row)
    message = compaction.message_of(compacted.summary)
    summary = ShownMessage(compacted.id, compacted.upto, message, True, compacted.subject)
    return [*instructions, summary, *await stored.read_messages(session, conversation, rows[::-1])]


async def _instructions(session: ReadSession, conversation: ConversationKey, upto: int) -> list[MessageRow]:
    """The instructions at the beginning of the conversation, up to an offset."""
    found: list[MessageRow] = []
    async for row in stored.rows_of(session, conversation, page=8):
        if row.role not in rendering.INSTRUCTIONS or row.offset > upto:
            break
        found.append(row)
    return found


def _settings_of(conversation: ConversationKey) -> RowKey:
    return RowKey(settings.AGENTS.name, conversation.space, conversation.agent)
