"""Conversations from logs of requests to a model's API and their responses.

Each request of a chat repeats the earlier messages. An exchange whose request begins with all messages of an earlier
exchange continues that conversation, and only its new messages are read. Exchanges that name the same conversation, or
the response that they follow, belong together too. The name of a conversation is the given id, else the id of its first
response.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from recallog.messages.blocks import LeftOutBlock
from recallog.messages.mapping import MESSAGE_TIMES, Draft, Omission, content_of, drafts_of, role_of
from recallog_schemas.errors import InvalidEvent
from recallog_service.formats.conversation_file import FoundMessages
from recallog_service.formats.conversations import FileConversation, digest

_CONFIGURES = ("system", "developer")


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its response."""

    request: Sequence[object]
    response: Sequence[object]
    """Messages; empty if the response is unknown or failed."""
    fields: Mapping[str, Any]
    """Known fields of the conversation, such as its user and its `system` text."""
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
    """Digests of the messages, without configurations and thoughts."""
    configured: set[str] = field(default_factory=set)

    def add(self, message: object, time: object) -> None:
        if isinstance(message, dict):
            if role_of(message) in _CONFIGURES:
                if (configuration := digest(content_of(message))) in self.configured:
                    return
                self.configured.add(configuration)
            elif said := _digest(message):
                self.said.append(said)
            if time is not None and not any(name in message for name in MESSAGE_TIMES):
                message = {**message, "created_at": time}
        self.messages.append(message)


def conversations_of(exchanges: Iterable[Exchange | InvalidEvent | LeftOutBlock]) -> FoundMessages:
    """The conversations of a log, in the order in which they begin."""
    opened: list[_Open | InvalidEvent] = []
    left_out: list[str] = []
    by_end: dict[str, _Open] = {}
    by_name: dict[str | None, _Open] = {}
    for exchange in exchanges:
        if isinstance(exchange, LeftOutBlock):
            left_out.append(exchange.type)
            continue
        if isinstance(exchange, InvalidEvent):
            opened.append(exchange)
            continue
        said = [(index, of) for index, message in enumerate(exchange.request) if (of := _digest(message))]
        conversation = by_name.get(exchange.conversation) or by_name.get(exchange.follows)
        if conversation is not None:
            known = _overlap(conversation.said, [of for _, of in said])
        else:
            conversation, known = _find_continued(by_end, [of for _, of in said])
        if conversation is None:
            own = exchange.conversation or exchange.response_id
            conversation = _Open({**exchange.fields, **({"id": own} if own else {})})
            opened.append(conversation)
        first_new = said[known - 1][0] + 1 if known else 0
        for index, message in enumerate(exchange.request):
            if index >= first_new or (isinstance(message, dict) and role_of(message) in _CONFIGURES):
                conversation.add(message, exchange.time)
        for message in (*exchange.response, *map(LeftOutBlock, exchange.left_out)):
            conversation.add(message, exchange.time)
        by_end[_rolling(conversation.said)[-1]] = conversation
        by_name |= {name: conversation for name in (exchange.conversation, exchange.response_id) if name}
    conversations = [
        each if isinstance(each, InvalidEvent) else FileConversation(number, each.fields, each.messages)
        for number, each in enumerate(opened, 1)
    ]
    return FoundMessages(conversations, left_out)


def _find_continued(by_end: Mapping[str, _Open], said: Sequence[str]) -> tuple[_Open | None, int]:
    """The conversation that a request continues, and how many of its messages are known; None and 0 for a new one."""
    ends = _rolling(said)
    return next(((by_end[ends[count]], count) for count in range(len(said), 0, -1) if ends[count] in by_end), (None, 0))


def _overlap(before: Sequence[str], said: Sequence[str]) -> int:
    """The number of known messages of a request: those that end the conversation, or all of its own."""
    counts = range(min(len(before), len(said)), 0, -1)
    return next((count for count in counts if list(before[-count:]) == list(said[:count])), 0)


def _rolling(digests: Sequence[str]) -> list[str]:
    """The digest of each prefix: of length 0, 1, 2, ..."""
    return list(accumulate(digests, lambda end, each: hashlib.sha256((end + each).encode()).hexdigest(), initial=""))


def _digest(message: object) -> str:
    """A digest of a message's meaning: null fields, ids and annotations are ignored. "" for configurations and
    thoughts, which the next request need not repeat."""
    if isinstance(message, dict):
        message = {name: value for name, value in message.items() if name not in ("id", "name", *MESSAGE_TIMES)}
    said = [
        (each.kind, each.payload, each.key) if isinstance(each, Draft) else str(each.error)
        for each in drafts_of([(1, message)])[0]
        if not isinstance(each, Omission) and getattr(each, "kind", "") not in ("agent.configured", "agent.thought")
    ]
    return hashlib.sha256(repr(said).encode("utf-8", "backslashreplace")).hexdigest() if said else ""
