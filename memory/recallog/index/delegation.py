"""Delegation of operations to the service of a folder's index, and what holds if it cannot answer."""

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from recallog.index import messages, remote
from recallog.index.remote import ServiceAbsent
from recallog_schemas import limits
from recallog_schemas.errors import IndexUnavailable, ViewsTooNew

Answer = TypeVar("Answer")

_TRIES = 2
"""How often an operation is sent: a service that ends meanwhile is started again once."""

_reason: ContextVar[IndexUnavailable | None] = ContextVar("reason", default=None)
"""Why the query that is being executed here cannot use the index."""


class ServiceStarted(Exception):
    """The service answers now, and this process cannot: it is to execute the operation."""


async def perform(
    home: Path,
    operation: str,
    arguments: Mapping[str, Any],
    log_events: int,
    progress: Callable[[int, int], None] | None = None,
    deadline_seconds: float = limits.DEADLINE_SECONDS,
    *,
    patient: bool = False,
) -> bytes:
    """The answer of the service of a folder to an operation with validated arguments, as JSON.

    `progress` is called with (done, total) while the service works. Raises the error of the operation, `ServiceAbsent`
    if no service answers, and `IndexUnavailable` if the index cannot answer now, or says nothing for
    `deadline_seconds`; a `patient` call goes on while its process computes.
    """
    message = messages.Perform(operation, _encoded(arguments), log_events)
    return await remote.call(home, message, progress, deadline_seconds, patient=patient)


async def recall(
    home: Path,
    query: object,
    compared: int,
    log_events: int,
    *,
    past: bool,
    deadline_seconds: float = limits.DEADLINE_SECONDS,
) -> bytes:
    """The answer of the service to a `RecallQuery` as JSON: see `messages.Recall`. Raises as `perform` does."""
    message = messages.Recall(_encoded(query), compared, log_events, past)
    return await remote.call(home, message, deadline_seconds=deadline_seconds)


def _encoded(asked: object) -> bytes:
    try:
        return msgspec.json.encode(asked)
    except UnicodeEncodeError:
        raise IndexUnavailable("the process of the index cannot be asked with half of a surrogate pair") from None


async def answer(served: Callable[[], Awaitable[Answer]], here: Callable[[], Awaitable[Answer]]) -> Answer:
    """The answer of the service, from `served`; that of `here`, without the index, if the index cannot answer.

    If no service answers, `here` is executed, and starts one if it opens the index.
    """
    for _ in range(_TRIES):
        try:
            return await served()
        except ServiceAbsent as error:
            reason: IndexUnavailable = error
        except IndexUnavailable as error:
            reason = error
            break
        except ViewsTooNew as error:  # it lacks a model whose kinds this process knows
            reason = IndexUnavailable(str(error))
            break
        try:
            return await here()
        except ServiceStarted:
            continue
    before = _reason.set(reason)
    try:
        return await here()
    finally:
        _reason.reset(before)


async def answer_after(wait: Callable[[], Awaitable[None]], served: Callable[[], Awaitable[Answer]]) -> Answer:
    """The answer of the service, from `served`, after `wait` has waited for its index.

    Nothing is answered without the index: raises `IndexUnavailable` if it cannot answer, and what `wait` raises.
    """
    tries_left = _TRIES
    while True:
        tries_left -= 1
        await wait()
        try:
            return await served()
        except ServiceAbsent:
            if not tries_left:
                raise


def check_available() -> None:
    """Raise the reason why the query that is being executed cannot use the index, if there is one."""
    reason = _reason.get()
    if reason is not None:
        raise reason
