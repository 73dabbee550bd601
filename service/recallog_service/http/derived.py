"""The routes of operations: from the arguments of a request to the answer."""

import hashlib
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as Endpoint

from recallog import Memory
from recallog.operations.routes import WARNING, Route, routes
from recallog_projections import notices
from recallog_service.http import requests
from recallog_service.http.door import Door
from recallog_service.http.jobs import Jobs

_PAST = "as_of"
"""The argument that selects the past. Views of the past are computed for one answer, and their generation is not
stored."""


def endpoints(door: Door, jobs: Jobs) -> Sequence[Endpoint]:
    """The endpoints of all operations of a memory."""
    return [_endpoint(door, jobs, route) for route in routes(Memory).values()]


def _endpoint(door: Door, jobs: Jobs, route: Route) -> Endpoint:
    operation = route.operation

    async def answer(request: Request) -> Response:
        client = await door.client(request)
        given = await requests.arguments(request, route)
        if route.is_job:
            return await jobs.begin(client, operation, given)
        with notices.collect_notices() as told:
            content = operation.to_json(await door.answer(client, operation, given))
        if route.method == "GET" and given.get(_PAST) is None:
            response = add_etag(request, content)
        else:
            response = Response(content, media_type=requests.JSON, headers={"Cache-Control": "no-store"})
        return add_warnings(response, told if client.memory.may_be_told(operation) else ())

    return Endpoint(route.path, answer, methods=[route.method], name=operation.qualified_name)


def add_warnings(response: Response, told: Sequence[str]) -> Response:
    """The response with warnings about probable mistakes in a header."""
    if told:
        response.headers[WARNING] = " ".join(told).encode("ascii", "backslashreplace").decode()
    return response


def add_etag(request: Request, content: bytes) -> Response:
    """A JSON document with its ETag, or 304 if the client has it.

    The ETag is a digest of the document, which contains the generation and the checkpoint of the views.
    """
    tag = f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    known = request.headers.get("if-none-match", "")
    if tag in (each.strip().removeprefix("W/") for each in known.split(",")):
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=requests.JSON, headers=headers)
