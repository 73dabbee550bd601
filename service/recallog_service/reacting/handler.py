"""The handler: what a worker does with one message of the queue of triggers.

Triggers are answered beside the agent, in lanes: neither a slow model nor a kind with many triggers delays the others,
and a message that repeats a waiting one costs nothing. What waits is lost with the process, and sent again.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from recallog.reactors.lanes import Lanes
from recallog.reactors.reactor import DueTrigger, Reactor
from recallog_schemas import limits, triggers
from recallog_schemas.errors import LedgerMismatch, ModelMisconfigured, Rebuilding, RecallogError, ViewsTooNew
from recallog_schemas.views import Reaction
from recallog_service.reacting.publisher import AGAIN_SECONDS
from recallog_streams.ledgers.trigger_queue import Doorbell
from recallog_streams.partition_task import backoff
from recallog_streams.stop_signal import StopSignal

TRIES = 5
"""How often a trigger is tried that ledger or views do not let through. Then it waits until it is sent again."""
REST_SECONDS = 30.0
"""How long no trigger of a kind is tried whose model is misconfigured."""
SHOWN_SECONDS = 6 * AGAIN_SECONDS
"""How long a problem is shown after it was last found. A trigger that stays due is sent again before that; if nothing
comes, another process has answered it."""
WAITING_MAX = 10_000
"""How many triggers of one reactor wait in this process, or are answered. Others are sent again."""

ANSWERED = "answered"
FAILED = "failed"
"""The trigger was closed as failed."""
LEFT = "left"
"""It was answered before, or it stays due."""
REPEATED = "repeated"
"""This process was answering it already."""
POSTPONED = "postponed"
"""It could not be tried, a service was unavailable, or the views are of another version: it will be sent again."""

OTHER_KIND = "other"
"""What is observed instead of a kind that no reactor answers: a message may name any text."""

_log = logging.getLogger("recallog.reactor")


class AnsweringMemory(Protocol):
    """What a handler needs of a memory."""

    async def answer_due(self, space: str, agent: str, trigger: str) -> Reaction | None:
        """See `Memory.answer_due`."""

    def reactor_of(self, kind: str) -> Reactor | None:
        """See `Memory.reactor_of`."""


Observe = Callable[[str, str, float], None]
"""Called with (kind of the trigger, outcome, seconds). The kind is one that a reactor answers, or `OTHER_KIND`."""


class Handler:
    """Answers the triggers that messages name."""

    def __init__(
        self, memory: AnsweringMemory, stopping: StopSignal, observe: Observe, at_once: int = limits.REACTIONS_AT_ONCE
    ) -> None:
        """At most `at_once` triggers of each reactor that asks a model are answered at the same time."""
        self._lanes = Lanes(self._answer, at_once)
        self._memory = memory
        self._stopping = stopping
        self._observe = observe
        self.replaced = ""
        """Why the memory has to be opened again, in one sentence; "" if it has not: another ledger is in its place."""
        self._answering = 0
        self._rests_until: dict[str, float] = {}
        """By kind whose model is misconfigured."""
        self._problems: dict[str, tuple[str, float]] = {}
        """By kind: why its triggers are not answered, and when that was last found."""

    @property
    def problems(self) -> list[str]:
        """Why triggers are not answered, one sentence for each kind."""
        since = _now() - SHOWN_SECONDS
        return [f"{kind}: {problem}" for kind, (problem, at) in sorted(self._problems.items()) if at > since]

    @property
    def failure(self) -> str:
        """Why no more lanes begin, for example since a client has cancelled itself; "" if they do."""
        try:
            self._lanes.check()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the agents begin again
            return repr(error)
        return ""

    @property
    def answering(self) -> int:
        """How many triggers are being answered."""
        return self._answering

    def handle(self, message: Doorbell | None) -> None:
        """Have the trigger of one message answered; None: a message that cannot be decoded.

        Raises nothing: a message that cannot be handled is not worth an agent.
        """
        parsed = None if message is None else triggers.parse(message.trigger)
        if message is None or parsed is None:
            _log.warning("a message that names no trigger is skipped")
            return
        reactor = self._memory.reactor_of(parsed.kind)
        if message.trigger in self._lanes:
            self._observe(parsed.kind, REPEATED, 0.0)
        elif reactor is None:
            self._observe(OTHER_KIND, LEFT, 0.0)
        elif self._lanes.of_reactor(reactor) < WAITING_MAX:
            self._lanes.add(reactor, DueTrigger(message.trigger, parsed.kind, message.space, message.agent))
        else:
            self._observe(parsed.kind, POSTPONED, 0.0)

    async def _answer(self, trigger: DueTrigger) -> None:
        began = _now()
        self._answering += 1
        try:
            outcome = await self._outcome(trigger.kind, trigger.space, trigger.agent, trigger.id)
        finally:
            self._answering -= 1
        self._observe(trigger.kind, outcome, _now() - began)

    async def wait_until_settled(self) -> None:
        """Wait until no trigger waits or is being answered."""
        await self._lanes.below(1)

    async def close(self) -> None:
        """Drop what waits and cancel what is being answered: it will be sent again."""
        await self._lanes.cancel()

    async def _outcome(self, kind: str, space: str, agent: str, trigger: str) -> str:
        if _now() < self._rests_until.get(kind, 0.0):
            return POSTPONED
        for failures in range(1, TRIES + 1):
            if self._stopping:
                break
            try:
                reaction = await self._memory.answer_due(space, agent, trigger)
            except ModelMisconfigured as error:
                self.report(kind, str(error))
                self._rests_until[kind] = _now() + REST_SECONDS
                return POSTPONED
            except LedgerMismatch as error:
                self.replaced = str(error)
                return POSTPONED
            except (Rebuilding, ViewsTooNew):
                # During an upgrade the agents of both versions get each message. Those whose code has built the views
                # answer it, and after the cutover it is sent again.
                return POSTPONED
            except RecallogError as error:
                self.report(kind, str(error))
                if not error.retryable:
                    return POSTPONED
                await self._stopping.pause(backoff(failures))
            except Exception as error:  # noqa: BLE001 - a defect must not end the agent
                self.report(kind, f"{type(error).__name__}: {error}")
                _log.exception("the trigger %s is not answered", trigger)
                return POSTPONED
            else:
                self._problems.pop(kind, None)
                if reaction is None:
                    return LEFT
                return FAILED if reaction.kind in triggers.all_failures() else ANSWERED
        return POSTPONED

    def report(self, kind: str, problem: str) -> None:
        """Note why triggers of a kind are not answered."""
        if self._problems.get(kind, ("", 0.0))[0] != problem:
            _log.warning("%s is not answered: %s", kind, problem)
        self._problems[kind] = problem, _now()


def _now() -> float:
    return asyncio.get_running_loop().time()
