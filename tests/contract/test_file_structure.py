"""Damage in the ledger's file apart from its records: `verify` names it, `verify --repair` computes it again."""

import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from recallog import Event, Memory, Position
from recallog_projections.sqlite.connecting import PAGE_BYTES
from recallog_schemas.errors import StorageCorrupt
from recallog_schemas.views import RepairReport, VerifyReport
from recallog_streams import ledger_check
from recallog_streams.ledgers.ledger import LedgerPart
from recallog_streams.ledgers.sqlite import SqliteLedger
from recallog_streams.ledgers.sqlite_records import event_checksum
from support import old_ledger
from support.cli import recallog
from support.events import event, numbered, run

IDS, SPACE_INDEX, NAMES = "sqlite_autoindex_events_1", "events_of_space", "sqlite_autoindex_spaces_1"
PARTS = {IDS: LedgerPart.IDS, SPACE_INDEX: LedgerPart.SPACE_INDEX, NAMES: LedgerPart.NAMES, "spaces": LedgerPart.SPACES}
SPACES = 30


def told(count: int) -> list[Event]:
    return [event(id=f"told-{n}-by-somebody", space=f"village-{n % SPACES}", turn=n) for n in range(count)]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose ledger has several pages of each index, and whose views have processed it."""
    folder = tmp_path_factory.mktemp("original")

    async def work() -> None:
        async with Memory.open(folder) as memory:
            await memory.publish_many(told(600))
            await memory.spaces()

    run(work())
    return folder


@pytest.fixture
def home(original: Path, tmp_path: Path) -> Path:
    for name in ("ledger.db", "views.db"):
        shutil.copy(original / name, tmp_path / name)
    return tmp_path


def query(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def pages_of(path: Path, tree: str) -> list[int]:
    """The numbers of the pages of a tree of indexed entries: its root, and the leaves below it."""
    ((root,),) = query(path, f"SELECT rootpage FROM sqlite_schema WHERE name = {tree!r}")
    data = path.read_bytes()
    assert isinstance(root, int)
    page = data[(root - 1) * PAGE_BYTES : root * PAGE_BYTES]
    if page[0] not in (2, 5):
        return [root]
    cells = int.from_bytes(page[3:5], "big")
    at = [int.from_bytes(page[12 + 2 * n : 14 + 2 * n], "big") for n in range(cells)]
    return [root, *(int.from_bytes(page[cell : cell + 4], "big") for cell in at), int.from_bytes(page[8:12], "big")]


def zero(path: Path, page: int) -> None:
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE_BYTES)
        file.write(bytes(PAGE_BYTES))


def verified(home: Path) -> VerifyReport:
    async def work() -> VerifyReport:
        async with Memory.open(home) as memory:
            return await memory.admin.verify("views")

    return run(work())


def repaired(home: Path) -> RepairReport:
    async def work() -> RepairReport:
        async with Memory.open(home) as memory:
            return await memory.admin.repair()

    return run(work())


CONTENT = ("SELECT * FROM events ORDER BY offset", "SELECT * FROM spaces ORDER BY number", "SELECT * FROM manifest")


def content(home: Path) -> list[list[tuple[object, ...]]]:
    return [query(home / "ledger.db", sql) for sql in CONTENT]


def test_a_whole_folder_is_clean_and_a_repair_changes_no_byte_of_it(home: Path) -> None:
    before = (home / "ledger.db").read_bytes()
    report = repaired(home)
    assert report.verified.clean
    assert report.format().startswith("nothing to repair\nclean 600 records")
    assert (home / "ledger.db").read_bytes() == before


@pytest.mark.parametrize("tree", PARTS)
def test_each_page_of_an_index_and_of_the_spaces_is_verified_and_repaired(
    original: Path, home: Path, tree: str
) -> None:
    for page in pages_of(original / "ledger.db", tree):
        shutil.copy(original / "ledger.db", home / "ledger.db")
        zero(home / "ledger.db", page)
        (found,) = verified(home).files
        assert (found.part, found.repairable) == (PARTS[tree].value, True)
        report = repaired(home)
        assert [each.part for each in report.repaired] == [found.part]
        assert report.verified.clean
        assert content(home) == content(original)
        assert query(home / "ledger.db", "PRAGMA integrity_check") == [("ok",)]


def test_the_last_page_of_the_records_is_named_and_all_others_can_be_saved(home: Path, tmp_path: Path) -> None:
    ((pages,),) = query(home / "ledger.db", "PRAGMA page_count")
    for page in range(int(str(pages)), 1, -1):
        whole = (home / "ledger.db").read_bytes()
        zero(home / "ledger.db", page)
        try:
            query(home / "ledger.db", "SELECT max(offset) FROM events")
        except sqlite3.DatabaseError:
            break
        (home / "ledger.db").write_bytes(whole)
    (found,) = verified(home).ledger
    assert (found.problem, found.last.offset) == ("damaged", 599)
    assert recallog("publish", "village-7", "baker", "agent.spoke", "Bread!", "--home", home).code == 3
    saved = recallog("export", "--keep-going", "--output", tmp_path / "saved.jsonl", "--home", home)
    assert saved.code == 1
    assert f"left out {found.first} to {found.last}" in saved.err
    assert len((tmp_path / "saved.jsonl").read_text().splitlines()) == found.first.offset > 500


def test_a_manifest_that_cannot_be_read_is_not_sent_back_to_verify(home: Path) -> None:
    ((root,),) = query(home / "ledger.db", "SELECT rootpage FROM sqlite_schema WHERE name = 'manifest'")
    zero(home / "ledger.db", int(str(root)))
    result = recallog("verify", "--home", home)
    assert result.code == 3
    assert "restore your backup of the folder" in result.err
    assert "recallog verify" not in result.err


def test_a_repaired_ledger_knows_its_ids_and_spaces_and_goes_on(home: Path) -> None:
    for tree in (IDS, "spaces"):
        zero(home / "ledger.db", pages_of(home / "ledger.db", tree)[-1])
    assert repaired(home).verified.clean

    async def work() -> list[Position]:
        async with Memory.open(home) as memory:
            return list(await memory.publish_many([*told(600)[590:591], event(space="village-7"), event(space="city")]))

    assert run(work()) == [Position(0, 590), Position(0, 600), Position(0, 601)]
    assert verified(home).clean


def flips(original: Path, target: Path, seed: int) -> Iterator[int]:
    """Flip a bit of each page in turn, in a new copy each time."""
    whole = (original / "ledger.db").read_bytes()
    draw = random.Random(seed)
    for page in range(len(whole) // PAGE_BYTES):
        damaged = bytearray(whole)
        damaged[page * PAGE_BYTES + draw.randrange(PAGE_BYTES)] ^= 1 << draw.randrange(8)
        for ending in ("-wal", "-shm"):
            Path(f"{target}{ending}").unlink(missing_ok=True)
        target.write_bytes(damaged)
        yield page


def readings(path: Path) -> list[object]:
    """Everything that a reader or a writer of the file can come across."""
    with closing(sqlite3.connect(path)) as connection:
        found: list[object] = [connection.execute(sql).fetchall() for sql in CONTENT]
        events = connection.execute("SELECT offset, space, id FROM events ORDER BY offset").fetchall()
        by_id = "SELECT offset FROM events WHERE space = ? AND id = ?"
        found += [connection.execute(by_id, (space, id_)).fetchall() for _, space, id_ in events]
        by_space = "SELECT offset FROM events WHERE space = ? ORDER BY offset"
        found += [connection.execute(by_space, (number,)).fetchall() for number in range(1, SPACES + 1)]
        by_name = "SELECT number FROM spaces WHERE name = ?"
        found += [connection.execute(by_name, (f"village-{n}",)).fetchall() for n in range(SPACES)]
        return found


async def is_clean(path: Path) -> bool:
    ledger = SqliteLedger(path)
    try:
        await ledger.manifest()
        return not await ledger.find_problems() and not await ledger_check.check(ledger, 0, [])
    except StorageCorrupt:
        return False
    finally:
        await ledger.close()


@pytest.mark.parametrize("seed", range(4))
def test_a_flipped_bit_is_named_unless_nobody_can_read_it(original: Path, tmp_path: Path, seed: int) -> None:
    whole, path = readings(original / "ledger.db"), tmp_path / "flipped.db"
    for page in flips(original, path, seed):
        try:
            clean = run(is_clean(path))
        except Exception as error:
            raise AssertionError(f"page {page + 1}") from error
        assert not clean or readings(path) == whole, f"page {page + 1}"


def test_a_space_without_its_row_is_named_and_gets_it_back(original: Path, home: Path) -> None:
    with closing(sqlite3.connect(home / "ledger.db")) as connection, connection:
        connection.execute("DELETE FROM spaces WHERE number = 7")
    (found,) = verified(home).files
    assert found.part == "the table of spaces"
    assert found.reason.startswith("the row of number 7 is not 'village-")
    assert repaired(home).verified.clean
    assert content(home) == content(original)


@pytest.mark.parametrize(
    ("before", "after"),
    [("id TEXT", "id TEXX"), ("events_of_space ON", "events_of_spacE ON"), ("crc INTEGER", "crc INTEGEX")],
)
def test_a_changed_schema_is_named_and_repaired(original: Path, home: Path, before: str, after: str) -> None:
    data = (home / "ledger.db").read_bytes()
    (home / "ledger.db").write_bytes(data[:PAGE_BYTES].replace(before.encode(), after.encode()) + data[PAGE_BYTES:])
    assert {each.part for each in verified(home).files} >= {"the schema"}
    assert repaired(home).verified.clean
    assert content(home) == content(original)


def test_a_damaged_list_of_free_pages_is_named_and_repaired(home: Path) -> None:
    path = home / "ledger.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE gone (filler)")
        connection.executemany("INSERT INTO gone VALUES (?)", [(bytes(3000),)] * 20)
        connection.execute("DROP TABLE gone")
    assert verified(home).clean
    first = int.from_bytes(path.read_bytes()[32:36], "big")
    zero(path, first)
    assert [each.part for each in verified(home).files] == ["the list of free pages"]
    before = content(home)
    assert repaired(home).verified.clean
    assert content(home) == before


def test_an_upgraded_ledger_has_the_schema_of_a_new_one(tmp_path: Path) -> None:
    old_ledger.write(tmp_path / "ledger.db", numbered(30))
    assert verified(tmp_path).clean


def test_nothing_is_repaired_while_a_record_is_damaged(home: Path) -> None:
    with closing(sqlite3.connect(home / "ledger.db")) as connection, connection:
        connection.execute("UPDATE events SET value = CAST(value || ' ' AS BLOB) WHERE offset = 57")
    zero(home / "ledger.db", pages_of(home / "ledger.db", IDS)[-1])
    before = (home / "ledger.db").read_bytes()
    report = repaired(home)
    assert not report.repaired
    assert "0:57" in report.problem
    assert "0:57" in report.verified.format()
    assert "recallog verify --repair" in report.verified.format()
    assert (home / "ledger.db").read_bytes() == before


def test_an_id_that_was_stored_twice_is_not_repaired_and_says_so(home: Path) -> None:
    path = home / "ledger.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, 'UNIQUE (space, id)', 'CHECK (1)') WHERE name = 'events'"
        )
        connection.execute(f"DELETE FROM sqlite_schema WHERE name = {IDS!r}")
    with closing(sqlite3.connect(path)) as connection, connection:
        row = connection.execute("SELECT space, id, value FROM events WHERE offset = 3").fetchone()
        connection.execute("INSERT INTO events VALUES (600, ?, ?, ?, ?, 0)", (*row, event_checksum(600, *row, 0)))
    report = repaired(home)
    assert "stored twice" in report.problem
    assert not report.ok


def test_the_command_names_what_is_damaged_repairs_it_and_says_so(home: Path) -> None:
    zero(home / "ledger.db", pages_of(home / "ledger.db", SPACE_INDEX)[0])
    arguments = ("--home", home)
    found = recallog("verify", *arguments, RECALLOG_INDEX="off")
    assert found.code == 1
    assert "the index of spaces" in found.out
    assert "recallog verify --repair" in found.out
    again = recallog("verify", "--repair", *arguments, RECALLOG_INDEX="off")
    assert again.code == 0
    assert again.out.startswith("repaired the index of spaces in the ledger")
    assert recallog("verify", "--repair", "--json", *arguments, RECALLOG_INDEX="off").json["repaired"] == []


def test_views_whose_file_is_damaged_are_built_again(home: Path) -> None:
    path = home / "views.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE gone (filler)")
        connection.executemany("INSERT INTO gone VALUES (?)", [(bytes(3000),)] * 20)
        connection.execute("DROP TABLE gone")
    zero(path, int.from_bytes(path.read_bytes()[32:36], "big"))
    (found,) = verified(home).files
    assert (found.views, found.file) == ("built-in", str(path))
    report = repaired(home)
    assert [each.views for each in report.repaired] == ["built-in"]
    assert report.verified.clean


def test_other_processes_append_meanwhile_and_nothing_is_lost(home: Path) -> None:
    """An append waits for the repair or comes before it."""
    zero(home / "ledger.db", pages_of(home / "ledger.db", SPACE_INDEX)[1])
    code = (
        "import asyncio, sys\nfrom recallog import Memory\nfrom support.events import numbered\n"
        "async def main(home):\n    async with Memory.open(home) as memory:\n"
        "        for n in range(40):\n            await memory.publish_many(numbered(1, space='city', first=n))\n"
        "asyncio.run(main(sys.argv[1]))"
    )
    environment = {"PYTHONPATH": ":".join(sys.path), "RECALLOG_INDEX": "off"}
    with subprocess.Popen([sys.executable, "-c", code, str(home)], env=environment) as appending:
        while query(home / "ledger.db", "SELECT max(offset) FROM events")[0] < (602,):
            assert appending.poll() is None
        run(SqliteLedger(home / "ledger.db").repair())
        assert appending.wait() == 0
    report = verified(home)
    assert report.clean, report.format()
    assert report.records == 640


KILLED = """
import asyncio, os, signal, sys, threading, time
from pathlib import Path
from recallog_streams.ledgers.sqlite import SqliteLedger

threading.Timer(float(sys.argv[2]), lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
asyncio.run(SqliteLedger(Path(sys.argv[1])).repair())
os._exit(0)
"""


@pytest.mark.parametrize("milliseconds", [0, 3, 10, 20, 40])
def test_a_repair_that_was_killed_changes_no_record_and_is_repeated(
    original: Path, home: Path, milliseconds: int
) -> None:
    zero(home / "ledger.db", pages_of(home / "ledger.db", IDS)[-1])
    command: Sequence[str] = (sys.executable, "-c", KILLED, str(home / "ledger.db"), str(milliseconds / 1000))
    subprocess.run(command, check=False, env={"PYTHONPATH": ":".join(sys.path)})
    report = repaired(home)
    assert report.verified.clean, report.format()
    assert content(home) == content(original)
