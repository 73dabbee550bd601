"""Damage in the file of the embedded ledger: a wrong record is never read, and the error names the position."""

import asyncio
import logging
import random
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog_projections.sqlite.errors import Damaged
from recallog_schemas import Event, Position, codec
from recallog_schemas.errors import RecallogError, StorageCorrupt, StorageUnavailable
from recallog_streams.ledgers import sqlite_records
from recallog_streams.ledgers.ledger import Ledger, record_at
from recallog_streams.ledgers.sqlite import SqliteLedger
from recallog_streams.ledgers.sqlite_records import event_checksum
from recallog_testing.contracts.ledger import end
from support.disk import Disk, Fault
from support.events import event, numbered, run

EVENTS = [event(turn=n, space="city" if n % 3 else "village", id=f"e{n}") for n in range(12)]
DAMAGED = 7


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[SqliteLedger]:
    """A ledger with `EVENTS`."""
    ledger = SqliteLedger(path)
    run(ledger.append(EVENTS))
    yield ledger
    run(ledger.close())


def alter(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


async def read_until_damage(
    ledger: Ledger, start: int, until: int, space: str | None = None
) -> tuple[list[tuple[int, bytes]], RecallogError | None]:
    """The records before the first damaged one, and the error that it raised."""
    records: list[tuple[int, bytes]] = []
    try:
        async for batch in ledger.read(0, start, until, space=space):
            assert all(start <= offset < batch.next for offset, _ in batch.records)
            records += batch.records
    except RecallogError as error:
        return records, error
    return records, None


def offsets_and_damage(ledger: Ledger, start: int = 0, space: str | None = None) -> tuple[list[int], StorageCorrupt]:
    records, error = run(read_until_damage(ledger, start, end(ledger), space))
    assert type(error) is StorageCorrupt
    return [offset for offset, _ in records], error


DAMAGES = {
    "value": "UPDATE events SET value = replace(value, 'a', 'b') WHERE offset = 7",
    "a value that is no bytes": "UPDATE events SET value = 5 WHERE offset = 7",
    "an empty value": "UPDATE events SET value = x'' WHERE offset = 7",
    "id": "UPDATE events SET id = 'e99' WHERE offset = 7",
    "checksum": "UPDATE events SET crc = crc + 1 WHERE offset = 7",
    "text in place of the checksum": "UPDATE events SET crc = 'x' WHERE offset = 7",
    "space": "UPDATE events SET space = space + 1 WHERE offset = 7",
    "exchanged values": "UPDATE events SET value = (SELECT value FROM events WHERE offset = 15 - e.offset), "
    "crc = (SELECT crc FROM events WHERE offset = 15 - e.offset) FROM events e WHERE e.offset = events.offset "
    "AND e.offset IN (7, 8)",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_record_is_named_after_the_records_before_it(ledger: SqliteLedger, path: Path, damage: str) -> None:
    alter(path, damage)
    offsets, error = offsets_and_damage(ledger)
    assert offsets == list(range(DAMAGED))
    assert (error.position, error.until) == ("0:7", 8)
    for part in (str(path), "0:7", "restore your backup"):
        assert part in str(error)


@pytest.mark.parametrize("damage", [DAMAGES["value"], DAMAGES["checksum"]], ids=["value", "checksum"])
def test_a_damaged_record_is_refused_by_every_call_that_reads_it(ledger: SqliteLedger, path: Path, damage: str) -> None:
    alter(path, damage)
    of_space = EVENTS[DAMAGED].space
    calls: list[Callable[[], object]] = [
        lambda: run(record_at(ledger, 0, DAMAGED)),
        lambda: run(ledger.find(of_space, "e7")),
        lambda: run(ledger.append([EVENTS[DAMAGED]])),
    ]
    for call in calls:
        with pytest.raises(StorageCorrupt, match="0:7"):
            call()
    assert offsets_and_damage(ledger, space=of_space)[0] == [1, 2, 4, 5]
    assert end(ledger) == 12


def test_records_that_are_not_damaged_can_be_read_and_appended(ledger: SqliteLedger, path: Path) -> None:
    alter(path, DAMAGES["value"])
    assert run(ledger.append([event(id="new")])) == [Position(0, 12)]
    assert run(ledger.append([EVENTS[3]])) == [Position(0, 3)]
    assert run(ledger.find("village", "e9")) == Position(0, 9)
    records, error = run(read_until_damage(ledger, 0, 13, "village"))
    assert error is None
    assert [offset for offset, _ in records] == [0, 3, 6, 9, 12]


def test_reading_goes_on_behind_a_damaged_record(ledger: SqliteLedger, path: Path) -> None:
    alter(path, DAMAGES["value"])
    _, error = offsets_and_damage(ledger)
    assert error.until is not None
    records, error_behind = run(read_until_damage(ledger, error.until, 12))
    assert [offset for offset, _ in records] == [8, 9, 10, 11]
    assert error_behind is None


def test_missing_records_are_damage(ledger: SqliteLedger, path: Path) -> None:
    alter(path, "DELETE FROM events WHERE offset IN (7, 8)")
    offsets, error = offsets_and_damage(ledger)
    assert offsets == list(range(7))
    assert (error.position, error.until) == ("0:7", 9)
    assert "missing" in str(error)
    assert offsets_and_damage(ledger, 7)[0] == []


def test_a_record_at_another_offset_is_damage(ledger: SqliteLedger, path: Path) -> None:
    alter(path, "UPDATE events SET offset = 1007 WHERE offset = 11")
    offsets, error = offsets_and_damage(ledger)
    assert (offsets, error.position, error.until) == (list(range(11)), "0:11", 1007)
    assert offsets_and_damage(ledger, 1007)[0] == []


def test_pages_that_cannot_be_read_are_damage_with_a_position(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    ledger = SqliteLedger(path)
    try:
        run(ledger.append([event(turn=n, payload={"text": "x" * 1000}) for n in range(200)]))
        alter(path, "PRAGMA wal_checkpoint(TRUNCATE)")
        data = bytearray(path.read_bytes())
        page = next(n for n in range(0, len(data), 4096) if b'"turn":100' in data[n : n + 4096])
        data[page : page + 8] = bytes(8)
        path.write_bytes(data)
    finally:
        run(ledger.close())
    ledger = SqliteLedger(path)
    try:
        offsets, error = offsets_and_damage(ledger)
        assert 95 <= len(offsets) <= 100
        assert offsets == list(range(len(offsets)))
        assert error.position == f"0:{len(offsets)}"
        assert error.until is not None
        assert 101 <= error.until <= 106
        assert len(run(read_until_damage(ledger, error.until, 200))[0]) == 200 - error.until
    finally:
        run(ledger.close())


def test_an_io_error_is_no_damage(path: Path) -> None:
    """A read whose transaction SQLite had rolled back went on outside of it, and was reported as a damaged ledger."""
    disk = Disk(random.Random(7))
    with disk.installed():
        ledger = SqliteLedger(path)
        run(ledger.append(EVENTS))
        intact, _ = run(read_until_damage(ledger, 0, len(EVENTS)))
        disk.faults[path.name][Fault.IO] = 0.4
        outcomes = [run(read_until_damage(ledger, 0, len(EVENTS))) for _ in range(200)]
        disk.faults.clear()
        run(ledger.close())
    assert {type(error) for _, error in outcomes} == {type(None), StorageUnavailable}
    assert all(records == intact for records, error in outcomes if error is None)


@pytest.mark.parametrize("damage", ["UPDATE manifest SET id = 'other'", "DELETE FROM manifest"])
def test_a_damaged_manifest_is_named(ledger: SqliteLedger, path: Path, damage: str) -> None:
    alter(path, damage)
    with pytest.raises(StorageCorrupt, match="its manifest"):
        run(ledger.manifest())


def test_exchanged_numbers_of_spaces_are_damage(ledger: SqliteLedger, path: Path) -> None:
    alter(path, "UPDATE spaces SET number = 3 - number + 10", "UPDATE spaces SET number = number - 10")
    for space in ("city", "village"):
        with pytest.raises(StorageCorrupt, match=f"'{space}'"):
            run(ledger.append([event(space=space)]))
        with pytest.raises(StorageCorrupt, match=f"'{space}'"):
            run(ledger.find(space, "e1"))
        assert offsets_and_damage(ledger, space=space)[0] == []


OF_SPACES, OF_IDS = "events_of_space", "sqlite_autoindex_events_1"


def insert_beside_indexes(path: Path, names: tuple[str, ...], row: tuple[object, ...]) -> None:
    """Add a record to the table that these indexes lack."""
    some = f"name IN ({', '.join(map(repr, names))})"
    hidden = rows(path, f"SELECT type, name, tbl_name, rootpage, sql FROM sqlite_schema WHERE {some}")
    ((table,),) = rows(path, "SELECT sql FROM sqlite_schema WHERE name = 'events'")
    unchecked = re.sub(r",\s*UNIQUE \([^)]*\)", "", str(table)) if OF_IDS in names else table
    define = "UPDATE sqlite_schema SET sql = ? WHERE name = 'events'"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute(define, (unchecked,))
        connection.execute(f"DELETE FROM sqlite_schema WHERE {some}")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", row)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute(define, (table,))
        connection.executemany("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", hidden)


@pytest.mark.parametrize("names", [(OF_SPACES,), (OF_SPACES, OF_IDS)], ids=["one index", "both indexes"])
def test_a_space_is_read_completely_beside_a_damaged_index(
    ledger: SqliteLedger, path: Path, caplog: pytest.LogCaptureFixture, names: tuple[str, ...]
) -> None:
    ((number,),) = rows(path, "SELECT number FROM spaces WHERE name = 'city'")
    assert isinstance(number, int)
    data = codec.encode(event(space="city", id="unindexed"))
    checksum = event_checksum(12, number, "unindexed", data, 0)
    insert_beside_indexes(path, names, (12, number, "unindexed", data, checksum, 0))
    reopened = SqliteLedger(path)
    try:
        for _ in range(2):
            records, error = run(read_until_damage(reopened, 0, 13, "city"))
            assert error is None
            assert [offset for offset, _ in records] == [1, 2, 4, 5, 7, 8, 10, 11, 12]
        assert [record.getMessage() for record in caplog.records if "index of spaces" in record.getMessage()] != []
        assert len(caplog.records) == 1
    finally:
        run(reopened.close())


@pytest.mark.parametrize("index", [OF_SPACES, OF_IDS])
def test_a_space_is_read_completely_beside_an_index_that_cannot_be_read(tmp_path: Path, index: str) -> None:
    path = tmp_path / "ledger.db"
    ledger = SqliteLedger(path)
    run(ledger.append(EVENTS))
    run(ledger.close())
    ((page,),) = rows(path, f"SELECT rootpage FROM sqlite_schema WHERE name = '{index}'")
    data = bytearray(path.read_bytes())
    begin = (int(str(page)) - 1) * 4096
    data[begin : begin + 4096] = bytes(4096)
    path.write_bytes(data)
    ledger = SqliteLedger(path)
    try:
        records, error = run(read_until_damage(ledger, 0, 12, "village"))
        assert error is None
        assert [offset for offset, _ in records] == [0, 3, 6, 9]
    finally:
        run(ledger.close())


def rows(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


# Random flips.

COUNT = 120
SENT: list[Event] = numbered(COUNT // 2) + [
    event(turn=n, space="city", payload={"text": f"The mill turned {n} times. " * (n % 9)}) for n in range(COUNT // 2)
]


@cache
def whole() -> bytes:
    """The file of a closed ledger with `SENT`."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        ledger = SqliteLedger(Path(folder) / "ledger.db")
        run(ledger.append(SENT))
        run(ledger.close())
        return (Path(folder) / "ledger.db").read_bytes()


async def answers_of(path: Path) -> None:
    """Every call returns what was written, or raises an error of Recallog."""
    truth = [(offset, codec.encode(sent)) for offset, sent in enumerate(SENT)]
    ledger = SqliteLedger(path)
    try:
        (last,) = await ledger.ends()
    except RecallogError:
        await ledger.close()
        return
    try:
        records, error = await read_until_damage(ledger, 0, last)
        assert records == truth[: len(records)]
        assert error is not None or len(records) == min(last, COUNT)
        for space in ("village", "city"):
            of_space = [(n, data) for n, data in truth if SENT[n].space == space]
            records, error = await read_until_damage(ledger, 0, min(last, COUNT), space)
            if error is None and last >= COUNT and records:
                assert records == of_space
            else:
                assert records == of_space[: len(records)]
        for offset in random.Random(0).sample(range(COUNT), 5):
            try:
                assert await ledger.find(SENT[offset].space, SENT[offset].id) in (Position(0, offset), None)
            except RecallogError:
                continue
    except RecallogError:
        pass
    finally:
        await ledger.close()


def test_an_index_that_has_an_event_without_its_offset_is_damaged() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE events (offset, space, id, value, crc, appended)")
        connection.execute("INSERT INTO events VALUES (NULL, 1, 'e-1', x'7b7d', 0, 0)")
        with pytest.raises(Damaged, match="the event 'e-1' without its offset"):
            sqlite_records.find(connection, 1, "e-1")


@settings(max_examples=300, deadline=None)
@given(
    flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), min_size=1, max_size=3),
)
def test_no_flip_of_bytes_makes_a_wrong_record(
    tmp_path_factory: pytest.TempPathFactory, flips: list[tuple[float, int]]
) -> None:
    logging.getLogger("recallog.storage").disabled = True
    data = bytearray(whole())
    for share, mask in flips:
        data[int(share * len(data))] ^= mask
    path = tmp_path_factory.mktemp("flipped") / "ledger.db"
    path.write_bytes(data)
    try:
        asyncio.run(answers_of(path))
    finally:
        logging.getLogger("recallog.storage").disabled = False
