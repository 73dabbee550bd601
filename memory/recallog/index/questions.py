"""The embeddings of the last questions: a prompt compares one text twice, for salience and for RECALLED.

And those of texts that are compared with each other.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence

from recallog_projections.breaker import Breaker
from recallog_projections.index.embedders.embedder import Embedder, Embedding, Passage
from recallog_schemas import limits
from recallog_schemas.errors import EmbedderUnavailable

QUESTIONS_KEPT = 32
"""Questions whose embeddings are kept. The longest take 0.4 MB each, with a vector for each of 256 tokens."""


class EmbeddedQuestions:
    """Embeds questions, and keeps the embeddings of the last ones.

    An embedder on another machine has `deadline_seconds` for a question. One that fails is not used for some seconds.
    """

    def __init__(self, deadline_seconds: float = limits.DEADLINE_SECONDS) -> None:
        self._embeddings: OrderedDict[tuple[str, str], Embedding] = OrderedDict()
        self._deadline_seconds = deadline_seconds
        self._breakers: dict[str, Breaker] = {}
        """By model."""

    async def embedding(self, embedder: Embedder, text: str) -> Embedding:
        """The embedding of a question, with all its tokens. Raises `EmbedderUnavailable`."""
        key = embedder.model, text
        known = self._embeddings.get(key)
        if known is None:
            (known,) = await self._embedded(embedder, [Passage(text, is_query=True)])
            self._embeddings[key] = known
        self._embeddings.move_to_end(key)
        while len(self._embeddings) > QUESTIONS_KEPT:
            self._embeddings.popitem(last=False)
        return known

    async def of_texts(self, embedder: Embedder, passages: Sequence[Passage]) -> list[Embedding]:
        """The embeddings of texts, which are not kept. Raises `EmbedderUnavailable`."""
        return await self._embedded(embedder, passages) if passages else []

    async def _embedded(self, embedder: Embedder, passages: Sequence[Passage]) -> list[Embedding]:
        if not embedder.leaves_machine:
            return await asyncio.to_thread(embedder.embed, passages)
        if embedder.model not in self._breakers:
            self._breakers[embedder.model] = _breaker(embedder.model, self._deadline_seconds)
        return await self._breakers[embedder.model].call(lambda: asyncio.to_thread(embedder.embed, passages))


def _breaker(model: str, deadline_seconds: float) -> Breaker:
    return Breaker(
        lambda reason: EmbedderUnavailable(f"the embedder {model} {reason}"),
        deadline_seconds,
        failures=(EmbedderUnavailable,),
        reason_of=lambda error: f"cannot be used: {error}",
    )
