"""The drivers: a projection, or a reactor, with a ledger and a store in memory."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import nullcontext, suppress
from typing import Any, TypeVar

import msgspec

from recallog import reacting
from recallog.composition import assemble
from recallog.memory import Memory
from recallog.reactors.answering import Answers
from recallog.reactors.loop import ReactorLoop
from recallog.reactors.reactor import DueTrigger, Reactor
from recallog_projections.projection import Projection
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.store import Generation, StoredRow
from recallog_projections.tables import Log, LogName, RowKey, Table
from recallog_projections.views import builtin
from recallog_schemas import Event, Position, codec, limits, triggers
from recallog_schemas.errors import InvalidEvent, InvariantViolation, ProjectionError
from recallog_schemas.views import PendingTrigger
from recallog_streams import dead_letters
from recallog_streams.dead_letters import DeadLetterRow
from recallog_streams.ledgers.ledger import Times
from recallog_streams.ledgers.memory import MemoryLedger
from recallog_streams.projector import Projector

Result = TypeVar("Result")
Row = TypeVar("Row", bound=msgspec.Struct)

_ROUNDS_MAX = 100
"""How often `ReactorDriver.check` lets a reactor answer triggers that its own answers make due."""


class ProjectionDriver:
    """A ledger and a store in memory, and the real projector between them.

    The projection is folded as by `Memory.open(projections=…)`, with the settings that it may read. A record that it
    cannot apply raises `ProjectionError`, unless `dead_letters_allowed`.
    """

    def __init__(self, projection: Projection, *, unique_ids: bool = True, dead_letters_allowed: bool = False) -> None:
        self._projections = builtin.with_settings(projection)
        self._unique_ids = unique_ids
        self._dead_letters_allowed = dead_letters_allowed
        self.ledger = MemoryLedger(unique_ids=unique_ids)
        self._projector, self._generation = self._fresh(self.ledger)

    def given(self, *events: Event) -> list[Position]:
        """Append events, fold them, and return their positions."""
        positions = _finish(self.ledger.append(events))
        self.fold()
        return positions

    def fold(self) -> None:
        """Fold all records of the ledger, for example after `driver.ledger.append_bytes(...)`."""
        _finish(self._projector.catch_up(self._generation, self._end()))
        letters = self.dead_letters()
        if letters and not self._dead_letters_allowed:
            first = letters[0]
            raise ProjectionError(f"the record at 0:{first.offset} is a dead letter: {first.reason}: {first.detail}")

    def row(self, table: Table[Row], space: str, owner: str = "", key: str = "") -> Row | None:
        """One row, None if it does not exist."""
        row_key = RowKey(table.name, space, owner, key)
        (data,) = _finish(self._projector.store.read(0, [row_key], generation=self._generation)).rows
        return None if data is None else table.decode(data)

    def log_entries(self, log: Log[Row], space: str, owner: str = "") -> list[Row]:
        """All entries that a log retains, oldest first."""
        wanted = [(LogName(log.name, space, owner), limits.LOG_EVENTS_MAX)]
        (tail,) = _finish(self._projector.store.read(0, logs=wanted, generation=self._generation)).logs
        return [log.decode(data) for data in tail.entries]

    def dead_letters(self) -> list[DeadLetterRow]:
        """The records that could not be applied, each with the reason."""
        return _finish(dead_letters.all_dead_letters(self._projector.store, self._generation))

    def check(self) -> None:
        """Raise `ProjectionError` if the rows depend on anything except the records, such as the ends of batches."""
        expected = self._all_rows(self._projector, self._generation)
        for batch_records in (1, 3):
            ledger = MemoryLedger(unique_ids=self._unique_ids, batch_records=batch_records)
            for data, appended in zip(self.ledger.values(), self.ledger.times(), strict=True):
                ledger.append_bytes(data, appended=appended)
            projector, generation = self._fresh(ledger)
            _finish(projector.catch_up(generation, self._end()))
            found = self._all_rows(projector, generation)
            for table, rows in expected.items():
                if found[table] != rows:
                    raise ProjectionError(
                        f"the rows of {table!r} differ when the same records are folded in batches of "
                        f"{batch_records}: does the projection keep state of its own, or use a clock or randomness?"
                    )

    def _fresh(self, ledger: MemoryLedger) -> tuple[Projector, Generation]:
        projector = Projector(ledger, MemoryStore(), self._projections)
        return projector, _finish(projector.first_generation(0, 0))

    def _end(self) -> int:
        (end,) = _finish(self.ledger.ends())
        return end

    def _all_rows(self, projector: Projector, generation: Generation) -> dict[str, list[StoredRow]]:
        rows = {}
        for table in projector.fold.tables:
            chunk = _finish(projector.store.scan(generation, table.name, limit=limits.AS_OF_RECORDS_MAX))
            rows[table.name] = list(chunk.items)
        return rows


class ReactorDriver:
    """A memory in this process whose triggers one reactor answers, one call at a time.

    `projections` make triggers of your own due, as with `Memory.open`. The built-in reactors do not answer. Each method
    runs an event loop, so it cannot be called inside one.
    """

    def __init__(
        self,
        reactor: Reactor,
        *,
        projections: Sequence[Projection] = (),
        unique_ids: bool = True,
        deadline_seconds: float = limits.REACTION_SECONDS,
    ) -> None:
        """Without `unique_ids` the ledger may store an event twice, as Kafka does."""
        self.reactor = reactor
        self.ledger = _CrashingLedger(unique_ids=unique_ids)
        self._projections = projections
        self._deadline_seconds = deadline_seconds

    def given(self, *events: Event) -> list[Position]:
        """Append events, and return their positions."""
        return list(self._run(lambda memory, _: memory.publish_many(events)))

    def events(self) -> list[Event]:
        """All events of the ledger in order, each id once."""
        found: dict[tuple[str, str], Event] = {}
        for data in self.ledger.values():
            with suppress(InvalidEvent):
                event = codec.decode(data)
                found.setdefault((event.space, event.id), event)
        return list(found.values())

    def triggers(self) -> list[DueTrigger]:
        """The triggers that are due and that the reactor answers, as it gets them."""
        found = self._run(lambda _, loop: loop.due())
        return [trigger for trigger in found if trigger.kind in self.reactor.kinds]

    def pending(self) -> list[PendingTrigger]:
        """All triggers that are due, including those of kinds that the reactor does not answer."""
        return list(self._run(lambda memory, _: memory.pending()))

    def answer(self, *, crash_after: int | None = None) -> list[Event]:
        """Let the reactor answer the due triggers, and return the events that were written, including the closing ones.

        With `crash_after`, the process ends after this number of events. The next call is a new process.
        """
        before = len(self.events())
        self.ledger.fails_after = crash_after
        with suppress(_Crashed):
            self._run(lambda _, loop: loop.react())
        self.ledger.fails_after = None
        return self.events()[before:]

    def check(self) -> None:
        """Raise `ProjectionError` if the result depends on the moment at which a process ends during an answer.

        Due triggers are answered until none is left, and again from the beginning with a crash after each event. Each
        trigger must then be closed once. The events of a `pure` reactor must be the same. The answer of any other
        reactor may end at the crash.
        """
        given = self.ledger.values()
        expected = self._until_nothing_is_due()
        for crash_after in range(len(expected)):
            self.ledger.reset(given)
            found = [*self.answer(crash_after=crash_after), *self._until_nothing_is_due()]
            closings = Counter(event.causation_id for event in found if triggers.named_by(event) is not None)
            twice = [id_ for id_, count in closings.items() if count > 1]
            if twice:
                raise ProjectionError(f"after a crash behind {crash_after} events {twice[0]} is closed twice")
            if self.reactor.pure and _content(found) != _content(expected):
                raise ProjectionError(
                    f"after a crash behind {crash_after} events the answers differ, but the reactor is pure: does it "
                    "use a clock, randomness, or what has changed since the trigger was due?"
                )

    def _until_nothing_is_due(self) -> list[Event]:
        found: list[Event] = []
        for _ in range(_ROUNDS_MAX):
            written = self.answer()
            if not written:
                return found
            found += written
        raise ProjectionError(f"after {_ROUNDS_MAX} rounds the answers still make something due")

    def _run(self, work: Callable[[Memory, ReactorLoop], Awaitable[Result]]) -> Result:
        """The result of `work` in a new process: its views are built from the ledger."""

        async def in_new_process() -> Result:
            components = assemble(self.ledger, lambda namespace: MemoryStore(), own=self._projections)
            memory = Memory(components, reactors=[_StaysOpen(self.reactor)], count_accesses=False)
            try:
                loop_memory = reacting.LoopMemory(memory, memory._access)
                self.reactor.attach(memory)
                answers = Answers(loop_memory, self.ledger, [self.reactor], deadline_seconds=self._deadline_seconds)
                return await work(memory, ReactorLoop(loop_memory, self.ledger, answers, nullcontext))
            finally:
                await memory.close()

        return asyncio.run(in_new_process())


def _content(events: Sequence[Event]) -> list[tuple[Any, ...]]:
    """The events, each once, in the form that must be the same after a repeat."""
    told = {(e.space, e.id): (e.id, e.kind, e.at, e.turn, e.session, e.payload) for e in events}
    return [told[key] for key in sorted(told)]


class _StaysOpen(Reactor):
    """Calls another reactor, which it does not close."""

    immediate = True

    def __init__(self, reactor: Reactor) -> None:
        self.kinds = reactor.kinds  # type: ignore[misc]
        self.pure = reactor.pure  # type: ignore[misc]
        self._reactor = reactor

    def attach(self, memory: Any) -> None:
        self._reactor.attach(memory)

    async def answer(self, trigger: DueTrigger) -> Sequence[Event] | None:
        return await self._reactor.answer(trigger)


class _Crashed(BaseException):
    """The process has ended. It is not an `Exception`, so that nothing continues after it."""


class _CrashingLedger(MemoryLedger):
    """A ledger whose process ends after some of the next events."""

    fails_after: int | None = None

    async def append(self, events: Sequence[Event], appended: Times = None) -> list[Position]:
        if self.fails_after is None:
            return await super().append(events, appended)
        room, self.fails_after = self.fails_after, max(0, self.fails_after - len(events))
        positions = await super().append(events[:room], None if appended is None else appended[:room])
        if room < len(events):
            raise _Crashed
        return positions

    def reset(self, values: Sequence[bytes]) -> None:
        """Replace all records by these."""
        self._values, self._appended, self._offsets = [], [], {}
        for data in values:
            try:
                _finish(super().append([codec.decode(data)]))
            except InvalidEvent:
                self.append_bytes(data)


def _finish(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """The result of a coroutine that never waits, because ledger and store are in memory. Works inside an event loop
    too."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    raise InvariantViolation("a ledger or store in memory waited")
