"""What `verify` and `digest` say to an operator about a ledger and views that something has changed on disk."""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

import pytest

from recallog import Memory, Position
from recallog_schemas import Event, codec
from recallog_schemas.errors import InvalidArgument, OutOfRange
from recallog_schemas.views import LedgerFinding, TableCheck, VerifyReport
from support.altering import alter_record, damage_row, damage_segment, delete_records, garbage_in_rows, lose_row
from support.cli import recallog, spawn
from support.events import event, run

EVENTS = 2_600
"""Two whole blocks of 1,024 offsets, and a part of a third."""


def told(count: int, *, first: int = 0) -> list[Event]:
    return [
        event(id=f"e{n}", space=f"village-{n % 3}", turn=n, payload={"text": f"Loaf {n} is right today."})
        for n in range(first, first + count)
    ]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with folded events; tests change copies of it."""
    folder = tmp_path_factory.mktemp("original")

    async def work() -> None:
        async with Memory.open(folder) as memory:
            for first in range(0, EVENTS, 1000):
                await memory.publish_many(told(min(1000, EVENTS - first), first=first))
            await memory.spaces()

    run(work())
    return folder


@pytest.fixture
def home(original: Path, tmp_path: Path) -> Path:
    for name in ("ledger.db", "views.db"):
        with closing(sqlite3.connect(original / name)) as source, closing(sqlite3.connect(tmp_path / name)) as target:
            source.backup(target)
            if name == "ledger.db":
                target.execute("PRAGMA journal_mode=WAL")
    return tmp_path


def verified(home: Path, *digests: str) -> VerifyReport:
    async def work() -> VerifyReport:
        async with Memory.open(home) as memory:
            return await memory.admin.verify("views", digests=digests or None)

    return run(work())


def digest(home: Path) -> str:
    async def work() -> str:
        async with Memory.open(home) as memory:
            (found,) = await memory.admin.digest()
            return found.format()

    return run(work())


def named(report: VerifyReport) -> list[tuple[str, str, str]]:
    return [(each.problem, str(each.first), str(each.last)) for each in report.ledger]


def test_an_untouched_folder_is_clean(home: Path) -> None:
    assert verified(home).clean


@pytest.mark.parametrize(
    ("offset", "first", "last"),
    [(0, "0:0", "0:1023"), (1023, "0:0", "0:1023"), (1024, "0:1024", "0:2047"), (2500, "0:2048", "0:2599")],
)
def test_a_record_changed_with_a_correct_checksum_is_named_by_its_block(
    home: Path, offset: int, first: str, last: str
) -> None:
    alter_record(home / "ledger.db", offset, b"right", b"wrong")
    report = verified(home)
    assert named(report) == [("changed", first, last)]
    assert not report.ok
    assert not report.not_compared
    found = recallog("verify", "views", "--home", home)
    assert found.code == 1
    assert f"the records {first} to {last} are not what the built-in views were computed from" in found.out
    assert "restore the backup" in found.out


def test_the_last_record_changed_is_named_instead_of_refused(home: Path) -> None:
    """Every query refuses the ledger then: the views name that record."""
    alter_record(home / "ledger.db", EVENTS - 1, b"right", b"wrong")
    assert named(verified(home)) == [("changed", "0:2048", "0:2599")]
    refused = recallog("episodic", "village-0", "baker", "--home", home)
    assert refused.code == 3
    assert "recallog verify" in refused.err


def test_the_rows_that_follow_from_a_changed_record_are_named_too(home: Path) -> None:
    alter_record(home / "ledger.db", 2500, b"right", b"wrong")
    report = verified(home)
    differing = {table.table for table in report.tables if table.difference}
    assert "episodic.own" in differing
    assert "ledger.chain" not in differing
    assert "Decide about its records first" in report.format()


def test_a_damaged_record_is_named_and_the_rest_is_still_compared(home: Path) -> None:
    alter_record(home / "ledger.db", 57, b"right", b"wrong", checksum=False)
    alter_record(home / "ledger.db", 1500, b"right", b"wrong")
    report = verified(home)
    assert named(report) == [("damaged", "0:57", "0:57"), ("changed", "0:1024", "0:2047")]
    assert "fails its checksum" in report.ledger[0].reason
    assert not any(table.difference or table.damaged for table in report.tables)
    assert {table.expected_digest for table in report.tables} == {None}
    assert "0:57" in report.not_compared[0].reason
    found = recallog("verify", "views", "--home", home)
    assert found.code == 1
    assert "the record 0:57 cannot be read" in found.out


def test_a_hole_in_the_offsets_is_named_whole(home: Path) -> None:
    delete_records(home / "ledger.db", 100, 199)
    assert named(verified(home)) == [("damaged", "0:100", "0:199")]


def test_a_damaged_record_that_the_views_have_not_processed_is_named_and_their_rows_are_compared(home: Path) -> None:
    async def work() -> None:
        async with Memory.open(home) as memory:
            await memory.publish_many(told(5, first=EVENTS))

    run(work())
    alter_record(home / "ledger.db", EVENTS + 2, b"right", b"wrong", checksum=False)
    report = verified(home)
    assert named(report) == [("damaged", f"0:{EVENTS + 2}", f"0:{EVENTS + 2}")]
    assert not report.not_compared
    assert all(table.digest == table.expected_digest for table in report.tables)


def test_without_any_views_damaged_records_are_named(home: Path) -> None:
    (home / "views.db").unlink()
    alter_record(home / "ledger.db", 57, b"right", b"wrong", checksum=False)
    report = verified(home)
    assert named(report) == [("damaged", "0:57", "0:57")]
    assert report.not_compared
    assert not report.ok


def test_with_a_damaged_ledger_views_that_were_lost_cannot_be_compared(home: Path) -> None:
    alter_record(home / "ledger.db", 57, b"right", b"wrong", checksum=False)
    with closing(sqlite3.connect(home / "views.db")) as connection, connection:
        connection.execute("UPDATE generations SET checkpoint = NULL")
    report = verified(home)
    assert named(report) == [("damaged", "0:57", "0:57")]
    assert "0:57" in report.not_compared[0].reason


def test_a_digest_after_a_damaged_record_cannot_be_computed(home: Path) -> None:
    before, after = digest_by_hand(home, 50), digest(home)
    alter_record(home / "ledger.db", 57, b"right", b"wrong", checksum=False)
    first, second = verified(home, before, after).digests
    assert first.matches
    assert not second.matches
    assert second.found is None


def rows_of(report: VerifyReport, table: str) -> TableCheck:
    return next(check for check in report.tables if check.table == table)


@pytest.mark.parametrize("table", ["activity.agents", "ledger.chain"])
def test_a_row_whose_checksum_fails_is_named_and_not_healed(home: Path, table: str) -> None:
    space, owner, key = damage_row(home / "views.db", table)
    for _ in range(2):
        report = verified(home)
        (address,) = rows_of(report, table).damaged
        assert (address.space, address.owner, address.key) == (space, owner, key)
        assert rows_of(report, table).difference is None
        assert not report.ledger
        assert not report.ok
    found = recallog("verify", "views", "--home", home)
    assert found.code == 1
    assert f"damaged {table}" in found.out
    assert "recallog rebuild" in found.out
    assert recallog("rebuild", "--home", home).code == 0
    assert verified(home).clean


def test_a_damaged_part_of_a_log_is_named(home: Path) -> None:
    space, owner = damage_segment(home / "views.db", "episodic.own")
    report = verified(home)
    (address,) = rows_of(report, "episodic.own").damaged
    assert (address.space, address.owner) == (space, owner)
    assert rows_of(report, "episodic.own").difference is None


def test_a_lost_row_is_named(home: Path) -> None:
    address = lose_row(home / "views.db", "activity.agents")
    difference = rows_of(verified(home), "activity.agents").difference
    assert difference is not None
    assert (difference.space, difference.owner, difference.key) == address
    assert difference.found is None


def test_with_a_damaged_ledger_the_checksums_of_rows_are_still_verified(home: Path) -> None:
    alter_record(home / "ledger.db", 57, b"right", b"wrong", checksum=False)
    damage_row(home / "views.db", "activity.agents")
    report = verified(home)
    assert named(report) == [("damaged", "0:57", "0:57")]
    assert len(rows_of(report, "activity.agents").damaged) == 1


def test_records_missing_at_the_end_are_named(home: Path) -> None:
    delete_records(home / "ledger.db", 2590, EVENTS)
    report = verified(home)
    assert named(report) == [("missing", "0:2590", "0:2599")]
    assert "past 0:2590" in report.not_compared[0].reason


def test_status_says_that_the_ledger_lost_records_that_were_processed(home: Path) -> None:
    delete_records(home / "ledger.db", 2590, EVENTS)
    found = recallog("status", "--home", home)
    assert f"the ledger {home / 'ledger.db'} ends before the record 0:2599, which was processed" in found.err
    assert "the lag" not in found.err


@pytest.mark.parametrize(
    ("views", "command"),
    [(("built-in",), "recallog rebuild"), (("index",), "recallog rebuild index"),
     (("built-in", "index"), "recallog rebuild, and recallog rebuild index")],
)  # fmt: skip
def test_the_advice_about_a_changed_ledger_names_the_rebuild_of_what_was_computed_from_it(
    views: tuple[str, ...], command: str
) -> None:
    first, last = Position(0, 0), Position(0, 9)
    found = [LedgerFinding(problem="changed", first=first, last=last, views=each, reason="") for each in views]
    text = VerifyReport(records=10, tables=(), digest="", ledger=tuple(found)).format()
    assert text.endswith(f"build again what was computed from it: {command}")


def test_a_rebuild_of_a_ledger_that_lost_its_end_ends_with_an_error_that_names_both_files(home: Path) -> None:
    delete_records(home / "ledger.db", 2590, EVENTS)
    found = recallog("rebuild", "--home", home)
    assert found.code == 3
    for named_file in ("ledger.db", "views.db"):
        assert str(home / named_file) in found.err
    assert "0:2599" in found.err
    assert recallog("rebuild", "--home", home).code == 3, "nor does the building generation that it left"
    for name in home.glob("views.db*"):
        name.unlink()
    assert recallog("rebuild", "--home", home).code == 0
    assert verified(home).clean


def test_a_digest_kept_elsewhere_matches_until_a_record_before_it_changes(home: Path) -> None:
    kept = digest(home)
    report = verified(home, kept)
    assert report.clean
    assert report.digests[0].matches
    alter_record(home / "ledger.db", 70, b"right", b"wrong")
    (check,) = verified(home, kept).digests
    assert not check.matches
    assert (str(check.first), str(check.last)) == ("0:0", "0:1023")


def test_after_a_rebuild_only_a_kept_digest_shows_the_change(home: Path) -> None:
    """Views that were computed from the changed ledger agree with it."""
    at_100, at_end = digest_by_hand(home, 100), digest(home)
    alter_record(home / "ledger.db", 1500, b"right", b"wrong")
    assert recallog("rebuild", "--home", home).code == 0
    assert verified(home).clean
    report = verified(home, at_end, at_100)
    assert not report.ok
    first, second = report.digests
    assert first.matches
    assert (str(second.first), str(second.last)) == ("0:101", f"0:{EVENTS - 1}")
    found = recallog("verify", "--digest", at_end, "--digest", at_100, "--home", home)
    assert found.code == 1
    assert "the digest at 0:100 matches" in found.out
    assert (
        f"the digest at 0:{EVENTS - 1} does not match: it was computed from other records than 0:101 to 0:" in found.out
    )


def digest_by_hand(home: Path, last: int) -> str:
    value = bytes(16)
    with closing(sqlite3.connect(home / "ledger.db")) as connection:
        for offset, data in connection.execute("SELECT offset, value FROM events ORDER BY offset LIMIT ?", (last + 1,)):
            value = blake2b(value + offset.to_bytes(8, "big") + data, digest_size=16).digest()
    return f"0:{last}:{value.hex()}"


def test_the_digest_is_the_one_computed_by_hand_also_for_what_the_views_have_not_processed(home: Path) -> None:
    assert digest(home) == digest_by_hand(home, EVENTS - 1)

    async def work() -> str:
        async with Memory.open(home) as memory:
            await memory.publish_many(told(5, first=EVENTS))
            (found,) = await memory.admin.digest()
            return found.format()

    assert run(work()) == digest_by_hand(home, EVENTS + 4)


def test_worked_example(tmp_path: Path) -> None:
    """Two events: the digest as anybody can compute it from an export."""
    events = [event(id="a", at="2026-03-01T12:00:00Z"), event(id="b", at="2026-03-01T12:00:01Z")]

    async def work() -> str:
        async with Memory.open(tmp_path) as memory:
            assert len(await memory.admin.digest()) == 0
            await memory.publish_many(events)
            (found,) = await memory.admin.digest()
            return found.digest

    first = blake2b(bytes(16) + bytes(8) + codec.encode(events[0]), digest_size=16).digest()
    second = blake2b(first + bytes(7) + b"\1" + codec.encode(events[1]), digest_size=16).digest()
    assert run(work()) == second.hex()


def test_digest_prints_lines_that_verify_takes(home: Path) -> None:
    printed = recallog("digest", "--home", home)
    assert printed.code == 0
    assert printed.out == digest(home) + "\n"
    assert f"recallog verify --digest {printed.out.strip()}" in printed.err
    (item,) = recallog("digest", "--json", "--home", home).json["items"]
    assert f"{item['position']['partition']}:{item['position']['offset']}:{item['digest']}\n" == printed.out
    found = recallog("verify", "views", "--digest", printed.out.strip().removeprefix("0:").upper(), "--home", home)
    assert found.code == 0
    assert "matches" in found.out


@pytest.mark.parametrize("malformed", ["", "0:5", "x:5:" + "0" * 32, "0:5:" + "0" * 31, "0:5:" + "g" * 32, "5"])
def test_a_malformed_digest_is_refused_with_its_path(home: Path, malformed: str) -> None:
    with pytest.raises(InvalidArgument, match="digest printed") as refused:
        verified(home, malformed)
    assert refused.value.path == "digests.0"
    found = recallog("verify", "--digest", malformed, "--home", home)
    assert found.code == 2
    assert "--digest" in found.err


def test_a_digest_past_the_end_says_that_records_are_missing(home: Path) -> None:
    with pytest.raises(OutOfRange, match="records are missing"):
        verified(home, f"0:{EVENTS}:" + "0" * 32)
    with pytest.raises(OutOfRange, match="no partition 1"):
        verified(home, "1:0:" + "0" * 32)


@pytest.fixture
def open_to_all(home: Path) -> Iterator[Path]:
    """The folder where another user may read it and not write it. pytest makes folders for one user."""
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(shutil.copytree(home, Path(folder) / "home"))
        for path in (copied.parent, copied):
            path.chmod(0o755)
        yield copied


@pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED LOUDLY: only root can become nobody")
def test_a_folder_that_may_only_be_read_is_verified_and_its_digest_is_printed(open_to_all: Path) -> None:
    found = spawn("verify", "views", "--home", open_to_all, as_nobody=True)
    assert (found.code, found.out.partition(" records")[0]) == (0, f"clean {EVENTS:,}")
    printed = spawn("digest", "--home", open_to_all, as_nobody=True)
    assert printed.out == digest_by_hand(open_to_all, EVENTS - 1) + "\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED LOUDLY: only root can become nobody")
def test_views_that_can_be_neither_read_nor_replaced_are_named_and_the_ledger_is_still_checked(
    open_to_all: Path,
) -> None:
    alter_record(open_to_all / "ledger.db", 57, b"right", b"wrong", checksum=False)
    (open_to_all / "views.db").write_bytes(b"no database at all" * 1000)
    found = spawn("verify", "views", "--json", "--home", open_to_all, as_nobody=True)
    assert found.code == 1, found
    assert [finding["problem"] for finding in found.json["ledger"]] == ["damaged"]
    assert found.json["ledger"][0]["first"] == {"partition": 0, "offset": 57}
    (views,) = found.json["not_compared"]
    assert "views.db" in views["reason"]


def test_a_page_of_the_views_that_cannot_be_read_is_named(home: Path) -> None:
    garbage_in_rows(home / "views.db")
    report = verified(home)
    assert report.not_compared
    assert str(home / "views.db") in report.not_compared[0].reason
    assert recallog("verify", "views", "--home", home).code == 1
    assert recallog("rebuild", "--home", home).code == 0
    assert verified(home).clean
