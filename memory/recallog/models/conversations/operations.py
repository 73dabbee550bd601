"""Conversations: the messages of sessions, read and written in the form of a model's API."""

from functools import cached_property
from typing import TYPE_CHECKING, TypeVar, Unpack

from recallog.access import FacadePart
from recallog.models import conversations
from recallog.models.conversations import parameters as conversations_parameters
from recallog.operations import parameters
from recallog.operations.facade import operation
from recallog.operations.operation import GenAi, Scope
from recallog.operations.parameters import At
from recallog_schemas import Position
from recallog_schemas.models.conversations import limits as conversations_limits

if TYPE_CHECKING:
    from recallog.models.conversations.commands import Removed
    from recallog_schemas.models.conversations.views import (
        CompactionView,
        ConversationView,
        MessagesAdded,
        MessagesRemoved,
    )
    from recallog_schemas.views import Recorded

Written = TypeVar("Written", "MessagesAdded", "MessagesRemoved", "Recorded")


class Conversation(FacadePart):
    """The messages of sessions, in the form of a model's API: `memory.conversation`.

    A conversation belongs to a space, an agent and a session. Each message is one event, which other queries find as
    any other: a message of the user is for the agent alone, and one of the assistant is what the agent said. A long
    conversation is compacted by a reactor: its beginning becomes a message with a summary, and all messages stay in the
    ledger.
    """

    attribute = "conversation"

    @cached_property
    def _written(self) -> dict[int, Position]:
        """By partition, the position of the newest message that this process added. The next addition reads the views
        after it."""
        return {}

    @operation(
        example="recallog conversation add village baker s-1 messages.json",
        scope=Scope.PUBLISH,
        idempotent=True,
        gen_ai=GenAi.CREATE,
        records="ids",
    )
    async def add(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        session: conversations_parameters.ConversationSession,
        messages: conversations_parameters.Messages,
        *,
        continues: conversations_parameters.Continues = False,
        turn: conversations_parameters.MessageTurn = None,
        subject: conversations_parameters.MessageSubject = None,
    ) -> "MessagesAdded":
        """Add messages to a conversation. Messages that it already has are not added again.

        A message with an `id` is added once. Messages without one are compared with the conversation: if both begin
        alike, or if the messages begin as the conversation ends, only the rest is new. So a program may pass its whole
        history each time, or only the newest messages, and may repeat a call. With `continues`, messages
        without an id are always new, even if they repeat earlier ones.

        Raises `EventTooLarge` for a message of more than 16 MiB.
        """
        return await self._note_position(
            await conversations.commands.add(
                self._access,
                conversations.ConversationKey(space, agent, session),
                conversations.commands.Addition(
                    conversations_parameters.message_list(messages), continues, turn, subject
                ),
                await self._newest(space),
            )
        )

    @operation(
        example="recallog conversation messages village baker s-1",
        gen_ai=GenAi.SEARCH,
        records="messages",
    )
    async def messages(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        session: conversations_parameters.ConversationSession,
        *,
        whole: conversations_parameters.Whole = False,
        before: conversations_parameters.MessageBefore = None,
        **at: Unpack[At],
    ) -> "ConversationView":
        """The messages of a conversation as they were added, ready to be sent to a model.

        If it was compacted, a system message with the summary replaces its beginning. Published and ingested
        events of the session are messages too: what a user and the agent said, and calls of tools.
        """
        conversation = conversations.ConversationKey(space, agent, session)
        return await self._access.of_agent(
            space, agent, at, conversations.queries.messages, conversation, before, whole=whole
        )

    @operation(
        example="recallog conversation compact village baker s-1",
        scope=Scope.PUBLISH,
        gen_ai=GenAi.UPDATE,
        records=None,
    )
    async def compact(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        session: conversations_parameters.ConversationSession,
        *,
        max_messages: conversations_parameters.CompactMessages = conversations_limits.COMPACT_MESSAGES,
        max_chars: conversations_parameters.CompactChars = conversations_limits.COMPACT_CHARS,
        keep: conversations_parameters.CompactKept = conversations_limits.COMPACT_KEPT,
    ) -> "CompactionView":
        """Replace the beginning of a conversation by a summary, if it has more than `max_messages` messages, or more
        than `max_chars` characters, and more than `keep` messages.

        Only messages since the last compaction count. By default, the summary quotes the last 12 of the
        replaced messages. If `RECALLOG_MODEL` names a model, the messages are sent to it; if it fails,
        they are quoted. Sentences with must, never or always, and a question without an answer, follow word for word.
        """
        from recallog_projections.models.conversations.thresholds import Thresholds

        conversation = conversations.ConversationKey(space, agent, session)
        thresholds = Thresholds(max_messages, max_chars, keep).clamp()
        return await conversations.commands.compact(
            self._access,
            conversation,
            self._access.asker(conversations.askers.SUMMARIZER),
            thresholds,
            await self._newest(space),
        )

    @operation(
        example="recallog conversation remove village baker s-1 m-7",
        scope=Scope.PUBLISH,
        idempotent=True,
        gen_ai=GenAi.DELETE,
        records="removed",
    )
    async def remove(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        session: conversations_parameters.ConversationSession,
        ids: conversations_parameters.MessageIds,
        *,
        erase: parameters.ErasesToo = False,
    ) -> "MessagesRemoved":
        """Remove messages from a conversation, by the ids of their events or their own.

        They stay in the ledger, and other queries find them. If the conversation has none of them,
        nothing is written. With `erase`, they become unreadable everywhere, see `Memory.erase`.
        """
        conversation = conversations.ConversationKey(space, agent, session)
        removed = await conversations.commands.remove(self._access, conversation, ids, await self._newest(space))
        return await self._answer_removal(space, agent, removed, erase=erase)

    @operation(
        example="recallog conversation pop village baker s-1",
        scope=Scope.PUBLISH,
        gen_ai=GenAi.DELETE,
        records="removed",
    )
    async def pop(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        session: conversations_parameters.ConversationSession,
        *,
        count: conversations_parameters.PoppedMessages = 1,
        erase: parameters.ErasesToo = False,
    ) -> "MessagesRemoved":
        """Remove the newest messages from a conversation, and return them. `erase` works as in `remove`."""
        conversation = conversations.ConversationKey(space, agent, session)
        removed = await conversations.commands.pop(self._access, conversation, count, await self._newest(space))
        return await self._answer_removal(space, agent, removed, erase=erase)

    @operation(
        example="recallog conversation clear village baker s-1",
        scope=Scope.PUBLISH,
        idempotent=True,
        gen_ai=GenAi.DELETE,
        records="removed",
    )
    async def clear(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        session: conversations_parameters.ConversationSession,
        *,
        erase: parameters.ErasesToo = False,
    ) -> "MessagesRemoved":
        """Remove all messages from a conversation, including its summary and the summarised messages, and return them.
        `erase` works as in `remove`."""
        conversation = conversations.ConversationKey(space, agent, session)
        removed = await conversations.commands.pop(self._access, conversation, None, await self._newest(space))
        return await self._answer_removal(space, agent, removed, erase=erase)

    @operation(
        example="recallog conversation end-turn village baker s-1",
        scope=Scope.PUBLISH,
        gen_ai=GenAi.CREATE,
    )
    async def end_turn(
        self,
        space: parameters.Space,
        agent: parameters.Agent,
        session: conversations_parameters.ConversationSession,
        *,
        turn: parameters.WrittenTurn = 0,
        event_id: parameters.NewEventId = None,
    ) -> "Recorded":
        """End a turn of an agent in a session, by an event `turn.ended`.

        Reactors then draw facts from the turn, if the agent is set to `extract_facts`, and write its daily log.
        """
        from recallog.commands.recording import record

        more = {"event_id": event_id, "session": session, "turn": turn}
        return await self._note_position(await record(self._access, space, agent, "turn.ended", {}, **more))

    async def _newest(self, space: str) -> Position | None:
        await self._access.components.ledger.open()
        return self._written.get(self._access.components.ledger.partition_of(space))

    async def _answer_removal(self, space: str, agent: str, removed: "Removed", *, erase: bool) -> "MessagesRemoved":
        """The answer about removed messages. They are also erased on request."""
        answer = await self._note_position(removed.answer)
        if not erase or not removed.events:
            return answer
        from recallog.commands import erasing

        erasure = await erasing.erase_events(self._access, space, removed.events, agent)
        return answer.model_copy(update={"erasure": erasure})

    async def _note_position(self, answer: Written) -> Written:
        """Remember the position of an answer. On a cluster, the views may not have processed it at the next call."""
        if answer.position is not None:
            self._written[answer.position.partition] = answer.position
        return answer
