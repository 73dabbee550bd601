"""The embeddings of the last questions: a prompt compares one text twice, for salience and for RECALLED."""

import asyncio
from collections import OrderedDict

from recallog_projections.index.embedders.embedder import Embedder, Embedding, Passage

QUESTIONS_KEPT = 32
"""Questions whose embeddings are kept. The longest take 0.4 MB each, with a vector for each of 256 tokens."""


class EmbeddedQuestions:
    """Embeds questions, and keeps the embeddings of the last ones."""

    def __init__(self) -> None:
        self._embeddings: OrderedDict[tuple[str, str], Embedding] = OrderedDict()

    async def embedding(self, embedder: Embedder, text: str) -> Embedding:
        """The embedding of a question, with all its tokens. Raises `EmbedderUnavailable`."""
        key = embedder.model, text
        known = self._embeddings.get(key)
        if known is None:
            (known,) = await asyncio.to_thread(embedder.embed, [Passage(text, is_query=True)])
            self._embeddings[key] = known
        self._embeddings.move_to_end(key)
        while len(self._embeddings) > QUESTIONS_KEPT:
            self._embeddings.popitem(last=False)
        return known
