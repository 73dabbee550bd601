"""Variables of other memories give settings, or an error that names ours."""

import json
from pathlib import Path
from typing import Any

import pytest

from recallog import Memory, Settings
from recallog.errors import SettingsError
from support.cli import recallog

FIELDS = ("index", "embedder", "embedder_api_key", "workspace")


def settings(monkeypatch: pytest.MonkeyPatch, **variables: str) -> Settings:
    for name in ("RECALLOG_INDEX", "RECALLOG_EMBEDDER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return Settings.valid()


def config(**parts: Any) -> str:
    return json.dumps({name: {"provider": provider, "config": fields} for name, (provider, fields) in parts.items()})


@pytest.mark.parametrize("word", ["1", "true", " YES ", "on", "mem0", "local"])
def test_an_index_that_is_on_is_the_embedded_one(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    assert settings(monkeypatch, MEMORY_INDEX=word).index == "embedded"


@pytest.mark.parametrize("word", ["", "0", "false", "no", "off"])
def test_an_index_that_is_off_is_off(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    assert settings(monkeypatch, MEMORY_INDEX=word).index == "off"
    assert settings(monkeypatch, MEMORY_INDEX=word, MEMORY_INDEX_BACKEND="cloud").index == "off"


@pytest.mark.parametrize("variable", ["MEMORY_INDEX", "MEMORY_INDEX_BACKEND"])
@pytest.mark.parametrize("word", ["cloud", "mem0-cloud", "platform", "Hosted"])
def test_a_hosted_index_is_refused_with_our_setting(monkeypatch: pytest.MonkeyPatch, variable: str, word: str) -> None:
    with pytest.raises(SettingsError, match=f"^{variable}: there is no hosted index, .* RECALLOG_INDEX"):
        settings(monkeypatch, MEM0_API_KEY="m0-1", **{variable: word})


def test_variables_of_mem0_alone_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = settings(monkeypatch, MEM0_API_KEY="m0-1", MEM0_ORG_ID="o", MEM0_PROJECT_ID="p", MEM0_HOST="h")
    assert found.index is None
    assert found.embedder == "minilm"


@pytest.mark.parametrize(
    ("fields", "index"),
    [
        ({"host": "vectors", "port": 7}, "http://vectors:7"),
        ({"host": "vectors"}, "http://vectors:6333"),
        ({"url": "https://vectors"}, "https://vectors"),
        ({"path": "/var/vectors", "collection_name": "events"}, "embedded"),
    ],
)
def test_a_qdrant_server_is_the_index(monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], index: str) -> None:
    given = config(vector_store=("qdrant", fields))
    assert settings(monkeypatch, MEMORY_INDEX="1", MEMORY_INDEX_CONFIG=given).index == index


@pytest.mark.parametrize(
    ("provider", "fields", "embedder"),
    [
        ("huggingface", {"model": "sentence-transformers/all-MiniLM-L6-v2"}, "minilm"),
        ("openai", {"model": "m"}, "https://api.openai.com/v1#m"),
        ("openai", {"model": "m", "openai_base_url": "http://here/v1/"}, "http://here/v1#m"),
        ("ollama", {"model": "m"}, "http://localhost:11434/v1#m"),
    ],
)
def test_an_embedder_that_is_known_is_ours(
    monkeypatch: pytest.MonkeyPatch, provider: str, fields: dict[str, Any], embedder: str
) -> None:
    given = config(embedder=(provider, {**fields, "api_key": "secret"}))
    found = settings(monkeypatch, MEMORY_INDEX="1", MEMORY_INDEX_CONFIG=given)
    assert found.embedder == embedder
    assert found.embedder_api_key is not None
    assert found.embedder_api_key.get_secret_value() == "secret"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("[", "RECALLOG_INDEX and RECALLOG_EMBEDDER"),
        ("[]", "RECALLOG_INDEX and RECALLOG_EMBEDDER"),
        ('{"embedder": []}', None),
        ('{"embedder": "minilm"}', "RECALLOG_INDEX and RECALLOG_EMBEDDER"),
        (config(vector_store=("pgvector", {})), "RECALLOG_INDEX"),
        (
            config(vector_store=("qdrant", {"url": "https://q", "api_key": "k"})),
            "RECALLOG_INDEX to the URL with the key",
        ),
        (config(embedder=("huggingface", {"model": "multi-qa"})), "RECALLOG_EMBEDDER"),
        (config(embedder=("openai", {})), "RECALLOG_EMBEDDER"),
    ],
)
def test_what_cannot_be_mapped_is_an_error_that_names_our_setting(
    monkeypatch: pytest.MonkeyPatch, given: str, named: str | None
) -> None:
    if named is None:
        assert settings(monkeypatch, MEMORY_INDEX="1", MEMORY_INDEX_CONFIG=given).embedder == "minilm"
        return
    with pytest.raises(SettingsError, match=f"^MEMORY_INDEX_CONFIG: .*{named}"):
        settings(monkeypatch, MEMORY_INDEX="1", MEMORY_INDEX_CONFIG=given)


@pytest.mark.parametrize("given", ["[", config(embedder=("openai", {"model": "m", "api_key": "secret"}))])
def test_the_key_of_another_embedder_is_not_read(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    """It was once sent to our embedder."""
    ours = {"RECALLOG_INDEX": "embedded", "RECALLOG_EMBEDDER": "https://ours/v1#m"}
    found = settings(monkeypatch, MEMORY_INDEX="1", MEMORY_INDEX_CONFIG=given, **ours)
    assert (found.embedder, found.embedder_api_key) == ("https://ours/v1#m", None)


def test_a_configuration_without_an_index_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings(monkeypatch, MEMORY_INDEX_CONFIG="[").index is None


async def test_our_settings_take_precedence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ours = settings(monkeypatch, MEMORY_INDEX="cloud", RECALLOG_INDEX="off", AGX_WORKSPACE_ROOT=str(tmp_path))
    assert (ours.index, ours.workspace) == ("off", tmp_path)
    monkeypatch.delenv("RECALLOG_INDEX")
    assert Settings.valid(index="embedded").index == "embedded"
    async with Memory.in_memory() as memory:
        assert await memory.spaces() is not None
    assert settings(monkeypatch, recallog_index="off").index == "off"
    monkeypatch.delenv("recallog_index")
    (tmp_path / "index").write_text("off")
    assert settings(monkeypatch, RECALLOG_INDEX_FILE=str(tmp_path / "index")).index == "off"


def test_the_command_names_the_variable_that_gives_a_setting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings(monkeypatch, MEMORY_INDEX="0", AGX_WORKSPACE_ROOT=str(tmp_path))
    shown = recallog("settings", "--changed", "--json").json["settings"]
    found = {each["setting"]: each["source"] for each in shown if each["setting"] in FIELDS}
    assert found == {"index": "MEMORY_INDEX", "workspace": "AGX_WORKSPACE_ROOT"}


def test_the_command_says_what_cannot_be_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RECALLOG_INDEX", raising=False)
    monkeypatch.setenv("MEMORY_INDEX", "cloud")
    done = recallog("settings")
    assert done.code == 2
    assert "RECALLOG_INDEX" in done.err
