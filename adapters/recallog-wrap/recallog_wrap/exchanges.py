"""The requests of the APIs and their answers: what is remembered of them, and where what was recalled is put.

What is remembered is the words, the calls of tools and their results, in one form for each API, so that a history that
a program passes again is recognised, whatever fields it has kept.
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
        """What has arrived, as messages."""


class Exchange(ABC):
    """One endpoint of an API."""

    path: ClassVar[str]
    """How the paths of its requests end."""
    history: ClassVar[str]
    """The field of a request with the messages."""

    def asked(self, body: Mapping[str, Any]) -> list[Message]:
        """The messages of a request that are remembered."""
        return self.kept(_listed(body.get(self.history)))

    def question(self, body: Mapping[str, Any]) -> str:
        """What the user has said last in a request; "" if its last message is not the user's."""
        last = (self.asked(body) or [{}])[-1]
        return text_of(last.get("content")) if last.get("role") == "user" else ""

    def with_recalled(self, body: Mapping[str, Any], recalled: str) -> dict[str, Any]:
        """A request in which what was recalled precedes the words of its last message."""
        messages = _listed(body.get(self.history))
        return {**body, self.history: [*messages[:-1], self._preceded(messages[-1], recalled)]}

    @abstractmethod
    def kept(self, messages: Sequence[Any]) -> list[Message]:
        """What is remembered of messages."""

    @abstractmethod
    def answered(self, body: Mapping[str, Any]) -> list[Message]:
        """The messages of an answer that came as a whole."""

    @abstractmethod
    def answer(self) -> Answer:
        """An answer that is about to arrive in events."""

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
    """A content of texts alone as one text."""
    parts = content if isinstance(content, list) else None
    only_texts = parts and all(isinstance(part, Mapping) and isinstance(part.get("text"), str) for part in parts)
    return text_of(content) if only_texts else content


def chosen(fields: Mapping[str, Any], *names: str) -> Message:
    """Those of some fields that are there."""
    return {name: fields[name] for name in names if fields.get(name) is not None}


def _listed(history: object) -> list[Any]:
    if isinstance(history, str):
        return [{"role": "user", "content": history}]
    return list(history) if isinstance(history, list) else []


def parsed(text: str) -> object:
    """Arguments parsed from JSON; their text if they have arrived only in part."""
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text
