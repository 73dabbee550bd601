"""A sentence-transformer in ONNX form of a few words: the last layer's state of a token is its row of a table.

The file is written by hand, since the package that writes ONNX is no dependency.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")

_INT64, _FLOAT32 = 7, 1


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
    """A ModelProto of one node: `last_hidden_state` = `states`[`input_ids`]."""
    rows, dimension = states.shape
    gather = _text(1, "states") + _text(1, "input_ids") + _text(2, "last_hidden_state") + _text(4, "Gather")
    initializer = (
        _number(1, rows)
        + _number(1, dimension)
        + _number(2, _FLOAT32)
        + _text(8, "states")
        + _bytes(9, states.tobytes())
    )
    graph = (
        _bytes(1, gather)
        + _text(2, "tiny")
        + _bytes(5, initializer)
        + _bytes(11, _value("input_ids", _INT64, "batch", "sequence"))
        + _bytes(11, _value("attention_mask", _INT64, "batch", "sequence"))
        + _bytes(12, _value("last_hidden_state", _FLOAT32, "batch", "sequence", dimension))
    )
    return _number(1, 8) + _bytes(7, graph) + _bytes(8, _number(2, 13))


def _value(name: str, kind: int, *shape: int | str) -> bytes:
    """A ValueInfoProto of a tensor."""
    sizes = (_number(1, size) if isinstance(size, int) else _text(2, size) for size in shape)
    tensor = _number(1, kind) + _bytes(2, b"".join(_bytes(1, size) for size in sizes))
    return _text(1, name) + _bytes(2, _bytes(1, tensor))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    groups = bytearray()
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    groups.append(value)
    return bytes(groups)
