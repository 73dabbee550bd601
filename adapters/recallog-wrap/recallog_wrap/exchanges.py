"""The requests of the APIs and their answers: the parts that are remembered, and the place of recalled memories.

Texts, tool calls and their results are remembered, in one form for each API. Therefore a history that a program passes
again is recognised, whatever fields it has kept.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

Message = dict[str, Any]


class Answer(ABC):
    """An answer that arrives in events. It may end at any time."""

    @abstractmethod
    def add(self, event: Mapping[str, Any]) -> None:
        """Take the next event."""

    @abstractmethod
    def messages(self) -> list[Message]:
        """The messages that have arrived so far."""


class Exchange(ABC):
    """One endpoint of an API."""

    path: ClassVar[str]
    """The end of the paths of its requests."""
    history: ClassVar[str]
    """The field of a request that contains the messages."""

    def asked(self, body: Mapping[str, Any]) -> list[Message]:
        """The messages of a request that are remembered."""
        return self.kept(_listed(body.get(self.history)))

    def question(self, body: Mapping[str, Any]) -> str:
        """The last words of the user in a request; "" if its last message is not from the user."""
        last = (self.asked(body) or [{}])[-1]
        return text_of(last.get("content")) if last.get("role") == "user" else ""

    def with_recalled(self, body: Mapping[str, Any], recalled: str) -> dict[str, Any]:
        """The request, with recalled memories before the words of its last message."""
        messages = _listed(body.get(self.history))
        return {**body, self.history: [*messages[:-1], self._preceded(messages[-1], recalled)]}

    @abstractmethod
    def kept(self, messages: Sequence[Any]) -> list[Message]:
        """The parts of messages that are remembered."""

    @abstractmethod
    def answered(self, body: Mapping[str, Any]) -> list[Message]:
        """The messages of an answer that is not streamed."""

    @abstractmethod
    def answer(self) -> Answer:
        """A new answer that will arrive in events."""

    def _preceded(self, message: Message, recalled: str) -> Message:
        content = message.get("content")
        if isinstance(content, str):
            return {**message, "content": f"{recalled}\n\n{content}"}
        return {**message, "content": [self._part(recalled), *(content or ())]}

    def _part(self, text: str) -> dict[str, Any]:
        return {"type": "text", "text": text}


def text_of(content: object) -> str:
    """The texts in a content."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part["text"] for part in parts if isinstance(part, Mapping) and isinstance(part.get("text"), str))


def plain(content: object) -> object:
    """A content as one text if it consists only of texts."""
    parts = content if isinstance(content, list) else None
    only_texts = parts and all(isinstance(part, Mapping) and isinstance(part.get("text"), str) for part in parts)
    return text_of(content) if only_texts else content


def chosen(fields: Mapping[str, Any], *names: str) -> Message:
    """The fields with these names that exist."""
    return {name: fields[name] for name in names if fields.get(name) is not None}


def _listed(history: object) -> list[Any]:
    if isinstance(history, str):
        return [{"role": "user", "content": history}]
    return list(history) if isinstance(history, list) else []


def parsed(text: str) -> object:
    """Arguments parsed from JSON, or their text if only a part has arrived."""
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text
