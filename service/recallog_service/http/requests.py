"""The content of requests: arguments of operations in the path, the query string and the body."""

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, unquote

from pydantic import TypeAdapter, ValidationError
from starlette.requests import ClientDisconnect, Request

from recallog.operations.routes import Route
from recallog_schemas.errors import InvalidArgument
from recallog_schemas.names import in_nfc
from recallog_schemas.validation import first_problem
from recallog_service.http.problems import RequestError

BODY_SECONDS = 30.0
"""Seconds that a client may take to send a body."""
JSON = "application/json"

_OBJECT = TypeAdapter(dict[str, Any])
_ANY = TypeAdapter(Any)


async def arguments(request: Request, route: Route) -> dict[str, Any]:
    """The arguments for an operation in a request. Raises `InvalidArgument`."""
    given = query(request, route.lists) if route.method == "GET" else await json_object(request)
    named = in_path(request)
    for name in named.keys() & given.keys():
        raise InvalidArgument(f"{name}: is in the path; leave it out here", path=name, rule="repeated")
    return {**given, **named}


def in_path(request: Request) -> dict[str, Any]:
    """The arguments in the path. Validation refuses bytes that are not text."""
    return {name: in_nfc(unquote(text, errors="surrogateescape")) for name, text in request.path_params.items()}


def query(request: Request, lists: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The arguments in the query string: for an argument in `lists` all values (an empty list if the only value is
    empty), for any other the last value."""
    try:
        text = request.scope["query_string"].decode(errors="surrogateescape")
        given = parse_qs(text, keep_blank_values=True, errors="surrogateescape")
    except ValueError:
        raise InvalidArgument("the query has too many fields", rule="too_long") from None
    return {name: texts[-1] if name not in lists else [] if texts == [""] else texts for name, texts in given.items()}


async def json_object(request: Request) -> dict[str, Any]:
    """The JSON object in the body. Raises `RequestError` and `InvalidArgument`."""
    found: dict[str, Any] = _parse(_OBJECT, await body(request, JSON))
    return found


def json_value(data: bytes) -> Any:
    """The value of a JSON document. Raises `InvalidArgument`."""
    return _parse(_ANY, data)


async def body(request: Request, *types: str) -> bytes:
    """The body. Its content type must be one of `types`, which pages of other origins cannot send without
    permission."""
    if content_type(request.headers) not in types:
        expected = " or ".join(types)
        raise RequestError(415, f"send the header Content-Type: {expected}", rule="content_type")
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await request.body()
    except TimeoutError:
        raise RequestError(408, f"the body took longer than {BODY_SECONDS:g} seconds", rule="timeout") from None
    except ClientDisconnect:
        raise RequestError(400, "the body is incomplete", rule="incomplete") from None


def content_type(headers: Mapping[str, str]) -> str:
    """The media type of a body, without parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def accepts(request: Request, media_type: str) -> bool:
    """Whether a client explicitly accepts a media type."""
    return media_type in request.headers.get("accept", "")


def _parse(adapter: TypeAdapter[Any], data: bytes) -> Any:
    try:
        return adapter.validate_json(data)
    except ValidationError as error:
        raise InvalidArgument(f"the body: {first_problem(error).message}", rule="unparsable") from None
