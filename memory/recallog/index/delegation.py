"""Delegation of operations to the service of a folder's index, and the fallback if it cannot answer."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TypeVar

import msgspec

from recallog.index.remote import ServiceAbsent
from recallog_schemas.errors import IndexUnavailable, ViewsTooNew

Answer = TypeVar("Answer")

_TRIES = 2
"""How often an operation is sent. If a service ends meanwhile, it is started again once."""

_reason: ContextVar[IndexUnavailable | None] = ContextVar("reason", default=None)
"""Why the query that this process executes cannot use the index."""


def encode(asked: object) -> bytes:
    """The arguments of an operation, or a query, as JSON. Raises `IndexUnavailable` for values that JSON cannot
    represent."""
    try:
        return msgspec.json.encode(asked)
    except UnicodeEncodeError:
        raise IndexUnavailable("the process of the index cannot be asked with half of a surrogate pair") from None


async def answer(
    served: Callable[[], Awaitable[Answer]], start: Callable[[], Awaitable[None]], here: Callable[[], Awaitable[Answer]]
) -> Answer:
    """The answer of the service, from `served`. If the index cannot answer, the answer of `here`, without the index.

    If no service answers, `start` starts one, or raises `IndexUnavailable` with the reason.
    """
    for _ in range(_TRIES):
        try:
            return await served()
        except ServiceAbsent as error:
            reason: IndexUnavailable = error
        except IndexUnavailable as error:
            reason = error
            break
        except ViewsTooNew as error:  # it does not have a model whose kinds this process knows
            reason = IndexUnavailable(str(error))
            break
        try:
            await start()
        except IndexUnavailable as error:
            reason = error
            break
    before = _reason.set(reason)
    try:
        return await here()
    finally:
        _reason.reset(before)


async def answer_after(wait: Callable[[], Awaitable[None]], served: Callable[[], Awaitable[Answer]]) -> Answer:
    """The answer of the service, from `served`, after `wait` has waited for its index.

    There is no answer without the index: raises `IndexUnavailable` if it cannot answer, and the errors of `wait`.
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
    """Raise the reason why the query that this process executes cannot use the index, if there is one."""
    reason = _reason.get()
    if reason is not None:
        raise reason
