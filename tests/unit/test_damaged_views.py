"""Damaged views: the query that finds the damage answers as if there were none, and says once what it did."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from recallog import Memory
from recallog_schemas.errors import StorageCorrupt
from support.altering import alter_record
from support.events import event, run
from unit.test_memory_views import answers, village

STATEMENTS = {
    "a flipped row": "UPDATE rows SET value = zeroblob(length(value))",
    "a flipped segment": "UPDATE segments SET entries = zeroblob(length(entries))",
    "a flipped log": "UPDATE logs SET crc = crc + 1",
    "exchanged rows": "UPDATE rows SET (value, crc) = (SELECT value, crc FROM rows r WHERE r.name = rows.name "
    "AND r.key <> rows.key OR r.owner <> rows.owner LIMIT 1)",
    "the checkpoint": "UPDATE generations SET checkpoint = substr(checkpoint, 2)",
    "the number of a generation": "UPDATE generations SET number = number + 1",
    "the pointer": "UPDATE pointers SET generations = substr(generations, 2)",
    "a lost pointer": "DELETE FROM pointers",
    "the manifest": "UPDATE manifest SET ledger = x'00'",
    "a lost table": "DROP TABLE rows",
}


def alter(home: Path, sql: str) -> None:
    with closing(sqlite3.connect(home / "views.db")) as connection, connection:
        connection.execute(sql)


async def fill(home: Path) -> dict[str, object]:
    async with Memory.open(home) as memory:
        await memory.publish_many(village())
        return await answers(memory)


@pytest.mark.parametrize("sql", STATEMENTS.values(), ids=STATEMENTS)
@pytest.mark.parametrize("opened", [False, True], ids=["opened after the damage", "open during the damage"])
def test_every_query_answers_rightly_after_damage(
    tmp_path: Path, sql: str, opened: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        before = await fill(tmp_path)
        if opened:
            async with Memory.open(tmp_path) as memory:
                assert await answers(memory) == before
                alter(tmp_path, sql)
                assert await answers(memory) == before
        else:
            alter(tmp_path, sql)
            async with Memory.open(tmp_path) as memory:
                assert await answers(memory) == before
        async with Memory.open(tmp_path) as memory:
            await memory.publish(event(turn=99))
            assert (await memory.episodic("village", "baker")).memories[-1].event.turn == 99
            assert (await memory.admin.verify("views")).clean

    run(work())
    said = [record.getMessage() for record in caplog.records if record.name == "recallog.storage"]
    assert len(said) <= 1
    assert all("built again from the ledger" in message for message in said)


@pytest.mark.parametrize("content", [b"", b"garbage" * 999, b"SQLite format 3\0" + bytes(4080)])
def test_a_views_file_of_other_bytes_is_replaced(tmp_path: Path, content: bytes) -> None:
    async def work() -> None:
        before = await fill(tmp_path)
        (tmp_path / "views.db").write_bytes(content)
        async with Memory.open(tmp_path) as memory:
            assert await answers(memory) == before

    run(work())


def test_a_rebuild_beside_a_damaged_generation_ends(tmp_path: Path) -> None:
    async def work() -> None:
        before = await fill(tmp_path)
        alter(tmp_path, STATEMENTS["a flipped row"])
        async with Memory.open(tmp_path) as memory:
            await memory.admin.rebuild("views")
            assert await answers(memory) == before

    run(work())


def test_a_damaged_record_of_the_ledger_is_never_adopted(tmp_path: Path) -> None:
    async def work() -> None:
        await fill(tmp_path)
        alter_record(tmp_path / "ledger.db", 57, b"", b"\0", checksum=False)
        async with Memory.open(tmp_path) as memory:
            before = await answers(memory)  # from the views, which need not read the record
            calls: list[Callable[[], Any]] = [
                lambda: memory.admin.rebuild("views"),
                lambda: memory.episodic("village", "baker", as_of="0:100"),
            ]
            for call in calls:
                with pytest.raises(StorageCorrupt, match="0:57"):
                    await call()
            assert await answers(memory) == before
            assert len(await memory.admin.dead_letters()) == 0

    run(work())


@pytest.mark.models("prompt")
def test_views_lost_beside_a_damaged_ledger_name_the_record(tmp_path: Path) -> None:
    async def work() -> None:
        await fill(tmp_path)
        alter_record(tmp_path / "ledger.db", 57, b"", b"\0", checksum=False)
        alter(tmp_path, STATEMENTS["a flipped row"])
        async with Memory.open(tmp_path) as memory:
            with pytest.raises(StorageCorrupt, match="0:57") as raised:
                await memory.context("village", "baker")
            assert raised.value.position == "0:57"

    run(work())


@pytest.mark.models("beliefs")
def test_a_status_that_finds_damage_after_its_totals_says_that_nothing_is_built(tmp_path: Path) -> None:
    async def work() -> None:
        configured = event("agent.configured", payload={"reflection_threshold": 2})
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many([configured, *(event(turn=turn) for turn in range(4))])
            await memory.catch_up()
            whole = await memory.admin.status()
        assert whole.pending_total == 1
        alter(tmp_path, "UPDATE segments SET entries = zeroblob(length(entries))")
        async with Memory.open(tmp_path) as memory:
            status = await memory.admin.status()
            assert (status.partitions[0].generation, status.agents, status.pending_total) == (None, 0, 0)
            await memory.catch_up()
            assert (await memory.admin.status()).pending == whole.pending

    run(work())
