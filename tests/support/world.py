"""A simulation, by a seed: producers, readers, reactors, rebuilders and operators on one ledger and one store.

Processes are killed at any call of ledger or store, calls fail before or after they take effect, and the store is lost
or replaced by an older copy. For a while the storage is full or read-only, a stopped process holds the lock, or a
record of the ledger is damaged. Every read during the simulation and at its end must equal a fold of the ledger.
"""

import copy
import random
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import msgspec

from recallog.models.beliefs import due as due_reflections
from recallog.models.beliefs import queries as reflections
from recallog.queries import due
from recallog.reading.read_session import ReadSession
from recallog.reading.view_access import CatchUpOnRead
from recallog_projections.projection import Projection
from recallog_projections.rows import Rows
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.store import Generation
from recallog_projections.tables import Table
from recallog_projections.views import builtin, episodic
from recallog_projections.views.activity import ActivityProjection
from recallog_projections.views.due import Work
from recallog_schemas import Event, Record, timestamps
from recallog_schemas.errors import (
    LockTimeout,
    Rebuilding,
    StorageCorrupt,
    StorageFull,
    StorageReadOnly,
    StorageUnavailable,
    UnknownOutcome,
    ViewsTooNew,
)
from recallog_streams import generations
from recallog_streams.ledgers.memory import MemoryLedger
from recallog_streams.projector import Projector
from recallog_streams.verify import verify
from support.folding import NEVER_SEEN, about, dead_letter_offsets, finish, reading_of, remembered
from support.oracle import Expected, expect
from support.random_entries import WorldEvents
from support.random_events import AGENTS, SPACES, bytes_of_an_event, poison, random_answer
from support.scheduler import Pause, Process, SteppedLedger, SteppedStore
from support.view_checking import check_views

STEPS_MAX = 200_000
"""A simulation that has not ended by then is in an endless loop."""


DAMAGED, HELD = "a damaged record", "a stopped holder of the lock"
TROUBLES = (DAMAGED, HELD, "full", "read-only")


class NewActivity(ActivityProjection):
    version: ClassVar[int] = ActivityProjection.version + 1


class Seen(msgspec.Struct, frozen=True):
    events: int


SEEN = Table("picky.seen", Seen)


class Picky:
    """A user's projection that declares no kinds, and raises for some events after it has written rows."""

    name: ClassVar[str] = "picky"
    version: ClassVar[int] = 1
    tables: ClassVar = (SEEN,)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        for record in run:
            event = record.event
            seen = rows.get(SEEN, event.space, event.agent) or Seen(0)
            rows.put(SEEN, Seen(seen.events + 1), event.space, event.agent)
            if refuses({"payload": event.payload}):
                raise ValueError("not this one")


def refuses(fields: dict[str, Any]) -> bool:
    """The events for which `Picky` raises: about every tenth text."""
    return str(fields.get("payload", {}).get("text", "")).endswith("3")


class World:
    """All randomness comes from one generator, in the order of the scheduler's steps: a seed repeats a run."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.events = WorldEvents(rng)
        self.ledger = MemoryLedger(unique_ids=rng.random() < 0.4, batch_records=rng.choice((1, 2, 3, 5, 8, 100)))
        self.store = MemoryStore()
        self.created: list[Generation] = []
        self.events_left = rng.randrange(5, 61)
        self.failures = rng.choice((0.0, 0.01, 0.1))
        """Probability that a call fails, before or after it took effect. Its process mostly continues."""
        self.may_fail = self.failures > 0
        """Whether something has failed, or may fail, in this world."""
        self.deaths = rng.choice((0.0, 0.01, 0.05))
        """Probability that a process is killed at a step."""
        self.crowd = rng.choice((0.0, 0.005, 0.02))
        """Probability of another projector. A single one mostly continues from the rows of its last batch."""
        self.together = rng.choice((0.0, 0.3))
        """Probability that it is a task of an existing process, with that process' projector."""
        self.disasters = rng.choice((0.0, 0.0, 0.002))
        """Probability that the store is lost, or replaced by an older copy."""
        self.weather = rng.choice((0.0, 0.005, 0.03))
        """Probability that the storage begins or ends to fail as a whole."""
        self.trouble = ""
        """What fails now: one of `TROUBLES`; "" for nothing."""
        self.damaged: int | None = None
        """The offset of the record that nobody can read now."""
        self.ever_damaged: set[int] = set()
        self.poison = rng.choice((0.0, 0.1, 0.3))
        self.upgrade = rng.random() < 0.25
        self.upgraded = False
        self.picky = rng.random() < 0.3
        self.restored = 0
        self.projectors: list[Projector] = []
        self.processes: list[Process] = []
        self.copies: list[dict[str, Any]] = []
        self._expected: dict[int, Expected] = {}
        self._stepped_ledger = SteppedLedger(self.ledger, self.fails, self.refuses, lambda: self.damaged)
        self._stepped_store = SteppedStore(self.store, self.fails, self.created, self.refuses)

    # Steps

    def projections(self, *, newer: bool) -> list[Projection]:
        """The projections of the present code, or of newer code, which builds its own generation."""
        ours = builtin.projections()
        if newer:
            ours = [NewActivity() if projection.name == "activity" else projection for projection in ours]
        return [*ours[:-1], Picky(), *ours[-1:]] if self.picky else ours

    def expected(self, until: int | None = None) -> Expected:
        """The oracle's views of the records below `until`, or of all."""
        values = self.ledger.values()[:until]
        if len(values) not in self._expected:  # a record never changes: one answer for each offset
            refused = refuses if self.picky else lambda _: False
            self._expected[len(values)] = expect(values, unique_ids=self.ledger.unique_ids, refuses=refused)
        return self._expected[len(values)]

    def fails(self) -> bool:
        return self.rng.random() < self.failures

    def run(self) -> None:
        """Run all processes until the last event is published and read, then check the views."""
        try:
            self.work()
        finally:
            for process in self.processes:
                process.kill()
        self.judge()

    def work(self) -> None:
        producers = [self.process("producer", self.produce()) for _ in range(self.rng.randrange(1, 3))]
        others = [self.spawn() for _ in range(self.rng.randrange(1, 5))]
        for _ in range(STEPS_MAX):
            producers = [process for process in producers if process.alive]
            others = [process for process in others if process.alive]
            if not producers and not others:
                return
            process = self.rng.choice(producers + others)
            process.step()
            if process in others and self.rng.random() < self.deaths:
                process.kill()
                others.append(self.spawn())
            elif producers and (not others or self.rng.random() < self.crowd):
                others.append(self.spawn())
            if self.rng.random() < self.disasters:
                self.restore()
            if self.rng.random() < self.weather:
                self.change_weather()
            if not producers:
                self.failures = self.deaths = self.disasters = self.weather = 0.0
                self.trouble, self.damaged = "", None
        raise AssertionError(f"no rest after {STEPS_MAX:,} steps: {[process.name for process in others]}")

    def change_weather(self) -> None:
        """End what fails as a whole, or begin another failure."""
        self.damaged = None
        self.trouble, self.may_fail = "" if self.trouble else self.rng.choice(TROUBLES), True
        (end,) = finish(self.ledger.ends())
        if self.trouble == DAMAGED and end:
            self.damaged = self.rng.choice((end - 1, self.rng.randrange(end)))
            self.ever_damaged.add(self.damaged)

    def refuses(self) -> StorageUnavailable | None:
        """The error of every write while the storage is full or read-only."""
        if self.trouble == "full":
            return StorageFull("no space is left")
        return StorageReadOnly("the folder is read-only") if self.trouble == "read-only" else None

    @asynccontextmanager
    async def lock(self) -> AsyncIterator[None]:
        """The lock of the projectors, which a stopped process may hold."""
        await Pause()
        if self.trouble == HELD:
            raise LockTimeout("another process holds the lock")
        yield

    def check_explained(self, error: StorageUnavailable | StorageCorrupt) -> None:
        """Raise `error` unless something explains it. What does may be over when its process goes on."""
        if isinstance(error, StorageCorrupt):
            explained = error.position in {f"0:{offset}" for offset in self.ever_damaged}
        else:
            explained = self.may_fail
        if not explained:
            raise error

    def restore(self) -> None:
        """Empty the store, or replace it by an older copy."""
        if self.rng.random() < 0.5:
            self.copies.append(copy.deepcopy(vars(self.store)))
            return
        self.restored += 1
        vars(self.store).update(copy.deepcopy(self.rng.choice([vars(MemoryStore()), *self.copies])))

    def spawn(self) -> Process:
        chance = self.rng.random()
        if chance < 0.15:
            return self.process("reactor", self.react())
        if chance < 0.6:
            return self.process("reader", self.read())
        if chance < 0.9:
            return self.process("rebuilder", self.rebuild())
        return self.process("aborter", self.abort())

    def process(self, name: str, work: Coroutine[Any, Any, None]) -> Process:
        self.processes.append(Process(name, work))
        return self.processes[-1]

    def projector(self) -> Projector:
        """The projector of a new process; after the upgrade has begun, some have newer code."""
        if self.projectors and self.rng.random() < self.together:
            return self.rng.choice(self.projectors)
        newer = self.upgrade and self.rng.random() < 0.5
        self.upgraded = self.upgraded or newer
        projector = Projector(self._stepped_ledger, self._stepped_store, self.projections(newer=newer), lock=self.lock)
        self.projectors.append(projector)
        return projector

    # Processes

    async def produce(self) -> None:
        while self.events_left > 0:
            self.events_left -= 1
            events = [self.events.event() for _ in range(self.rng.choice((1, 1, 2, 4)))]
            while True:
                try:
                    await self._stepped_ledger.append(events)
                    break
                except UnknownOutcome:
                    continue  # repeats the same ids
                except StorageUnavailable:
                    assert self.refuses() is not None
                    await Pause()
            self.deliver_again(self.rng.choice(events))
            if self.rng.random() < self.poison:
                self.ledger.append_bytes(poison(self.rng))
            await Pause()

    def deliver_again(self, event: Event) -> None:
        """A repeat with the same or other bytes, another event with its id, or a second answer to a trigger."""
        if self.ledger.unique_ids or self.rng.random() > 0.2:
            return
        values = self.ledger.values()
        again = self.rng.choice(values)
        how = self.rng.randrange(4)
        if how == 0:
            self.ledger.append_bytes(again)
        elif how == 1:
            self.ledger.append_bytes(again.replace(b'":', b'" : '))
        elif how == 2:
            self.ledger.append_bytes(random_answer(self.rng))
        else:
            self.ledger.append_bytes(bytes_of_an_event(self.rng, id=event.id, space=event.space))

    async def read(self) -> None:
        """A few queries of one process, each checked against the oracle at the checkpoint of its answer."""
        projector = self.projector()
        for _ in range(self.rng.choice((1, 3, 30))):
            (end,), restored = finish(self.ledger.ends()), self.restored
            active = finish(self.store.pointer(0)).active
            try:
                space, agent = self.rng.choice(SPACES), self.rng.choice((*AGENTS, NEVER_SEEN))
                reading = await CatchUpOnRead(projector).reading(0, None, None)
                snapshot = await reading.read(logs=episodic.logs(space, agent, 1000))
            except ViewsTooNew:
                assert self.upgraded
                return
            except Rebuilding:
                # The query router repeats the query. A generation disappears only by a cutover, or with its store.
                assert finish(self.store.pointer(0)).active != active or restored != self.restored
                continue
            except (StorageUnavailable, StorageCorrupt) as error:
                self.check_explained(error)
                if self.rng.random() < 0.1:
                    projector = self.projector()
                continue
            seen = snapshot.checkpoint.offset + 1
            assert seen >= end or restored != self.restored, f"{seen} records processed, requested {end}"
            assert remembered(snapshot) == self.expected(seen).visible(space, agent)

    async def react(self) -> None:
        """Answer the pending triggers, possibly together with other reactors.

        A reflection is answered with a belief or a failure, any other trigger with what follows from it.
        """
        projector = self.projector()
        try:
            generation = await generations.current(projector, 0)
            reading = reading_of(projector, generation)
            for pending in [trigger async for trigger in due_reflections.pending(reading)]:
                due = await reflections.reflection_of(about(reading, pending.space, pending.agent))
                await Pause()  # stands for the time of the model
                if due.due:
                    answer = due.answer(f"belief {self.rng.randrange(1000)}")
                    if self.rng.random() < 0.3:
                        payload = {"trigger": due.trigger, "reason": "no words"}
                        answer = answer.model_copy(update={"kind": "reflection.failed", "payload": payload})
                    await self._stepped_ledger.append([answer])
            for answers in [answered(work) async for work in standing(reading)]:
                for event in answers:  # one by one, so that an answer may end half-way
                    await self._stepped_ledger.append([event])
        except ViewsTooNew:
            assert self.upgraded
        except (Rebuilding, StorageUnavailable, StorageCorrupt, UnknownOutcome):
            return  # the next reactor finds the pending triggers

    async def rebuild(self) -> None:
        projector, restored = self.projector(), self.restored
        try:
            rebuilt = await generations.rebuild(projector, 0)
        except (StorageUnavailable, StorageCorrupt) as error:
            self.check_explained(error)
            return
        except ViewsTooNew:
            assert self.upgraded
            return
        # In an older copy of the store, the active generation may still be building.
        assert rebuilt.active != rebuilt.replaced or restored != self.restored

    async def abort(self) -> None:
        try:
            await generations.abort(self.projector(), 0)
        except StorageUnavailable:
            return

    # Checks at the end

    def judge(self) -> None:
        self.settle()
        expected = self.expected()
        projector = Projector(self.ledger, self.store, self.projections(newer=self.upgraded))
        active = finish(generations.current(projector, 0))
        check_views(self.store, active, expected)
        self.check_answers(expected)
        self.check_nothing_is_left(projector)
        self.check_verifies(projector, active)
        self.check_a_rebuild_parks_the_same(projector, expected)

    def settle(self) -> None:
        """Answer what is due until nothing is: migrations, and retractions of what was made from erased entries."""
        for _ in range(STEPS_MAX):
            projector = Projector(self.ledger, self.store, self.projections(newer=self.upgraded))
            reading = ReadSession(self.store, 0, finish(generations.current(projector, 0)))
            if not finish(all_standing(reading)):
                return
            for work in finish(all_standing(reading)):
                finish(self.ledger.append(answered(work)))
        raise AssertionError("answers make triggers due without end")

    def check_answers(self, expected: Expected) -> None:
        """Of all answers to a trigger that have its answer id, one counts."""
        answers = [
            (said.space, said.fields["id"]) for said in expected.counted if said.fields["id"].endswith("/answer")
        ]
        assert len(answers) == len(set(answers))

    def check_nothing_is_left(self, projector: Projector) -> None:
        if finish(self.store.pointer(0)).building is not None:
            finish(generations.abort(projector, 0))
        finish(self.store.collect_garbage(0))
        pointer = finish(self.store.pointer(0))
        assert pointer.building is None
        left = {generation.id for generation in self.created if finish(self.store.checkpoint(generation)) is not None}
        assert left <= {pointer.active.id if pointer.active else ""}

    def check_verifies(self, projector: Projector, active: Generation) -> None:
        found = finish(verify(projector, self.projections(newer=self.upgraded), active))
        assert not found.records
        assert not found.not_compared
        compared = found.tables
        assert [table.difference for table in compared] == [None] * len(compared)
        assert [table.digest for table in compared] == [table.expected_digest for table in compared]

    def check_a_rebuild_parks_the_same(self, projector: Projector, expected: Expected) -> None:
        rebuilt = finish(generations.rebuild(projector, 0))
        assert dead_letter_offsets(self.store, rebuilt.active) == expected.dead_letters
        check_views(self.store, rebuilt.active, expected)


async def standing(reading: ReadSession) -> AsyncIterator[Work]:
    """The due work of the partition, without reflections."""
    after, last = None, False
    while not last:
        page = await due.work(reading, after)
        last = page.last
        for after, work in page.items:  # noqa: B007 - the next page begins after the last key
            yield work


async def all_standing(reading: ReadSession) -> list[Work]:
    return [work async for work in standing(reading)]


def answered(work: Work) -> list[Event]:
    """The events that answer a trigger: what to keep or retract, and the event that closes it."""
    payloads = [{"text": text, "cost": 0} for _, text in work.texts] + [{"entry": entry} for entry in work.entries]
    kind = "memory.retained" if work.texts else "memory.retracted"
    done = {"trigger": work.trigger, "events": len(payloads)}
    answers = [*((kind, payload) for payload in payloads), ("reaction.done", done)]
    return [
        Event(
            id=f"{work.trigger}/answer{f'/{number}' if number < len(answers) else ''}",
            space=work.space,
            agent=work.agent,
            kind=kind,
            at=timestamps.moment_of(work.at),
            turn=work.turn,
            session=work.session,
            causation_id=work.trigger,
            payload=payload,
        )
        for number, (kind, payload) in enumerate(answers, start=1)
    ]
