"""A sentence-transformer in ONNX form of a few words: the last layer's state of a token is its row of a table."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from recallog_projections.index.embedders.onnx_file import GraphWriter

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


def table(words: Sequence[str], dimension: int = 8) -> NDArray[np.float32]:
    """The states of `SPECIAL` and of `words`, each of length 1."""
    drawn = np.random.default_rng(7).normal(size=(len(SPECIAL) + len(words), dimension))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


def save(folder: Path, words: Sequence[str], files: Mapping[str, Any] | None = None) -> Path:
    """Write a model that knows `words` (of a WordPiece vocabulary), its tokenizer, and `files` as JSON, by name."""
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(_model(table(words)))
    vocabulary = {word: number for number, word in enumerate((*SPECIAL, *words))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    for name, content in (files or {}).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content))
    return folder


def _model(states: NDArray[np.float32]) -> bytes:
    """A model whose `last_hidden_state` is `states`[`input_ids`]."""
    made = GraphWriter()
    made.apply("Gather", made.constant("states", states), "input_ids", outputs=["last_hidden_state"])
    return made.serialize(["input_ids", "attention_mask"], "last_hidden_state", states.shape[1])
