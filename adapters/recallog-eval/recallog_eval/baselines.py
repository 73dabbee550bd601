"""Baselines: rankings of a conversation's turns that do not use Recallog's ranking.

BM25 compares the terms of `recallog_projections.index.terms` in the text of each turn, cosine the embedder's vectors of
"author: text". Neither uses dates or neighbours.
"""

import asyncio
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from recallog.extending import Embedder, Embedding, Passage
from recallog_eval.locomo_questions import Turn
from recallog_eval.metrics import HITS
from recallog_eval.result import Ask, Hit
from recallog_projections.index import terms

K1 = 0.9
B = 0.4

_TEXTS_AT_ONCE = 64

Turns = Mapping[str, Sequence[Turn]]
"""By conversation: its turns, in order."""


class Bm25:
    """BM25 over the turns of one conversation; idf in Lucene's form (Robertson and Zaragoza, 2009)."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._ids = [turn.id for turn in turns]
        counts = [Counter(terms.terms(turn.text)) for turn in turns]
        average = sum(count.total() for count in counts) / (len(counts) or 1) or 1.0
        self._weights: dict[str, dict[int, float]] = {}
        for index, count in enumerate(counts):
            floor = K1 * (1 - B + B * count.total() / average)
            for term, occurrences in count.items():
                self._weights.setdefault(term, {})[index] = occurrences * (K1 + 1) / (occurrences + floor)

    def best(self, question: str) -> list[str]:
        """The ids of at most `HITS` turns that share a term with the question, best first; of equal scores in order."""
        scores: defaultdict[int, float] = defaultdict(float)
        for term in set(terms.terms(question)):
            weights = self._weights.get(term, {})
            idf = math.log(1 + (len(self._ids) - len(weights) + 0.5) / (len(weights) + 0.5))
            for index, weight in weights.items():
                scores[index] += idf * weight
        return [self._ids[index] for index in sorted(scores, key=lambda index: (-scores[index], index))[:HITS]]


def bm25(turns: Turns) -> Ask:
    """Answers a question with the turns of its conversation that BM25 ranks highest."""
    of_space = {space: Bm25(of_space) for space, of_space in turns.items()}

    async def ask(space: str, agent: str, question: str) -> Sequence[Hit]:
        return [Hit(id_) for id_ in of_space[space].best(question)]

    return ask


async def cosine(turns: Turns, embedder: Embedder, progress: Callable[[int, int], None] | None = None) -> Ask:
    """Answers a question with the turns of its conversation whose vectors have the highest cosine.

    Turns that the model cannot read are left out, and a question that it cannot read has no answer. All turns are
    embedded first; `progress` is called with (embedded, total). Raises `EmbedderUnavailable`.
    """
    total = sum(map(len, turns.values()))
    vectors: dict[str, np.ndarray] = {}
    ids: dict[str, list[str]] = {}
    done = 0
    for space, spoken in turns.items():
        passages = [Passage(f"{turn.author}: {turn.text}", len(turn.author) + 2) for turn in spoken]
        embeddings: list[Embedding] = []
        for first in range(0, len(passages), _TEXTS_AT_ONCE):
            embeddings += await asyncio.to_thread(embedder.embed, passages[first : first + _TEXTS_AT_ONCE])
            if progress is not None:
                progress(done + len(embeddings), total)
        done += len(embeddings)
        readable = [number for number, embedding in enumerate(embeddings) if embedding.readable]
        ids[space] = [spoken[number].id for number in readable]
        vectors[space] = np.array([embeddings[number].vector for number in readable])

    async def ask(space: str, agent: str, question: str) -> Sequence[Hit]:
        (asked,) = await asyncio.to_thread(embedder.embed, [Passage(question, is_query=True)])
        if not asked.readable or not ids[space]:
            return []
        best = np.argsort(-(vectors[space] @ asked.vector), kind="stable")[:HITS]
        return [Hit(ids[space][number]) for number in best]

    return ask
