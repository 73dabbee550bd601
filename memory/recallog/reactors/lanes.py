"""Lanes: several triggers are answered at a time. Reactors and agents take turns."""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable

from recallog.reactors.reactor import DueTrigger, Reactor, is_local
from recallog_projections.concurrency import cancel_all
from recallog_schemas import limits

_Lane = tuple[Reactor, str, str]
"""Reactor, space and agent. Triggers of a rule have no order, so each has a separate lane: the third item is its id."""


class Lanes:
    """Runs `answer` for triggers: at most `at_once` for each reactor, and for each of its agents one at a time.

    Therefore a slow or unreachable model delays neither the other reactors nor, below `at_once` calls, the other
    agents. Agents take turns. Reactors that do not wait for a model or a server share one bound, and take turns too:
    they use the processor that the fold needs, and a kind with many triggers must not delay other kinds.
    """

    def __init__(
        self,
        answer: Callable[[DueTrigger], Awaitable[None]],
        at_once: int,
        local_at_once: int = limits.LOCAL_REACTIONS_AT_ONCE,
    ) -> None:
        """At most `local_at_once` triggers are answered at a time by all reactors that are pure or immediate.

        Errors of `answer` are raised by `below` and `check`. After an error, nothing is started.
        """
        self._answer = answer
        self._at_once = at_once
        self._local_at_once = local_at_once
        self._ids = set[str]()
        self._lanes = dict[_Lane, deque[DueTrigger]]()
        """A lane exists while one of its triggers runs or waits."""
        self._ready = dict[Reactor, deque[_Lane]]()
        """The lanes that wait, by reactor. The reactor that has waited longest for its turn is first."""
        self._tasks = set[asyncio.Task[None]]()
        self._running = Counter[Reactor]()
        self._of_reactor = Counter[Reactor]()
        """The number of triggers of each reactor that run or wait."""
        self._changed = asyncio.Event()
        self._error: BaseException | None = None

    def __len__(self) -> int:
        """The number of triggers that run or wait."""
        return len(self._ids)

    def __contains__(self, id_: str) -> bool:
        """Whether the trigger with this id runs or waits."""
        return id_ in self._ids

    def of_reactor(self, reactor: Reactor) -> int:
        """The number of triggers of a reactor that run or wait."""
        return self._of_reactor[reactor]

    def add(self, reactor: Reactor, trigger: DueTrigger) -> None:
        """Have a trigger answered, unless it already runs or waits."""
        if trigger.id in self._ids:
            return
        self._ids.add(trigger.id)
        self._of_reactor[reactor] += 1
        lane = reactor, trigger.space, trigger.id if reactor.pure else trigger.agent
        if lane in self._lanes:
            self._lanes[lane].append(trigger)
            return
        self._lanes[lane] = deque([trigger])
        self._ready.setdefault(reactor, deque()).append(lane)
        self._start()

    def _start(self) -> None:
        """Start as many triggers as the bounds allow, one lane of each reactor in turn."""
        while (reactor := next(filter(self._may_start, self._ready), None)) is not None:
            ready = self._ready.pop(reactor)
            lane = ready.popleft()
            if ready:
                self._ready[reactor] = ready
            self._running[reactor] += 1
            self._tasks.add(asyncio.create_task(self._answer_next(lane), name="recallog-reaction"))

    def _may_start(self, reactor: Reactor) -> bool:
        if not is_local(reactor):
            return self._running[reactor] < self._at_once
        return sum(count for each, count in self._running.items() if is_local(each)) < self._local_at_once

    async def _answer_next(self, lane: _Lane) -> None:
        trigger = self._lanes[lane].popleft()
        try:
            await self._answer(trigger)
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            self._error = self._error or error
        finally:
            self._ids.discard(trigger.id)
            self._of_reactor[lane[0]] -= 1
            self._finish(lane)

    def _finish(self, lane: _Lane) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.discard(task)
        self._running[lane[0]] -= 1
        if self._lanes[lane]:
            self._ready.setdefault(lane[0], deque()).append(lane)
        else:
            del self._lanes[lane]
        if self._error is None:
            self._start()
        self._changed.set()

    def check(self) -> None:
        """Raise the first error, if there was one."""
        if self._error is not None:
            raise self._error

    async def below(self, count: int) -> None:
        """Wait until fewer than `count` triggers run or wait."""
        while len(self) >= count and self._error is None:
            self._changed.clear()
            await self._changed.wait()
        self.check()

    async def cancel(self) -> None:
        """Drop the triggers that wait, cancel those that run, and wait for their end."""
        self._error = self._error or asyncio.CancelledError()  # nothing is started after this
        await cancel_all(*self._tasks)
