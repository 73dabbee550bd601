"""Queries of the past begin from snapshots, and answer as folds from the first record do."""

import random
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from recallog import Event, Memory
from recallog.errors import IdConflict, Refused
from recallog.scanning.files import scan_files
from recallog.scanning.forms import forms_of
from recallog.settings import Settings
from recallog_projections.stores.checksums import checksum
from recallog_projections.tables import Table
from recallog_projections.views import time_blocks
from recallog_projections.views.time_blocks import TimeBlock, TimeBlocks
from recallog_schemas import limits
from support.events import MOMENT, event, numbered, publish_in, run

pytestmark = pytest.mark.models("long_term")

EVENTS = 60


@pytest.fixture(autouse=True)
def close_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECALLOG_SNAPSHOT_RECORDS", "10")


def said(text: str, **fields: Any) -> Event:
    return event(payload={"text": text}, **fields)


async def texts(memory: Memory, as_of: str) -> list[str]:
    return [each.text for each in (await memory.episodic("village", "baker", window=500, as_of=as_of)).memories]


def query_file(folder: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(folder / "views.db")) as connection:
        return connection.execute(sql).fetchall()


def snapshots_in(folder: Path) -> list[int]:
    if not query_file(folder, "SELECT 1 FROM sqlite_schema WHERE name = 'snapshots'"):
        return []
    return [until for (until,) in query_file(folder, "SELECT until FROM snapshots ORDER BY until")]


async def folded_offsets(memory: Memory, as_of: str) -> list[int]:
    """The offsets up to which the answer was folded."""
    folded = list[int]()
    await memory.episodic("village", "baker")  # the live views are up to date
    memory._access.router._progress = lambda done, until: folded.append(done)
    await texts(memory, as_of)
    return folded


def test_a_memory_that_is_not_asked_about_the_past_has_no_snapshots(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many(numbered(EVENTS))
            await memory.episodic("village", "baker")

    run(work())
    assert snapshots_in(tmp_path) == []


def test_the_first_query_of_the_past_writes_snapshots_as_it_folds(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many(numbered(EVENTS))
            assert len(await texts(memory, "0:44")) == 45

    run(work())
    assert snapshots_in(tmp_path) == [10, 20, 30, 40]


def test_another_process_folds_from_the_nearest_snapshot(tmp_path: Path) -> None:
    async def work() -> list[int]:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many(numbered(EVENTS))
            await texts(memory, "0:59")
        async with Memory.open(tmp_path) as memory:
            before = await folded_offsets(memory, "0:37")
            assert await texts(memory, "0:37") == [f"village {number}" for number in range(38)]
            return before

    assert run(work()) == [38]


def test_snapshots_can_be_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECALLOG_SNAPSHOT_RECORDS", "0")

    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many(numbered(EVENTS))
            assert len(await texts(memory, "0:44")) == 45

    run(work())
    assert snapshots_in(tmp_path) == []


def test_snapshots_of_other_code_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> list[int]:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many(numbered(EVENTS))
            await texts(memory, "0:59")
        monkeypatch.setenv("RECALLOG_LOG_EVENTS", "3000")  # a part of the code of a generation
        async with Memory.open(tmp_path) as memory:
            return await folded_offsets(memory, "0:37")

    assert run(work())[0] == 10


def test_blocks_of_another_version_in_snapshots_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = [(each.name, each.type, each.default) for each in msgspec.structs.fields(TimeBlock)[1:]]
    other = msgspec.defstruct("OtherBlock", [("first", int), *fields], frozen=True)  # as a map, not as an array
    name = time_blocks.BLOCKS.name.replace(f"{TimeBlocks.version}", "0")

    async def work() -> None:
        events = [
            said(f"{minute}", at=datetime.fromisoformat(MOMENT) + timedelta(minutes=minute)) for minute in range(EVENTS)
        ]
        with monkeypatch.context() as patched:
            table: Table[Any] = Table(name, other)
            patched.setattr(time_blocks, "TimeBlock", other)
            patched.setattr(time_blocks, "BLOCKS", table)
            patched.setattr(TimeBlocks, "tables", (table,))
            async with Memory.open(tmp_path) as memory:
                await memory.publish_many(events)
                await texts(memory, "0:59")
        async with Memory.open(tmp_path) as memory:
            assert await texts(memory, events[30].at.isoformat()) == [f"{minute}" for minute in range(31)]

    run(work())
    assert snapshots_in(tmp_path) == [10, 20, 30, 40, 50]


def test_a_rebuild_deletes_the_snapshots_of_the_former_generation(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many(numbered(EVENTS))
            await texts(memory, "0:59")
            await memory.admin.rebuild()
            assert snapshots_in(tmp_path) == []
            assert await texts(memory, "0:37") == [f"village {number}" for number in range(38)]

    run(work())
    assert snapshots_in(tmp_path) == [10, 20, 30]


def test_a_size_that_is_refused_without_snapshots_is_answered_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "AS_OF_RECORDS_MAX", 30)

    async def work() -> int:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many(numbered(EVENTS))
            return len(await texts(memory, "0:59"))

    assert run(work()) == EVENTS


def test_an_erasure_leaves_nothing_in_snapshots(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many(numbered(5))
            await memory.publish(said("Ann is ill.", subject="ann"))
            await memory.publish_many([said(f"later {number}") for number in range(40)])
            assert "Ann is ill." in await texts(memory, "0:40")
            assert snapshots_in(tmp_path)
            await memory.erase("village", subject="ann")
            assert snapshots_in(tmp_path) == []
            assert "Ann is ill." not in await texts(memory, "0:40")
            assert not (await memory.admin.scan(["Ann is ill."])).found

    run(work())
    assert snapshots_in(tmp_path)
    assert not any(b"Ann is ill." in each.read_bytes() for each in tmp_path.iterdir() if each.is_file())


def test_a_snapshot_that_holds_a_forgotten_entry_is_deleted_and_not_written_again(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many(numbered(12))
            kept = await memory.long_term.retain("village", "baker", "Ann is ill.", entry_id="l-1")
            await memory.publish_many([said(f"later {number}") for number in range(30)])
            assert (await memory.long_term.get("village", "baker", "l-1", as_of="0:35")).ok
            assert entries_in(tmp_path)
            await memory.long_term.forget("village", "baker", ["l-1"])
            assert not entries_in(tmp_path)
            assert not (await memory.long_term.get("village", "baker", "l-1", as_of="0:35")).ok
            assert not (await memory.long_term.get("village", "baker", "l-1", as_of=kept.position)).ok
            await memory.publish_many([said(f"latest {number}") for number in range(30)])
            assert not (await memory.long_term.get("village", "baker", "l-1", as_of="0:65")).ok

    run(work())
    assert not entries_in(tmp_path)
    assert snapshots_in(tmp_path) == [10, 50, 60]  # before the entry, and after it was forgotten


def test_a_snapshot_that_was_left_by_an_interrupted_call_of_forget_is_deleted_by_the_next_query(tmp_path: Path) -> None:
    async def work() -> bool:
        async with Memory.open(tmp_path) as memory:
            await memory.long_term.retain("village", "baker", "Ann is ill.", entry_id="l-1")
            await memory.publish_many(numbered(30))
            assert (await memory.long_term.get("village", "baker", "l-1", as_of="0:25")).ok
            forgotten = event(kind="memory.erased", payload={"entries": ["l-1"]})
            await memory._components.ledger.append([forgotten])  # the call ended before it deleted the snapshots
            assert entries_in(tmp_path)
            return (await memory.long_term.get("village", "baker", "l-1", as_of="0:25")).ok

    assert not run(work())
    assert not entries_in(tmp_path)


def test_a_process_that_looks_at_an_old_event_goes_on_after_another_one_has_deleted_the_snapshots(
    tmp_path: Path,
) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory, Memory.open(tmp_path) as other:
            await memory.publish_many(numbered(limits.LOG_EVENTS_KEPT + 30))
            await memory.long_term.retain("village", "baker", "Ann is ill.", entry_id="l-1")
            old = (await memory.episodic("village", "baker", as_of="0:14")).memories[-1].event.id
            before = await memory.around("village", "baker", old, entries_before=0, entries_after=3)
            await other.long_term.forget("village", "baker", ["l-1"])
            assert not snapshots_in(tmp_path)
            after = await memory.around("village", "baker", old, entries_before=0, entries_after=3)
            assert (after.anchor, after.after) == (before.anchor, before.after)

    run(work())


def test_a_past_that_cannot_be_saved_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECALLOG_LOCK_WAIT_SECONDS", "0.01")

    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await texts(memory, "0:0")
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many([said(f"later {number}") for number in range(EVENTS)])
            with closing(sqlite3.connect(tmp_path / "views.db", isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                assert len(await texts(memory, f"0:{EVENTS}")) == EVENTS + 1

    publish_in(tmp_path, said("first"))
    run(work())


def test_a_process_that_moves_through_the_past_in_small_steps_saves_snapshots(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many(numbered(EVENTS))
            for offset in range(0, EVENTS, 3):
                assert len(await texts(memory, f"0:{offset}")) == offset + 1

    run(work())
    ends = [0, *snapshots_in(tmp_path), EVENTS]
    assert max(end - start for start, end in pairwise(ends)) <= 20


def entries_in(folder: Path) -> list[Any]:
    sql = "SELECT until FROM snapshot_rows WHERE instr(value, CAST('Ann is ill' AS BLOB))"
    return query_file(folder, sql) if snapshots_in(folder) else []


def change_file(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "views.db")) as connection, connection:
        connection.create_function("checksum", 3, lambda line, address, data: checksum(line, address.split("|"), data))
        for statement in statements:
            connection.execute(statement)


def test_verification_from_zero_finds_a_snapshot_that_differs(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many(numbered(EVENTS))
            await texts(memory, "0:59")
            assert (await memory.admin.verify(from_zero=True)).clean
        newest = "(SELECT max(until) FROM snapshot_rows WHERE name = 'activity.spaces')"
        older = "(SELECT value FROM snapshot_rows WHERE name = 'activity.spaces' ORDER BY until LIMIT 1)"
        address = "name || '|' || space || '|' || owner || '|' || key || '|' || until"
        change_file(
            tmp_path,
            f"UPDATE snapshot_rows SET value = {older} WHERE name = 'activity.spaces' AND until = {newest}",
            f"UPDATE snapshot_rows SET crc = checksum(line, {address}, value) WHERE value IS NOT NULL",
        )
        async with Memory.open(tmp_path) as memory:
            assert (await memory.admin.verify()).clean
            report = await memory.admin.verify(from_zero=True)
            (found,) = [each for each in report.tables if each.difference is not None]
            assert (found.table, found.differences) == ("snapshots of village", 1)
            await memory.admin.rebuild()
            assert (await memory.admin.verify(from_zero=True)).clean

    run(work())


def test_a_damaged_snapshot_is_folded_again(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many(numbered(EVENTS))
            await texts(memory, "0:59")
        change_file(tmp_path, "UPDATE snapshot_logs SET entries = x'00'")
        async with Memory.open(tmp_path) as memory:
            assert await texts(memory, "0:37") == [f"village {number}" for number in range(38)]

    run(work())


def test_the_scan_for_a_text_looks_into_snapshots(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many([said("Ann is ill."), *numbered(30)])
            await texts(memory, "0:29")

    run(work())
    change_file(tmp_path, "DELETE FROM rows", "DELETE FROM segments")
    with closing(sqlite3.connect(tmp_path / "views.db")) as connection:
        connection.execute("VACUUM")
    (place,) = scan_files([str(tmp_path / "views.db")], forms_of(["Ann is ill."]))
    assert place.found


@pytest.mark.parametrize("seed", range(6))
def test_random_histories_have_the_same_past_with_and_without_snapshots(tmp_path: Path, seed: int) -> None:
    """The oracle is a memory of the same ledger without snapshots, in the same moments of the history."""
    dice = random.Random(seed)
    settings = [Settings.of_folder(tmp_path).model_copy(update={"snapshot_records": every}) for every in (7, 0)]

    async def ask(memory: Memory, as_of: str) -> Sequence[Any]:
        answers = [
            await memory.episodic("village", "baker", window=500, as_of=as_of),
            await memory.salient("village", "baker", "bread", as_of=as_of),
            await memory.long_term.list("village", "baker", as_of=as_of),
            await memory.kinds("village", as_of=as_of),
            await memory.agent_settings("village", "baker", as_of=as_of),
        ]
        return [each.model_dump(exclude={"generation"}) for each in answers]

    async def grow(memory: Memory) -> None:
        for _ in range(dice.randrange(4, 15)):
            await dice.choice(STEPS)(memory, dice)

    async def work() -> None:
        for _ in range(4):
            async with Memory.open(settings[0]) as saved, Memory.open(settings[1]) as folded:
                await grow(saved)
                end = (await saved.admin.ledger_ends())[0]
                for _ in range(4):
                    as_of = f"0:{dice.randrange(end)}"
                    assert await ask(saved, as_of) == await ask(folded, as_of), as_of
        async with Memory.open(settings[0]) as memory:
            assert (await memory.admin.verify(from_zero=True)).ok

    run(work())


async def _speak(memory: Memory, dice: random.Random) -> None:
    subject = dice.choice(["ann", "bob", None])
    agent = dice.choice(["baker", "miller"])
    await memory.publish(said(f"bread {dice.random()}", agent=agent, subject=subject))


async def _speak_elsewhere(memory: Memory, dice: random.Random) -> None:
    await memory.publish(said(f"bread {dice.random()}", space="town"))


async def _retain(memory: Memory, dice: random.Random) -> None:
    with suppress(IdConflict):
        await memory.long_term.retain("village", "baker", f"fact {dice.random()}", entry_id=f"l-{dice.randrange(20)}")


async def _forget(memory: Memory, dice: random.Random) -> None:
    with suppress(Refused):
        await memory.long_term.forget("village", "baker", [f"l-{dice.randrange(20)}"])


async def _erase(memory: Memory, dice: random.Random) -> None:
    await memory.erase("village", subject=dice.choice(["ann", "bob"]))


async def _configure(memory: Memory, dice: random.Random) -> None:
    await memory.configure_space("village", shared_kinds=dice.choice([["agent.spoke"], ["world.observed"]]))


STEPS: Sequence[Callable[[Memory, random.Random], Any]] = (
    *[_speak] * 12,
    *[_retain] * 4,
    *[_speak_elsewhere] * 3,
    _forget,
    _erase,
    _configure,
)
