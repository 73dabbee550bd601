"""The reactor: answers reflections that are due with new events, so that a replay never calls a model.

The id of an answer is derived from the id of its trigger. A crash between the model's answer and the append therefore
asks the model again, but only one answer counts. The same holds for two reactors that answer at the same time.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Protocol

from recallog.reactors.reflector import Evidence, ReflectionRequest, Reflector, ask
from recallog_schemas import Event, Position, codec, limits, triggers
from recallog_schemas.errors import IdConflict, InvariantViolation, LockTimeout, RecallogError, ReflectorFailed
from recallog_schemas.views import AgentSettingsView, BeliefsView, PendingTrigger, Reaction, ReflectionView
from recallog_streams.ledgers.ledger import Ledger, record_at

POLL_SECONDS = 0.5
"""How often `Reactor.run` checks whether other processes have published."""
REST_SECONDS = 0.05
"""The shortest pause after a look at the triggers. A look that took longer is followed by a pause of the same length,
so that a busy ledger leaves at least half of the time to others."""
RETRY_SECONDS = 10.0
"""How long a reactor in the background pauses after an error of the reflector or of a store."""

_log = logging.getLogger("recallog.reactor")

Progress = Callable[[int, int], None]
"""Called with (triggers answered, triggers to answer)."""


class ReactorMemory(Protocol):
    """What a reactor needs of a memory. `recallog.Memory` has these methods."""

    async def catch_up(self, *, own: bool = True) -> None:
        """Wait until the views have processed all that the ledger holds now; without `own`, the built-in views only."""

    async def pending(self, space: str | None = None) -> list[PendingTrigger]:
        """The triggers that are pending, of one space or of all, by space and agent."""

    async def reflection(self, space: str, agent: str) -> ReflectionView:
        """Whether a reflection of `agent` is due, and on which events."""

    async def agent_settings(self, space: str, agent: str) -> AgentSettingsView:
        """The settings of `agent`, with defaults."""

    async def beliefs(self, space: str, agent: str) -> BeliefsView:
        """The newest reflections of `agent`, oldest first."""

    async def publish(self, event: Event) -> Position:
        """Write one event and return its position once it is durable. Raises `IdConflict`."""


class Reactor:
    """Answers the triggers of one memory. `lock` ensures that only one process does so at a time."""

    def __init__(
        self,
        memory: ReactorMemory,
        ledger: Ledger,
        reflector: Reflector,
        lock: Callable[[], AbstractAsyncContextManager[Any]],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._memory = memory
        self._ledger = ledger
        self._reflector = reflector
        self._lock = lock
        self._sleep = sleep

    async def react(
        self, space: str | None = None, progress: Progress | None = None, *, skip_reflection_loops: bool = False
    ) -> list[Reaction]:
        """Answer the triggers that are pending now, each once; what was done. See `Memory.react`."""
        async with self._lock():
            await self._memory.catch_up(own=False)  # an answer that a worker has not seen yet would be given again
            pending = await self._memory.pending(space)
            reactions = []
            for number, trigger in enumerate(pending):
                reaction = await self._answer(trigger, skip_reflection_loops)
                reactions += [reaction] if reaction is not None else []
                if progress is not None:
                    progress(number + 1, len(pending))
            return reactions

    async def go_on(
        self, space: str | None, trouble: Callable[[RecallogError], float], news: asyncio.Event | None = None
    ) -> None:
        """Answer what falls due, in one space or in all, until cancelled.

        `trouble` hears of each error, and says for how many seconds to leave it alone; or raises, which ends it.
        `news` tells of what this process has published; what others publish is looked for now and then.
        """
        news = news or asyncio.Event()
        seen: list[int] | None = None
        while True:
            news.clear()
            began = time.monotonic()
            try:
                ends = await self._ledger.ends()
                if ends != seen:
                    await self.react(space, skip_reflection_loops=True)
                    seen = ends  # what was answered meanwhile is looked at once more
                    await asyncio.sleep(max(REST_SECONDS, time.monotonic() - began))
            except RecallogError as error:
                await asyncio.sleep(trouble(error))
            with suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), POLL_SECONDS)

    async def _answer(self, pending: PendingTrigger, skip_reflection_loops: bool) -> Reaction | None:
        """None where it stands no more, or shall go on standing."""
        due = await self._memory.reflection(pending.space, pending.agent)
        if due.trigger != pending.trigger:
            return None
        if skip_reflection_loops and all(shown.event.kind == "agent.reflected" for shown in due.on):
            return None
        try:
            answer = await ask(self._reflector, await self._question(due), sleep=self._sleep)
        except ReflectorFailed as failed:
            event = _failed(due, failed.reason)
        else:
            event = due.answer(answer.belief, answer.based_on, session=due.on[-1].event.session if due.on else None)
        try:
            position = await self._memory.publish(event)
        except IdConflict:
            # Something that answers nothing took the answer's id. Under another one it is an answer all the same.
            event = event.model_copy(update={"id": f"{event.id}/{secrets.token_hex(8)}"})
            position = await self._memory.publish(event)
        # Somebody else may have been faster: their answer counts.
        data = await record_at(self._ledger, position.partition, position.offset)
        reaction = Reaction.of(codec.decode(data), position) if data is not None else None
        if reaction is None:
            raise InvariantViolation(f"the record at {position} is not the answer that was published")
        return reaction

    async def _question(self, due: ReflectionView) -> ReflectionRequest:
        settings = await self._memory.agent_settings(due.space, due.agent)
        beliefs = (await self._memory.beliefs(due.space, due.agent)).beliefs[-limits.PROMPT_BELIEFS :]
        return ReflectionRequest(
            trigger=due.trigger or "",
            space=due.space,
            agent=due.agent,
            persona=settings.persona,
            goal=settings.goal,
            beliefs=[belief.text for belief in beliefs],
            evidence=[
                Evidence(
                    id=shown.event.id,
                    turn=shown.event.turn,
                    agent=shown.event.agent,
                    kind=shown.event.kind,
                    text=shown.text,
                    importance=shown.importance,
                )
                for shown in due.on
            ],
        )

    async def close(self) -> None:
        await self._reflector.close()


class Background:
    """A reactor that goes on by itself while a memory is open. What goes wrong is logged and tried again."""

    def __init__(self, reactor: Reactor) -> None:
        self._news = asyncio.Event()
        self._task = asyncio.create_task(reactor.go_on(None, _left_alone, self._news), name="recallog-reactor")

    def wake(self) -> None:
        """Something was published."""
        self._news.set()

    async def stop(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task


def _left_alone(error: RecallogError) -> float:
    """Seconds to wait after an error that nobody is told of but the log."""
    if isinstance(error, LockTimeout):
        return POLL_SECONDS  # another process reacts
    _log.warning("%s: %s; trying again in %g s", type(error).__name__, error, RETRY_SECONDS)
    return RETRY_SECONDS


def _failed(due: ReflectionView, reason: str) -> Event:
    trigger = triggers.parse(due.trigger)
    if trigger is None:
        raise InvariantViolation(f"{due.trigger!r} is no trigger")
    return Event(
        id=trigger.answer_id,
        space=due.space,
        agent=due.agent,
        kind="reflection.failed",
        turn=due.turn,
        payload={"trigger": trigger.id, "reason": reason},
        causation_id=trigger.id,
    )
