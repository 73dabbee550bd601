"""Models for tests that need torch."""

import os
from importlib import import_module
from importlib.util import find_spec

import pytest

from recallog_projections.index.embedders.embedder import Embedder
from recallog_projections.index.embedders.registry import embedder


def sentence_transformers_embedder(name: str | None = None) -> Embedder:
    """The embedder of this name; skips the test if the package is not installed."""
    if find_spec("sentence_transformers") is None:
        if os.environ.get("RECALLOG_TEST_SENTENCE_TRANSFORMERS") == "1":
            pytest.fail("sentence-transformers is not installed", pytrace=False)
        pytest.skip("NOT TESTED: sentence-transformers is not installed; `make test-sentence-transformers` tests it")
    # One thread: torch waits by spinning, and on a busy machine two were ten times slower than one.
    spelt = "sentence-transformers" if name is None else f"sentence-transformers:{name}"
    import_module("torch").set_num_threads(1)
    return embedder(spelt)
