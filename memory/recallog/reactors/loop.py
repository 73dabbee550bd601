"""The loop that runs reactors in one process: it finds the triggers that are due, and has them answered.

On a cluster, workers find them and agents answer (see `recallog_service.reacting`). Both have the same `Answers`.
"""

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from datetime import datetime
from itertools import chain, product
from typing import Any, NamedTuple, Protocol

from recallog.reactors.answering import AnswerMemory, Answers, of_work
from recallog.reactors.failures import Failures
from recallog.reactors.lanes import Lanes
from recallog.reactors.misconfigured import Misconfigured
from recallog.reactors.reactor import DueTrigger, is_local
from recallog_projections.concurrency import cancel_all, gather_limited
from recallog_projections.views.due import Scheduled, Work
from recallog_schemas import Event, Position, codec, limits, timestamps, triggers
from recallog_schemas.errors import InvalidEvent, LockTimeout, ModelMisconfigured, RecallogError
from recallog_schemas.views import PendingTrigger, Reaction
from recallog_streams.ledgers.ledger import Ledger

POLL_SECONDS = 0.5
"""How often `ReactorLoop.run` checks whether other processes have published."""
REST_SECONDS = 0.05
"""The shortest pause after a look at the triggers. A look that took longer is followed by a pause of the same length,
so that a busy ledger leaves at least half of the time to others."""
CHANGED_RECORDS_MAX = 1_000
"""Up to this number of new records of a partition, they are decoded to find the spaces that have changed. After more
records, and at the start, all spaces of the partition are examined."""
RETRY_SECONDS = 10.0
"""The pause of the background loop after an error of a store, and of a trigger after an error of its reactor. It
doubles after each further error."""
_WAITING_MAX = 1_000
"""How many triggers of each reactor that is not immediate wait in memory. The others are read again when half of these
are answered."""
_ANSWERED_MAX = 100_000
"""How many answers are remembered until the views have processed them."""
TICK = "clock.ticked"
CLOCK = "clock"
"""The agent of the ticks that the memory writes."""
HISTORY_SECONDS = 30 * 86_400.0
"""A space is considered imported or simulated if its work fell due longer ago than this and it has had no event since.
It does not get ticks, because a tick would age it by years."""

_log = logging.getLogger("recallog.reactor")

Progress = Callable[[int, int], None]
"""Called with (triggers answered, triggers to answer)."""


class DueWork(NamedTuple):
    """A page of the triggers of a partition that were each made due by one event."""

    items: Sequence[tuple[str, Work]]
    """The keys and the triggers, in the order of these events."""
    last: bool
    """Whether it is the last page."""


class ReactorMemory(AnswerMemory, Protocol):
    """The parts of a memory that the loop uses."""

    @property
    def due_groups(self) -> int:
        """The number of groups of projections that make triggers due: the built-in views, and projections of the
        user."""

    async def catch_up(self, partition: int) -> None:
        """Wait until the built-in views of one partition have processed what the ledger holds now."""

    async def reflections(self, partition: int, spaces: Sequence[str] | None) -> Sequence[PendingTrigger]:
        """The reflections that are due in a partition or, with `spaces`, in these spaces of it."""

    async def find_scheduled(self, partition: int, spaces: Sequence[str] | None) -> Sequence[Scheduled]:
        """The triggers of a partition whose time has come or, with `spaces`, of these spaces of it."""

    async def work(self, partition: int, group: int, after: str | None) -> DueWork:
        """The next page of the other triggers that are due in a partition, from the first one or after the key `after`.

        `group` is the number of a group: 0 for the built-in views. Its views have processed the whole ledger.
        """

    async def standing(self, space: str, trigger: str) -> Work | None:
        """The row of one of the other triggers; None if it is not, or no longer, due."""

    async def read_processed(self, partition: int) -> int:
        """The offset up to which all groups have processed a partition; -1 before the first record. Does not wait for
        them."""

    async def silent(self, partition: int, since: int, until: int) -> Sequence[Scheduled]:
        """The triggers of a partition that fall due from `since` to `until`, at times later than that of their
        agent."""


class ReactorLoop:
    """Finds the due triggers of one memory, and has `answers` answer them. `lock` ensures that one process does so at a
    time."""

    def __init__(
        self,
        memory: ReactorMemory,
        ledger: Ledger,
        answers: Answers,
        lock: Callable[[], AbstractAsyncContextManager[Any]],
        at_once: int = limits.REACTIONS_AT_ONCE,
    ) -> None:
        """At most `at_once` triggers are answered at a time for each reactor that is not immediate."""
        self.answers = answers
        self._memory = memory
        self._ledger = ledger
        self._lock = lock
        self._at_once = at_once
        self._in_process = asyncio.Lock()
        self._failures = Failures()
        self._answered: dict[str, Position] = {}
        """The newest answers of `answer_due`, by trigger."""

    async def react(
        self, space: str | None = None, progress: Progress | None = None, *, skip_reflection_loops: bool = False
    ) -> list[Reaction]:
        """Answer the triggers that are pending now, each once, and return the answers. See `Memory.react`."""
        scopes = [_Scope(partition, _only(space)) for partition in await self._ends(space)]
        async with self._alone():
            call = _Call(progress)
            lanes = Lanes(lambda trigger: self._answer_in(call, trigger), self._at_once)
            try:
                async for found, further in self._due(scopes, {}, call.note_failure, skip_loops=skip_reflection_loops):
                    call.note_due(found, further)
                    for trigger in found:
                        reactor = self.answers.reactor_of(trigger.kind)
                        if reactor is None or is_local(reactor):
                            await self._answer_in(call, trigger)
                        else:
                            await lanes.below(_WAITING_MAX)
                            lanes.add(reactor, trigger)
                await lanes.below(1)
            finally:
                await lanes.cancel()
            for misconfigured in self.answers.misconfigured:
                call.note_failure(misconfigured)
            return call.reactions()

    async def _answer_in(self, call: "_Call", trigger: DueTrigger) -> None:
        if call.is_misconfigured(trigger.kind):
            call.note_answer(trigger, None)
            return
        try:
            reaction = await self.answers.answer(trigger)
        except RecallogError as error:
            self._failures.note_failure(trigger, error, RETRY_SECONDS)
            call.note_failure(error, trigger.kind)
            call.note_answer(trigger, None)
        else:
            self._failures.note_answer(trigger)
            call.note_answer(trigger, reaction)

    async def due(self) -> list[DueTrigger]:
        """The triggers that are due now, as their reactors get them."""

        def fail(error: RecallogError) -> None:
            raise error

        scopes = [_Scope(partition, None) for partition in await self._ends(None)]
        return [each async for found, _ in self._due(scopes, {}, fail, skip_loops=False) for each in found]

    def why(self, trigger: str, kind: str) -> str | None:
        """Why a trigger is not answered, as far as this process knows; None if it can be answered."""
        reactor = self.answers.reactor_of(kind)
        if reactor is None:
            return "no reactor answers it"
        if isinstance(reactor, Misconfigured):
            return f"misconfigured: {reactor.error}"
        failure = self._failures.of(trigger, kind)
        if failure is None:
            return None
        if isinstance(failure.error, ModelMisconfigured):
            return f"misconfigured: {failure.error}"
        return f"failed {failure.count} {'time' if failure.count == 1 else 'times'}: {failure.error}"

    async def run(
        self, space: str | None, on_error: Callable[[RecallogError], float], published: asyncio.Event | None = None
    ) -> None:
        """Answer triggers as they become pending, in one space or in all, until cancelled.

        The first pass checks all spaces, further passes only spaces that have new events. `published` is set after each
        append of this process; every `POLL_SECONDS` the ledger is checked for appends of others. Slow answers do not
        stop the passes. `on_error` is called with each error and returns the seconds to wait before the next pass if a
        pass has failed, or raises to end the run. A trigger that failed waits separately.
        """
        run = _Run(self, space, published or asyncio.Event())
        try:
            while True:
                run.published.clear()
                began = time.monotonic()
                try:
                    run.report(on_error)
                    if await run.look():
                        await asyncio.sleep(max(REST_SECONDS, time.monotonic() - began))
                except RecallogError as error:
                    await run.release()
                    await asyncio.sleep(on_error(error))
                with suppress(TimeoutError):
                    await asyncio.wait_for(run.published.wait(), POLL_SECONDS)
        finally:
            await run.close()

    async def answer_due(self, space: str, agent: str, id_: str) -> Reaction | None:
        """Answer one trigger. Returns None if it is no longer due, if no reactor answers it, or if its reactor leaves
        it.

        The caller ensures that this process does not answer it twice at the same time.
        """
        parsed = triggers.parse(id_)
        reactor = None if parsed is None else self.answers.reactor_of(parsed.kind)
        if parsed is None or reactor is None:
            return None
        if not await self._has_processed_answer(space, id_):
            return None
        if parsed.recurs:  # the reactors of these check its number
            trigger = DueTrigger(id_, parsed.kind, space, agent, skip_loops=True)
        else:
            work = await self._memory.standing(space, id_)
            if work is None:
                return None
            trigger = of_work(work, skip_loops=True)
        reaction = await self.answers.answer(trigger)
        if reaction is not None:
            self._note_answer(id_, reaction.position)
        return reaction

    async def _has_processed_answer(self, space: str, trigger: str) -> bool:
        """Whether the views have processed this process's answer to a trigger. True if it has not answered it.

        In views that are behind, a trigger that was answered is still due. Answering it again would cost a call of a
        model, and records that delay the views further.
        """
        position = self._answered.get(trigger)
        if position is None:
            return True
        await self._ledger.open()
        if await self._memory.read_processed(self._ledger.partition_of(space)) < position.offset:
            return False
        del self._answered[trigger]
        return True

    def _note_answer(self, trigger: str, position: Position) -> None:
        self._answered[trigger] = position
        if len(self._answered) > _ANSWERED_MAX:
            del self._answered[next(iter(self._answered))]

    async def tick(self, now: datetime) -> int:
        """Write a `clock.ticked` to each space in which work has fallen due by `now` and no event has happened since.

        Its id depends on the due work, so that two processes write the same event. Returns the number of these spaces.
        Raises `LockTimeout` while another process reacts.
        """
        until = timestamps.micros(now)
        since = until - round(HISTORY_SECONDS * 1_000_000)
        async with self._lock():
            partitions = range(await self._ledger.partitions())
            silent = await gather_limited(lambda each: self._memory.silent(each, since, until), partitions)
            by_space = {due.space: due for due in chain.from_iterable(silent)}
            if by_space:
                await self._memory.publish([_tick(due, now) for due in by_space.values()])
            return len(by_space)

    async def _ends(self, space: str | None) -> dict[int, int]:
        """The end of each partition; with a `space`, of its partition only."""
        ends = dict(enumerate(await self._ledger.ends()))
        if space is None:
            return ends
        await self._ledger.open()
        partition = self._ledger.partition_of(space)
        return {partition: ends[partition]}

    async def _find_changed(self, space: str | None, partition: int, start: int, end: int) -> "_Scope | None":
        """The scope in which records from `start` up to `end` may have made triggers due."""
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

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Raises `LockTimeout` while this process or another one answers triggers."""
        try:
            async with asyncio.timeout(limits.LOCK_WAIT_SECONDS):
                await self._in_process.acquire()
        except TimeoutError:
            raise LockTimeout(
                "this process is answering triggers already; pending shows which are left. Try again later"
            ) from None
        try:
            async with self._lock():
                yield
        finally:
            self._in_process.release()

    async def _due(
        self,
        scopes: "Sequence[_Scope]",
        read_to: "_ReadTo",
        failed: Callable[[RecallogError], None],
        *,
        skip_loops: bool,
    ) -> AsyncIterator[tuple[list[DueTrigger], int]]:
        """The triggers that are due, a few at a time, and how many more will follow at least.

        They are ordered by the priority of their reactors. Among equal priorities, triggers of pure reactors come
        first: a model may take long, and the rest of an erasure must not wait for it. Then come other triggers that one
        event made due, plans, and reflections. `read_to` has the keys to begin after, and is updated with the keys that
        were read. `note_failure` is called with the error of views of a user's projection; other views continue.
        """
        ends = await self._ledger.ends()
        # In views that are behind, a trigger that was answered may still be due.
        await gather_limited(self._memory.catch_up, [scope.partition for scope in scopes])
        recurring = await self._recurring(scopes, skip_loops)
        begin = dict(read_to)
        left = list(product(scopes, range(self._memory.due_groups)))
        for rank in self.answers.ranks:
            looked_at, left = left, []
            for scope, group in looked_at:
                later = False
                try:
                    async for key, found in self._work(scope, group, ends, begin, skip_loops):
                        ranks = [self.answers.rank_of(each.kind) for each in found]
                        later |= any(each > rank for each in ranks)
                        yield [each for each, its in zip(found, ranks, strict=True) if its == rank], len(recurring)
                        read_to[scope.partition, group] = key
                except RecallogError as error:
                    if group == 0:
                        raise
                    failed(error)
                if later:
                    left.append((scope, group))
            found = [each for each in recurring if self.answers.rank_of(each.kind) == rank]
            recurring = [each for each in recurring if self.answers.rank_of(each.kind) != rank]
            yield found, len(recurring)

    async def _answer_unless_closed(self, trigger: DueTrigger) -> None:
        """Answer a trigger that was found earlier, unless it was closed meanwhile. Reactors of numbered triggers check
        the number."""
        recheck = not triggers.kind_of(trigger.kind).recurs and not self._is_pure(trigger)
        if not recheck or await self._memory.standing(trigger.space, trigger.id) is not None:
            await self.answers.answer(trigger)

    async def _recurring(self, scopes: "Sequence[_Scope]", skip_loops: bool) -> list[DueTrigger]:
        """The triggers that recur for agents: plans, then reflections, each by space and agent."""
        plans = await gather_limited(lambda scope: self._memory.find_scheduled(scope.partition, scope.spaces), scopes)
        reflections = await gather_limited(
            lambda scope: self._memory.reflections(scope.partition, scope.spaces), scopes
        )

        def by_agent(due: Scheduled | PendingTrigger) -> tuple[str, str]:
            return due.space, due.agent

        found: list[Scheduled | PendingTrigger] = [
            *sorted(chain.from_iterable(plans), key=by_agent),
            *sorted(chain.from_iterable(reflections), key=by_agent),
        ]
        return [DueTrigger(due.trigger, due.kind, due.space, due.agent, skip_loops) for due in found]

    def _is_pure(self, trigger: DueTrigger) -> bool:
        reactor = self.answers.reactor_of(trigger.kind)
        return reactor is not None and reactor.pure

    async def _work(
        self, scope: "_Scope", group: int, ends: Sequence[int], begin: "_ReadTo", skip_loops: bool
    ) -> AsyncIterator[tuple[str, list[DueTrigger]]]:
        """The triggers that events before the end made due, a few at a time, each time after the last key, since
        answers may make further triggers due."""
        after = begin.get((scope.partition, group))
        while True:
            work = await self._memory.work(scope.partition, group, after)
            items = [(key, row) for key, row in work.items if row.offset < ends[scope.partition]]
            if items:
                after = items[-1][0]
                ours = [row for _, row in items if scope.spaces is None or row.space in scope.spaces]
                yield after, [of_work(row, skip_loops=skip_loops) for row in ours]
            if work.last or len(items) < len(work.items):
                return

    async def close(self) -> None:
        """Close the reactors."""
        await self.answers.close()


class _Scope(NamedTuple):
    """The scope in which the loop searches for triggers: some spaces of a partition, or all of them."""

    partition: int
    spaces: Sequence[str] | None


_ReadTo = dict[tuple[int, int], str]
"""The last key of `due.now` that was read, by partition and group."""


class _Call:
    """The answers of one call of `react`, in the order in which the triggers were found."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._reactions: dict[str, Reaction | None] = {}
        self._errors: list[RecallogError] = []
        self._misconfigured = set[str]()
        self._answered = self._to_answer = 0

    def note_due(self, triggers_due: Sequence[DueTrigger], further: int) -> None:
        self._reactions |= dict.fromkeys((each.id for each in triggers_due), None)
        self._to_answer = len(self._reactions) + further

    def note_answer(self, trigger: DueTrigger, reaction: Reaction | None) -> None:
        self._reactions[trigger.id] = reaction
        self._answered += 1
        if self._progress is not None:
            self._progress(self._answered, self._to_answer)

    def note_failure(self, error: RecallogError, kind: str | None = None) -> None:
        """Note that a trigger stays due. If a model is misconfigured, an operator must correct it, and its kind is
        skipped."""
        if kind is not None and isinstance(error, ModelMisconfigured):
            self._misconfigured.add(kind)
        self._errors.append(error)

    def is_misconfigured(self, kind: str) -> bool:
        return kind in self._misconfigured

    def reactions(self) -> list[Reaction]:
        """The answers. Raises the first error."""
        for error in self._errors:
            raise error
        return [reaction for reaction in self._reactions.values() if reaction is not None]


class _Run:
    """The state of `ReactorLoop.run` between its passes."""

    def __init__(self, loop: ReactorLoop, space: str | None, published: asyncio.Event) -> None:
        self.published = published
        self._loop = loop
        self._space = space
        self._lanes = Lanes(self._answer, loop._at_once)
        self._errors: list[RecallogError] = []
        """The errors since the last report."""
        self._again_at = math.inf
        """The time at which everything is examined again, because views could not be read."""
        self._looked_at: dict[int, int] = {}
        self._read_to: _ReadTo = {}
        self._left_out = False
        """Whether triggers were left out because a reactor had too many waiting ones. They must be read again."""
        self._held = AsyncExitStack()
        self._holds = False

    def report(self, on_error: Callable[[RecallogError], float]) -> None:
        """Call `on_error` with the errors since the last call. Equal errors are reported once."""
        self._lanes.check()
        errors, self._errors = self._errors, []
        for error in {(type(error), str(error)): error for error in errors}.values():
            on_error(error)

    async def look(self) -> bool:
        """Have due triggers answered if something has changed. Returns whether something has changed."""
        if not len(self._lanes):
            await self.release()
            self._read_to = {}
        if self._left_out and len(self._lanes) < _WAITING_MAX // 2:
            self._left_out, self._read_to, self._looked_at = False, {}, {}
        if self._loop._failures.take_passed() or time.monotonic() >= self._again_at:
            self._again_at, self._read_to, self._looked_at = math.inf, {}, {}
        ends = await self._loop._ends(self._space)
        if ends == self._looked_at:
            return False
        scopes = [
            scope
            for partition, end in ends.items()
            if (scope := await self._loop._find_changed(self._space, partition, self._looked_at.get(partition, 0), end))
        ]
        if scopes:
            await self._hold()
            read_to = dict(self._read_to)
            async for found, _ in self._loop._due(scopes, read_to, self._views_failed, skip_loops=True):
                for trigger in found:
                    await self._take(trigger)
            self._read_to = read_to
            if not len(self._lanes):
                await self.release()
        self._looked_at = ends  # the former ends: later events, such as the answers, need another pass
        return True

    def _views_failed(self, error: RecallogError) -> None:
        self._errors.append(error)
        self._again_at = time.monotonic() + RETRY_SECONDS

    async def _take(self, trigger: DueTrigger) -> None:
        reactor = self._loop.answers.reactor_of(trigger.kind)
        if reactor is None or trigger.id in self._lanes or self._loop._failures.waits(trigger):
            return
        if is_local(reactor):
            await self._answer(trigger)
        elif self._lanes.of_reactor(reactor) < _WAITING_MAX:
            self._lanes.add(reactor, trigger)
        else:
            self._left_out = True

    async def _answer(self, trigger: DueTrigger) -> None:
        if self._loop._failures.waits(trigger):
            return  # the model of its kind was found misconfigured meanwhile; it is read again
        try:
            await self._loop._answer_unless_closed(trigger)
        except RecallogError as error:
            self._loop._failures.note_failure(trigger, error, RETRY_SECONDS)
            self._errors.append(error)
            self.published.set()
        else:
            self._loop._failures.note_answer(trigger)

    async def _hold(self) -> None:
        """Acquire the lock. It is held as long as triggers are being answered."""
        if not self._holds:
            await self._held.enter_async_context(self._loop._alone())
            self._holds = True

    async def release(self) -> None:
        """Release the lock, unless triggers are being answered."""
        if self._holds and not len(self._lanes):
            self._holds = False
            await self._held.aclose()

    async def close(self) -> None:
        """Cancel the answers in progress, and release the lock."""
        await self._lanes.cancel()
        self._holds = False
        await self._held.aclose()


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
    """A task that runs the loop while a memory is open. Errors are logged, and failed triggers are tried again."""

    def __init__(self, loop: ReactorLoop) -> None:
        self._published = asyncio.Event()
        self._task = asyncio.create_task(loop.run(None, _pause_after, self._published), name="recallog-reactor")

    def wake(self) -> None:
        """Wake the loop: events have been published."""
        self._published.set()

    async def stop(self) -> None:
        """Cancel the task and wait for its end."""
        await cancel_all(self._task)
        with suppress(asyncio.CancelledError):
            await self._task


def _pause_after(error: RecallogError) -> float:
    """Log an error. Returns the seconds to wait before the next attempt."""
    if isinstance(error, LockTimeout):
        return POLL_SECONDS  # not an error: another process is reacting
    _log.warning("%s: %s; trying again in %g s", type(error).__name__, error, RETRY_SECONDS)
    return RETRY_SECONDS
