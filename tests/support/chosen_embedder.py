"""An embedder that answers the vectors that a test chooses."""

from collections.abc import Mapping, Sequence

import numpy as np

from recallog_projections.index.embedders.embedder import Embedding, Passage
from support.toy_embedder import DIMENSION, ToyEmbedder


class ChosenEmbedder(ToyEmbedder):
    """Each of the texts in `vectors` has that vector, padded with zeros and scaled to length 1; others are at a right
    angle to all of them, and equal."""

    def __init__(self, vectors: Mapping[str, Sequence[float]]) -> None:
        super().__init__("chosen", token_vectors=False)
        self.vectors = dict(vectors)

    def _embedding(self, passage: Passage) -> Embedding:
        own = passage.text[passage.tokens_from :]
        chosen = np.zeros(DIMENSION, np.float32)
        if own in self.vectors:
            chosen[: len(self.vectors[own])] = self.vectors[own]
        else:
            chosen[-1] = 1.0
        return Embedding(chosen / np.linalg.norm(chosen), [], np.empty((0, DIMENSION), np.float32))
