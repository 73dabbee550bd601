"""The reactor: answers reflections that are due with new events, so that a replay never calls a model.

The id of an answer is derived from the id of its trigger. After a crash between the model's answer and the append, the
model is therefore called again, but only one answer counts. The same holds for two reactors that answer at the same
time.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from itertools import chain
from typing import Any, NamedTuple, Protocol

from recallog.reactors.reflector import Evidence, ReflectionRequest, Reflector, ask
from recallog_schemas import Event, Position, codec, limits, triggers
from recallog_schemas.errors import (
    IdConflict,
    InvalidEvent,
    InvariantViolation,
    LockTimeout,
    RecallogError,
    ReflectorFailed,
)
from recallog_schemas.views import (
    AgentSettingsView,
    BeliefsView,
    PendingTrigger,
    PendingView,
    Reaction,
    ReflectionView,
    are_dated,
    shown_date,
)
from recallog_streams.concurrency import ended, gathered
from recallog_streams.ledgers.ledger import Ledger, record_at

POLL_SECONDS = 0.5
"""How often `Reactor.run` checks whether other processes have published."""
REST_SECONDS = 0.05
"""The shortest pause after a look at the triggers. A look that took longer is followed by a pause of the same length,
so that a busy ledger leaves at least half of the time to others."""
CHANGED_RECORDS_MAX = 1_000
"""Up to this many new records of a partition are decoded to learn which spaces have changed. After more, and at the
start, all spaces of the partition in which agents reflect are looked at."""
RETRY_SECONDS = 10.0
"""How long a reactor in the background pauses after an error of the reflector or of a store."""

_log = logging.getLogger("recallog.reactor")

Progress = Callable[[int, int], None]
"""Called with (triggers answered, triggers to answer)."""


class ReactorMemory(Protocol):
    """The methods of a memory that a reactor uses. `recallog.Memory` has them."""

    async def catch_up(self, *, own: bool = True, partition: int | None = None) -> None:
        """Wait until the views of one partition, or of all, have processed what the ledger holds now; without `own`,
        only the built-in views."""

    async def pending(self, space: str | None = None, *, partition: int | None = None) -> PendingView:
        """The pending triggers of one space, of all spaces in one partition, or of all, by space and agent."""

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
        """Answer the triggers that are pending now, each once, and return the answers. See `Memory.react`."""
        scopes = [_Scope(partition, space) for partition in await self._ends(space)]
        return await self._react(scopes, progress, skip_reflection_loops)

    async def run(
        self, space: str | None, on_error: Callable[[RecallogError], float], published: asyncio.Event | None = None
    ) -> None:
        """Answer triggers as they become pending, in one space or in all, until cancelled.

        The first pass checks all spaces, further passes only spaces that have new events. `published` is set after each
        append of this process; every `POLL_SECONDS` the ledger is checked for appends of others. `on_error` is called
        with each error and returns the seconds to wait before the next try, or raises to end the run.
        """
        published = published or asyncio.Event()
        looked_at: dict[int, int] = {}
        while True:
            published.clear()
            began = time.monotonic()
            try:
                ends = await self._ends(space)
                if ends != looked_at:
                    scopes = [
                        scope
                        for partition, end in ends.items()
                        for scope in await self._changed(space, partition, looked_at.get(partition, 0), end)
                    ]
                    if scopes:
                        await self._react(scopes, None, skip_reflection_loops=True)
                    looked_at = ends  # as they were before: events since then, such as the answers, need another look
                    await asyncio.sleep(max(REST_SECONDS, time.monotonic() - began))
            except RecallogError as error:
                await asyncio.sleep(on_error(error))
            with suppress(TimeoutError):
                await asyncio.wait_for(published.wait(), POLL_SECONDS)

    async def _ends(self, space: str | None) -> dict[int, int]:
        """The end of each partition; with a `space`, of its partition only."""
        ends = dict(enumerate(await self._ledger.ends()))
        if space is None:
            return ends
        await self._ledger.open()
        partition = self._ledger.partition_of(space)
        return {partition: ends[partition]}

    async def _changed(self, space: str | None, partition: int, start: int, end: int) -> "list[_Scope]":
        """The scopes in which records from `start` up to `end` may have made reflections due."""
        if start == end:
            return []
        if space is not None or not 0 < start < end <= start + CHANGED_RECORDS_MAX:
            return [_Scope(partition, space)]
        changed = set()
        async for batch in self._ledger.read(partition, start, end):
            for _, data in batch.records:
                with suppress(InvalidEvent):
                    changed.add(codec.decode(data).space)
        return [_Scope(partition, name) for name in sorted(changed)]

    async def _react(
        self, scopes: "Sequence[_Scope]", progress: Progress | None, skip_reflection_loops: bool
    ) -> list[Reaction]:
        async with self._lock():
            # A trigger that was answered may still be pending in views that are behind.
            partitions = {scope.partition for scope in scopes}
            await gathered(lambda partition: self._memory.catch_up(own=False, partition=partition), partitions)
            pending = sorted(
                chain.from_iterable(await gathered(self._pending, scopes)),
                key=lambda trigger: (trigger.space, trigger.agent),
            )
            reactions = []
            for number, trigger in enumerate(pending):
                reaction = await self._answer(trigger, skip_reflection_loops)
                reactions += [reaction] if reaction is not None else []
                if progress is not None:
                    progress(number + 1, len(pending))
            return reactions

    async def _pending(self, scope: "_Scope") -> PendingView:
        if scope.space is not None:
            return await self._memory.pending(scope.space)
        return await self._memory.pending(partition=scope.partition)

    async def _answer(self, pending: PendingTrigger, skip_reflection_loops: bool) -> Reaction | None:
        """The published answer; None for a trigger that is no longer pending, or that is skipped as a reflection
        loop."""
        due = await self._memory.reflection(pending.space, pending.agent)
        if due.trigger != pending.trigger:
            return None
        if skip_reflection_loops and all(shown.event.kind == "agent.reflected" for shown in due.on):
            return None
        try:
            answer = await ask(self._reflector, await self._request(due), sleep=self._sleep)
        except ReflectorFailed as failed:
            event = _failed(due, failed.reason)
        else:
            event = due.answer(answer.belief, answer.based_on, session=due.on[-1].event.session if due.on else None)
        try:
            position = await self._memory.publish(event)
        except IdConflict:
            # Another event already has the answer's id. Under another id the answer counts as well: its
            # causation_id names the trigger.
            event = event.model_copy(update={"id": f"{event.id}/{secrets.token_hex(8)}"})
            position = await self._memory.publish(event)
        # If another reactor answered first, the position is that of its answer, which is the one that counts.
        data = await record_at(self._ledger, position.partition, position.offset)
        reaction = Reaction.of(codec.decode(data), position) if data is not None else None
        if reaction is None:
            raise InvariantViolation(f"the record at {position} is not the answer that was published")
        return reaction

    async def _request(self, due: ReflectionView) -> ReflectionRequest:
        settings = await self._memory.agent_settings(due.space, due.agent)
        beliefs = (await self._memory.beliefs(due.space, due.agent)).beliefs[-limits.PROMPT_BELIEFS :]
        dated = are_dated((shown.at for shown in due.on), due.dates)
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
                    date=shown_date(shown.at, dated=dated),
                )
                for shown in due.on
            ],
        )

    async def close(self) -> None:
        await self._reflector.close()


class _Scope(NamedTuple):
    """Where a reactor looks for pending triggers: in one space, or in all spaces of a partition."""

    partition: int
    space: str | None


class Background:
    """A task that runs a reactor while a memory is open. Errors are logged, and what failed is tried again."""

    def __init__(self, reactor: Reactor) -> None:
        self._published = asyncio.Event()
        self._task = asyncio.create_task(reactor.run(None, _pause_after, self._published), name="recallog-reactor")

    def wake(self) -> None:
        """Look at the triggers soon: events have been published."""
        self._published.set()

    async def stop(self) -> None:
        """Cancel the task and wait for its end."""
        await ended(self._task)
        with suppress(asyncio.CancelledError):
            await self._task


def _pause_after(error: RecallogError) -> float:
    """Log an error; the seconds to wait before the next try."""
    if isinstance(error, LockTimeout):
        return POLL_SECONDS  # not an error: another process is reacting
    _log.warning("%s: %s; trying again in %g s", type(error).__name__, error, RETRY_SECONDS)
    return RETRY_SECONDS


def _failed(due: ReflectionView, reason: str) -> Event:
    trigger = triggers.parse(due.trigger)
    if trigger is None:
        raise InvariantViolation(f"{due.trigger!r} is not the id of a trigger")
    return Event(
        id=trigger.answer_id,
        space=due.space,
        agent=due.agent,
        kind="reflection.failed",
        turn=due.turn,
        payload={"trigger": trigger.id, "reason": reason},
        causation_id=trigger.id,
    )
