"""The loop that runs reactors in one process: it finds the triggers that are due, and has them answered.

On a cluster, workers find them and agents answer (see `recallog_service.reacting`). Both have the same `Answers`.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple, Protocol

from recallog.reactors.answering import AnswerMemory, Answers, of_work
from recallog.reactors.reactor import DueTrigger
from recallog_projections.views.due import Scheduled, Work
from recallog_schemas import Event, codec, timestamps, triggers
from recallog_schemas.errors import InvalidEvent, LockTimeout, ModelMisconfigured, RecallogError
from recallog_schemas.views import PendingTrigger, Reaction
from recallog_streams.concurrency import ended, gathered
from recallog_streams.ledgers.ledger import Ledger

POLL_SECONDS = 0.5
"""How often `ReactorLoop.run` checks whether other processes have published."""
REST_SECONDS = 0.05
"""The shortest pause after a look at the triggers. A look that took longer is followed by a pause of the same length,
so that a busy ledger leaves at least half of the time to others."""
CHANGED_RECORDS_MAX = 1_000
"""Up to this many new records of a partition are decoded to learn which spaces have changed. After more, and at the
start, all spaces of the partition are looked at."""
RETRY_SECONDS = 10.0
"""How long the loop in the background pauses after an error of a reactor or of a store."""
TICK = "clock.ticked"
CLOCK = "clock"
"""The agent of the ticks that the memory writes."""
HISTORY_SECONDS = 30 * 86_400.0
"""A space whose work fell due longer ago than this, and which has no event since, is history, for example an imported
or a simulated one. Its time does not pass by itself: a tick would age it by years."""

_log = logging.getLogger("recallog.reactor")

Progress = Callable[[int, int], None]
"""Called with (triggers answered, triggers to answer)."""


class DueWork(NamedTuple):
    """Some of the triggers that one event each made due in a partition."""

    rows: Sequence[Work]
    """In the order of these events."""
    after: str | None
    """Where the next ones begin; None after the last ones."""


class ReactorMemory(AnswerMemory, Protocol):
    """What the loop needs of a memory."""

    async def catch_up(self, partition: int) -> None:
        """Wait until the built-in views of one partition have processed what the ledger holds now."""

    async def reflections(self, partition: int, spaces: Sequence[str] | None) -> Sequence[PendingTrigger]:
        """The reflections that are due in a partition; with `spaces`, only in these spaces of it."""

    async def scheduled(self, partition: int, spaces: Sequence[str] | None) -> Sequence[Scheduled]:
        """The triggers of a partition whose time has come; with `spaces`, only in these spaces of it."""

    async def work(self, partition: int, after: str | None) -> DueWork:
        """The next of the other triggers that are due in a partition, from the first one or behind `after`."""

    async def standing(self, space: str, trigger: str) -> Work | None:
        """The row of one of the other triggers; None if it is not due, or not any more."""

    async def silent(self, partition: int, since: int, until: int) -> Sequence[Scheduled]:
        """The triggers of a partition that fall due from `since` to `until`, later than the time of their space."""


class ReactorLoop:
    """Finds the triggers of one memory, which `answers` answers. `lock` ensures that one process does so at a time."""

    def __init__(
        self,
        memory: ReactorMemory,
        ledger: Ledger,
        answers: Answers,
        lock: Callable[[], AbstractAsyncContextManager[Any]],
    ) -> None:
        self._memory = memory
        self._ledger = ledger
        self._answers = answers
        self._lock = lock

    async def react(
        self, space: str | None = None, progress: Progress | None = None, *, skip_reflection_loops: bool = False
    ) -> list[Reaction]:
        """Answer the triggers that are pending now, each once, and return the answers. See `Memory.react`."""
        scopes = [_Scope(partition, _only(space)) for partition in await self._ends(space)]
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
                        if (scope := await self._changed(space, partition, looked_at.get(partition, 0), end))
                    ]
                    if scopes:
                        await self._react(scopes, None, skip_loops=True)
                    looked_at = ends  # as they were before: events since then, such as the answers, need another look
                    await asyncio.sleep(max(REST_SECONDS, time.monotonic() - began))
            except RecallogError as error:
                await asyncio.sleep(on_error(error))
            with suppress(TimeoutError):
                await asyncio.wait_for(published.wait(), POLL_SECONDS)

    async def answer_due(self, space: str, agent: str, id_: str) -> Reaction | None:
        """Answer one trigger; None if it is not due any more, if no reactor answers it, or if its reactor leaves it.

        The caller ensures that this process does not answer it twice at the same time.
        """
        parsed = triggers.parse(id_)
        if parsed is None or self._answers.reactor_of(parsed.kind) is None:
            return None
        await self._ledger.open()
        # A trigger that was answered may still be due in views that are behind.
        await self._memory.catch_up(self._ledger.partition_of(space))
        if parsed.kind in triggers.RECURRING:  # whose reactors find out by its number
            return await self._answers.answer(DueTrigger(id_, parsed.kind, space, agent, skip_loops=True))
        work = await self._memory.standing(space, id_)
        return None if work is None else await self._answers.answer(of_work(work, skip_loops=True))

    async def tick(self, now: datetime) -> int:
        """Write a `clock.ticked` to each space in which work has fallen due by `now` and no event has happened since.

        Its id follows from what is due, so that two processes write one. Returns the number of these spaces. Raises
        `LockTimeout` while another process reacts.
        """
        until = timestamps.micros(now)
        since = until - round(HISTORY_SECONDS * 1_000_000)
        async with self._lock():
            partitions = range(await self._ledger.partitions())
            silent = await gathered(lambda each: self._memory.silent(each, since, until), partitions)
            by_space = {due.space: due for due in chain.from_iterable(silent)}
            if by_space:
                await self._memory.publish([_tick(due, now) for due in by_space.values()])
            return len(by_space)

    def answers_by_rule(self, kind: str) -> bool:
        """Whether triggers of a kind are answered by a rule alone."""
        reactor = self._answers.reactor_of(kind)
        return reactor is not None and reactor.pure

    async def _ends(self, space: str | None) -> dict[int, int]:
        """The end of each partition; with a `space`, of its partition only."""
        ends = dict(enumerate(await self._ledger.ends()))
        if space is None:
            return ends
        await self._ledger.open()
        partition = self._ledger.partition_of(space)
        return {partition: ends[partition]}

    async def _changed(self, space: str | None, partition: int, start: int, end: int) -> "_Scope | None":
        """Where records from `start` up to `end` may have made triggers due."""
        if start == end:
            return None
        if space is not None or not 0 < start < end <= start + CHANGED_RECORDS_MAX:
            return _Scope(partition, _only(space))
        changed = set()
        async for batch in self._ledger.read(partition, start, end):
            for _, data in batch.records:
                with suppress(InvalidEvent):
                    changed.add(codec.decode(data).space)
        return _Scope(partition, sorted(changed)) if changed else None

    async def _react(self, scopes: "Sequence[_Scope]", progress: Progress | None, skip_loops: bool) -> list[Reaction]:
        async with self._lock():
            ends = await self._ledger.ends()
            # A trigger that was answered may still be due in views that are behind.
            await gathered(self._memory.catch_up, [scope.partition for scope in scopes])
            recurring = await self._recurring(scopes, skip_loops)
            misconfigured: dict[str, ModelMisconfigured] = {}
            reactions, answered = [], 0
            # A model may take long, and what follows by a rule, such as the rest of an erasure, does not wait for it.
            left: list[_Scope] = []
            for by_rule in (True, False):
                for scope in scopes if by_rule else left:
                    async for found_due in self._work(scope, ends[scope.partition], skip_loops):
                        triggers_due = [each for each in found_due if self._is_pure(each) == by_rule]
                        if by_rule and len(triggers_due) < len(found_due) and scope not in left:
                            left.append(scope)
                        for number, trigger in enumerate(triggers_due, start=1):
                            reactions.append(await self._answer_unless(misconfigured, trigger))
                            if progress is not None:
                                progress(answered + number, answered + len(triggers_due) + len(recurring))
                        answered += len(triggers_due)
            for number, trigger in enumerate(recurring, start=1):
                reactions.append(await self._answer_unless(misconfigured, trigger))
                if progress is not None:
                    progress(answered + number, answered + len(recurring))
            for error in misconfigured.values():
                raise error
            return [reaction for reaction in reactions if reaction is not None]

    async def _recurring(self, scopes: "Sequence[_Scope]", skip_loops: bool) -> list[DueTrigger]:
        """The triggers that agents have again and again: plans, then reflections, each by space and agent."""
        plans = await gathered(lambda scope: self._memory.scheduled(scope.partition, scope.spaces), scopes)
        reflections = await gathered(lambda scope: self._memory.reflections(scope.partition, scope.spaces), scopes)

        def by_agent(due: Scheduled | PendingTrigger) -> tuple[str, str]:
            return due.space, due.agent

        found: list[Scheduled | PendingTrigger] = [
            *sorted(chain.from_iterable(plans), key=by_agent),
            *sorted(chain.from_iterable(reflections), key=by_agent),
        ]
        return [DueTrigger(due.trigger, due.kind, due.space, due.agent, skip_loops) for due in found]

    async def _answer_unless(
        self, misconfigured: dict[str, ModelMisconfigured], trigger: DueTrigger
    ) -> Reaction | None:
        """The published answer; None if the model for this kind of trigger is misconfigured.

        That is for an operator to correct. Other kinds are answered all the same.
        """
        if trigger.kind in misconfigured:
            return None
        try:
            return await self._answers.answer(trigger)
        except ModelMisconfigured as error:
            misconfigured[trigger.kind] = error
            return None

    def _is_pure(self, trigger: DueTrigger) -> bool:
        return self.answers_by_rule(trigger.kind)

    async def _work(self, scope: "_Scope", end: int, skip_loops: bool) -> AsyncIterator[list[DueTrigger]]:
        """The triggers that events before the offset `end` made due, a few at a time: answers may make others due."""
        after = None
        while True:
            work = await self._memory.work(scope.partition, after)
            rows = [row for row in work.rows if row.offset < end]
            ours = [row for row in rows if scope.spaces is None or row.space in scope.spaces]
            yield [of_work(row, skip_loops=skip_loops) for row in ours]
            after = work.after
            if after is None or len(rows) < len(work.rows):
                return

    async def close(self) -> None:
        """Close the reactors."""
        await self._answers.close()


class _Scope(NamedTuple):
    """Where the loop looks for triggers: in some spaces of a partition, or in all of them."""

    partition: int
    spaces: Sequence[str] | None


def _tick(due: Scheduled, now: datetime) -> Event:
    return Event(
        id=f"{TICK}/{due.trigger}/{due.at}",
        space=due.space,
        agent=CLOCK,
        kind=TICK,
        at=now,
        payload={},
    )


def _only(space: str | None) -> Sequence[str] | None:
    return None if space is None else (space,)


class Background:
    """A task that runs the loop while a memory is open. Errors are logged, and what failed is tried again."""

    def __init__(self, loop: ReactorLoop) -> None:
        self._published = asyncio.Event()
        self._task = asyncio.create_task(loop.run(None, _pause_after, self._published), name="recallog-reactor")

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
