"""Conversations of the requests and responses of a model's API, as logs of its callers have them.

Each request of a chat repeats the messages before it. An exchange whose request begins with all that an earlier
exchange of the file said continues its conversation, and only the rest is read. Exchanges that name one conversation,
or the response that they follow, belong together too. The conversation is named by the given id, else by the id of its
first response.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from recallog.messages.blocks import Block, LeftOut, Said, ToolCall, ToolResult, blocks_of, calls_of, result_of
from recallog.messages.mapping import MESSAGE_TIMES, content_of, role_of
from recallog_schemas.errors import InvalidEvent
from recallog_service.formats.conversation_file import Found
from recallog_service.formats.conversations import Conversation

_CONFIGURES = ("system", "developer")


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its response."""

    request: Sequence[object]
    response: Sequence[object]
    """Messages; empty if the response is unknown or failed."""
    fields: Mapping[str, Any]
    """What is known of the conversation: whose it is, its `system` text."""
    conversation: str | None = None
    """The given id of the conversation."""
    response_id: str | None = None
    follows: str | None = None
    """The id of the response that this exchange follows."""
    time: object = None
    left_out: Sequence[str] = ()


@dataclass(slots=True)
class _Open:
    """A conversation that the next exchange may continue."""

    fields: Mapping[str, Any]
    messages: list[object] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    """Digests of what was said, without configurations and thoughts."""
    configured: set[str] = field(default_factory=set)

    def add(self, message: object, time: object) -> None:
        if isinstance(message, dict):
            digest = _digest(message)
            if role_of(message) in _CONFIGURES:
                if digest in self.configured:
                    return
                self.configured.add(digest)
            elif _is_said(message):
                self.said.append(digest)
            if time is not None and not any(name in message for name in MESSAGE_TIMES):
                message = {**message, "created_at": time}
        self.messages.append(message)


def conversations_of(exchanges: Iterable[Exchange | InvalidEvent | LeftOut]) -> Found:
    """The conversations of a log, in the order in which they begin."""
    opened: list[_Open | InvalidEvent] = []
    left_out: list[str] = []
    by_end: dict[str, _Open] = {}
    by_name: dict[tuple[str, str], _Open] = {}
    for exchange in exchanges:
        if isinstance(exchange, LeftOut):
            left_out.append(exchange.type)
            continue
        if isinstance(exchange, InvalidEvent):
            opened.append(exchange)
            continue
        names = [
            (kind, name)
            for kind, name in (("conversation", exchange.conversation), ("response", exchange.follows))
            if name
        ]
        named = next((by_name[name] for name in names if name in by_name), None)
        conversation, known = (named, _overlap(named.said, exchange.request)) if named else _continued(by_end, exchange)
        if conversation is None:
            own = exchange.conversation or exchange.response_id
            conversation = _Open({**exchange.fields, **({"id": own} if own else {})})
            opened.append(conversation)
        for index, message in enumerate(exchange.request):
            if index >= known or (isinstance(message, dict) and role_of(message) in _CONFIGURES):
                conversation.add(message, exchange.time)
        for message in exchange.response:
            conversation.add(message, exchange.time)
        for reason in exchange.left_out:
            conversation.add(LeftOut(reason), None)
        by_end[_rolling(conversation.said)[-1]] = conversation
        for kind, name in (("conversation", exchange.conversation), ("response", exchange.response_id)):
            if name:
                by_name[kind, name] = conversation
    return Found([_closed(number, each) for number, each in enumerate(opened, 1)], left_out)


def _closed(number: int, each: _Open | InvalidEvent) -> Conversation | InvalidEvent:
    if isinstance(each, InvalidEvent):
        return each
    return Conversation(number, each.fields, each.messages)


def _continued(by_end: Mapping[str, _Open], exchange: Exchange) -> tuple[_Open | None, int]:
    """The conversation that a request begins with, and how many of its messages are known; None and 0 for a new one."""
    said = [index for index, message in enumerate(exchange.request) if _is_said(message)]
    ends = _rolling([_digest(exchange.request[index]) for index in said])
    for count in range(len(said), 0, -1):
        if (found := by_end.get(ends[count])) is not None:
            return found, said[count - 1] + 1
    return None, 0


def _overlap(said: Sequence[str], request: Sequence[object]) -> int:
    """How many messages of a request are known: those with which the conversation ends, or all of its own."""
    indexes = [index for index, message in enumerate(request) if _is_said(message)]
    digests = [_digest(request[index]) for index in indexes]
    for count in range(min(len(said), len(digests)), 0, -1):
        if list(said[-count:]) == digests[:count]:
            return indexes[count - 1] + 1
    return 0


def _rolling(digests: Sequence[str]) -> list[str]:
    """The digest of each beginning: of none, of the first, of the first two, ..."""
    ends = [""]
    for digest in digests:
        ends.append(hashlib.sha256((ends[-1] + digest).encode()).hexdigest())
    return ends


def _is_said(message: object) -> bool:
    """Whether the next request repeats a message. It need not repeat configurations and thoughts."""
    return not isinstance(message, dict) or (role_of(message) not in _CONFIGURES and bool(_blocks(message)))


def _digest(message: object) -> str:
    """Of what a message says, and not of how it is written: null fields, ids and annotations play no part."""
    blocks = _blocks(message) if isinstance(message, dict) else [message]
    role = role_of(message) if isinstance(message, dict) else None
    return hashlib.sha256(repr((role, blocks)).encode("utf-8", "backslashreplace")).hexdigest()


def _blocks(message: Mapping[str, Any]) -> list[object]:
    """What a message says: its texts together, its calls and its results."""
    try:
        blocks = _parts(message)
        text = "\n".join(block.text for block in blocks if isinstance(block, Said) and block.text)
        calls = [(block.id, block.tool, str(block.arguments)) for block in blocks if isinstance(block, ToolCall)]
        results = [(block.call_id, str(block.result)) for block in blocks if isinstance(block, ToolResult)]
    except (InvalidEvent, RecursionError):
        return ["unreadable", str(sorted(message))]
    return [*([text] if text else []), *calls, *results]


def _parts(message: Mapping[str, Any]) -> Sequence[Block]:
    if role_of(message) in ("tool", "function"):
        return [result_of(message)]
    if role_of(message) is None:
        return blocks_of([message])
    return [*blocks_of(content_of(message)), *calls_of(message)]
