"""Answers: makes the events that answer a due trigger, and publishes them under ids that depend on the trigger.

The ids of answers depend on the ids of their triggers and on their contents. If a trigger has several answers, the
views count one of them (`recallog_streams.answers`). Therefore a repeat after a crash between answer and append changes
nothing, and neither does a second process that answers at the same time. If an answer was interrupted, it is closed
with the events that were written.
"""

import asyncio
import hashlib
import logging
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Protocol

from recallog.reactors.misconfigured import Misconfigured
from recallog.reactors.pace import Pace
from recallog.reactors.reactor import DueTrigger, Reactor, is_local
from recallog_projections.concurrency import CANCELLED_AGAIN_SECONDS, cancel_all
from recallog_projections.views.due import Work
from recallog_schemas import Event, Position, codec, limits, repeats, timestamps, triggers
from recallog_schemas.errors import (
    IdConflict,
    InvalidEvent,
    InvariantViolation,
    ModelFailed,
    ModelMisconfigured,
    RecallogError,
)
from recallog_schemas.views import Reaction
from recallog_streams.answers import DIGEST, Answer
from recallog_streams.ledgers.ledger import Ledger, record_at

_DIGEST_BYTES = 5

_log = logging.getLogger("recallog.reactor")


class AnswerMemory(Protocol):
    """The parts of a memory that answers use."""

    async def begun(self, space: str, trigger: str) -> Answer | None:
        """The answer to a trigger that the views have, even if it is incomplete; None without one."""

    async def is_taken(self, space: str, trigger: str, id_: str) -> bool:
        """Whether a trigger is still due although an event with the id of its closing event exists."""

    async def publish(self, events: Sequence[Event], keys: Collection[str] = ()) -> Sequence[Position]:
        """Write events, all or none of them, and return their positions once they are durable. They are also sealed
        with `keys`.

        Raises `IdConflict`, and `SourcesErased` if one of the keys was destroyed.
        """

    async def keys_at(self, space: str, offsets: Iterable[int]) -> Collection[str]:
        """The ids of the keys of the records at some offsets."""


Rank = tuple[int, bool]
"""Lower ranks come first: the negative priority of a reactor, and whether it is not pure."""


class Answers:
    """Calls reactors, and publishes their answers."""

    def __init__(
        self,
        memory: AnswerMemory,
        ledger: Ledger,
        reactors: Sequence[Reactor],
        pace: Pace | None = None,
        deadline_seconds: float = limits.REACTION_SECONDS,
    ) -> None:
        """`pace` limits how often reactors that are not pure are called; None: no limit.

        A trigger whose reactor takes longer than `deadline_seconds` is closed by `reaction.failed`.
        """
        self._memory = memory
        self._ledger = ledger
        self._reactors = reactors
        # If a kind has two reactors, the first one answers: a user's reactor precedes the built-in one.
        self._by_kind = {kind: reactor for reactor in reversed(reactors) for kind in reactor.kinds}
        self._pace = pace or Pace(None)
        self._deadline_seconds = deadline_seconds
        self._left: dict[asyncio.Task[Sequence[Event] | None], tuple[Reactor, str]] = {}
        """The cancelled calls of reactors that have not ended yet, each with the id of its trigger."""

    @property
    def misconfigured(self) -> list[ModelMisconfigured]:
        """The errors in the settings of reactors that cannot answer until the settings change."""
        return [each.error for each in self._by_kind.values() if isinstance(each, Misconfigured)]

    def reactor_of(self, kind: str) -> Reactor | None:
        """The reactor that answers triggers of a kind; None if there is none."""
        return self._by_kind.get(kind)

    @property
    def ranks(self) -> list[Rank]:
        """All possible ranks of triggers, in the order in which triggers are taken."""
        return sorted({self.rank_of(kind) for kind in ("", *self._by_kind)})

    def rank_of(self, kind: str) -> Rank:
        """The rank of triggers of a kind. Triggers without a reactor have the priority 0."""
        reactor = self._by_kind.get(kind)
        return (0, True) if reactor is None else (-reactor.priority, not reactor.pure)

    async def answer(self, trigger: DueTrigger) -> Reaction | None:
        """The published answer; None if the trigger is closed, if it has no reactor, or if its reactor leaves it."""
        reactor = self._by_kind.get(trigger.kind)
        parsed = triggers.parse(trigger.id)
        if reactor is None or parsed is None:
            return None
        begun = await self._memory.begun(trigger.space, trigger.id)
        if begun is not None and begun.closed:
            return None
        if begun is not None and not reactor.pure:
            return await self._close_trigger(_rest_of(begun, trigger, parsed, reactor), parsed)
        keys: Collection[str] | None = None
        try:
            events = await self._ask_reactor(reactor, trigger)
            if events is None:
                return None
            keys = await self._keys_of(trigger)
            answer = answer_of(trigger, parsed, reactor, events, keys)
            if triggers.named_by(answer[-1]) is None:
                raise InvalidEvent(
                    f"{answer[-1].kind} does not close {trigger.kind}: the last event that answers it is "
                    f"{triggers.kind_of(trigger.kind).answer}",
                    path="kind",
                    rule="answer",
                )
        except (InvalidEvent, ModelFailed) as error:
            answer = _make_failures(trigger, parsed, reactor, str(error))
        except RecallogError:
            raise
        except Exception as error:  # noqa: BLE001 - code of users: what it cannot answer must not stop the others
            answer = _make_failures(trigger, parsed, reactor, f"{type(error).__name__}: {error}")
        keys = await self._keys_of(trigger) if keys is None else keys
        if begun is not None and answer[-1].payload.get(DIGEST) != begun.digest:
            answer = _rest_of(begun, trigger, parsed, reactor)
        try:
            return await self._close_trigger(answer, parsed, keys)
        except InvalidEvent as error:  # an event that is too large
            return await self._close_trigger(_make_failures(trigger, parsed, reactor, str(error)), parsed, keys)

    async def _close_trigger(
        self, answer: Sequence[Event], trigger: triggers.Trigger, keys: Collection[str] = ()
    ) -> Reaction:
        """Publish an answer. If another event, or an erased answer, has the id of the closing event, the last event
        gets another id.

        A ledger with unique ids would refuse a repeated id. On any other ledger, the views would treat the event as a
        repeat, and the trigger would never be closed. The other ids depend on the trigger too, so that one answer
        counts.
        """
        *parts, closing = answer
        number = 0
        while True:
            closing = closing.model_copy(update={"id": trigger.closing_id(number)})
            number += 1
            if not self._ledger.unique_ids and await self._is_taken(closing, trigger):
                continue
            try:
                position = await self._publish([*parts, closing], keys)
            except IdConflict:
                if await self._is_taken(closing, trigger):
                    continue
                raise
            counts = await self._at(position) if self._ledger.unique_ids else closing
            if counts.is_erased:
                continue
            reaction = Reaction.of(counts, position)
            # If another process answered first, the position is that of its answer, which counts, unless it belongs to
            # an answer that was not the first.
            if reaction is None:
                raise InvariantViolation(f"the record at {position} is not the answer that was published")
            if counts == closing or not await self._is_taken(closing, trigger):
                return reaction

    async def _is_taken(self, closing: Event, trigger: triggers.Trigger) -> bool:
        return await self._memory.is_taken(closing.space, trigger.id, closing.id)

    async def _at(self, position: Position) -> Event:
        data = await record_at(self._ledger, position.partition, position.offset)
        if data is None:
            raise InvariantViolation(f"there is no record at {position}, where an answer was published")
        return codec.decode(data)

    async def _keys_of(self, trigger: DueTrigger) -> Collection[str]:
        """The keys of the sources of an answer."""
        return await self._memory.keys_at(trigger.space, trigger.read | {trigger.offset} - {-1})

    async def _publish(self, answer: Sequence[Event], keys: Collection[str]) -> Position:
        """Write an answer. Returns the position of its last event, which closes the trigger."""
        position = None
        for start in range(0, len(answer), limits.APPEND_EVENTS_MAX):
            position = (await self._memory.publish(answer[start : start + limits.APPEND_EVENTS_MAX], keys))[-1]
        if position is None:
            raise InvariantViolation("an answer has no events")
        return position

    async def _ask_reactor(self, reactor: Reactor, trigger: DueTrigger) -> Sequence[Event] | None:
        left = sum(each is reactor for each, _ in self._left.values())
        if left >= limits.REACTIONS_LEFT_MAX:
            raise ModelMisconfigured(
                f"{left} calls of {_name(reactor)} continue after their deadline: it catches asyncio.CancelledError. "
                "Correct it, and start the process again"
            )
        if not is_local(reactor):
            await self._pace.turn()
        # A separate task, since a reactor that catches its cancellation must delay neither its deadline nor its
        # canceller.
        task: asyncio.Task[Sequence[Event] | None] = asyncio.create_task(
            reactor.answer(trigger), name=f"recallog-reactor-{trigger.kind}"
        )
        try:
            await asyncio.wait([task], timeout=self._deadline_seconds)
        finally:
            if not task.done():
                task.cancel()
                self._left[task] = reactor, trigger.id
                task.add_done_callback(self._forget_task)
        if not task.done():
            raise ModelFailed(f"no answer within {self._deadline_seconds:g} s", retryable=False)
        if task.cancelled():  # the reactor waited for its own task, which was cancelled
            raise ModelFailed("a task of the reactor was cancelled", retryable=False)
        return task.result()

    def _forget_task(self, task: "asyncio.Task[Sequence[Event] | None]") -> None:
        del self._left[task]
        if not task.cancelled():
            task.exception()  # retrieved, or asyncio logs it

    async def close(self) -> None:
        """Close the reactors. Raises the first of their errors.

        After `limits.REACTORS_CLOSE_SECONDS`, calls of reactors that do not end are abandoned, and so are reactors
        that do not close. A warning names them.
        """
        closing = {asyncio.create_task(each.close(), name="recallog-reactor-close"): each for each in self._reactors}
        now = asyncio.get_running_loop().time
        give_up = now() + limits.REACTORS_CLOSE_SECONDS
        calls = await cancel_all(*self._left, seconds=limits.REACTORS_CLOSE_SECONDS)
        if closing:
            await asyncio.wait(closing, timeout=max(0.0, give_up - now()))
        open_ = await cancel_all(*(task for task in closing if not task.done()), seconds=CANCELLED_AGAIN_SECONDS)
        for task, (reactor, trigger) in self._left.items():
            if task in calls:
                _log.warning("%s is left: it still answers %s, which was cancelled", _name(reactor), trigger)
        for task, reactor in closing.items():
            if task in open_:
                _log.warning("%s is left: it does not close", _name(reactor))
            elif not task.cancelled() and (error := task.exception()) is not None:
                raise error


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
    trigger: DueTrigger,
    parsed: triggers.Trigger,
    reactor: Reactor,
    events: Sequence[Event],
    keys: Collection[str] = (),
) -> list[Event]:
    """The events of an answer with their ids, the closing one last. `keys` are the keys of its sources."""
    last, kind = events[-1] if events else None, triggers.kind_of(trigger.kind)
    closes = last is not None and (last.id == parsed.answer_id or (kind.has_own_answer and last.kind in kind.closings))
    parts = [_of_trigger(event, trigger, reactor) for event in (events[:-1] if closes else events)]
    digest = _digest_of(parts, keys)
    parts = [part.model_copy(update={"id": parsed.part_id(digest, n)}) for n, part in enumerate(parts, start=1)]
    if last is None or not closes:
        done = {"trigger": trigger.id, "events": len(parts), DIGEST: digest}
        return [*parts, _closing(trigger, parsed, reactor, triggers.DONE, done)]
    closing = _of_trigger(last, trigger, reactor)
    if parts or closing.kind in triggers.CLOSINGS:
        closing = closing.model_copy(update={"payload": {**closing.payload, DIGEST: digest}})
    return [*parts, closing]


def _digest_of(parts: Sequence[Event], keys: Collection[str]) -> str:
    """The digest of an answer. Equal answers of different processes have the same digest.

    It covers the ids of keys, so that the next answer after an erasure has other ids than the erased one.
    """
    digest = hashlib.blake2b("".join(sorted(keys)).encode(), digest_size=_DIGEST_BYTES)
    for number, part in enumerate(parts):
        digest.update(repeats.content_of(part.model_copy(update={"id": str(number)})))
    return digest.hexdigest()


def _rest_of(begun: Answer, trigger: DueTrigger, parsed: triggers.Trigger, reactor: Reactor) -> list[Event]:
    """The event that closes an answer which was begun and not completed."""
    if triggers.kind_of(trigger.kind).has_own_answer:
        return _make_failures(trigger, parsed, reactor, f"its process ended after {begun.parts} events", begun.digest)
    done = {"trigger": trigger.id, "events": begun.parts, DIGEST: begun.digest}
    return [_closing(trigger, parsed, reactor, triggers.DONE, done)]


def _of_trigger(event: Event, trigger: DueTrigger, reactor: Reactor) -> Event:
    if (event.space, event.agent) != (trigger.space, trigger.agent):
        raise InvalidEvent(
            f"an answer for {trigger.agent!r} in {trigger.space!r} cannot be an event of {event.agent!r} in "
            f"{event.space!r}",
            path="agent",
            rule="answer",
        )
    update: dict[str, Any] = {"causation_id": trigger.id}
    if reactor.pure:
        update |= {"at": trigger.at or event.at, "turn": trigger.turn, "session": trigger.session}
    return event.model_copy(update=update)


def _closing(
    trigger: DueTrigger, parsed: triggers.Trigger, reactor: Reactor, kind: str, payload: dict[str, Any]
) -> Event:
    closing = Event(
        id=parsed.answer_id,
        space=trigger.space,
        agent=trigger.agent,
        kind=kind,
        turn=trigger.turn,
        session=trigger.session,
        payload=payload,
    )
    return _of_trigger(closing, trigger, reactor)


def _make_failures(
    trigger: DueTrigger, parsed: triggers.Trigger, reactor: Reactor, reason: str, digest: str | None = None
) -> list[Event]:
    """The answer of a reactor that has failed."""
    said = reason.encode("utf-8", "replace").decode()[: limits.ASKED_REASON_CHARS_MAX]
    payload = {"trigger": trigger.id, "reason": said}
    kind = triggers.kind_of(trigger.kind)
    if digest is None and not kind.has_own_answer:
        digest = _digest_of([], ())
    more = {} if digest is None else {DIGEST: digest}
    return [_closing(trigger, parsed, reactor, kind.failure, payload | more)]


def _name(reactor: Reactor) -> str:
    return f"{type(reactor).__module__}.{type(reactor).__qualname__}"
