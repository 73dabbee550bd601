"""The messages of a session, as a chat history of LangChain."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    BaseMessageChunk,
    ToolCall,
    ToolMessage,
    convert_to_messages,
    message_chunk_to_message,
    messages_from_dict,
)

from recallog.sync import Memory, Remote

AnyMemory: TypeAlias = Memory | Remote

_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "function"}
_KEPT = "langchain"
"""The field of a message with the properties that LangChain has besides role and content."""


class RecallogChatMessageHistory(BaseChatMessageHistory):
    """The history of a session in a memory of Recallog.

    ```python
    history = RecallogChatMessageHistory("monday", memory, space="home", agent="assistant")
    chain = RunnableWithMessageHistory(model, lambda session: history)
    ```

    What was said is remembered as any conversation: `memory.recall`, `RecallogRetriever` and prompts of the agent find
    it in other sessions too. Messages that are cleared are removed from the history, and stay in the ledger.
    """

    def __init__(self, session_id: str, memory: AnyMemory, *, space: str, agent: str) -> None:
        super().__init__()
        self._conversation = (space, agent, session_id)
        self._memory = memory

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """The messages of the session, oldest first."""
        return [_read(each) for each in self._memory.conversation.messages(*self._conversation, whole=True).messages]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages to the end of the history."""
        if messages:
            self._memory.conversation.add(*self._conversation, [_written(each) for each in messages], continues=True)

    def clear(self) -> None:
        """Remove all messages from the history."""
        self._memory.conversation.clear(*self._conversation)


def _written(message: BaseMessage) -> dict[str, Any]:
    """A message in the form of chat completions, which recall reads, with the other properties that LangChain has."""
    message = message_chunk_to_message(message) if isinstance(message, BaseMessageChunk) else message
    plain = message.model_dump(mode="json")
    content = plain.pop("content")
    written = {"role": _ROLES.get(message.type, "user"), "content": content, _KEPT: plain}
    if message.name:
        written["name"] = message.name
    if isinstance(message, ToolMessage):
        written["tool_call_id"] = message.tool_call_id
        written |= {"is_error": True} if message.status == "error" else {}
    elif isinstance(message, AIMessage) and message.tool_calls:
        written["tool_calls"] = [_call(call) for call in message.tool_calls]
    return written


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call["name"], "arguments": json.dumps(call["args"])}
    return {"id": call["id"], "type": "function", "function": function}


def _read(message: Mapping[str, Any]) -> BaseMessage:
    kept = message.get(_KEPT)
    if not isinstance(kept, Mapping):  # it was added by another program
        return convert_to_messages([dict(message)])[0]
    (read,) = messages_from_dict([{"type": kept["type"], "data": {**kept, "content": message["content"]}}])
    return read
