"""The reranker port: a second model that reads question and memory together. Off unless you bring one.

It costs a pass of its model for each memory it reads, at query time; nothing is indexed by it.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence


class Reranker(ABC):
    """Says how well texts answer a question, such as a cross-encoder. Called in a thread of its own."""

    @abstractmethod
    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score a text, in order; more is better, on any scale. What it raises costs its order, not the answer."""
