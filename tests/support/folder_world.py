"""A folder in which anything may happen, by a seed: the whole `Memory` on real SQLite files, in virtual time.

Programs publish, query, rebuild and verify; they are killed, and their disk is full, read-only or broken. Views are
deleted, their rows damaged, their lock held by a program that does nothing any more; records of the ledger are damaged
and restored. Every answer must be the fold of the ledger up to its checkpoint, or an error that one of these faults
explains and that names its file. When the faults are over, everything works again, and nothing is lost or doubled.
"""

import asyncio
import os
import random
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from recallog import Memory, Position, Settings, layout
from recallog_schemas import Event, codec, rules
from recallog_schemas.errors import (
    LockTimeout,
    RecallogError,
    StorageCorrupt,
    StorageError,
    StorageFull,
    StorageReadOnly,
    StorageUnavailable,
    UnknownOutcome,
)
from recallog_schemas.views import Remembered
from support import disk
from support.disk import PROGRAM, Disk, Fault, Killed
from support.folding import NEVER_SEEN, folded, ledger_at
from support.oracle import Expected, expect
from support.random_entries import WorldEvents
from support.random_events import AGENTS, SPACES
from support.view_checking import check_views
from support.virtual_time import OneThread

LEDGER, VIEWS = layout.LEDGER, layout.views_file()
STRICT = True
"""Whether queries must answer where the views cannot be written."""
SECONDS_MAX = 3600.0
"""Virtual ones. A world that has not ended by then hangs."""
ANSWER_SECONDS_MAX = 30.0
"""Virtual seconds within which every question and every publish must return."""
OPERATION_SECONDS_MAX = 300.0
"""The same for a rebuild and a verification, which wait for a lock at each of their steps."""

_KEYS = {"generation", "id", "key", "name", "number", "owner", "partition", "slot", "space"}
_OF_VIEWS_DAMAGED = f" of {VIEWS} damaged"
_DAMAGED = f"a damaged record of {LEDGER}"
_HELD = f"a stopped holder of {layout.views_lock()}"
_LOG_LOST = f"the write-ahead log of {LEDGER} deleted"
_BUSY_VIEWS, _BUSY_LEDGER = f"a stopped writer of {VIEWS}", f"a stopped writer of {LEDGER}"


def _name(file: str, fault: Fault) -> str:
    return f"{file}: {fault.value}"


_EXPLAINED: dict[str, tuple[type[RecallogError], ...]] = {
    _DAMAGED: (StorageCorrupt,),
    _BUSY_LEDGER: (LockTimeout,),
    _LOG_LOST: (StorageUnavailable, UnknownOutcome),
    _name(LEDGER, Fault.FULL): (StorageFull,),
    _name(LEDGER, Fault.READ_ONLY): (StorageReadOnly,),
    _name(LEDGER, Fault.IO): (StorageUnavailable,),
    _name(LEDGER, Fault.UNKNOWN): (UnknownOutcome,),
    _name(VIEWS, Fault.IO): (StorageUnavailable,),  # also reads fail, of what was there a moment before
}
"""The errors that each fault explains; a fault that is not listed must cause none."""

_EXPLAINED_WRITING_VIEWS: dict[str, tuple[type[RecallogError], ...]] = {
    _HELD: (LockTimeout,),
    _BUSY_VIEWS: (LockTimeout,),
    _name(VIEWS, Fault.FULL): (StorageFull,),
    _name(VIEWS, Fault.READ_ONLY): (StorageReadOnly,),
    _name(VIEWS, Fault.UNKNOWN): (UnknownOutcome,),
}
"""The same for calls that must write the views. Queries answer without that."""


@dataclass
class Program:
    """One running program, which may be killed."""

    name: str
    memory: Memory
    task: "asyncio.Task[None]"
    answered: float = -1.0
    """When its last successful call began."""


class FolderWorld:
    """All randomness comes from one generator, in the order of a virtual clock: a seed repeats a run."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.rng = rng = random.Random(seed)
        self.events = WorldEvents(rng)
        self.folder = folder
        self.disk = Disk(rng)
        self.settings = Settings(home=folder, ledger=None, views=None, index="off", seal="off", lock_wait_seconds=2.0)
        self.events_left = rng.randrange(5, 41)
        self.faults_left = rng.choice((0, 1, 2, 4))
        self.deaths = rng.choice((0.0, 0.05, 0.2))
        """Probability, per query, that the program is killed; it never ends cleanly then."""
        self.active: set[str] = set()
        """The faults that are there now."""
        self.seen: list[str] = []
        """All faults so far, in order."""
        self.published: dict[tuple[str, str], Event] = {}
        self.acknowledged: dict[tuple[str, str], int] = {}
        self.programs: dict[str, Program] = {}
        self.values: list[bytes] = []
        """The ledger's records: they never change."""
        self.calm = False
        """Whether no program is killed now, since the ledger's write-ahead log is deleted."""
        self.damaged: dict[int, bytes] = {}
        """The values of the damaged records, by offset."""
        self.ever_damaged: set[int] = set()
        self.counts = {"answers": 0, "errors": 0, "kills": 0, "faults": 0}
        self._spawned = 0
        self._expected: dict[int, Expected] = {}

    def run(self) -> None:
        """Run it to its end. Raises `AssertionError` for a wrong answer, an unexplained error or a call that hangs."""
        loop = OneThread(self.rng)
        with self.disk.installed():
            loop.run(self._run())

    async def _run(self) -> None:
        random.seed(self.rng.random())  # the code under test shuffles partitions
        try:
            async with asyncio.timeout(SECONDS_MAX):
                await self._work()
        finally:
            await self._kill(*self.programs.values())
        await self._judge()

    async def _work(self) -> None:
        producers = [self._spawn(self._produce) for _ in range(self.rng.randrange(1, 4))]
        others = [self._spawn_other() for _ in range(self.rng.randrange(1, 4))]
        fate = asyncio.create_task(self._fate())
        while producers or others or not fate.done():
            producers, others = self._alive(producers), self._alive(others)
            await asyncio.sleep(self.rng.random() * 0.2)
            if (producers or not fate.done()) and len(others) < 4 and self.rng.random() < 0.5:
                others.append(self._spawn_other())
            if others and not self.calm and self.rng.random() < self.deaths:
                self.counts["kills"] += 1
                await self._kill(self.rng.choice(others))
            if not producers and self.events_left > 0:
                producers.append(self._spawn(self._produce))
        await fate

    def _alive(self, programs: Sequence[Program]) -> list[Program]:
        for program in programs:
            if program.task.done() and program.name in self.programs:
                del self.programs[program.name]
                program.task.result()
        return [program for program in programs if not program.task.done()]

    # Programs

    def _spawn_other(self) -> Program:
        return self._spawn(self.rng.choice((self._ask, self._ask, self._ask, self._rebuild, self._verify)))

    def _spawn(self, work: Callable[[Memory], Awaitable[None]]) -> Program:
        self._spawned += 1
        name = f"{work.__name__.strip('_')}-{self._spawned}"

        memory = Memory.open(self.settings)

        async def program() -> None:
            PROGRAM.set(name)
            async with memory:
                await work(memory)

        self.programs[name] = Program(name, memory, asyncio.create_task(program(), name=name))
        return self.programs[name]

    async def _kill(self, *programs: Program) -> None:
        self._end(programs)
        await self._ended(programs)

    def _end(self, programs: Sequence[Program]) -> None:
        """Kill -9."""
        self.disk.kill([program.name for program in programs])
        for program in programs:
            self.programs.pop(program.name, None)
            program.task.cancel()

    async def _ended(self, programs: Sequence[Program]) -> None:
        for program in programs:
            with suppress(asyncio.CancelledError, Killed):
                await program.task

    async def _produce(self, memory: Memory) -> None:
        while self.events_left > 0:
            events = [self.events.event() for _ in range(min(self.events_left, self.rng.choice((1, 1, 2, 4))))]
            self.events_left -= len(events)
            if self.acknowledged and self.rng.random() < 0.1:
                events.append(self.published[self.rng.choice([*self.acknowledged])])
            self.published |= {(event.space, event.id): event for event in events}
            while True:
                positions = await self._called(lambda: memory.publish_many(events))  # noqa: B023 - awaited here
                if positions is not None:
                    break
                await asyncio.sleep(self.rng.random())  # the same ids again
            for event, position in zip(events, positions, strict=True):
                known = self.acknowledged.setdefault((event.space, event.id), position.offset)
                assert known == position.offset, f"{event.id} was at {known}, and is at {position}"
            await asyncio.sleep(self.rng.random() * 0.5)

    async def _ask(self, memory: Memory) -> None:
        for _ in range(self.rng.choice((1, 3, 8))):
            space, agent = self.rng.choice(SPACES), self.rng.choice((*AGENTS, NEVER_SEEN))
            await self.rng.choice((self._episodic, self._episodic, self._salient, self._past, self._scene))(
                memory, space, agent
            )
            await asyncio.sleep(self.rng.random() * 0.3)

    async def _episodic(self, memory: Memory, space: str, agent: str) -> None:
        end = self._acknowledged_end()
        view = await self._called(lambda: memory.episodic(space, agent, window=2_000))
        if view is not None:
            expected = self._expected_at(view.checkpoint, end)
            assert _shown(view.memories) == expected.visible(space, agent)

    async def _salient(self, memory: Memory, space: str, agent: str) -> None:
        end = self._acknowledged_end()
        view = await self._called(lambda: memory.salient(space, agent, "the bread of the mill"))
        if view is not None:
            wanted = self._expected_at(view.checkpoint, end).salient(space, agent, "the bread of the mill")
            assert [each.position.offset for each in view.memories] == [each.event.offset for each in wanted]

    async def _scene(self, memory: Memory, space: str, agent: str) -> None:
        end = self._acknowledged_end()
        view = await self._called(lambda: memory.scene(space))
        if view is not None:
            wanted = self._expected_at(view.checkpoint, end).scene(space)
            assert [each.position.offset for each in view.events] == [each.offset for each in wanted]

    async def _past(self, memory: Memory, space: str, agent: str) -> None:
        end = self._acknowledged_end()
        if not end:
            return
        at = self.rng.randrange(end)
        view = await self._called(lambda: memory.episodic(space, agent, window=2_000, as_of=Position(0, at)))
        if view is not None:
            assert _shown(view.memories) == self._expect(at + 1).visible(space, agent)

    async def _rebuild(self, memory: Memory) -> None:
        await self._called(lambda: memory.admin.rebuild(), writes_views=True)

    async def _verify(self, memory: Memory) -> None:
        since, faults = len(self.seen), set(self.active)
        report = await self._called(lambda: memory.admin.verify("views"), writes_views=True)
        if report is None or report.clean:
            return
        # What is damaged is named, what could not be compared too, and nothing else is said to be wrong.
        faults.update(self.seen[since:])
        named = {each.offset for finding in report.ledger for each in (finding.first, finding.last)}
        assert _DAMAGED in faults or not report.ledger, report.format()
        assert {each.problem for each in report.ledger} <= {"damaged"}, report.format()
        assert named <= self.ever_damaged, report.format()
        damaged_views = any(each.endswith(_OF_VIEWS_DAMAGED) for each in self.seen)
        explained = damaged_views or faults & {_DAMAGED, _name(VIEWS, Fault.IO), *_EXPLAINED_WRITING_VIEWS}
        assert explained or not report.not_compared, report.format()
        assert damaged_views or not any(table.damaged or table.difference for table in report.tables), report.format()

    async def _called(self, call: Callable[[], Coroutine[Any, Any, Any]], *, writes_views: bool = False) -> Any:
        """The answer; None for an error that a fault explains."""
        since, began = len(self.seen), asyncio.get_running_loop().time()
        faults = set(self.active)
        answer = None
        try:
            answer = await call()
            self.counts["answers"] += 1
            if (program := self.programs.get(PROGRAM.get())) is not None:
                program.answered = began
        except RecallogError as error:
            self._check_explained(error, faults.union(self.seen[since:]), writes_views=writes_views)
            self.counts["errors"] += 1
        seconds = asyncio.get_running_loop().time() - began
        seconds_max = OPERATION_SECONDS_MAX if writes_views else ANSWER_SECONDS_MAX
        assert seconds < seconds_max, f"the call took {seconds:g} virtual seconds"
        await self._use_ledger()
        return answer

    async def _use_ledger(self) -> None:
        """While the ledger's log is deleted, use the ledger until it is saved: the oracle reads its file."""
        while self.calm:
            began, program = asyncio.get_running_loop().time(), self.programs[PROGRAM.get()]
            with suppress(*_EXPLAINED[_LOG_LOST]):
                await program.memory.admin.ledger_ends()
                program.answered = began
            await asyncio.sleep(0.1)

    def _check_explained(self, error: RecallogError, faults: set[str], *, writes_views: bool) -> None:
        tables = (_EXPLAINED, _EXPLAINED_WRITING_VIEWS) if writes_views or not STRICT else (_EXPLAINED,)
        explained = [each for fault in faults for table in tables for each in table.get(fault, ())]
        if not isinstance(error, tuple(explained)):
            raise AssertionError(f"no fault explains {type(error).__name__}; there were: {sorted(faults)}") from error
        if isinstance(error, StorageError | UnknownOutcome) and str(self.folder) not in str(error):
            raise AssertionError(f"names no file: {error}") from error

    # Faults

    async def _fate(self) -> None:
        faults = (
            *(self._bad_disk,) * 6,
            *(self._damage_views,) * 3,
            self._delete_views,
            self._hold_lock,
            self._hold_transaction,
            *(self._damage_ledger,) * 2,
            self._lose_log,
            self._cut_power,
        )
        while self.faults_left > 0:
            await asyncio.sleep(self.rng.random() * 3)
            self.faults_left -= 1
            self.counts["faults"] += 1
            await self.rng.choice(faults)()

    async def _during(self, fault: str) -> None:
        self.active.add(fault)
        self.seen.append(fault)
        await asyncio.sleep(self.rng.random() * self.rng.choice((0.5, 5.0)))
        self.active.discard(fault)

    async def _bad_disk(self) -> None:
        file, fault = self.rng.choice((LEDGER, VIEWS)), self.rng.choice([*Fault])
        self.disk.faults[file][fault] = self.rng.choice((0.05, 0.5))
        await self._during(_name(file, fault))
        del self.disk.faults[file][fault]

    async def _damage_views(self) -> None:
        """Flip a bit of the views, except in a key: a row that is lost whole is found by `verify` alone."""
        if not (self.folder / VIEWS).exists():
            return
        with suppress(sqlite3.OperationalError, sqlite3.IntegrityError), closing(self._raw(VIEWS)) as connection:
            names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
            (table,) = self.rng.choice([*names, ("rows",), ("rows",), ("segments",)])
            rows = connection.execute(f"SELECT * FROM {table}").fetchall()
            if not rows:
                return
            columns = [column[1] for column in connection.execute(f"PRAGMA table_info({table})")]
            row = self.rng.choice(rows)
            values = [each for each in zip(columns, row, strict=True) if each[0] not in _KEYS and each[1] is not None]
            if not values:
                return
            column, value = self.rng.choice(values)
            self.seen.append(f"{table}.{column}{_OF_VIEWS_DAMAGED}")
            where = " AND ".join(f"{name} IS ?" for name in columns)
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (self._flipped(value), *row))

    async def _delete_views(self) -> None:
        self.seen.append(f"{VIEWS} deleted")
        for suffix in self.rng.choice((("", "-wal", "-shm"), ("",), ("", "-wal"))):
            Path(f"{self.folder / VIEWS}{suffix}").unlink(missing_ok=True)

    async def _hold_lock(self) -> None:
        if not self.folder.exists():
            return
        lock = FileLock(self.folder / layout.views_lock(), timeout=0)
        try:
            lock.acquire()
        except TimeoutError:
            return
        try:
            await self._during(_HELD)
        finally:
            lock.release()

    async def _hold_transaction(self) -> None:
        """A program that was stopped in the middle of a write."""
        file, fault = self.rng.choice(((VIEWS, _BUSY_VIEWS), (LEDGER, _BUSY_LEDGER)))
        with suppress(sqlite3.OperationalError), closing(self._raw(file)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            await self._during(fault)

    async def _damage_ledger(self) -> None:
        """Flip a bit of a record, and restore it later."""
        if not self._ledger_exists():
            return
        self._read_ledger()
        if not self.values:
            return
        offset = self.rng.randrange(len(self.values))
        with closing(self._raw(LEDGER)) as connection:
            value = self.values[offset]
            self.damaged[offset] = value
            self.ever_damaged.add(offset)
            if not _write(connection, offset, self._flipped(value)):
                del self.damaged[offset]
                return
            self.active.add(_DAMAGED)
            self.seen.append(_DAMAGED)
            await asyncio.sleep(self.rng.random() * 5)
            while not _write(connection, offset, value):
                await asyncio.sleep(0.1)
            del self.damaged[offset]
        self.active.discard(_DAMAGED)

    async def _cut_power(self) -> None:
        """All programs end at once, and what was not synced is lost: the tail of the views' write-ahead log."""
        programs = [*self.programs.values()]
        self._end(programs)
        log, index = Path(f"{self.folder / VIEWS}-wal"), Path(f"{self.folder / VIEWS}-shm")
        if self.rng.random() < 0.5:
            index.unlink(missing_ok=True)
        if log.exists():
            os.truncate(log, self.rng.randrange(log.stat().st_size + 1))
        await self._ended(programs)

    async def _lose_log(self) -> None:
        """Delete the write-ahead log of the ledger. A program that has it open saves it, unless it dies before."""
        path = self.folder / LEDGER
        holders = {each.program for each in self.disk.connections if each.path == path}
        if not holders:
            return
        self.active.add(_LOG_LOST)
        self.seen.append(_LOG_LOST)
        self.calm = True
        for suffix in self.rng.choice((("-wal",), ("-shm",), ("-wal", "-shm"))):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        began = asyncio.get_running_loop().time()
        while any(self.programs[name].answered < began for name in holders if name in self.programs):
            await asyncio.sleep(0.1)
        self.calm = False
        self.active.discard(_LOG_LOST)

    def _flipped(self, value: Any) -> Any:
        """`value` with another bit, of the same type."""
        if isinstance(value, int):
            return value ^ (1 << self.rng.randrange(33))
        data = bytearray(value.encode() if isinstance(value, str) else value)
        if data:
            data[self.rng.randrange(len(data))] ^= 1 << self.rng.randrange(7)
        return data.decode(errors="replace") if isinstance(value, str) else bytes(data)

    # The ledger as it is

    def _raw(self, file: str) -> sqlite3.Connection:
        return disk.connect(f"file:{self.folder / file}?mode=rw", uri=True, timeout=0, isolation_level=None)

    def _ledger_exists(self) -> bool:
        return (self.folder / LEDGER).exists()

    def _read_ledger(self) -> None:
        """Add new records to `values`, and check that the old ones are unchanged, except for damage."""
        with closing(self._raw(LEDGER)) as connection:
            found = connection.execute("SELECT offset, value FROM events ORDER BY offset").fetchall()
        assert [offset for offset, _ in found] == list(range(len(found)))
        values = [self.damaged.get(offset, value) for offset, value in found]
        assert values[: len(self.values)] == self.values, "records of the ledger changed"
        self.values = values

    def _acknowledged_end(self) -> int:
        return max(self.acknowledged.values(), default=-1) + 1

    def _expected_at(self, checkpoint: Position | None, end: int) -> Expected:
        """The oracle's views at a checkpoint, which must not be before `end`."""
        processed = 0 if checkpoint is None else checkpoint.offset + 1
        assert processed >= end, f"{processed} records processed, {end} were acknowledged before the call"
        return self._expect(processed)

    def _expect(self, until: int) -> Expected:
        if until > len(self.values):
            self._read_ledger()
        assert until <= len(self.values)
        if until not in self._expected:
            self._expected[until] = expect(self.values[:until], unique_ids=True)
        return self._expected[until]

    # The end

    async def _judge(self) -> None:
        self._read_ledger()
        ids = [(event.space, event.id) for event in map(codec.decode, self.values)]
        assert len(set(ids)) == len(ids), "an event is there twice"
        assert {key: ids.index(key) for key in self.acknowledged} == self.acknowledged, "acknowledged events are lost"
        assert set(ids) <= self.published.keys()
        assert self.values == [codec.encode(rules.with_newest_rule(self.published[key])) for key in ids]
        expected = self._expect(len(self.values))
        projector, generation = folded(ledger_at(self.values))
        check_views(projector.store, generation, expected)
        self.active.clear()
        async with Memory.open(self.settings) as memory:
            for space in SPACES:
                for agent in AGENTS:
                    await self._episodic(memory, space, agent)
            await self._verify(memory)  # names damaged rows that no query has read
            self.seen.clear()
            await self._rebuild(memory)  # may complete what was begun, and damaged, before
            await self._rebuild(memory)
            await self._verify(memory)
            assert len(await memory.admin.dead_letters()) == 0


def _shown(memories: Sequence[Remembered]) -> list[tuple[int, bytes]]:
    return [(each.position.offset, codec.encode(each.event)) for each in memories]


def _write(connection: sqlite3.Connection, offset: int, value: bytes) -> bool:
    """Change a record as nobody may; False if the ledger is locked now."""
    try:
        connection.execute("UPDATE events SET value = ? WHERE offset = ?", (value, offset))
    except sqlite3.OperationalError:
        return False
    return True
