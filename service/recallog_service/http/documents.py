"""The documents that describe the HTTP door: OpenAPI 3.1 and AsyncAPI 3.0.

The parts common to all servers are in `documents.json`, which `make generate` writes. Operations depend on the
installed models, and are added on request.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic_core import core_schema

from recallog import Memory, __version__
from recallog.operations.operation import CheckedMethod
from recallog.operations.routes import Route, routes
from recallog_schemas import export
from recallog_schemas.docstrings import paragraphs
from recallog_schemas.views import ListView, View
from recallog_service.http import disclosure, requests
from recallog_service.http.components import name_parts
from recallog_service.http.jobs import Job

Schema = dict[str, Any]

REF = "#/components/schemas/{model}"


def object_of(properties: Mapping[str, Schema], *optional: str) -> Schema:
    """An object with these fields; all but the `optional` ones are required."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": dict(properties), "required": required}


TROUBLE = ("4XX", "5XX")
"""The status ranges of problems that any endpoint may return. Listing each status would take a fifth of the document,
and give each generated client a class per status."""
ALIKE = Path(__file__).with_name("documents.json")


def openapi() -> Schema:
    """The OpenAPI document of all routes."""
    document, models = _alike("openapi"), Models()
    for route in routes(Memory).values():
        document["paths"].setdefault(route.path, {})[route.method.lower()] = _operation(models, route)
    for path in disclosure.paths():
        document["paths"][f"{disclosure.PREFIX}/{path.name}"] = {path.method.lower(): _disclose_schema(models, path)}
    document["components"]["schemas"] |= models.definitions()
    return name_parts(document)


def asyncapi() -> Schema:
    """The AsyncAPI document of the event streams."""
    return _alike("asyncapi")


def _alike(name: str) -> Schema:
    """The document that all servers have in common."""
    document: Schema = json.loads(ALIKE.read_text(encoding="utf-8"))[name]
    document["info"]["version"] = __version__
    return document


class _Inheriting(export.Documented):
    """Lets the schema of a view refer to the schemas of its bases instead of repeating their fields."""

    def model_schema(self, schema: core_schema.ModelSchema) -> Schema:
        described, cls = super().model_schema(schema), schema["cls"]
        described.pop("title", None)  # the definition already has this name
        bases = [each for each in cls.__bases__ if issubclass(each, View) and _has_own_fields(each)]
        inherited = {name for base in bases for name in base.model_fields} - cls.__annotations__.keys()
        if inherited:
            described["allOf"] = [self.generate_inner(TypeAdapter(base).core_schema) for base in bases]
            own = {name: each for name, each in described["properties"].items() if name not in inherited}
            described |= object_of(own, *(own.keys() - described.get("required", ())))
        return described


def _has_own_fields(view: type[View]) -> bool:
    """Whether a view has fields that are the same in each subclass; the fields of a list depend on the type of its
    items."""
    return bool(view.model_fields) and not issubclass(view, ListView)


class Models:
    """The schemas of models, with one definition of each."""

    def __init__(self) -> None:
        self._definitions: dict[str, Schema] = {}

    def of(self, model: Any, mode: str) -> Schema:
        """The schema of a model, which refers to definitions in the document."""
        schema = TypeAdapter(model).json_schema(
            mode=mode,  # type: ignore[arg-type]  # one of two words
            ref_template=REF,
            schema_generator=_Inheriting,
        )
        self._definitions |= schema.pop("$defs", {})
        if isinstance(model, type) and "$ref" not in schema:
            self._definitions[model.__name__] = schema
            return {"$ref": REF.format(model=model.__name__)}
        found: Schema = schema
        return found

    def body_of(self, arguments: type[BaseModel], properties: Mapping[str, Schema], required: Sequence[str]) -> Schema:
        """The body of a request: an object with these fields of the arguments, and no others."""
        optional = (name for name in properties if name not in required)
        self._definitions[arguments.__name__] = {**object_of(properties, *optional), "additionalProperties": False}
        return body_of({requests.JSON: {"$ref": REF.format(model=arguments.__name__)}})

    def definitions(self) -> dict[str, Schema]:
        """All definitions that were referred to."""
        return dict(sorted(self._definitions.items()))

    def properties(self, arguments: type[BaseModel]) -> tuple[dict[str, Schema], Sequence[str]]:
        """The schemas of arguments, and the names of required ones."""
        schema = TypeAdapter(arguments).json_schema(mode="validation", ref_template=REF, schema_generator=_Inheriting)
        self._definitions |= schema.pop("$defs", {})
        return schema.get("properties", {}), schema.get("required", [])


def _operation(models: Models, route: Route) -> Schema:
    operation = route.operation
    properties, required = models.properties(operation.arguments)
    given = [parameter_of("path", name, {"type": "string"}, properties[name], required=True) for name in route.in_path]
    rest = {name: schema for name, schema in properties.items() if name not in route.in_path}
    if route.method == "GET":
        given += [
            parameter_of(
                "query", name, _in_query(schema, is_list=name in route.lists), schema, required=name in required
            )
            for name, schema in rest.items()
        ]
    if route.is_job:
        answers = answers_of(202, models.of(Job, "serialization"), TROUBLE)
    else:
        answers = answers_of(200, models.of(operation.answer, "serialization"), TROUBLE)
    described = described_as(operation.qualified_name, operation.summary, given, answers)
    if operation.description[1:]:
        described["description"] = "\n\n".join(operation.description[1:])
    described["tags"] = [operation.group or "memory"]
    if route.method == "GET":
        described["responses"] |= refer_to(["304"])
    else:
        described["requestBody"] = models.body_of(operation.arguments, rest, required)
    return described


def _disclose_schema(models: Models, path: disclosure.Path) -> Schema:
    schema: Schema = models.of(path.operation.answer, "serialization")
    answers = answers_of(200, schema, TROUBLE)
    summary = paragraphs(path.takes.function)[0]
    if path.method == "GET":
        return described_as(f"disclosure.{path.name}", summary, query_of(models, path.takes), answers)
    properties, required = models.properties(path.takes.arguments)
    described = described_as(f"disclosure.{path.name}", summary, [], answers)
    described["requestBody"] = models.body_of(path.takes.arguments, properties, required)
    return described


def described_as(name: str, summary: str, given: Sequence[Schema], answers: Schema) -> Schema:
    return {"operationId": name, "summary": summary, "parameters": list(given), "responses": answers}


def answers_of(status: int, schema: Schema, trouble: Sequence[str]) -> Schema:
    answer = {"description": "The answer.", "content": {requests.JSON: {"schema": schema}}}
    return {str(status): answer, **refer_to(trouble)}


def refer_to(answers: Sequence[str]) -> Schema:
    return {name: {"$ref": f"#/components/responses/{name}"} for name in answers}


def body_of(schemas: Mapping[str, Schema]) -> Schema:
    return {"required": True, "content": {kind: {"schema": schema} for kind, schema in schemas.items()}}


def parameter_of(where: str, name: str, schema: Schema, described: Schema, *, required: bool) -> Schema:
    text = {"description": described["description"]} if "description" in described else {}
    return {"name": name, "in": where, "required": required, "schema": schema, **text}


def query_of(models: Models, takes: CheckedMethod, but: Sequence[str] = ()) -> list[Schema]:
    properties, required = models.properties(takes.arguments)
    return [
        parameter_of("query", name, _in_query(schema, is_list=False), schema, required=name in required)
        for name, schema in properties.items()
        if name not in but
    ]


def _in_query(schema: Schema, *, is_list: bool) -> Schema:
    """The schema of an argument in a query string, without null (the argument is left out instead) and without
    objects."""
    kinds = [each for each in schema.get("anyOf", ()) if each.get("type") not in ("null", "object")]
    if is_list:
        kinds = [each for each in kinds if each.get("type") == "array"] or kinds
    kept = {name: value for name, value in schema.items() if name not in ("anyOf", "description", "default")}
    if len(kinds) == 1:
        return {**kept, **kinds[0]}
    return {**kept, "anyOf": kinds} if kinds else kept
