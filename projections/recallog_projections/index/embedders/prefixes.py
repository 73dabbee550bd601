"""The prefixes that a model needs before questions and before passages.

They are those of the embedder's name in the settings, else those of the model's own configuration, else those of its
family, which follows from its name.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from recallog_projections.index.embedders.embedder import Passage
from recallog_schemas.errors import SettingsError

CONFIG = "config_sentence_transformers.json"
"""The file of a model's folder with its prompts."""


@dataclass(frozen=True, slots=True)
class Prefixes:
    """The texts that a model reads before a question and before a passage."""

    query: str = ""
    passage: str = ""

    def of(self, passage: Passage) -> str:
        return self.query if passage.is_query else self.passage

    def identity(self) -> str:
        """A part of a model's identity for prefixes that neither its name nor its files determine."""
        return "+" + hashlib.sha256(json.dumps([self.query, self.passage]).encode()).hexdigest()[:6]


NO_PREFIXES = Prefixes()

_FAMILIES = (
    (
        re.compile(r"\be5-(small|base|large)\b(?!.*-instruct)"),
        Prefixes("query: ", "passage: "),
    ),
    (
        re.compile(r"\be5-.*-instruct\b"),
        Prefixes(
            "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: ",
        ),
    ),
    (
        re.compile(r"\bbge-(small|base|large)-en\b"),
        Prefixes("Represent this sentence for searching relevant passages: "),
    ),
    (
        re.compile(r"\bbge-(small|base|large)-zh\b(?!-noinstruct)"),
        Prefixes("为这个句子生成表示以用于检索相关文章："),
    ),
)
"""By the names that their publishers, intfloat and BAAI, gave the models; the prefixes are those of the model cards."""
_QUERY_KEYS = ("query", "retrieval.query")
_PASSAGE_KEYS = ("document", "passage", "corpus", "retrieval.passage")


def split_name(name: str) -> tuple[str, Prefixes | None]:
    """`name` without the prefixes that follow it, as in "onnx:folder?query=query:+&passage=passage:+", and these.

    They are spelt as in the query string of a URL. Raises `SettingsError` for other keys.
    """
    where, question_mark, options = name.partition("?")
    if not question_mark:
        return name, None
    try:
        given = dict(parse_qsl(options, keep_blank_values=True, strict_parsing=True))
        return where, Prefixes(**given)
    except (TypeError, ValueError):
        raise SettingsError(
            f"?{options}: after ? an embedder's name gives prefixes, for example ?query=query:+&passage=passage:+"
        ) from None


def model_prefixes(given: Prefixes | None, config: Mapping[str, Any], names: Iterable[str]) -> Prefixes:
    """The prefixes of a model: `given`, else its `config` of sentence-transformers, else by the `names` it has."""
    return given or _read_prompts(config) or _of_family(names) or NO_PREFIXES


def _read_prompts(config: Mapping[str, Any]) -> Prefixes | None:
    """The prompts of a configuration; None without any. Newer versions of the library store empty ones."""
    found = config.get("prompts")
    prompts = {key: text for key, text in found.items() if isinstance(text, str)} if isinstance(found, dict) else {}
    default = prompts.get(str(config.get("default_prompt_name")), "")
    query = next((prompts[key] for key in _QUERY_KEYS if key in prompts), default)
    passage = next((prompts[key] for key in _PASSAGE_KEYS if key in prompts), default)
    return Prefixes(query, passage) if query or passage else None


def _of_family(names: Iterable[str]) -> Prefixes | None:
    lowered = [name.lower() for name in names]
    return next((known for pattern, known in _FAMILIES if any(map(pattern.search, lowered))), None)
