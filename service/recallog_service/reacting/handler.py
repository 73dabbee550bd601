"""The handler: processes the messages of the queue of triggers in a worker.

Triggers are answered concurrently, in one lane per reactor, so that neither a slow model nor a kind with many triggers
delays the others. A repeat of a waiting message is ignored. Waiting messages are lost with the process, and are sent
again.
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
"""Attempts to answer a trigger while the ledger or the views are unavailable. Then it waits until it is sent again."""
REST_SECONDS = 30.0
"""Seconds for which triggers of a kind are not tried after its model was found to be misconfigured."""
SHOWN_SECONDS = 6 * AGAIN_SECONDS
"""Seconds for which a problem is shown after it was last found. A trigger that stays due is sent again before that;
otherwise another process has answered it."""
WAITING_MAX = 10_000
"""Maximum number of triggers of one reactor that wait in this process or are being answered. Others are sent again."""

ANSWERED = "answered"
FAILED = "failed"
"""The trigger was closed as failed."""
LEFT = "left"
"""It was already answered, or it stays due."""
REPEATED = "repeated"
"""This process is already answering it."""
POSTPONED = "postponed"
"""It could not be tried, a service was unavailable, or the views have another version. It will be sent again."""

OTHER_KIND = "other"
"""The label for kinds without a reactor: a message may contain any text as its kind."""

_log = logging.getLogger("recallog.reactor")


class AnsweringMemory(Protocol):
    """The parts of a memory that a handler needs."""

    async def answer_due(self, space: str, agent: str, trigger: str) -> Reaction | None:
        """See `Memory.answer_due`."""

    def reactor_of(self, kind: str) -> Reactor | None:
        """See `Memory.reactor_of`."""


Observe = Callable[[str, str, float], None]
"""Called with (kind of the trigger, outcome, seconds). The kind is `OTHER_KIND` if no reactor answers it."""


class Handler:
    """Answers the triggers that messages name."""

    def __init__(
        self, memory: AnsweringMemory, stopping: StopSignal, observe: Observe, at_once: int = limits.REACTIONS_AT_ONCE
    ) -> None:
        """Of each reactor that calls a model, at most `at_once` triggers are answered concurrently."""
        self._lanes = Lanes(self._answer, at_once)
        self._memory = memory
        self._stopping = stopping
        self._observe = observe
        self.replaced = ""
        """A sentence if another ledger has replaced the opened one, so that the memory must be reopened; else ""."""
        self._answering = 0
        self._rests_until: dict[str, float] = {}
        """When triggers of a kind are tried again after a misconfigured model, by kind."""
        self._problems: dict[str, tuple[str, float]] = {}
        """Why triggers of a kind are not answered, and when that was last found, by kind."""

    @property
    def problems(self) -> list[str]:
        """Why triggers are not answered, one sentence for each kind."""
        since = _now() - SHOWN_SECONDS
        return [f"{kind}: {problem}" for kind, (problem, at) in sorted(self._problems.items()) if at > since]

    @property
    def failure(self) -> str:
        """Why no lane can start, for example because a client has cancelled itself; "" if lanes can start."""
        try:
            self._lanes.check()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the agents begin again
            return repr(error)
        return ""

    @property
    def answering(self) -> int:
        """Number of triggers being answered."""
        return self._answering

    def handle(self, message: Doorbell | None) -> None:
        """Answer the trigger of one message; None: a message that cannot be decoded.

        It does not raise: an error would end the agent because of one message.
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
        """Wait until no trigger is waiting or being answered."""
        await self._lanes.below(1)

    async def close(self) -> None:
        """Drop waiting triggers and cancel running answers. They will be sent again."""
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
                # During an upgrade the agents of both versions get each message. Agents with the code of the active
                # views answer it; after the cutover it is sent again.
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
