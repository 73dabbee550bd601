"""The reflector port: from what an agent has seen since its last reflection to one belief.

A reflector may be a remote model, so its answers are not trusted: `ask` is the one way to call it, and returns only
answers that have passed `checked`.
"""

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from recallog_schemas import limits
from recallog_schemas.errors import RecallogError, ReflectorFailed
from recallog_schemas.shortening import cut

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
"""Control characters other than white space."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One event that the agent may see."""

    id: str
    turn: int
    agent: str
    kind: str
    text: str
    """The text of the event; "" if it has none."""
    importance: float
    """From 0 to 1."""
    date: str | None = None
    """The date when it happened, `YYYY-MM-DD`, where the lines of the agent's events carry dates; else None."""


@dataclass(frozen=True, slots=True)
class ReflectionRequest:
    """A request to a reflector: the events that one agent has seen since its last reflection."""

    trigger: str
    """Id of the trigger that the belief answers."""
    space: str
    agent: str
    persona: str | None
    goal: str | None
    beliefs: Sequence[str]
    """Its newest beliefs, oldest first."""
    evidence: Sequence[Evidence]
    """Oldest first, never empty, at most `limits.REFLECTION_EVENTS`."""


@dataclass(frozen=True, slots=True)
class ReflectionAnswer:
    """A belief, and the ids of the evidence that it rests on."""

    belief: str
    based_on: Sequence[str]


class Reflector(ABC):
    """Makes beliefs. Implement it for a model or a rule of your own; `ask` calls it."""

    @abstractmethod
    async def reflect(self, request: ReflectionRequest) -> ReflectionAnswer:
        """One belief from the evidence of `request`.

        Raises `ReflectorFailed` if this request failed, and `ReflectorMisconfigured` if every request will fail. `ask`
        repeats a request after a temporary failure, and treats any other exception as one.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close connections."""


async def ask(
    reflector: Reflector,
    request: ReflectionRequest,
    *,
    attempts: int = 3,
    first_wait_seconds: float = 0.5,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> ReflectionAnswer:
    """The checked answer of `reflector`, with up to `attempts` attempts where its failures are temporary.

    Between attempts it waits `first_wait_seconds`, then twice as long each time, or longer if the reflector's error
    requests it, but never more than `limits.REFLECTOR_WAIT_SECONDS_MAX`. Raises the last `ReflectorFailed`. Other
    errors of Recallog, such as `ReflectorMisconfigured`, are raised at once.
    """
    wait_seconds = first_wait_seconds
    while True:
        try:
            return await _answer(reflector, request)
        except ReflectorFailed as failed:
            attempts -= 1
            if not failed.retryable or attempts < 1:
                raise
            requested_seconds = failed.retry_after_seconds or 0.0
        await sleep(min(max(wait_seconds, requested_seconds), limits.REFLECTOR_WAIT_SECONDS_MAX))
        wait_seconds *= 2


async def _answer(reflector: Reflector, request: ReflectionRequest) -> ReflectionAnswer:
    try:
        return checked(await reflector.reflect(request), request)
    except RecallogError:
        raise
    except Exception as error:
        # A user's reflector may raise anything; one failure must not stop the reflections of other agents.
        reason = cut(f"{type(error).__name__}: {one_line(_words(error))}", limits.REFLECTOR_REASON_CHARS_MAX)
        raise ReflectorFailed(reason, retryable=True) from error


def _words(error: Exception) -> str:
    try:
        return str(error) or "no message"
    except Exception:  # noqa: BLE001 - a user's error may fail at that too
        return "no message"


def checked(answer: ReflectionAnswer, request: ReflectionRequest) -> ReflectionAnswer:
    """`answer` in the form of an event's payload; idempotent.

    The belief is one line of at most `limits.BELIEF_CHARS_MAX` characters: a longer one is cut at a word and ends in
    "…". `based_on` has the ids that are in the evidence, in its order, each once. Raises `ReflectorFailed` if either is
    empty after that.
    """
    belief = cut(one_line(answer.belief), limits.BELIEF_CHARS_MAX)
    if not belief:
        raise ReflectorFailed("the answer contains no belief", retryable=True)
    named = set(answer.based_on)
    based_on = tuple(dict.fromkeys(evidence.id for evidence in request.evidence if evidence.id in named))
    if not based_on:
        raise ReflectorFailed("the belief names none of the events that were offered", retryable=True)
    return ReflectionAnswer(belief, based_on)


def one_line(text: str) -> str:
    """`text` with its white space collapsed, without control characters, and "?" for half surrogate pairs."""
    return " ".join(_CONTROL.sub("", text).split()).encode("utf-8", "replace").decode()
