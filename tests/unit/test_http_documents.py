"""The OpenAPI and AsyncAPI documents: valid, whole, and true of what the server answers."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from recallog import Memory, Settings
from recallog_service.http import documents
from recallog_tools import http_documents
from support.events import event, numbered, one_loop, run
from support.http import ROUTES, Door

OPENAPI = documents.openapi()
ASYNCAPI = documents.asyncapi()


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    home = tmp_path_factory.mktemp("village")
    memory = Memory.open(Settings(home=home, index="off"))
    with one_loop():
        run(memory.publish_many([event(id="e-1", audience=["miller"]), *numbered(20)]))
        yield Door(memory, Settings(home=home))
        run(memory.close())


def test_the_openapi_document_is_valid() -> None:
    assert [str(error) for error in OpenAPIV31SpecValidator(OPENAPI).iter_errors()] == []


def test_the_document_has_every_operation_once() -> None:
    described = [each["operationId"] for methods in OPENAPI["paths"].values() for each in methods.values()]
    assert set(ROUTES) <= set(described)
    assert len(described) == len(set(described))
    for name, route in ROUTES.items():
        assert OPENAPI["paths"][route.path][route.method.lower()]["operationId"] == name


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for each in value.values():
            yield from references(each)
    elif isinstance(value, list):
        for each in value:
            yield from references(each)


def test_what_all_servers_describe_alike_is_generated_from_the_code() -> None:
    written = documents.ALIKE.read_text(encoding="utf-8")
    assert written == http_documents.generated(), "run: make generate"


@pytest.mark.parametrize("document", [OPENAPI, ASYNCAPI], ids=["openapi", "asyncapi"])
def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    for reference in set(references(document)):
        assert reference.startswith("#/")
        found: Any = document
        for part in reference[2:].split("/"):
            found = found[part.replace("~1", "/")]


def test_programs_that_are_generated_from_the_document_have_a_type_for_each_enumeration_and_body() -> None:
    schemas = OPENAPI["components"]["schemas"]
    within = [*OPENAPI["paths"].values(), *(schema.get("properties", {}) for schema in schemas.values())]
    assert not [each for each in within if '"enum"' in json.dumps(each)]
    assert schemas["Priority"]["enum"] == ["pinned", "critical", "important", "normal", "low"]
    body = OPENAPI["paths"]["/v1/publish"]["post"]["requestBody"]
    assert body["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/PublishArguments"}


def test_a_view_has_the_schemas_of_its_bases() -> None:
    schema = OPENAPI["components"]["schemas"]["EpisodicView"]
    assert schema["allOf"] == [{"$ref": f"#/components/schemas/{base}"} for base in ("OfAgent", "Bounded")]
    assert set(schema["properties"]) == {"window", "memories"}
    assert "dates" in OPENAPI["components"]["schemas"]["OfAgent"]["properties"]


def test_parameters_and_fields_that_repeat_are_described_once() -> None:
    parameters = [
        parameter
        for methods in OPENAPI["paths"].values()
        for operation in methods.values()
        for parameter in operation["parameters"]
    ]
    assert parameters.count({"$ref": "#/components/parameters/agent"}) > 50
    assert len(json.dumps(OPENAPI, separators=(",", ":"), ensure_ascii=False)) < 300_000


@pytest.mark.parametrize("document", [OPENAPI, ASYNCAPI], ids=["openapi", "asyncapi"])
def test_every_schema_is_a_json_schema(document: dict[str, Any]) -> None:
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_the_asyncapi_document_describes_both_streams() -> None:
    assert ASYNCAPI["asyncapi"] == "3.0.0"
    assert ASYNCAPI["info"]["license"].keys() <= {"name", "url"}  # OpenAPI's `identifier` is not valid here
    assert {channel["address"] for channel in ASYNCAPI["channels"].values()} == {
        "/v1/spaces/{space}/events",
        "/v1/spaces/{space}/agents/{agent}/stream",
    }
    for channel in ASYNCAPI["channels"].values():
        assert set(channel["parameters"]) == set(re.findall(r"{(\w+)}", channel["address"]))


def validator(schema: dict[str, Any], document: dict[str, Any]) -> Draft202012Validator:
    return Draft202012Validator({**schema, "components": document["components"]})


@pytest.mark.models("all")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("episodic", {"space": "village", "agent": "baker"}),
        ("timeline", {"space": "village", "agent": "baker", "limit": 3}),
        ("recall", {"space": "village", "agent": "baker", "query": "bread"}),
        ("context", {"space": "village", "agent": "baker"}),
        ("explain", {"space": "village", "agent": "baker", "event_id": "e-1"}),
        ("spaces", {}),
        ("admin.status", {}),
        ("publish", {"event": {"space": "village", "agent": "baker", "kind": "a.b"}}),
    ],
)
def test_answers_are_as_the_document_says(door: Door, name: str, arguments: dict[str, Any]) -> None:
    route = ROUTES[name]
    described = OPENAPI["paths"][route.path][route.method.lower()]
    answer = door.call(name, **arguments)
    schema = described["responses"][str(answer.status_code)]["content"]["application/json"]["schema"]
    validator(schema, OPENAPI).validate(answer.json())
    wrong = door.call(name, **arguments, unknown="x")
    assert described["responses"]["4XX"] == {"$ref": "#/components/responses/4XX"}
    assert f"- {wrong.status_code}: " in OPENAPI["components"]["responses"]["4XX"]["description"]
    schema = OPENAPI["components"]["responses"]["4XX"]["content"]["application/problem+json"]["schema"]
    validator(schema, OPENAPI).validate(wrong.json())


def test_messages_of_a_stream_are_as_the_document_says(door: Door) -> None:
    event_schema = ASYNCAPI["components"]["messages"]["Event"]["payload"]
    for item in door.get("/v1/spaces/village/events").json()["items"]:
        validator(event_schema, ASYNCAPI).validate(item["event"])
    seen = ASYNCAPI["components"]["messages"]["Remembered"]["payload"]
    for item in door.call("timeline", space="village", agent="baker").json()["items"]:
        validator(seen, ASYNCAPI).validate(item)


def test_the_server_shows_its_documents(door: Door) -> None:
    assert door.get("/openapi.json").json() == json.loads(json.dumps(OPENAPI))
    assert door.get("/asyncapi.json").json() == json.loads(json.dumps(ASYNCAPI))
    (tag,) = {door.get("/openapi.json").headers["etag"] for _ in range(2)}
    assert door.get("/openapi.json", None, **{"If-None-Match": tag}).status_code == 304
