"""The answers of a server: results, and errors as the classes that it raised."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec

from recallog_schemas import errors
from recallog_schemas.errors import (
    AccessDenied,
    RateLimited,
    RecallogError,
    StorageError,
    StorageUnavailable,
    UnknownOutcome,
)

PROBLEM = "application/problem+json"
_ABOUT_ANSWER = frozenset({"type", "title", "status", "detail", "retryable"})
"""Members of a problem document that are not fields of the error."""
_GATEWAY = frozenset({502, 503, 504})
"""The status codes with which a proxy answers if it has no answer of the server."""
_TEXT_CHARS = 200


@dataclass(frozen=True)
class RequestFailure:
    """Why a request has no result."""

    error: RecallogError
    nothing_done: bool = False
    """Whether the server has certainly done nothing. Then any request may be sent again."""
    wait_seconds: float = 0.0
    """How long the server asks the client to wait before the next request."""
    is_final: bool = False
    """Whether it is an error of the operation itself, which would be raised again."""


def describe_loss(where: str, reason: str, *, read_only: bool) -> RequestFailure:
    """The failure of a request that was sent and not answered by the server."""
    message = f"no answer from {where}: {reason}"
    if read_only:
        return RequestFailure(StorageUnavailable(f"{message}. Try again"))
    return RequestFailure(UnknownOutcome(f"{message}. It may be done: a call with the same ids can be repeated"))


def not_sent(where: str, reason: str) -> RequestFailure:
    """The failure of a request that could not be sent."""
    message = f"{where} cannot be reached: {reason}. Check the URL, and whether `recallog serve` runs there"
    return RequestFailure(StorageUnavailable(message), nothing_done=True)


def failure_of(response: httpx.Response, where: str, *, read_only: bool) -> RequestFailure:
    """The failure that an answer with an error status describes. The answer has been read."""
    wait_seconds = _retry_after(response)
    if response.headers.get("content-type", "").startswith(PROBLEM):
        try:
            problem = msgspec.json.decode(response.content, type=dict[str, Any])
        except msgspec.MsgspecError as damage:
            return RequestFailure(StorageError(f"{where} answered a damaged error: {damage}"))
        error = error_of(problem)
        asked: float | None = getattr(error, "retry_after_seconds", None)
        is_denied = isinstance(error, AccessDenied)
        return RequestFailure(
            error,
            nothing_done=is_denied,
            wait_seconds=wait_seconds if asked is None else asked,
            is_final=not error.retryable and not is_denied,
        )
    status = f"status {response.status_code}"
    if response.status_code == httpx.codes.TOO_MANY_REQUESTS:
        limited = RateLimited(f"{where} answered {status}; wait before the next call", retry_after_seconds=wait_seconds)
        return RequestFailure(limited, nothing_done=True, wait_seconds=wait_seconds)
    if response.status_code in _GATEWAY:
        failed = describe_loss(where, f"a proxy answered {status}", read_only=read_only)
        return RequestFailure(failed.error, wait_seconds=wait_seconds)
    text = " ".join(response.text[:_TEXT_CHARS].split())
    message = f"{where} answered {status}, and not as `recallog serve` does: {text}. Check the URL"
    return RequestFailure(StorageError(message))


def error_of(problem: Mapping[str, Any]) -> RecallogError:
    """The error in a problem document, as the server raised it. An error of a newer server may be a plain
    `RecallogError`."""
    kind = getattr(errors, str(problem.get("title")), None)
    if not (isinstance(kind, type) and issubclass(kind, RecallogError)):
        kind = RecallogError
    error: RecallogError = kind.__new__(kind, str(problem.get("detail", "")))
    vars(error).update({name: value for name, value in problem.items() if name not in _ABOUT_ANSWER})
    if problem.get("retryable", False) is not error.retryable:
        vars(error)["retryable"] = problem["retryable"]
    return error


def _retry_after(response: httpx.Response) -> float:
    """The seconds in the header `Retry-After`; 0 if there is none, or if it is a date."""
    text = response.headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() else 0.0
