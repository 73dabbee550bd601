"""Errors as HTTP responses: `application/problem+json` (RFC 9457), in one form for all routes."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.responses import Response

from recallog_schemas import errors
from recallog_schemas.errors import (
    DeadLettered,
    EventTooLarge,
    Forbidden,
    IdConflict,
    InvalidArgument,
    InvalidInput,
    InvariantViolation,
    ModelFailed,
    NewDeadLetters,
    NothingDue,
    OutOfRange,
    ProjectionError,
    RateLimited,
    RecallogError,
    Refused,
    SettingsError,
    Unauthorized,
)

CONTENT_TYPE = "application/problem+json"

# 413 and 422 have other names in Python 3.13.
_STATUS: Mapping[type[RecallogError], int] = {
    Unauthorized: HTTPStatus.UNAUTHORIZED,
    Forbidden: HTTPStatus.NOT_FOUND,
    RateLimited: HTTPStatus.TOO_MANY_REQUESTS,
    EventTooLarge: 413,
    InvalidInput: 422,
    OutOfRange: HTTPStatus.NOT_FOUND,
    IdConflict: HTTPStatus.CONFLICT,
    Refused: HTTPStatus.CONFLICT,
    NothingDue: HTTPStatus.CONFLICT,
    DeadLettered: HTTPStatus.CONFLICT,
    NewDeadLetters: HTTPStatus.CONFLICT,
    SettingsError: HTTPStatus.CONFLICT,
    ModelFailed: HTTPStatus.BAD_GATEWAY,
    ProjectionError: HTTPStatus.INTERNAL_SERVER_ERROR,
    InvariantViolation: HTTPStatus.INTERNAL_SERVER_ERROR,
}
"""Statuses by class of error. All others are 503: they concern the state of a service, such as a full disk, damaged
files or the wrong address of a model. Errors that a retry may solve are 503 too."""


_FORBIDDEN = str(Forbidden())


class RequestError(InvalidArgument):
    """An error of the request as a whole: its method, its type, its size. Clients see an `InvalidArgument`."""

    def __init__(self, status: int, message: str, *, rule: str, path: str = "") -> None:
        super().__init__(message, path=path, rule=rule)
        self.status = status


def status_of(error: RecallogError) -> int:
    """The status code for `error`."""
    if isinstance(error, RequestError):
        return error.status
    if error.retryable and not isinstance(error, RateLimited):
        return HTTPStatus.SERVICE_UNAVAILABLE
    return next((_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS), HTTPStatus.SERVICE_UNAVAILABLE)


def problem_of(error: RecallogError) -> dict[str, Any]:
    """The document of an error: its class as `title`, its message as `detail`, and its fields."""
    detail = str(error)
    if detail == _FORBIDDEN:
        detail += "; /openapi.json has the paths, and recallog keys list what each key allows"
    title = next(kind.__name__ for kind in type(error).__mro__ if getattr(errors, kind.__name__, None) is kind)
    document = {
        "type": f"urn:recallog:{title}",
        "title": title,
        "status": int(status_of(error)),
        "detail": detail,
        "retryable": error.retryable,
    }
    return {**vars(error), **document}


def answer_to(error: RecallogError, headers: Mapping[str, str] | None = None) -> Response:
    """The response for `error`."""
    found = dict(headers or {})
    if isinstance(error, Unauthorized):
        found["WWW-Authenticate"] = "Bearer"
    wait_seconds = getattr(error, "retry_after_seconds", None)
    if wait_seconds is not None:
        found["Retry-After"] = str(max(1, round(wait_seconds)))
    elif error.retryable:
        found["Retry-After"] = "1"
    return Response(
        msgspec.json.encode(problem_of(error)), status_code=status_of(error), headers=found, media_type=CONTENT_TYPE
    )
