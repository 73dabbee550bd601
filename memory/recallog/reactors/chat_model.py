"""The port to a chat model, which replies with a text to instructions and data.

The data were written by others and may contain instructions. A model gets them as JSON lines in the user's message,
which the instructions, the system's message, declare to be data.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from recallog.reactors.asking import one_line
from recallog_schemas import limits
from recallog_schemas.errors import ModelFailed
from recallog_schemas.shortening import cut

_EXCERPT_CHARS_MAX = 200
_OBJECTS_TRIED_MAX = 100
"""How many opening braces of a reply are tried as the start of a JSON object. It bounds the time for a reply that
consists of braces."""
# Not strict, since small models often put raw line breaks into strings, which are unambiguous.
_decode_object = json.JSONDecoder(strict=False).raw_decode


class ChatModel(ABC):
    """A model that replies to instructions. Implement `name`, `reply` and `close` for a custom model, and pass it as
    `Memory.open(chat_model=…)`. Its replies are checked before they are stored."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that is stored with the texts of the model."""

    @abstractmethod
    async def reply(self, instructions: str, data: str) -> str:
        """The text of the reply to a system's message, `instructions`, and a user's message, `data`.

        Raises `ModelFailed` if this request failed, and `ModelMisconfigured` if every request will fail. A request is
        repeated after a temporary failure. Any other exception counts as a temporary failure.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close connections."""

    async def ask(
        self, instructions: str, data: Iterable[Mapping[str, Any]], *, chars_max: int = limits.ASKED_TEXT_CHARS_MAX
    ) -> str:
        """The reply to `instructions` and the objects in `data`, without fields that are None, each text cut to
        `chars_max` characters.

        Raises the errors of `reply`.
        """
        return await self.reply(instructions, "\n".join(_line(fields, chars_max) for fields in data))

    def invalid_reply(self, what: str) -> ModelFailed:
        """The error of an invalid reply: `what` follows "answered"."""
        return ModelFailed(f"{self.name} answered {what}", retryable=True)

    def excerpt(self, text: str) -> str:
        """The beginning of a reply for an error message, on one line."""
        return cut(one_line(text), _EXCERPT_CHARS_MAX)


def _line(fields: Mapping[str, Any], chars_max: int) -> str:
    """One JSON object on one line, with each text cut to `chars_max`."""
    bounded = {
        name: cut(value, chars_max) if isinstance(value, str) else value
        for name, value in fields.items()
        if value is not None
    }
    return json.dumps(bounded, ensure_ascii=False).encode("utf-8", "replace").decode()


def first_object(content: str, field: str) -> dict[str, Any] | None:
    """The first JSON object in `content` that has `field`: by itself, in a fenced block or within prose."""
    start = content.find("{")
    for _ in range(_OBJECTS_TRIED_MAX):
        if start < 0:
            break
        try:
            found, end = _decode_object(content, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            if field in found:
                return dict(found)
        start = content.find("{", end)
    return None
