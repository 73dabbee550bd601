"""The contract of embedders. An adapter's test class inherits the suite and implements `make`."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pytest

from recallog_projections.index.embedders.embedder import Embedder, Passage, Vectors

TEXTS = (
    "The miller hid the key under the stone.",
    "",
    " \n\t ",
    "Bread.",
    "The harvest was poor this year, and the price of flour has doubled since the spring.",
    "粉屋は石の下に鍵を隠した。",
    "🥖🔑 The baker is happy 🎉",
    "naïve café Straße İstanbul e\u0301",
    "half a pair \ud83d and the rest",
    "\x00\x1b[31m",
    "[CLS] [SEP] [MASK] <s>",
    "wood " * 300,
    "nobranchesnospaces" * 40,
    *(f"On day {day} the baker sold {day % 7} loaves" + " and went home" * (day % 5) for day in range(40)),
)


def vectors_of(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    return np.vstack([embedding.vector for embedding in embedder.embed([Passage(text) for text in texts])])


def assert_same(found: Vectors, expected: Vectors, cosine: float) -> None:
    """Vectors of length 1 have at least this cosine; those of unreadable texts are zeros in both."""
    lengths = np.linalg.norm(expected, axis=1).round()
    assert set(lengths) <= {0, 1}
    assert (np.linalg.norm(found, axis=1).round() == lengths).all()
    assert ((found * expected).sum(axis=1) >= cosine * lengths).all()


class EmbedderContract(ABC):
    """Vectors of passages and of their tokens, and the identity of the model."""

    @classmethod
    @abstractmethod
    def make(cls) -> Embedder:
        """An embedder. Each call makes another one of the same model."""

    @pytest.fixture(scope="class")
    @classmethod
    def embedder(cls) -> Iterator[Embedder]:
        made = cls.make()
        yield made
        made.close()

    def test_its_identity_is_known_before_it_has_embedded_anything(self) -> None:
        fresh = self.make()
        said = (fresh.model, fresh.dimension, fresh.token_vectors, fresh.leaves_machine)
        (embedding,) = fresh.embed([Passage("Bread.")])
        assert fresh.model
        assert len(embedding.vector) == fresh.dimension
        assert (fresh.model, fresh.dimension, fresh.token_vectors, fresh.leaves_machine) == said
        fresh.close()

    def test_a_vector_has_the_dimension_and_length_1(self, embedder: Embedder) -> None:
        for embedding in embedder.embed([Passage(text) for text in TEXTS]):
            assert embedding.vector.shape == (embedder.dimension,)
            assert embedding.vector.dtype == np.float32
            assert np.linalg.norm(embedding.vector) == pytest.approx(1 if embedding.readable else 0, abs=1e-4)

    def test_no_passages_give_no_embeddings(self, embedder: Embedder) -> None:
        assert embedder.embed([]) == []

    def test_vectors_come_in_order_and_do_not_depend_on_the_other_passages_of_the_call(
        self, embedder: Embedder
    ) -> None:
        together = vectors_of(embedder, TEXTS)
        backwards = vectors_of(embedder, TEXTS[::-1])[::-1]
        alone = np.vstack([vectors_of(embedder, [text]) for text in TEXTS])
        assert_same(together, alone, 0.999)
        assert_same(together, backwards, 0.999)

    def test_another_instance_gives_the_same_vectors_under_the_same_name(self, embedder: Embedder) -> None:
        another = self.make()
        assert another.model == embedder.model
        assert_same(vectors_of(another, TEXTS[:8]), vectors_of(embedder, TEXTS[:8]), 0.9999)
        another.close()

    def test_a_very_long_text_has_a_vector(self, embedder: Embedder) -> None:
        (embedding,) = embedder.embed([Passage("The miller hid the key. " * 11_000)])
        assert np.linalg.norm(embedding.vector) == pytest.approx(1, abs=1e-4)

    def test_texts_of_similar_meaning_or_words_are_nearer(self, embedder: Embedder) -> None:
        requested, near, far = vectors_of(
            embedder, ["Where is the key to the mill?", "The key to the mill is under a stone.", "Rain fell all week."]
        )
        assert embedder.similarity(requested @ near) > embedder.similarity(requested @ far) + 0.1

    def test_tokens_lie_within_their_text_and_each_has_a_vector(self, embedder: Embedder) -> None:
        embeddings = embedder.embed([Passage(text) for text in TEXTS])
        for text, embedding in zip(TEXTS, embeddings, strict=True):
            assert embedding.token_vectors.shape == (len(embedding.token_spans), embedder.dimension)
            assert embedding.token_vectors.dtype == np.float32
            assert np.linalg.norm(embedding.token_vectors, axis=1) == pytest.approx(1, abs=1e-4)
            assert all(0 <= start < end <= len(text) for start, end in embedding.token_spans)
            assert all(one[0] <= next_one[0] for one, next_one in pairwise(embedding.token_spans))

    def test_tokens_are_those_of_the_requested_part(self, embedder: Embedder) -> None:
        text = "  🥖 baker: the miller hid the key"
        whole, part = embedder.embed([Passage(text), Passage(text, text.index("the"))])
        if not embedder.token_vectors:
            assert [len(one.token_spans) for one in (whole, part)] == [0, 0]
            return
        count = len(part.token_spans)
        assert "".join(text[slice(*span)] for span in part.token_spans) == "themillerhidthekey"
        assert part.token_spans == whole.token_spans[-count:]
        assert np.allclose(part.token_vectors, whole.token_vectors[-count:], atol=1e-3)
        assert part.vector @ whole.vector > 0.999

    def test_a_token_vector_does_not_depend_on_the_other_passages_of_the_call(self, embedder: Embedder) -> None:
        together = embedder.embed([Passage(text) for text in TEXTS])
        for text, embedding in zip(TEXTS, together, strict=True):
            (alone,) = embedder.embed([Passage(text)])
            assert alone.token_spans == embedding.token_spans
            assert ((alone.token_vectors * embedding.token_vectors).sum(axis=1) > 0.999).all()

    def test_closing_twice_is_no_error(self) -> None:
        closed = self.make()
        closed.embed([Passage("Bread.")])
        closed.close()
        closed.close()
