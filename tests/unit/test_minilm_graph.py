"""The default model as a graph of integer products, against the published one."""

from dataclasses import replace
from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
import pytest

from recallog_projections.index.embedders import minilm, onnx
from recallog_projections.index.embedders.embedder import Passage
from recallog_projections.index.embedders.onnx import OnnxEmbedder
from recallog_projections.index.embedders.onnx_file import GraphWriter, read

TEXTS = (
    "The miller hid the key under the stone.",
    "Bread.",
    "On 8 May 2023 the baker sold 144 loaves, and the price of flour doubled: 3.50 a pound!",
    "def f(x): return x ** 2  # tests/unit/test_minilm.py",
    "She asked whether the mill would open again before the harvest. " * 5,
)


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> OnnxEmbedder:
    """The embedder on a processor without exact integer products."""
    monkeypatch.setattr(minilm, "exact_products", lambda: False)
    embedder = OnnxEmbedder()
    embedder.embed([Passage("It loads the model.")])
    return embedder


def test_vectors_are_those_of_the_published_model(published: OnnxEmbedder) -> None:
    made = OnnxEmbedder()
    files = onnx._minilm()
    made._loaded = onnx.load(replace(files, rewrite=minilm.integer_graph), 1)
    assert made._model().inputs == {"input_ids", "attention_mask"}
    assert "token_type_ids" in published._model().inputs
    passages = [Passage(text) for text in TEXTS]
    for one, other in zip(made.embed(passages), published.embed(passages), strict=True):
        assert one.vector @ other.vector > 0.998
        assert one.token_spans == other.token_spans
        assert (one.token_vectors * other.token_vectors).sum(axis=1).min() > 0.99


def test_a_vector_does_not_depend_on_the_other_texts_of_a_batch() -> None:
    embedder = OnnxEmbedder()
    together = embedder.embed([Passage(text) for text in TEXTS])
    for text, embedding in zip(TEXTS, together, strict=True):
        (alone,) = embedder.embed([Passage(text)])
        assert alone.vector @ embedding.vector > 0.99999
        assert (alone.token_vectors * embedding.token_vectors).sum(axis=1).min() > 0.9999


def test_a_processor_whose_integer_products_saturate_runs_the_published_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Saturating:
        """A session whose sums of two products are cut to 16 bits."""

        def __init__(self, *_: Any, **__: Any) -> None:
            """Does nothing."""

        def run(self, _: Any, feed: dict[str, Any]) -> list[Any]:
            return [np.full((*feed["input_ids"].shape, 384), 192 * 32_767.0, np.float32)]

    minilm.exact_products.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(onnxruntime, "InferenceSession", Saturating)
        assert not minilm.exact_products()
        assert onnx._minilm().rewrite is None
    minilm.exact_products.cache_clear()


def test_a_written_graph_is_read_back() -> None:
    made = GraphWriter()
    made.constant("table", np.arange(6, dtype=np.float32).reshape(3, 2))
    made.constant("scalar", np.array(-5))
    made.constant("bytes", np.array([1, 255], np.uint8))
    made.apply("Gather", "table", "input_ids", outputs=["found"], axis=0)
    made.apply("Identity", "found", domain="other", outputs=["out"], floats=0.5, numbers=[-1, 300])
    graph = read(made.serialize(["input_ids"], "out", 2))
    assert graph.tensors["table"].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert (graph.tensors["scalar"].shape, graph.tensors["scalar"].item()) == ((), -5)
    assert graph.tensors["bytes"].tolist() == [1, 255]
    assert [(node.operator, node.inputs, node.outputs) for node in graph.nodes] == [
        ("Gather", ["table", "input_ids"], ["found"]),
        ("Identity", ["found"], ["out"]),
    ]
