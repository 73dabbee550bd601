"""The synthesizer port: answers a question from the entries that match it; and a synthesizer without a model.

A synthesizer may be a remote model, so its answers are not trusted. It is called only through `ask`, which returns only
answers that have passed `check_synthesis`.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence

from recallog.reactors.asking import Sleep, ask_repeatedly, one_line
from recallog_schemas.errors import ModelFailed
from recallog_schemas.models.facts import limits as facts_limits
from recallog_schemas.shortening import cut, first_sentence
from recallog_schemas.views import RecallHit

NOTHING = "No memories to reflect on."
"""The answer if no entry was found. The synthesizer is then not called. A synthesizer may return it too."""

_QUOTES_MAX = 5
_QUOTE_CHARS_MAX = 200
_ENDS = (".", "!", "?", "…", "。", "！", "？")


class Synthesizer(ABC):
    """Answers questions from entries. Implement it for a model or a custom rule; `ask` calls it."""

    @abstractmethod
    async def synthesize(self, question: str, hits: Sequence[RecallHit]) -> str:
        """The answer to `question` from `hits`: facts and experiences, best first, at most `limits.SYNTHESIS_HITS`.
        Weak hits are included only if all are weak.

        Raises `ModelFailed` if this request failed, and `ModelMisconfigured` if every request will fail. `ask`
        repeats a request after a temporary failure, and treats any other exception as one.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close connections."""


class ExtractiveSynthesizer(Synthesizer):
    """Quotes the first sentences of the best hits, best first; `NOTHING` if all are weak. It is a pure function."""

    async def synthesize(self, question: str, hits: Sequence[RecallHit]) -> str:
        if all(hit.weak for hit in hits):
            return NOTHING
        quotes = list(dict.fromkeys(quote for hit in hits if (quote := _first_sentence(hit.text))))[:_QUOTES_MAX]
        return f"{len(hits)} {'memory' if len(hits) == 1 else 'memories'}: {' '.join(quotes)}"

    async def close(self) -> None:
        """Does nothing: there are no connections."""


def _first_sentence(text: str) -> str:
    quote = cut(first_sentence(one_line(text)), _QUOTE_CHARS_MAX)
    return quote if not quote or quote.endswith(_ENDS) else f"{quote}."


async def ask(
    synthesizer: Synthesizer,
    question: str,
    hits: Sequence[RecallHit],
    *,
    attempts: int = 3,
    sleep: Sleep = asyncio.sleep,
) -> str:
    """The checked answer of `synthesizer`, with up to `attempts` attempts if its failures are temporary.

    See `asking.ask_repeatedly`, also for what it raises. Without a hit the answer is `NOTHING`.
    """
    if not hits:
        return NOTHING

    async def answer() -> str:
        return check_synthesis(await synthesizer.synthesize(question, hits))

    return await ask_repeatedly(answer, attempts=attempts, sleep=sleep)


def check_synthesis(answer: str) -> str:
    """The answer in the form of an entry's text: its lines without control characters, at most
    `facts_limits.SYNTHESIS_CHARS_MAX` characters. Raises `ModelFailed` if it is empty; idempotent."""
    lines = (one_line(line) for line in answer.strip().splitlines())
    text = cut("\n".join(lines), facts_limits.SYNTHESIS_CHARS_MAX)
    if not text:
        raise ModelFailed("the answer contains no text", retryable=True)
    return text
