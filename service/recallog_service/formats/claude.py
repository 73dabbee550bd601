"""Conversations that Claude exports: `conversations.json` of the archive of an account at claude.ai.

A conversation has `chat_messages` with `sender`, `text`, `content` and the text of `attachments`.
"""

from recallog_schemas.errors import InvalidEvent
from recallog_service.formats.conversation_file import reader_of_each
from recallog_service.formats.conversations import Conversation
from recallog_service.formats.format import Format
from recallog_service.formats.guess import objects
from recallog_service.formats.structure import Structure

_EXPECTED = 'an export of Claude: a JSON list of conversations with "chat_messages"'


def _conversation(number: int, document: object) -> Conversation | InvalidEvent:
    if not isinstance(document, dict) or not isinstance(document.get("chat_messages"), list):
        return InvalidEvent('not an object with a list of "chat_messages"', path="chat_messages")
    return Conversation(number, document, [_message(message) for message in document["chat_messages"]])


def _message(message: object) -> object:
    if not isinstance(message, dict):
        return message
    sender, content = message.get("sender"), message.get("content")
    documents = [
        {
            "type": "document",
            "title": each.get("file_name"),
            "source": {"type": "text", "data": each.get("extracted_content")},
        }
        for each in objects(message.get("attachments"))
    ]
    files = [{**each, "type": "file"} for each in objects(message.get("files"))]
    own = content if isinstance(content, list) and content else [message.get("text") or ""]
    return {
        "role": "user" if sender == "human" else sender,
        "id": message.get("uuid"),
        "created_at": message.get("created_at"),
        "content": [*own, *documents, *files],
    }


FORMAT = Format(
    "claude",
    "conversations.json of an export of Claude",
    Structure([{"chat_messages": "<list>"}]),
    reader_of_each(_EXPECTED, _conversation),
    "messages, reasoning, tool calls, the texts of attachments",
    "blocks of other types",
)
