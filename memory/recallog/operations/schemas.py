"""The JSON Schemas of operations: of their arguments, and of all objects that they read and return."""

from collections.abc import Mapping
from typing import Any

from recallog.operations.facade import Facade, all_operations
from recallog.operations.operation import Operation
from recallog_schemas import export


def documents(facade: type[Facade]) -> Mapping[str, dict[str, Any]]:
    """JSON Schemas by file name: `event.json`, `kinds/<kind>.json`, `views/<answer>.json` and `operations/<name>.json`
    of a facade and of its inner facades."""
    operations = all_operations(facade).values()
    answers = dict.fromkeys(each.answer for each in operations)
    return {
        **export.documents(answers),
        **{f"operations/{each.qualified_name}.json": arguments(each) for each in operations},
    }


def arguments(operation: Operation) -> dict[str, Any]:
    """The JSON Schema of the arguments of an operation, as one object without external references.

    It describes the body of an HTTP request and is the `inputSchema` of an MCP tool. `x-recallog` holds everything
    else.
    """
    schema = export.schema_of(operation.arguments, "validation")
    described = {
        "$schema": schema.pop("$schema"),
        "title": operation.qualified_name,
        "description": "\n\n".join(operation.description),
        "type": "object",
        "properties": {},
        "required": [],
    }
    return {
        **described,
        **{key: value for key, value in schema.items() if key not in ("title", "description")},
        "x-recallog": {
            "scope": operation.scope.value,
            "idempotent": operation.idempotent,
            "destructive": operation.destructive,
            "answer": {"$ref": f"../{export.answer_file(operation.answer)}"},
            "command": operation.command,
            "example": operation.example,
            **({"tool": operation.tool} if operation.tool else {}),
        },
    }
