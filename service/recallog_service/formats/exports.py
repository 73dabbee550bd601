"""Conversations as ChatGPT and Claude export them (`conversations.json`), as messages with roles.

ChatGPT   `mapping` is a tree of messages; the conversation is the branch that ends at `current_node`. The messages of
          other branches, which were edited or generated again, are left out.
Claude    `chat_messages` with `sender`, `text`, `content` and the text of `attachments`
"""

from collections.abc import Iterator, Mapping
from typing import Any

_HIDDEN_CONTEXT = ("user_profile", "user_instructions")
OTHER_BRANCH = "message_of_another_branch"


def messages_of(conversation: Mapping[str, Any]) -> list[object] | None:
    """The messages of an exported conversation; None if it is not one."""
    mapping, chat = conversation.get("mapping"), conversation.get("chat_messages")
    if isinstance(mapping, dict):
        return list(_of_chatgpt(mapping, conversation.get("current_node")))
    if isinstance(chat, list):
        return [_of_claude(message) for message in chat]
    return None


def _of_chatgpt(mapping: Mapping[str, Any], current: object) -> Iterator[object]:
    nodes = {key: node for key, node in mapping.items() if isinstance(node, dict)}
    branch: dict[str, None] = {}  # from its end to its beginning
    key = current if isinstance(current, str) and current in nodes else next(reversed(nodes), None)
    while isinstance(key, str) and key in nodes and key not in branch:
        branch[key] = None
        key = nodes[key].get("parent")
    for key in reversed(branch):
        if isinstance(message := nodes[key].get("message"), dict):
            yield from _chatgpt_message(message)
    for key, node in nodes.items():
        if (
            key not in branch
            and isinstance(message := node.get("message"), dict)
            and any(map(_says, _chatgpt_message(message)))
        ):
            yield {"type": OTHER_BRANCH}


def _says(message: Mapping[str, Any]) -> bool:
    return bool(message.get("tool_calls") or any(message.get("content") or ()))


def _chatgpt_message(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    author, content = message.get("author"), message.get("content")
    author = author if isinstance(author, dict) else {}
    content = content if isinstance(content, dict) else {}
    role, recipient = author.get("role"), message.get("recipient")
    made: dict[str, Any] = {"role": role, "id": message.get("id"), "create_time": message.get("create_time")}
    kind = content.get("content_type")
    if role == "tool":
        yield made | {"name": author.get("name"), "content": _chatgpt_parts(content)}
    elif role == "assistant" and isinstance(recipient, str) and recipient != "all":
        arguments = "\n".join(part for part in _chatgpt_parts(content) if isinstance(part, str))
        yield made | {"tool_calls": [{"function": {"name": recipient, "arguments": arguments}}]}
    elif kind == "user_editable_context":  # what the user has told ChatGPT about themselves, hidden in the chat
        texts = [content[name] for name in _HIDDEN_CONTEXT if isinstance(content.get(name), str)]
        yield made | {"role": "system", "content": texts}
    else:
        yield made | {"content": _chatgpt_parts(content)}


def _chatgpt_parts(content: Mapping[str, Any]) -> list[object]:
    """The content as the parts that `blocks` reads."""
    kind, parts, thoughts = content.get("content_type"), content.get("parts"), content.get("thoughts")
    if isinstance(parts, list):
        return [_chatgpt_part(part) if isinstance(part, dict) else part for part in parts if part]
    if isinstance(thoughts, list):
        texts = (thought.get("content") for thought in _objects(thoughts))
        return [{"type": "thinking", "thinking": text} for text in texts if isinstance(text, str) and text]
    for name in ("text", "result"):
        if isinstance(content.get(name), str):
            return [content[name]]
    return [{"type": str(kind)}] if kind and kind != "reasoning_recap" else []


def _chatgpt_part(part: Mapping[str, Any]) -> dict[str, Any]:
    kind = str(part.get("content_type"))
    if kind == "image_asset_pointer":
        width, height = part.get("width"), part.get("height")
        size = f"{width} x {height}" if isinstance(width, int) and isinstance(height, int) else None
        return {"type": "image", "file_id": part.get("asset_pointer"), "description": size}
    return {**part, "type": kind}


def _of_claude(message: object) -> object:
    if not isinstance(message, dict):
        return message
    sender, content = message.get("sender"), message.get("content")
    documents = [
        {
            "type": "document",
            "title": each.get("file_name"),
            "source": {"type": "text", "data": each.get("extracted_content")},
        }
        for each in _objects(message.get("attachments"))
    ]
    files = [{**each, "type": "file"} for each in _objects(message.get("files"))]
    own = content if isinstance(content, list) and content else [message.get("text") or ""]
    return {
        "role": "user" if sender == "human" else sender,
        "id": message.get("uuid"),
        "created_at": message.get("created_at"),
        "content": [*own, *documents, *files],
    }


def _objects(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
