"""Conversations exported from ChatGPT: `conversations.json` of its export archive.

`mapping` is a tree of messages; the conversation is the branch that ends at `current_node`. The messages of other
branches, which were edited or generated again, are left out.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from recallog.messages.blocks import LeftOutBlock
from recallog_schemas.errors import InvalidEvent
from recallog_service.formats.conversation_file import reader_of_each
from recallog_service.formats.conversations import FileConversation
from recallog_service.formats.format import Format
from recallog_service.formats.guess import objects
from recallog_service.formats.structure import Structure

_EXPECTED = 'an export of ChatGPT: a JSON list of conversations with "mapping"'
_HIDDEN_CONTEXT = ("user_profile", "user_instructions")
OTHER_BRANCH = "message_of_another_branch"


def _conversation(number: int, document: object) -> FileConversation | InvalidEvent:
    if not isinstance(document, dict) or not isinstance(document.get("mapping"), dict):
        return InvalidEvent('not an object with a "mapping" of messages', path="mapping")
    return FileConversation(number, document, list(_messages(document["mapping"], document.get("current_node"))))


def _messages(mapping: Mapping[str, Any], current: object) -> Iterator[object]:
    nodes = {key: node for key, node in mapping.items() if isinstance(node, dict)}
    branch: dict[str, None] = {}  # from the end to the beginning of the branch
    key = current if isinstance(current, str) and current in nodes else next(reversed(nodes), None)
    while isinstance(key, str) and key in nodes and key not in branch:
        branch[key] = None
        key = nodes[key].get("parent")
    for key in reversed(branch):
        if isinstance(message := nodes[key].get("message"), dict):
            yield from _message(message)
    for key, node in nodes.items():
        if (
            key not in branch
            and isinstance(message := node.get("message"), dict)
            and any(map(_says, _message(message)))
        ):
            yield LeftOutBlock(OTHER_BRANCH)


def _says(message: Mapping[str, Any]) -> bool:
    return bool(message.get("tool_calls") or any(message.get("content") or ()))


def _message(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    author, content = message.get("author"), message.get("content")
    author = author if isinstance(author, dict) else {}
    content = content if isinstance(content, dict) else {}
    role, recipient = author.get("role"), message.get("recipient")
    made: dict[str, Any] = {"role": role, "id": message.get("id"), "create_time": message.get("create_time")}
    kind = content.get("content_type")
    if role == "tool":
        yield made | {"name": author.get("name"), "content": _parts(content)}
    elif role == "assistant" and isinstance(recipient, str) and recipient != "all":
        arguments = "\n".join(part for part in _parts(content) if isinstance(part, str))
        yield made | {"tool_calls": [{"function": {"name": recipient, "arguments": arguments}}]}
    elif kind == "user_editable_context":  # custom instructions of the user, which the chat does not show
        texts = [content[name] for name in _HIDDEN_CONTEXT if isinstance(content.get(name), str)]
        yield made | {"role": "system", "content": texts}
    else:
        yield made | {"content": _parts(content)}


def _parts(content: Mapping[str, Any]) -> list[object]:
    """The content as parts for `blocks`."""
    kind, parts, thoughts = content.get("content_type"), content.get("parts"), content.get("thoughts")
    if isinstance(parts, list):
        return [_part(part) if isinstance(part, dict) else part for part in parts if part]
    if isinstance(thoughts, list):
        texts = (thought.get("content") for thought in objects(thoughts))
        return [{"type": "thinking", "thinking": text} for text in texts if isinstance(text, str) and text]
    for name in ("text", "result"):
        if isinstance(content.get(name), str):
            return [content[name]]
    return [{"type": str(kind)}] if kind and kind != "reasoning_recap" else []


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    kind = str(part.get("content_type"))
    if kind == "image_asset_pointer":
        width, height = part.get("width"), part.get("height")
        size = f"{width} x {height}" if isinstance(width, int) and isinstance(height, int) else None
        return {"type": "image", "file_id": part.get("asset_pointer"), "description": size}
    return {**part, "type": kind}


FORMAT = Format(
    "chatgpt",
    "conversations.json of an export of ChatGPT",
    Structure([{"mapping": "<object>"}]),
    reader_of_each(_EXPECTED, _conversation),
    "messages of the branch that is shown, reasoning, tool calls, notes of pictures",
    "messages of other branches",
)
