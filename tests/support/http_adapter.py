"""An HTTP door to all operations of a memory: a plain ASGI application that knows none of them by name."""

import json
from typing import Any
from urllib.parse import parse_qs

from pydantic import TypeAdapter, ValidationError

from recallog import EventTooLarge, IdConflict, InvalidArgument, InvalidInput, Memory, OutOfRange, RecallogError
from recallog.operations.operation import Operation, Scope, all_operations
from recallog_schemas.errors import Refused
from recallog_schemas.validation import first_problem

_STATUS = {EventTooLarge: 413, InvalidInput: 422, OutOfRange: 404, IdConflict: 409, Refused: 409}
_OBJECT = TypeAdapter(dict[str, Any])


class HttpAdapter:
    """`GET /recall?…` for operations that only read, `POST /admin/rebuild` with a JSON object for all others."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._paths = {f"/{name.replace('.', '/')}": each for name, each in all_operations(type(memory)).items()}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            operation, reads = self._paths.get(scope["path"]), scope["method"] == "GET"
            if operation is None or reads != (operation.scope is Scope.READ):
                raise OutOfRange(f"there is no operation {scope['method']} {scope['path']}")
            given = _of_query(operation, scope["query_string"]) if reads else await _of_body(receive)
            status, kind, content = 200, "json", operation.to_json(await operation.call(self._memory, given))
        except RecallogError as error:
            status = next((_STATUS[of] for of in _STATUS if isinstance(error, of)), 503 if error.retryable else 500)
            title = type(error).__name__
            problem = {"type": f"urn:recallog:{title}", "title": title, "status": status, "detail": str(error)}
            problem |= {name: getattr(error, name, "") for name in ("path", "rule", "retryable")}
            kind, content = "problem+json", json.dumps(problem).encode()
        headers = [(b"content-type", f"application/{kind}".encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})


def _of_query(operation: Operation, query: bytes) -> dict[str, Any]:
    """The arguments in a query string: all texts of a parameter that is a list, and the last text of any other."""
    lists = {name for name, each in operation.arguments.model_fields.items() if "Sequence[" in str(each.annotation)}
    given = parse_qs(query.decode("latin-1"), keep_blank_values=True)
    return {name: texts if name in lists else texts[-1] for name, texts in given.items()}


async def _of_body(receive: Any) -> dict[str, Any]:
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message["body"], message["more_body"]
    try:
        return _OBJECT.validate_json(body)
    except ValidationError as error:
        raise InvalidArgument(f"the body: {first_problem(error).message}", rule="unparsable") from None
