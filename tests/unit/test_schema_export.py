"""The published JSON Schemas are those of the code."""

import json
from pathlib import Path

import pytest

from recallog_schemas import codec, kinds
from support.cli import recallog
from support.events import event

COMMITTED = Path(__file__).parents[2] / "schemas" / "json"


def files(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in sorted(folder.rglob("*.json"))}


def test_the_committed_schemas_are_what_the_command_writes(tmp_path: Path) -> None:
    assert recallog("schema", "export", "--output", tmp_path).code == 0
    # If this fails: recallog schema export
    assert files(tmp_path) == files(COMMITTED)


def test_every_known_kind_has_a_schema() -> None:
    assert {f"kinds/{kind}.json" for kind in kinds.CATALOGUE} <= set(files(COMMITTED))


def test_the_wire_requires_what_the_codec_requires() -> None:
    required = json.loads((COMMITTED / "event.json").read_text())["required"]
    assert sorted(required) == ["agent", "at", "envelope", "id", "kind", "space"]


def test_the_event_s_schema_names_every_field_that_is_written_and_no_others() -> None:
    schema = json.loads((COMMITTED / "event.json").read_text())
    whole = event(session="s", subject="x", audience=["a"], causation_id="c", correlation_id="k")
    assert set(schema["properties"]) == set(json.loads(codec.encode(whole)))
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize("name", sorted(files(COMMITTED)))
def test_each_schema_names_its_dialect(name: str) -> None:
    assert json.loads(files(COMMITTED)[name])["$schema"] == "https://json-schema.org/draft/2020-12/schema"
