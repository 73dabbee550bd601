"""Answers: from a trigger that is due to the events that answer it, published under the ids that follow from it.

The ids of answers follow from the id of their trigger. After a crash between the answer and the append, the reactor is
therefore asked again, but only one answer counts. The same holds for two processes that answer at the same time.
"""

import asyncio
import secrets
from collections.abc import Collection, Sequence
from contextlib import AsyncExitStack
from typing import Any, Protocol

from recallog.reactors.misconfigured import Misconfigured
from recallog.reactors.pace import Pace
from recallog.reactors.reactor import DueTrigger, Reactor
from recallog_projections.views.due import Work
from recallog_schemas import Event, Position, codec, limits, timestamps, triggers
from recallog_schemas.errors import (
    IdConflict,
    InvalidEvent,
    InvariantViolation,
    ModelFailed,
    ModelMisconfigured,
    RecallogError,
)
from recallog_schemas.views import Reaction
from recallog_streams.ledgers.ledger import Ledger, record_at

_FREE_PARTS = 100_000_000
"""The first of the numbers, beyond those of the parts of any answer, that a closing event gets if its id is taken."""
_PARTS_AT_ONCE = 64
"""How many answers of an interrupted reaction are looked for at a time."""


class AnswerMemory(Protocol):
    """What answers need of a memory."""

    async def known(self, space: str, ids: Sequence[str]) -> Collection[str]:
        """Those of the ids that events of the space have."""

    async def is_taken(self, space: str, trigger: str, id_: str) -> bool:
        """Whether a trigger is due although an event has the id of its answer: a foreign one, which answers nothing."""

    async def publish(self, events: Sequence[Event]) -> Sequence[Position]:
        """Write events, all or none, and return their positions once they are durable. Raises `IdConflict`."""


Rank = tuple[int, bool]
"""Less is earlier: the negative priority of a reactor, and whether it does more than follow a rule."""


class Answers:
    """Asks reactors, and publishes what they answer."""

    def __init__(
        self,
        memory: AnswerMemory,
        ledger: Ledger,
        reactors: Sequence[Reactor],
        pace: Pace | None = None,
        deadline_seconds: float = limits.REACTION_SECONDS,
    ) -> None:
        """`pace` limits how often reactors are asked that do not follow a rule; None: they are not limited.

        A trigger whose reactor takes longer than `deadline_seconds` is closed by `reaction.failed`.
        """
        self._memory = memory
        self._ledger = ledger
        self._reactors = reactors
        # Of two reactors for one kind the first one answers: a user's stands before the one that is built in.
        self._by_kind = {kind: reactor for reactor in reversed(reactors) for kind in reactor.kinds}
        self._pace = pace or Pace(None)
        self._deadline_seconds = deadline_seconds

    @property
    def misconfigured(self) -> list[ModelMisconfigured]:
        """What is wrong with the settings of reactors that cannot answer until they change."""
        return [each.error for each in self._by_kind.values() if isinstance(each, Misconfigured)]

    def reactor_of(self, kind: str) -> Reactor | None:
        """The reactor that answers triggers of a kind; None if there is none."""
        return self._by_kind.get(kind)

    @property
    def ranks(self) -> list[Rank]:
        """The ranks of all triggers that there may be, in the order in which they are taken."""
        return sorted({self.rank_of(kind) for kind in ("", *self._by_kind)})

    def rank_of(self, kind: str) -> Rank:
        """When triggers of a kind are taken. Those that no reactor answers have the priority 0."""
        reactor = self._by_kind.get(kind)
        return (0, True) if reactor is None else (-reactor.priority, not reactor.pure)

    async def answer(self, trigger: DueTrigger) -> Reaction | None:
        """The published answer; None for a trigger that no reactor answers, or that its reactor leaves."""
        reactor = self._by_kind.get(trigger.kind)
        parsed = triggers.parse(trigger.id)
        if reactor is None or parsed is None:
            return None
        written = 0 if reactor.pure else await self._written(trigger.space, parsed)
        try:
            events = [] if written else await self._asked(reactor, trigger)
            if events is None:
                return None
            answer = answer_of(trigger, parsed, reactor, events, written)
        except (InvalidEvent, ModelFailed) as error:
            answer = [_failed(trigger, parsed, reactor, str(error))]
        except RecallogError:
            raise
        except Exception as error:  # noqa: BLE001 - code of users: what it cannot answer must not stop the others
            answer = [_failed(trigger, parsed, reactor, f"{type(error).__name__}: {error}")]
        answer = await self._closing(answer, parsed)
        try:
            position = await self._publish(answer)
        except InvalidEvent as error:  # an event that is too large
            answer = await self._closing([_failed(trigger, parsed, reactor, str(error))], parsed)
            position = await self._publish(answer)
        closing: Event | None = answer[-1]
        if self._ledger.unique_ids:
            # If another process answered first, the position is that of its answer, which is the one that counts.
            data = await record_at(self._ledger, position.partition, position.offset)
            closing = None if data is None else codec.decode(data)
        reaction = None if closing is None else Reaction.of(closing, position)
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

    async def _closing(self, answer: list[Event], trigger: triggers.Trigger) -> list[Event]:
        """The answer, with another id for its last event if a foreign event has the one that closes the trigger.

        A ledger with unique ids refuses such an event. On any other one the views take it for a repeat, and the trigger
        would never be closed. The other id follows from the trigger too, so that one answer counts.
        """
        last, number = answer[-1], _FREE_PARTS
        if self._ledger.unique_ids:
            return answer
        id_ = last.id
        while await self._memory.is_taken(last.space, trigger.id, id_):
            id_, number = trigger.part_id(number), number + 1
        return answer if id_ == last.id else [*answer[:-1], last.model_copy(update={"id": id_})]

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

    async def _asked(self, reactor: Reactor, trigger: DueTrigger) -> Sequence[Event] | None:
        if not reactor.pure and not reactor.immediate:
            await self._pace.turn()
        try:
            async with asyncio.timeout(self._deadline_seconds) as deadline:
                return await reactor.answer(trigger)
        except TimeoutError:
            if deadline.expired():
                raise ModelFailed(f"no answer within {self._deadline_seconds:g} s", retryable=False) from None
            raise
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # Nobody has cancelled this task: the reactor waited for one of its own that was.
            raise ModelFailed("a task of the reactor was cancelled", retryable=False) from None

    async def close(self) -> None:
        """Close the reactors."""
        async with AsyncExitStack() as closing:  # all of them, also if one fails
            for reactor in self._reactors:
                closing.push_async_callback(reactor.close)


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
