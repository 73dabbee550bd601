"""The summarizer port: makes a summary of the beginning of a conversation.

A summarizer may be a remote model, so its answers are not trusted. It is called only through `ask`, which returns only
texts that have passed `check_summary`.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence

from recallog.reactors.asking import Sleep, ask_repeatedly, one_line
from recallog_projections.models.conversations.rendering import Message
from recallog_schemas.errors import ModelFailed
from recallog_schemas.models.conversations import limits as conversations_limits
from recallog_schemas.shortening import cut


class Summarizer(ABC):
    """Summarises conversations. Implement it for a model or a custom rule; `ask` calls it."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the author of a summary, for example of the model: at most 128 characters."""

    @abstractmethod
    async def summarize(self, messages: Sequence[Message]) -> str:
        """The summary of `messages`, oldest first, in the form of OpenAI's chat completions. A former summary is the
        first of them: a system message that begins with `[compacted]`.

        Raises `ModelFailed` if this request failed, and `ModelMisconfigured` if every request will fail. `ask`
        repeats a request after a temporary failure, and treats any other exception as one.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close connections."""


async def ask(
    summarizer: Summarizer, messages: Sequence[Message], *, attempts: int = 3, sleep: Sleep = asyncio.sleep
) -> str:
    """The checked summary of `summarizer`, with up to `attempts` attempts if its failures are temporary.

    See `asking.ask_repeatedly`, also for what it raises.
    """

    async def answer() -> str:
        return check_summary(await summarizer.summarize(messages))

    return await ask_repeatedly(answer, attempts=attempts, sleep=sleep)


def check_summary(summary: str) -> str:
    """The summary in lines without control characters, at most `limits.COMPACT_MODEL_CHARS` characters. Raises
    `ModelFailed` if it is empty; idempotent."""
    lines = (one_line(line) for line in summary.strip().splitlines())
    text = cut("\n".join(line for line in lines if line), conversations_limits.COMPACT_MODEL_CHARS)
    if not text:
        raise ModelFailed("the summary contains no text", retryable=True)
    return text
