"""The loop that runs reactors: it finds the triggers that are due, publishes the answers, and closes the triggers.

The ids of answers follow from the id of their trigger. After a crash between the answer and the append, the reactor is
therefore asked again, but only one answer counts. The same holds for two processes that answer at the same time.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from itertools import chain
from typing import Any, NamedTuple, Protocol

from recallog.reactors.reactor import DueTrigger, Reactor
from recallog_projections.views.due import Scheduled, Work
from recallog_schemas import Event, Position, codec, limits, timestamps, triggers
from recallog_schemas.errors import (
    IdConflict,
    InvalidEvent,
    InvariantViolation,
    LockTimeout,
    ModelFailed,
    ModelMisconfigured,
    RecallogError,
)
from recallog_schemas.views import PendingTrigger, Reaction
from recallog_streams.concurrency import ended, gathered
from recallog_streams.ledgers.ledger import Ledger, record_at

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
_PARTS_AT_ONCE = 64
"""How many answers of an interrupted reaction are looked for at a time."""

_log = logging.getLogger("recallog.reactor")

Progress = Callable[[int, int], None]
"""Called with (triggers answered, triggers to answer)."""


class DueWork(NamedTuple):
    """Some of the triggers that one event each made due in a partition."""

    rows: Sequence[Work]
    """In the order of these events."""
    after: str | None
    """Where the next ones begin; None after the last ones."""


class ReactorMemory(Protocol):
    """What the loop needs of a memory."""

    async def catch_up(self, partition: int) -> None:
        """Wait until the built-in views of one partition have processed what the ledger holds now."""

    async def reflections(self, partition: int, spaces: Sequence[str] | None) -> Sequence[PendingTrigger]:
        """The reflections that are due in a partition; with `spaces`, only in these spaces of it."""

    async def scheduled(self, partition: int, spaces: Sequence[str] | None) -> Sequence[Scheduled]:
        """The triggers of a partition whose time has come; with `spaces`, only in these spaces of it."""

    async def work(self, partition: int, after: str | None) -> DueWork:
        """The next of the other triggers that are due in a partition, from the first one or behind `after`."""

    async def known(self, space: str, ids: Sequence[str]) -> Collection[str]:
        """Those of the ids that events of the space have."""

    async def publish(self, events: Sequence[Event]) -> Sequence[Position]:
        """Write events, all or none, and return their positions once they are durable. Raises `IdConflict`."""


class ReactorLoop:
    """Answers the triggers of one memory. `lock` ensures that only one process does so at a time."""

    def __init__(
        self,
        memory: ReactorMemory,
        ledger: Ledger,
        reactors: Sequence[Reactor],
        lock: Callable[[], AbstractAsyncContextManager[Any]],
    ) -> None:
        self._memory = memory
        self._ledger = ledger
        self._reactors = reactors
        self._by_kind = {kind: reactor for reactor in reactors for kind in reactor.kinds}
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
            return await self._answer(trigger)
        except ModelMisconfigured as error:
            misconfigured[trigger.kind] = error
            return None

    def _is_pure(self, trigger: DueTrigger) -> bool:
        reactor = self._by_kind.get(trigger.kind)
        return reactor is not None and reactor.pure

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

    async def _answer(self, trigger: DueTrigger) -> Reaction | None:
        """The published answer; None for a trigger that no reactor answers, or that its reactor leaves."""
        reactor = self._by_kind.get(trigger.kind)
        parsed = triggers.parse(trigger.id)
        if reactor is None or parsed is None:
            return None
        written = 0 if reactor.pure else await self._written(trigger.space, parsed)
        try:
            events = [] if written else await reactor.answer(trigger)
            if events is None:
                return None
            answer = answer_of(trigger, parsed, reactor, events, written)
        except (InvalidEvent, ModelFailed) as error:
            answer = [_failed(trigger, parsed, reactor, str(error))]
        except RecallogError:
            raise
        except Exception as error:  # noqa: BLE001 - code of users: what it cannot answer must not stop the others
            answer = [_failed(trigger, parsed, reactor, f"{type(error).__name__}: {error}")]
        try:
            position = await self._publish(answer)
        except InvalidEvent as error:  # an event that is too large
            position = await self._publish([_failed(trigger, parsed, reactor, str(error))])
        # If another process answered first, the position is that of its answer, which is the one that counts.
        data = await record_at(self._ledger, position.partition, position.offset)
        reaction = Reaction.of(codec.decode(data), position) if data is not None else None
        if reaction is None:
            raise InvariantViolation(f"the record at {position} is not the answer that was published")
        return reaction

    async def _written(self, space: str, trigger: triggers.Trigger) -> int:
        """How many answers of the trigger an interrupted reaction has written."""
        count, size = 0, 1
        while True:
            ids = [trigger.part_id(count + number) for number in range(1, size + 1)]
            known = await self._memory.known(space, ids)
            missing = next((number for number, id_ in enumerate(ids) if id_ not in known), None)
            if missing is not None:
                return count + missing
            count, size = count + size, _PARTS_AT_ONCE

    async def _publish(self, answer: Sequence[Event]) -> Position:
        """Write an answer; the position of its last event, which closes the trigger."""
        position = None
        for start in range(0, len(answer), limits.APPEND_EVENTS_MAX):
            part = answer[start : start + limits.APPEND_EVENTS_MAX]
            try:
                position = (await self._memory.publish(part))[-1]
            except IdConflict:
                position = [await self._publish_under_free_id(event) for event in part][-1]
        if position is None:
            raise InvariantViolation("an answer has no events")
        return position

    async def _publish_under_free_id(self, event: Event) -> Position:
        """Write an event, under another id if a foreign event has its own: its causation_id still names the trigger."""
        try:
            (position,) = await self._memory.publish([event])
        except IdConflict:
            free = event.model_copy(update={"id": f"{event.id}/{secrets.token_hex(8)}"})
            (position,) = await self._memory.publish([free])
        return position

    async def close(self) -> None:
        for reactor in self._reactors:
            await reactor.close()


class _Scope(NamedTuple):
    """Where the loop looks for triggers: in some spaces of a partition, or in all of them."""

    partition: int
    spaces: Sequence[str] | None


def _only(space: str | None) -> Sequence[str] | None:
    return None if space is None else (space,)


def of_work(work: Work, *, skip_loops: bool) -> DueTrigger:
    """The trigger in a row of `due.now`."""
    return DueTrigger(
        work.trigger,
        work.kind,
        work.space,
        work.agent,
        skip_loops,
        work.cause,
        timestamps.moment_of(work.at),
        work.turn,
        work.session,
        work.texts,
        work.entries,
        work.since,
        work.offset,
    )


def answer_of(
    trigger: DueTrigger, parsed: triggers.Trigger, reactor: Reactor, events: Sequence[Event], written: int
) -> list[Event]:
    """The events of an answer with their ids, the closing one last; `written` of them are in the ledger already."""
    closes = bool(events) and events[-1].id == parsed.answer_id
    parts = [
        _of_trigger(event, trigger, reactor, parsed.part_id(number))
        for number, event in enumerate(events[:-1] if closes else events, start=1)
    ]
    if closes:
        return [*parts, events[-1]]
    done = {"trigger": trigger.id, "events": written or len(parts)}
    return [*parts, _closing(trigger, parsed, reactor, triggers.DONE, done)]


def _of_trigger(event: Event, trigger: DueTrigger, reactor: Reactor, id_: str) -> Event:
    if (event.space, event.agent) != (trigger.space, trigger.agent):
        raise InvalidEvent(
            f"an answer for {trigger.agent!r} in {trigger.space!r} cannot be an event of {event.agent!r} in "
            f"{event.space!r}",
            path="agent",
            rule="answer",
        )
    update: dict[str, Any] = {"id": id_, "causation_id": trigger.id}
    if reactor.pure:
        update |= {"at": trigger.at or event.at, "turn": trigger.turn, "session": trigger.session}
    return event.model_copy(update=update)


def _closing(
    trigger: DueTrigger, parsed: triggers.Trigger, reactor: Reactor, kind: str, payload: dict[str, Any]
) -> Event:
    closing = Event(
        space=trigger.space,
        agent=trigger.agent,
        kind=kind,
        turn=trigger.turn,
        session=trigger.session,
        payload=payload,
    )
    return _of_trigger(closing, trigger, reactor, parsed.answer_id)


def _failed(trigger: DueTrigger, parsed: triggers.Trigger, reactor: Reactor, reason: str) -> Event:
    kind = "reflection.failed" if trigger.kind == triggers.REFLECTION else triggers.FAILED
    said = reason.encode("utf-8", "replace").decode()[: limits.REFLECTOR_REASON_CHARS_MAX]
    return _closing(trigger, parsed, reactor, kind, {"trigger": trigger.id, "reason": said})


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
