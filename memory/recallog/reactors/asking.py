"""Calls of models and of users' code: repeated after temporary failures, with their texts made safe."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import TypeVar

from recallog_schemas import limits
from recallog_schemas.errors import ModelFailed, RecallogError
from recallog_schemas.shortening import cut

Answer = TypeVar("Answer")
Sleep = Callable[[float], Awaitable[None]]

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
"""Control characters other than white space."""
_FIRST_WAIT_SECONDS = 0.5


async def ask_repeatedly(
    answer: Callable[[], Awaitable[Answer]], *, attempts: int = 3, sleep: Sleep = asyncio.sleep
) -> Answer:
    """The result of `answer`, with up to `attempts` attempts if its failures are temporary.

    Between attempts it waits 0.5 s, then twice as long each time, or longer if the error requests it, but never more
    than `limits.ASKED_WAIT_SECONDS_MAX`. Raises the last `ModelFailed`. Any exception that is not an error of Recallog
    counts as one. Other errors of Recallog, such as `ModelMisconfigured`, are raised at once.
    """
    wait_seconds = _FIRST_WAIT_SECONDS
    while True:
        try:
            return await _answer(answer)
        except ModelFailed as failed:
            attempts -= 1
            if not failed.retryable or attempts < 1:
                raise
            requested_seconds = failed.retry_after_seconds or 0.0
        await sleep(min(max(wait_seconds, requested_seconds), limits.ASKED_WAIT_SECONDS_MAX))
        wait_seconds *= 2


async def _answer(answer: Callable[[], Awaitable[Answer]]) -> Answer:
    try:
        return await answer()
    except RecallogError:
        raise
    except Exception as error:
        # Users' code may raise anything, and one failure must not stop other work.
        reason = cut(f"{type(error).__name__}: {one_line(_words(error))}", limits.ASKED_REASON_CHARS_MAX)
        raise ModelFailed(reason, retryable=True) from error


def _words(error: Exception) -> str:
    try:
        return str(error) or "no message"
    except Exception:  # noqa: BLE001 - a user's error may fail at that too
        return "no message"


def one_line(text: str) -> str:
    """`text` with its white space collapsed, without control characters, and with "?" for lone surrogates."""
    return " ".join(_CONTROL.sub("", text).split()).encode("utf-8", "replace").decode()
