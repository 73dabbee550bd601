"""The published JSON Schemas are those of the code, and valid for what the operations read and answer."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from recallog import Memory
from recallog.operations import pipeline, schemas
from recallog.operations.facade import all_operations, operation
from recallog.operations.operation import Operation, Scope
from recallog_schemas import codec, export, kinds, views
from recallog_schemas.errors import InvalidInput
from support.cli import recallog
from support.events import event

COMMITTED = Path(__file__).parents[2] / "schemas" / "json"
OPERATIONS = all_operations(Memory)


def files(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in sorted(folder.rglob("*.json"))}


def committed(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((COMMITTED / name).read_text())
    return found


def arguments_of(name: str) -> Draft202012Validator:
    return Draft202012Validator(committed(f"operations/{name}.json"))


@pytest.mark.models("all")
def test_the_committed_schemas_are_what_the_command_writes(tmp_path: Path) -> None:
    assert recallog("schema", "export", "--output", tmp_path).code == 0
    # If this fails: make generate
    assert files(tmp_path) == files(COMMITTED)


def test_an_export_removes_schemas_of_earlier_ones_and_nothing_else(tmp_path: Path) -> None:
    found = schemas.documents(Memory)
    export.write(tmp_path, {**found, "views/Gone.json": {}, "operations/gone.json": {}})
    own = {"views/own.json": '{"title": "of the user"}', "views/notes.json": "not JSON", "more/own.json": "{}"}
    for name, text in own.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    export.write(tmp_path, found)
    assert files(tmp_path).keys() == found.keys() | own.keys()


def test_every_known_kind_has_a_schema() -> None:
    assert {f"kinds/{kind}.json" for kind in kinds.CATALOGUE} <= set(files(COMMITTED))


def test_the_wire_requires_what_the_codec_requires() -> None:
    assert sorted(committed("event.json")["required"]) == ["agent", "at", "envelope", "id", "kind", "space"]


def test_the_event_s_schema_names_every_field_that_is_written_and_no_others() -> None:
    schema = committed("event.json")
    whole = event(session="s", subject="x", audience=["a"], causation_id="c", correlation_id="k")
    assert set(schema["properties"]) == set(json.loads(codec.encode(whole)))
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize("name", sorted(files(COMMITTED)))
def test_each_schema_names_its_dialect_and_is_valid(name: str) -> None:
    schema = committed(name)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("each", OPERATIONS.values(), ids=OPERATIONS.keys())
def test_each_operation_has_a_schema_of_its_arguments_for_http_and_mcp(each: Operation) -> None:
    schema = committed(f"operations/{each.qualified_name}.json")
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert schema["title"] == each.qualified_name
    assert schema["description"].startswith(each.summary)
    assert list(schema["properties"]) == list(each.parameters)
    assert schema["required"] == required(each)
    assert all(parameter["description"] for parameter in schema["properties"].values())
    assert [reference for reference in references(schema) if not reference.startswith("#/")] == [
        schema["x-recallog"]["answer"]["$ref"]
    ]
    assert (COMMITTED / "operations" / schema["x-recallog"]["answer"]["$ref"]).exists()


def required(each: Operation) -> list[str]:
    return [name for name, parameter in each.parameters.items() if parameter.default is parameter.empty]


def references(schema: object) -> list[str]:
    if isinstance(schema, dict):
        own = [schema["$ref"]] if isinstance(schema.get("$ref"), str) else []
        return own + [found for value in schema.values() for found in references(value)]
    return [found for value in schema for found in references(value)] if isinstance(schema, list) else []


def test_the_schema_of_an_operation_says_what_a_door_needs_besides_the_arguments() -> None:
    assert committed("operations/admin.abort_rebuild.json")["x-recallog"] == {
        "scope": "operate",
        "idempotent": True,
        "destructive": False,
        "answer": {"$ref": "../views/AbortReport.json"},
        "command": "rebuild --abort",
        "example": "recallog rebuild index --abort",
    }


AGENT = {"space": "village", "agent": "baker"}


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("recall", {**AGENT, "query": "who?", "top_k": 3, "kinds": ["agent.spoke"], "since": "2026-03-01T12:00:00Z"}),
        ("episodic", {**AGENT, "after": "0:41", "as_of": {"partition": 0, "offset": 41}}),
        ("episodic", {**AGENT, "as_of": "2026-03-01T12:00:00Z", "window": None}),
        ("publish", {"event": {**AGENT, "kind": "agent.spoke", "payload": {"text": "Bread!"}}}),
        ("admin.status", {}),
    ],
)
def test_valid_arguments_are_valid_for_the_schema_too(name: str, given: dict[str, Any]) -> None:
    OPERATIONS[name].validate(given, strict=True)
    arguments_of(name).validate(given)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("recall", AGENT),
        ("recall", {**AGENT, "query": "who?", "top_k": 0}),
        ("recall", {**AGENT, "query": "who?", "top_k": "3"}),
        ("recall", {**AGENT, "query": "who?", "top_l": 3}),
        ("recall", {**AGENT, "query": "who?", "fusion": "best"}),
        ("recall", {**AGENT, "query": "who?", "kinds": "agent.spoke"}),
        ("recall", {**AGENT, "space": " no name", "query": "who?"}),
        ("timeline", {**AGENT, "before": "first"}),
        ("admin.dead_letter", {"position": None}),
        ("publish", {"event": AGENT}),
        ("publish", {"event": {**AGENT, "kind": "agent.spoke", "text": "Bread!"}}),
        ("admin.status", {"space": "village"}),
    ],
)
def test_wrong_arguments_are_refused_by_the_operation_and_by_its_schema(name: str, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        OPERATIONS[name].validate(given, strict=True)
    with pytest.raises(ValidationError):
        arguments_of(name).validate(given)


BREAD = {**AGENT, "kind": "agent.spoke", "payload": {"text": "Bread!"}}
VALUES = {
    **AGENT, "query": "bread", "event_id": "e", "ids": ["e"], "event": BREAD, "events": [BREAD],
    "namespace": ["notes"], "key": "miller", "value": {"owes": 9}, "to": "smith", "label": "Goals", "content": "Bread",
    "session": "s-1", "text": "{}", "entry_id": "kept", "entry_ids": ["kept"],
    "action_type": "bake", "summary": "Baked bread", "question": "bread",
    "topic": "bread", "conclusion": "Two crowns", "confidence": 1.0,
    "messages": [{"role": "user", "content": "Bread!"}], "units": 10.0, "tier": "slow", "entity": "flour",
    "since": "0:0",
}  # fmt: skip
"""Values of required parameters."""


NEED_MORE = frozenset({
    "admin.abort_reindex", "configure_agent", "configure_space", "erase", "long_term.deduplicate", "long_term.forget",
    "long_term.update",
})  # fmt: skip
"""Operations that need an index, or one of several parameters."""


@pytest.mark.models("all")
def test_most_operations_can_be_called_with_the_values_of_this_test() -> None:
    missing = {name for each in OPERATIONS.values() for name in required(each)} - VALUES.keys()
    assert missing == {"markers", "model", "target", "position", "type", "consensus_id", "by"}


@pytest.mark.models("long_term")
@pytest.mark.parametrize(
    "name",
    [name for name in OPERATIONS if VALUES.keys() >= set(required(OPERATIONS[name])) and name not in NEED_MORE],
)
def test_answers_are_valid_for_their_schemas(name: str) -> None:
    called = OPERATIONS[name]

    async def answer() -> bytes:
        async with Memory.in_memory() as memory:
            await memory.publish({**BREAD, "id": "e"})
            await memory.items.put("village", "baker", "notes", "miller", "sacks")
            await memory.long_term.retain("village", "baker", "Sift the flour first.", entry_id="kept", tier="slow")
            return called.to_json(
                await pipeline.call(memory, called, {name: VALUES[name] for name in required(called)})
            )

    schema = committed(export.answer_file(called.answer))
    Draft202012Validator(schema).validate(json.loads(asyncio.run(answer())))


class Oven(views.View):
    """The state of an oven."""

    degrees: int
    """Its temperature in °C."""


class Bakery(Memory):
    @operation(example="recallog oven village", scope=Scope.PUBLISH, destructive=True)
    async def oven(self, space: str) -> Oven:
        """Heat the oven.

        It takes
        a while.
        """
        return Oven(degrees=200)


def test_a_further_operation_has_a_schema_and_its_answer_too() -> None:
    found = schemas.documents(Bakery)
    assert found.keys() - schemas.documents(Memory).keys() == {"operations/oven.json", "views/Oven.json"}
    assert found["operations/oven.json"]["description"] == "Heat the oven.\n\nIt takes a while."
    assert found["operations/oven.json"]["x-recallog"]["destructive"] is True
    assert found["views/Oven.json"]["description"] == "The state of an oven."
    assert found["views/Oven.json"]["properties"]["degrees"] == {
        "type": "integer",
        "description": "Its temperature in °C.",
    }
