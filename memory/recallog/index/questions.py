"""The embeddings of the last questions: a prompt compares one text twice, for salience and for RECALLED.

The module also keeps the vectors of the last texts that were compared with each other.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextvars import copy_context

from recallog_projections.breaker import Breaker
from recallog_projections.index.embedders.embedder import Embedder, Embedding, Passage, Vectors
from recallog_schemas import limits
from recallog_schemas.errors import EmbedderUnavailable

QUESTIONS_KEPT = 32
"""The number of questions whose embeddings are kept. The longest take 0.4 MB each, with a vector for each of 256
tokens."""
_TEXTS_KEPT = 1_024
"""The number of texts whose vectors are kept, of 1.5 KB each. A text is compared with texts that are retained next."""
_EMBEDDED_TEXTS = 32
"""The number of texts in one call of the embedder. An embedder on another machine has one deadline for them."""


class EmbeddedQuestions:
    """Embeds questions, and keeps the embeddings of the last ones.

    An embedder on another machine has `deadline_seconds` for a question. After a failure, it is not used for some
    seconds.
    """

    def __init__(self, deadline_seconds: float = limits.DEADLINE_SECONDS) -> None:
        self._embeddings: OrderedDict[tuple[str, str], Embedding] = OrderedDict()
        self._begun: dict[tuple[str, str], asyncio.Future[list[Embedding]]] = {}
        """The questions that are being embedded."""
        self._vectors: OrderedDict[tuple[str, str], Vectors | None] = OrderedDict()
        self._deadline_seconds = deadline_seconds
        self._breakers: dict[str, Breaker] = {}
        """By model."""

    def begin(self, embedder: Embedder, text: str) -> None:
        """Start to embed a question in another thread, while the caller reads what it needs besides `embedding`.

        An embedder on another machine is first called by `embedding`.
        """
        key, loop = (embedder.model, text), asyncio.get_running_loop()
        begun = self._begun.get(key)
        if embedder.leaves_machine or key in self._embeddings or (begun is not None and begun.get_loop() is loop):
            return
        run = copy_context().run  # the context of the call tells to which log its messages belong
        begun = loop.run_in_executor(None, run, embedder.embed, [Passage(text, is_query=True)])
        self._begun[key] = begun
        begun.add_done_callback(lambda ended: self._end(key, ended))

    def _end(self, key: tuple[str, str], ended: "asyncio.Future[list[Embedding]]") -> None:
        if self._begun.get(key) is ended:
            del self._begun[key]
        if not ended.cancelled() and ended.exception() is None:
            self._keep(key, *ended.result())

    async def embedding(self, embedder: Embedder, text: str) -> Embedding:
        """The embedding of a question, with all its tokens. Raises `EmbedderUnavailable`."""
        key = embedder.model, text
        self.begin(embedder, text)
        known = self._embeddings.get(key)
        if known is None and (begun := self._begun.get(key)) is not None:
            (known,) = await asyncio.shield(begun)
        elif known is None:
            (known,) = await self._embed(embedder, [Passage(text, is_query=True)])
        self._keep(key, known)
        return known

    def _keep(self, key: tuple[str, str], known: Embedding) -> None:
        self._embeddings[key] = known
        self._embeddings.move_to_end(key)
        while len(self._embeddings) > QUESTIONS_KEPT:
            self._embeddings.popitem(last=False)

    async def vectors(self, embedder: Embedder, texts: Iterable[str]) -> dict[str, Vectors | None]:
        """By text: its vector; None for a text that the model cannot read. Raises `EmbedderUnavailable`."""
        wanted = list(dict.fromkeys(texts))
        found = {
            text: self._vectors[embedder.model, text] for text in wanted if (embedder.model, text) in self._vectors
        }
        new = [text for text in wanted if text not in found]
        for first in range(0, len(new), _EMBEDDED_TEXTS):
            part = new[first : first + _EMBEDDED_TEXTS]
            embedded = await self._embed(embedder, [Passage(text) for text in part])
            found |= {text: each.vector if each.readable else None for text, each in zip(part, embedded, strict=True)}
        for text in wanted[-_TEXTS_KEPT:]:
            self._vectors[embedder.model, text] = found[text]
            self._vectors.move_to_end((embedder.model, text))
        while len(self._vectors) > _TEXTS_KEPT:
            self._vectors.popitem(last=False)
        return found

    async def _embed(self, embedder: Embedder, passages: Sequence[Passage]) -> list[Embedding]:
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
