"""Settings from the environment variables of other memories, for programs that come from them.

| variable | setting |
| --- | --- |
| `MEMORY_INDEX`, `MEMORY_INDEX_BACKEND` | `index` |
| `MEMORY_INDEX_CONFIG` | `index`, `embedder`, `embedder_api_key` |
| `MEM0_API_KEY`, `MEM0_ORG_ID`, `MEM0_PROJECT_ID`, `MEM0_HOST` | none: there is no hosted index |
| `AGX_WORKSPACE_ROOT` | `workspace` |

A setting that is given in another way takes precedence, and its variables here are then not read. See docs/migrate.
"""

import json
import os
from collections.abc import Collection, Mapping
from typing import Any

from recallog_schemas.errors import SettingsError

VARIABLES = {
    "index": "MEMORY_INDEX",
    "embedder": "MEMORY_INDEX_CONFIG",
    "embedder_api_key": "MEMORY_INDEX_CONFIG",
    "workspace": "AGX_WORKSPACE_ROOT",
}
"""By setting: the variable that gives it."""
_ON = frozenset({"1", "true", "yes", "on", "mem0", "local"})
_OFF = frozenset({"", "0", "false", "no", "off"})
_HOSTED = frozenset({"cloud", "mem0-cloud", "platform", "hosted"})
_ENDPOINTS = {
    "openai": ("openai_base_url", "https://api.openai.com/v1", ""),
    "ollama": ("ollama_base_url", "http://localhost:11434", "/v1"),
}
"""By provider of an embedder: the field with the URL of the server, its default, and the path of the API that is like
OpenAI's."""
_INSTEAD = (
    "Set RECALLOG_INDEX to embedded, off, or the URL of a Qdrant server; or pass an index of your own to "
    "Memory.open(index=…), such as that of the package recallog-mem0"
)


def read(given: Collection[str] = ()) -> Mapping[str, Any]:
    """The settings by name, without those in `given`. Raises `SettingsError`, which names the setting to use."""
    readers = zip(VARIABLES, (_read_index, _read_embedder, _read_api_key, _read_workspace), strict=True)
    known = {*given, "embedder_api_key"} if "embedder" in given else given  # no key goes to another embedder
    return {name: value for name, reader in readers if name not in known and (value := reader()) is not None}


def _read_workspace() -> str | None:
    return os.environ.get("AGX_WORKSPACE_ROOT") or None


def _read_index() -> str | None:
    chosen = _word("MEMORY_INDEX")
    if chosen in _OFF:
        return "off"
    for variable in ("MEMORY_INDEX", "MEMORY_INDEX_BACKEND"):
        if _word(variable) in _HOSTED:
            raise SettingsError(f"{variable}: there is no hosted index, and MEM0_API_KEY is not used. {_INSTEAD}")
    if chosen is None:
        return None
    if chosen not in _ON:
        raise SettingsError(f"MEMORY_INDEX: should be true or false. {_INSTEAD}")
    provider, config = _part("vector_store")
    if provider not in (None, "qdrant"):
        raise SettingsError(f"MEMORY_INDEX_CONFIG: the vector store {provider} cannot be the index. {_INSTEAD}")
    if config.get("api_key"):
        raise SettingsError("MEMORY_INDEX_CONFIG: set RECALLOG_INDEX to the URL with the key: https://host?api_key=…")
    host = config.get("host")
    return str(config.get("url") or (f"http://{host}:{config.get('port', 6333)}" if host else "embedded"))


def _read_embedder() -> str | None:
    provider, config = _part("embedder")
    model = str(config.get("model", ""))
    if provider is None:
        return None
    if provider == "huggingface" and model.rpartition("/")[2] == "all-MiniLM-L6-v2":
        return "minilm"
    if provider not in _ENDPOINTS or not model:
        raise SettingsError(
            f"MEMORY_INDEX_CONFIG: the embedder {provider} {model} is not known here. Set RECALLOG_EMBEDDER to minilm, "
            "onnx:<folder>, sentence-transformers:<folder>, or https://host/v1#model"
        )
    field, default, path = _ENDPOINTS[provider]
    return f"{str(config.get(field) or default).rstrip('/')}{path}#{model}"


def _read_api_key() -> str | None:
    return _part("embedder")[1].get("api_key")


def _word(variable: str) -> str | None:
    value = os.environ.get(variable)
    return None if value is None else value.strip().lower()


def _part(name: str) -> tuple[str | None, Mapping[str, Any]]:
    """The provider of a part of mem0's configuration, and its fields. Without an index it is not used."""
    if _word("MEMORY_INDEX") not in _ON:
        return None, {}
    try:
        part = json.loads(os.environ.get("MEMORY_INDEX_CONFIG") or "{}").get(name) or {}
        return part.get("provider"), {**(part.get("config") or {})}
    except (ValueError, AttributeError, TypeError):
        message = "MEMORY_INDEX_CONFIG: should be a JSON object with the objects vector_store and embedder"
        raise SettingsError(f"{message}; RECALLOG_INDEX and RECALLOG_EMBEDDER are the settings here") from None
