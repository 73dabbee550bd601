"""The reranker port: a second model that scores the query together with each of the best memories. There is no default.

It costs one pass of its model per memory, at query time. The index does not change.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence


class Reranker(ABC):
    """Scores how well texts answer a query, for example a cross-encoder. Called in a thread of its own."""

    @abstractmethod
    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score per text, in order; higher is better, on any scale.

        If it raises, recall returns the hits in their order without it, and `degraded` says why."""
