"""The reflector port: a question about what an agent has seen since its last reflection, and one belief as the answer.

A reflector may be a model far away, so nothing that it says is taken as it is: `ask` is the one way to put a question,
and what it returns has passed `checked`.
"""

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from recallog_schemas import limits
from recallog_schemas.errors import RecallogError, ReflectorFailed

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
"""Control characters that are no white space."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One event that the agent may see."""

    id: str
    turn: int
    agent: str
    kind: str
    text: str
    """The event in words; "" where it has none."""
    importance: float
    """From 0 to 1."""


@dataclass(frozen=True, slots=True)
class ReflectionRequest:
    """What an agent is to make of what it has seen since its last reflection."""

    trigger: str
    """Id of the trigger that the belief answers."""
    space: str
    agent: str
    persona: str | None
    goal: str | None
    beliefs: Sequence[str]
    """What it has come to believe of late, oldest first."""
    evidence: Sequence[Evidence]
    """Oldest first, never empty, at most `limits.REFLECTION_EVENTS`."""


@dataclass(frozen=True, slots=True)
class ReflectionAnswer:
    """A belief, and the ids of the evidence that it rests on."""

    belief: str
    based_on: Sequence[str]


class Reflector(ABC):
    """Answers questions. Implement it for a model or a rule of your own, and let `ask` do the asking."""

    @abstractmethod
    async def reflect(self, question: ReflectionRequest) -> ReflectionAnswer:
        """One belief from the evidence of `question`.

        Raises `ReflectorFailed` where this question got no answer, and `ReflectorMisconfigured` where none can get one.
        `ask` takes any other exception for a failure that may pass. Retries are `ask`'s business.
        """

    @abstractmethod
    async def close(self) -> None:
        """Let go of connections."""


async def ask(
    reflector: Reflector,
    question: ReflectionRequest,
    *,
    attempts: int = 3,
    first_wait_seconds: float = 0.5,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> ReflectionAnswer:
    """The checked answer of `reflector`, asked up to `attempts` times where its failures may pass.

    Between attempts it waits `first_wait_seconds`, then twice as long each time, or longer where the reflector asked
    for that, but never more than `limits.REFLECTOR_WAIT_SECONDS_MAX`. Raises the last `ReflectorFailed`. Other errors
    of Recallog's own, `ReflectorMisconfigured` before all, are raised at once: they are not about this question.
    """
    wait_seconds = first_wait_seconds
    while True:
        try:
            return await _answer(reflector, question)
        except ReflectorFailed as failed:
            attempts -= 1
            if not failed.retryable or attempts < 1:
                raise
            asked_seconds = failed.retry_after_seconds or 0.0
        await sleep(min(max(wait_seconds, asked_seconds), limits.REFLECTOR_WAIT_SECONDS_MAX))
        wait_seconds *= 2


async def _answer(reflector: Reflector, question: ReflectionRequest) -> ReflectionAnswer:
    try:
        return checked(await reflector.reflect(question), question)
    except RecallogError:
        raise
    except Exception as error:
        # A reflector of a user's own may raise anything; one question must not stop the questions of other agents.
        reason = cut(f"{type(error).__name__}: {one_line(_words(error))}", limits.REFLECTOR_REASON_CHARS_MAX)
        raise ReflectorFailed(reason, retryable=True) from error


def _words(error: Exception) -> str:
    try:
        return str(error) or "no message"
    except Exception:  # noqa: BLE001 - a user's own error may fail at that too
        return "no message"


def checked(answer: ReflectionAnswer, question: ReflectionRequest) -> ReflectionAnswer:
    """`answer` as it may become an event; the same for whatever says the same.

    The belief is one line of at most `limits.BELIEF_CHARS_MAX` characters: a longer one is cut at a word and ends in
    "…", since a reflector that says too much has still said something. `based_on` keeps the ids that were offered, in
    the order of the evidence, each once. Raises `ReflectorFailed` where either is empty after that.
    """
    belief = cut(one_line(answer.belief), limits.BELIEF_CHARS_MAX)
    if not belief:
        raise ReflectorFailed("the answer holds no belief", retryable=True)
    named = set(answer.based_on)
    based_on = tuple(dict.fromkeys(evidence.id for evidence in question.evidence if evidence.id in named))
    if not based_on:
        raise ReflectorFailed("the belief rests on no event that was offered", retryable=True)
    return ReflectionAnswer(belief, based_on)


def one_line(text: str) -> str:
    """`text` with its white space collapsed, without control characters, and "?" for half surrogate pairs."""
    return " ".join(_CONTROL.sub("", text).split()).encode("utf-8", "replace").decode()


def cut(text: str, chars_max: int) -> str:
    """`text`, or as many of its words as fit into `chars_max` characters together with "…"."""
    if len(text) <= chars_max:
        return text
    # Not every script puts blanks between words: text without one in its second half is cut where it must be.
    blank = text.rfind(" ", chars_max // 2, chars_max)
    return text[: blank if blank >= 0 else chars_max - 1].rstrip() + "…"
