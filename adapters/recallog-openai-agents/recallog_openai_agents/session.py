"""A session of the OpenAI Agents SDK as a conversation: its items are messages, which recall finds."""

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from agents.memory.session_settings import resolve_session_limit

from agents import SessionSettings, TResponseInputItem
from recallog import Memory, Remote

AnyMemory: TypeAlias = Memory | Remote

_ID, _KEPT_ID = "id", "item_id"


class RecallogSession:
    """The history of a session in a memory of Recallog.

    ```python
    async with Memory.open("./memory") as memory:
        session = RecallogSession("monday", memory, space="home", agent="assistant")
        result = await Runner.run(agent, "Hello", session=session)
    ```

    What was said is remembered as any conversation: `memory.recall` and prompts of the agent find it in other sessions
    too. Items that are popped or cleared are removed from the session, and stay in the ledger.
    """

    session_id: str
    session_settings: SessionSettings | None

    def __init__(
        self,
        session_id: str,
        memory: AnyMemory,
        *,
        space: str,
        agent: str,
        session_settings: SessionSettings | None = None,
        compacted: bool = False,
    ) -> None:
        """With `compacted`, the beginning of a long history is a summary once reactors have compacted it."""
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._conversation = (space, agent, session_id)
        self._memory = memory
        self._whole = not compacted

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The items of the session, or the newest `limit` of them, oldest first."""
        most = resolve_session_limit(limit, self.session_settings)
        if most is not None and most <= 0:
            return []
        found = (await self._memory.conversation.messages(*self._conversation, whole=self._whole)).messages
        return [_item_of(each) for each in (found if most is None else found[-most:])]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items to the end of the session."""
        if items:
            messages = [_message_of(cast("Mapping[str, Any]", each)) for each in items]
            await self._memory.conversation.add(*self._conversation, messages, continues=True)

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the newest item from the session and return it; None if the session is empty."""
        removed = (await self._memory.conversation.pop(*self._conversation)).messages
        return _item_of(removed[-1]) if removed else None

    async def clear_session(self) -> None:
        """Remove all items from the session."""
        await self._memory.conversation.clear(*self._conversation)


def _message_of(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item as a message. Its id is stored under another name: the SDK adds an item again after it was popped, but a
    message with an id is added only once."""
    return {_KEPT_ID if name == _ID else name: value for name, value in item.items()}


def _item_of(message: Mapping[str, Any]) -> TResponseInputItem:
    return cast("TResponseInputItem", {_ID if name == _KEPT_ID else name: value for name, value in message.items()})
