"""Conversations of messages in the formats of OpenAI, Anthropic and LangChain.

The file is a JSON list of conversations, one conversation, or JSONL of conversations or of messages. A conversation is
a list of messages, or an object with such a list: under `messages`, under the key that the caller names, or under the
only key with a list of messages. Other fields of the object identify the conversation and its user (see
`conversations`); the module `conversation_file` makes the events.
"""

from collections.abc import Sequence

from recallog_schemas.errors import InvalidEvent
from recallog_service.formats.conversation_file import FoundMessages, reader
from recallog_service.formats.conversations import FileConversation
from recallog_service.formats.format import Format, Options
from recallog_service.formats.guess import wrong_format
from recallog_service.formats.structure import Structure, faults

_MESSAGES = "messages"
_EXPECTED = 'conversations: a JSON list of objects with "{}", one of them, or one a line'
_ROLES = ["user", "assistant", "system", "developer", "tool", "function", "human", "ai", "model", "bot"]
_SAYS = ("content", "text", "parts", "tool_calls", "function_call", "refusal", "reasoning")
_MESSAGE = [{"role": _ROLES, field: "<any>"} for field in _SAYS]
_LIST = {"*": _MESSAGE}


def _conversations(found: Sequence[object], options: Options) -> FoundMessages:
    """All conversations of a file; an element that is not a conversation is an error. Raises if all of them are."""
    if not found:
        return FoundMessages([])
    first = next((document for document in found if not isinstance(document, InvalidEvent)), None)
    key = options.messages_key or _key_of_messages(first)
    if isinstance(first, dict) and "role" in first and key not in first:
        return FoundMessages([FileConversation(1, {}, found)])
    conversations = [_conversation(number, document, key) for number, document in enumerate(found, 1)]
    if all(isinstance(conversation, InvalidEvent) for conversation in conversations):
        raise wrong_format(_EXPECTED.format(key), found)
    return FoundMessages(conversations)


def _key_of_messages(document: object) -> str:
    """The key of an object's list of messages: "messages", else the first key with such a list."""
    if not isinstance(document, dict) or isinstance(document.get(_MESSAGES), list):
        return _MESSAGES
    return next((key for key, value in document.items() if not faults(_LIST, value)), _MESSAGES)


def _conversation(number: int, document: object, key: str) -> FileConversation | InvalidEvent:
    if isinstance(document, InvalidEvent):
        return document
    if isinstance(document, list):
        return FileConversation(number, {}, document)
    if isinstance(document, dict) and isinstance(document.get(key), list):
        return FileConversation(number, document, document[key])
    return InvalidEvent(f'neither an object with a list of "{key}" nor a list', path=key)


FORMAT = Format(
    "chat",
    "conversations of messages with roles, as most APIs have them",
    Structure([*_MESSAGE, _LIST, {_MESSAGES: _LIST}, {"?": _LIST}], among=3),
    reader(_EXPECTED.format(_MESSAGES), _conversations),
    "messages, reasoning, tool calls with their results, system texts, rewards",
    "blocks of unknown types, empty messages, encrypted reasoning",
)
