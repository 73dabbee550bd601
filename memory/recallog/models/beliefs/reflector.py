"""The reflector port: makes one belief from what an agent has seen since its last reflection.

A reflector may be a remote model, so its answers are not trusted. It is called only through `ask`, which returns only
answers that have passed `check_answer`.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from recallog.reactors.asking import Sleep, ask_repeatedly, one_line
from recallog_schemas.errors import ModelFailed
from recallog_schemas.models.beliefs import limits as beliefs_limits
from recallog_schemas.models.beliefs.payloads import Stance
from recallog_schemas.shortening import cut


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
    """The date when it happened, `YYYY-MM-DD`, if the lines of the agent's events show dates; else None."""


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
    """Oldest first, never empty, at most `beliefs_limits.REFLECTION_EVENTS`."""


@dataclass(frozen=True, slots=True)
class ReflectionAnswer:
    """A belief, the ids of its evidence, and what it is about."""

    belief: str
    based_on: Sequence[str]
    about: Sequence[str] = ()
    """Its subjects."""
    stance: Stance | None = None
    """Whether it is for or against them."""


class Reflector(ABC):
    """Makes beliefs. Implement it for a model or a custom rule; `ask` calls it."""

    immediate: ClassVar[bool] = False
    """Whether it answers at once, without a model or a server: agents are then answered one after another."""

    @abstractmethod
    async def reflect(self, request: ReflectionRequest) -> ReflectionAnswer:
        """One belief from the evidence of `request`.

        Raises `ModelFailed` if this request failed, and `ModelMisconfigured` if every request will fail. `ask`
        repeats a request after a temporary failure, and treats any other exception as one.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close connections."""


async def ask(
    reflector: Reflector, request: ReflectionRequest, *, attempts: int = 3, sleep: Sleep = asyncio.sleep
) -> ReflectionAnswer:
    """The checked answer of `reflector`, with up to `attempts` attempts if its failures are temporary.

    See `asking.ask_repeatedly`, also for what it raises.
    """

    async def answer() -> ReflectionAnswer:
        return check_answer(await reflector.reflect(request), request)

    return await ask_repeatedly(answer, attempts=attempts, sleep=sleep)


def check_answer(answer: ReflectionAnswer, request: ReflectionRequest) -> ReflectionAnswer:
    """`answer` in the form of an event's payload; idempotent.

    The belief is one line of at most `limits.BELIEF_CHARS_MAX` characters: a longer one is cut at a word and ends in
    "…". `based_on` has the ids that are in the evidence, in its order, each once. Raises `ModelFailed` if either is
    then empty. The first `limits.SUBJECTS_MAX` subjects that have words are kept, shortened if necessary.
    """
    belief = cut(one_line(answer.belief), beliefs_limits.BELIEF_CHARS_MAX)
    if not belief:
        raise ModelFailed("the answer contains no belief", retryable=True)
    named = set(answer.based_on)
    based_on = tuple(dict.fromkeys(evidence.id for evidence in request.evidence if evidence.id in named))
    if not based_on:
        raise ModelFailed("the belief names none of the events that were offered", retryable=True)
    subjects = (cut(one_line(each).strip(), beliefs_limits.SUBJECT_CHARS_MAX) for each in answer.about)
    about = tuple(dict.fromkeys(filter(None, subjects)))[: beliefs_limits.SUBJECTS_MAX]
    return ReflectionAnswer(belief, based_on, about, answer.stance if about else None)
