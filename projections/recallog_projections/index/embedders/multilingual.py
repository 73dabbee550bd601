"""The embedder of memories in several languages: all-MiniLM-L6-v2 for English, multilingual-e5-small for all texts.

English texts have the vectors that they have with the default embedder, and a question in English finds them by these.
"""

from collections.abc import Sequence

from recallog_projections.index import terms
from recallog_projections.index.embedders.e5 import MultilingualE5
from recallog_projections.index.embedders.embedder import Embedder, Embedding, Passage, unreadable
from recallog_projections.index.embedders.onnx import OnnxEmbedder


class MultilingualEmbedder(Embedder):
    """all-MiniLM-L6-v2 for texts in English, and multilingual-e5-small as its `multilingual` model.

    `threads` is the number of threads of one call, as for `OnnxEmbedder`.
    """

    token_vectors = True

    def __init__(self, *, threads: int | None = None) -> None:
        self._english = OnnxEmbedder(threads=threads)
        self.multilingual = self._second = MultilingualE5(threads=threads)
        self.model = f"{self._english.model}+{self._second.model}"
        self.dimension = self._english.dimension

    def __repr__(self) -> str:
        return "MultilingualEmbedder()"

    def embed(self, passages: Sequence[Passage]) -> list[Embedding]:
        """As in `Embedder`. A text in another language than English counts as one that the model cannot read, also
        one in Latin letters: the model finds names in it, and little more."""
        english = [terms.is_english(passage.text[passage.tokens_from :]) for passage in passages]
        read = iter(self._english.embed([each for each, is_read in zip(passages, english, strict=True) if is_read]))
        return [next(read) if is_read else unreadable(self.dimension) for is_read in english]

    def close(self) -> None:
        self._english.close()
        self._second.close()
