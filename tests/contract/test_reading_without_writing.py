"""Reading needs no writing: in a read-only folder, and on a full disk, every question is answered as elsewhere."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from flip.questions import QUESTIONS, Question
from flip.story import Topics, batches
from recallog import Memory, Settings, layout
from recallog_projections.stores.sqlite import VIEWS
from recallog_schemas import limits, rules
from recallog_schemas.errors import OutOfRange, RecallogError, StorageFull, StorageReadOnly, StorageReplaced
from recallog_streams.ledgers.sqlite import SqliteLedger
from support import old_ledger
from support.cli import environment_of
from support.events import event, one_loop, run
from support.read_only import fill, read_only, small_disk

LATEST = len(batches()) - 1
WRITING = {"publish_many", "admin.abort_rebuild", "admin.abort_reindex", "admin.plan_rebuild"}
ASKED = [question for question in QUESTIONS if question.operation not in WRITING]
OF_THE_STORE = {"generation", "building", "building_checkpoint", "ledger_bytes", "views_bytes"}
"""Fields that describe the files, not what they contain."""
OF_THE_VIEWS = {"spaces", "agents", "sessions", "pending", "pending_total", "unreflected", "unreflected_total"}
"""Fields of `status`, which folds nothing: they are of the views as they are."""


def memory_in(home: Path) -> Memory:
    settings = Settings(home=home, index="off", lock_wait_seconds=1.0, deadline_seconds=0.3, count_accesses=False)
    return Memory.open(settings, projections=[Topics()])


def answers(home: Path, folder: Path) -> Mapping[str, Any]:
    """The answers of a memory in `home` to all questions, by name, without what describes its files."""
    folder.mkdir()

    async def work() -> Mapping[str, Any]:
        found = {}
        async with memory_in(home) as memory:
            for number, question in enumerate(ASKED):
                place = folder / str(number)
                place.mkdir()
                try:
                    found[question.name] = content(question, await question.put(memory, place))
                except OutOfRange as error:
                    found[question.name] = str(error)
        return found

    try:
        return run(work())
    finally:
        shutil.rmtree(folder)


def content(question: Question, answer: Any) -> Any:
    if question.operation == "admin.status":
        return {"records": answer["records"], "ends": [row["end"] for row in answer["partitions"]]}
    if question.operation == "admin.verify":
        return {"tables": [(table["table"], table["difference"]) for table in answer["tables"]]}
    return _without(answer)


def _without(answer: Any) -> Any:
    if isinstance(answer, dict):
        return {name: _without(value) for name, value in answer.items() if name not in OF_THE_STORE}
    return [_without(value) for value in answer] if isinstance(answer, list) else answer


def publish(home: Path, first: int, end: int) -> None:
    """Publish some of the batches, and bring the views up to date in between."""

    async def work() -> None:
        async with memory_in(home) as memory:
            for batch in batches()[first:end]:
                await memory.publish_many(batch)
                await memory.catch_up()

    run(work())


def publish_only(home: Path, first: int, end: int) -> None:
    async def work() -> None:
        async with memory_in(home) as memory:
            for batch in batches()[first:end]:
                await memory.publish_many(batch)

    run(work())


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """The answers of a folder that can be written."""
    home = tmp_path_factory.mktemp("expected") / "home"
    publish(home, 0, LATEST + 1)
    return answers(home, home.with_name("copies"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def current(home: Path) -> None:
    publish(home, 0, LATEST + 1)


def behind(home: Path) -> None:
    publish(home, 0, LATEST - 2)
    publish_only(home, LATEST - 2, LATEST + 1)


def without_views(home: Path) -> None:
    publish_only(home, 0, LATEST + 1)


def with_older_views(home: Path) -> None:
    current(home)
    for path in home.glob("views*.db"):
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA user_version={VIEWS.version - 1}")


def with_damaged_views(home: Path) -> None:
    """Every row is damaged, so that it is found when the first of them is read."""
    current(home)
    for path in home.glob("views*.db"):
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE rows SET value = CAST(value || x'00' AS BLOB)")


def with_overwritten_views(home: Path) -> None:
    current(home)
    for path in home.glob("views*.db"):
        path.write_bytes(b"\xa5" * path.stat().st_size)


def with_foreign_views(home: Path) -> None:
    current(home)
    for path in home.glob("views*.db"):
        path.unlink()
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE recipes (bread TEXT)")


def with_logs(home: Path) -> None:
    """A copy of the files of a memory that is open: most of the content is in the write-ahead logs."""

    async def work() -> None:
        async with memory_in(home.with_name("open")) as memory:
            for batch in batches():
                await memory.publish_many(batch)
                await memory.catch_up()
            shutil.copytree(home.with_name("open"), home)

    run(work())
    assert (home / "ledger.db-wal").stat().st_size > (home / "ledger.db").stat().st_size


def with_logs_alone(home: Path) -> None:
    with_logs(home)
    for path in home.glob("*-shm"):
        path.unlink()


def of_the_oldest_format(home: Path) -> None:
    home.mkdir()
    old_ledger.write(home / "ledger.db", [rules.with_newest_rule(each) for batch in batches() for each in batch])


STATES = [
    current,
    behind,
    without_views,
    with_older_views,
    with_damaged_views,
    with_overwritten_views,
    with_foreign_views,
    with_logs,
    with_logs_alone,
    of_the_oldest_format,
]


def files(home: Path) -> Mapping[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(home.iterdir())}


def compare(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name, answer in expected.items():
        if name != "admin.digest()":  # the keys of sealed events are random, and so are their records
            assert found[name] == answer, name


@pytest.mark.models("all")
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_every_question_is_answered_in_a_read_only_folder(
    state: Callable[[Path], None], home: Path, expected: Mapping[str, Any]
) -> None:
    state(home)
    before = files(home)
    with read_only(home) as place:
        found = answers(place, home.with_name("copies"))
    if state in (with_overwritten_views, with_foreign_views, with_older_views, without_views, of_the_oldest_format):
        found = {**found, "admin.verify()": expected["admin.verify()"]}  # there are no views to verify
        found = {**found, "admin.verify(what=views)": expected["admin.verify(what=views)"]}
    compare(found, expected)
    assert files(home) == before


@pytest.mark.models("all")
def test_a_large_gap_is_folded_for_the_space_that_is_asked_about(
    home: Path, expected: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers name the checkpoint of the fold, which ends with the ledger."""
    behind(home)
    monkeypatch.setattr(limits, "READ_BATCH_RECORDS", 3)
    with read_only(home) as place:
        compare(answers(place, home.with_name("copies")), expected)


def test_a_space_of_too_many_records_is_not_folded_in_memory(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_views(home)
    monkeypatch.setattr(limits, "READ_BATCH_RECORDS", 3)
    monkeypatch.setattr(limits, "AS_OF_RECORDS_MAX", 30)

    async def work() -> None:
        async with memory_in(place) as memory:
            for ask in (memory.episodic("village", "baker"), memory.spaces()):
                with pytest.raises(StorageReadOnly, match="is on a read-only file system"):
                    await ask
            with pytest.raises(OutOfRange, match="time travel folds at most 30"):
                await memory.episodic("village", "baker", as_of="0:200")

    with read_only(home) as place:
        run(work())


def test_a_reader_in_a_read_only_folder_sees_what_another_process_writes(home: Path) -> None:
    """The folder is mounted read-only here, and can be written elsewhere."""

    async def work() -> None:
        async with memory_in(home) as writer, memory_in(place) as reader:
            for turn in range(6):
                await writer.publish(event(turn=turn, payload={"text": f"{turn}"}))
                found = await reader.episodic("village", "baker")
                assert [shown.event.turn for shown in found.memories] == list(range(turn + 1))
                if turn == 3:
                    await writer.catch_up()

    current_until_closed(home)
    with read_only(home) as place:
        run(work())


def current_until_closed(home: Path) -> None:
    async def work() -> None:
        async with memory_in(home) as memory:
            await memory.catch_up()

    run(work())


def test_a_reader_sees_what_a_later_process_writes(home: Path) -> None:
    """The file is open here without locks when another process opens it, writes, and closes it again."""

    async def work() -> None:
        async with memory_in(place) as reader:
            for turn in range(4):
                async with memory_in(home) as writer:
                    await writer.publish(event(turn=turn, payload={"text": f"{turn}"}))
                    if turn % 2:
                        await writer.catch_up()
                found = await reader.episodic("village", "baker")
                assert [shown.event.turn for shown in found.memories] == list(range(turn + 1))

    current_until_closed(home)
    with read_only(home) as place:
        run(work())


def test_sqlite_alone_would_leave_out_what_is_in_the_log(home: Path) -> None:
    """Why a file that has a log is not opened as `immutable`."""
    with_logs_alone(home)
    with closing(sqlite3.connect(f"file:{home / 'ledger.db'}?immutable=1", uri=True)) as connection:
        (left_out,) = connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'events'").fetchone()
        found = connection.execute("SELECT count(*) FROM events").fetchone()[0] if left_out else 0
    assert found < sum(map(len, batches()))
    with read_only(home) as place:
        ledger = SqliteLedger(place / layout.LEDGER)
        with one_loop():
            assert run(ledger.ends()) == [sum(map(len, batches()))]
            run(ledger.close())


@pytest.mark.models("all")
def test_views_that_lost_their_log_are_not_read_as_if_they_were_whole(home: Path, expected: Mapping[str, Any]) -> None:
    with_logs(home)
    (home / "views.db-wal").unlink()
    with read_only(home) as place:
        found = answers(place, home.with_name("copies"))
    verified = {name: expected[name] for name in expected if name.startswith("admin.verify")}
    compare({**found, **verified}, expected)


def test_a_ledger_that_lost_its_log_is_refused(home: Path) -> None:
    with_logs(home)
    (home / "ledger.db-wal").unlink()
    with read_only(home) as place:
        ledger = SqliteLedger(place / layout.LEDGER)
        with one_loop():
            with pytest.raises(StorageReplaced, match="is gone, and its last writes with it"):
                run(ledger.ends())
            run(ledger.close())


def test_publishing_into_a_read_only_folder_fails_at_once(home: Path) -> None:
    behind(home)
    before = files(home)

    async def work() -> None:
        async with memory_in(place) as memory:
            for call in (memory.publish(event()), memory.react(), memory.admin.rebuild(), memory.catch_up()):
                with pytest.raises(StorageReadOnly, match="is on a read-only file system") as raised:
                    await call
                assert not raised.value.retryable

    with read_only(home) as place:
        run(work())
    assert files(home) == before


def test_what_had_to_be_done_is_said_once(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    behind(home)

    async def work() -> None:
        for _ in range(2):
            async with memory_in(place) as memory:
                for _ in range(3):
                    await memory.episodic("village", "baker")
                    await memory.spaces()

    with read_only(home) as place:
        run(work())
        (read, folded) = [record.getMessage() for record in caplog.records if record.name == "recallog.storage"]
        assert read.startswith(f"{place} cannot be written (it is on a read-only file system)")
        assert "the views have 270 of 360 records, and queries fold the others in memory" in folded


def test_a_folder_that_can_be_written_again_is_used_as_usual(home: Path) -> None:
    behind(home)

    async def work() -> None:
        async with memory_in(place) as memory:
            await memory.episodic("village", "baker")
            with pytest.raises(StorageReadOnly):
                await memory.publish(event())
            subprocess.run(["mount", "-o", "remount,rw,bind", str(place)], check=True)
            position = await memory.publish(event(turn=999))
            found = await memory.episodic("village", "baker")
            assert found.memories[-1].position == position
            status = await memory.admin.status()
            assert [row.lag for row in status.partitions if row.views == "built-in"] == [0]

    with read_only(home) as place:
        run(work())


# Full disks.


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk") as place:
        yield place


@pytest.mark.models("all")
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_every_question_is_answered_on_a_full_disk(
    state: Callable[[Path], None], home: Path, disk: Path, expected: Mapping[str, Any]
) -> None:
    state(home)
    place = disk / "home"
    shutil.copytree(home, place)
    fill(disk)
    found = answers(place, home.with_name("copies"))
    if state in (with_overwritten_views, with_foreign_views, with_older_views, without_views, of_the_oldest_format):
        found = {**found, "admin.verify()": expected["admin.verify()"]}
        found = {**found, "admin.verify(what=views)": expected["admin.verify(what=views)"]}
    compare(found, expected)
    refused(place, StorageFull)


def refused(home: Path, error: type[RecallogError]) -> None:
    """Publishing as much as a file's free pages cannot hold is refused, and nothing is written."""

    async def work() -> None:
        async with memory_in(home) as memory:
            before = await memory.admin.ledger_ends()
            large = [event(payload={"text": "x" * 3_000}) for _ in range(400)]
            with pytest.raises(error) as raised:
                await memory.publish_many(large)
            assert raised.value.retryable
            assert await memory.admin.ledger_ends() == before

    run(work())


def test_a_memory_that_was_open_when_the_disk_filled_up_answers_with_the_newest_events(disk: Path) -> None:
    home = disk / "home"

    async def newest(memory: Memory) -> int:
        return (await memory.episodic("village", "baker")).memories[-1].event.turn

    async def work() -> None:
        async with memory_in(home) as memory:
            await memory.publish_many(batches()[0])
            await memory.catch_up()
            filler = fill(disk)
            os.truncate(filler, filler.stat().st_size - 200_000)
            turn = 1000
            with suppress(StorageFull):
                while await memory.publish(event(turn=turn, payload={"text": "x" * 500})):
                    assert await newest(memory) == turn
                    turn += 1
            assert turn > 1000
            filler.unlink()
            assert await newest(memory) == turn - 1
            assert await memory.publish(event(turn=turn))
            await memory.catch_up()
            assert await newest(memory) == turn

    run(work())


QUOTA = """
import asyncio, resource, sys
from pathlib import Path
from recallog import Memory, Settings
from support.events import event

async def main():
    async with Memory.open(Settings(home=Path(sys.argv[1]), index="off")) as memory:
        await memory.publish(event(turn=1))
        await memory.catch_up()
        await memory.publish(event(turn=2))
        size = (Path(sys.argv[1]) / "views.db-wal").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        print([shown.event.turn for shown in (await memory.episodic("village", "baker")).memories])

asyncio.run(main())
"""


def test_a_query_whose_views_exceed_a_quota_is_answered(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", QUOTA, str(home)],
        capture_output=True,
        text=True,
        check=True,
        env=environment_of(PYTHONPATH=os.pathsep.join(sys.path)),
    )
    assert done.stdout == "[1, 2]\n"
    assert "queries fold the others in memory" in done.stderr


@pytest.mark.models("all")
@pytest.mark.parametrize("file", ["ledger.db", "views.db"])
def test_a_shm_that_cannot_be_created_does_not_prevent_reading(
    home: Path, file: str, expected: Mapping[str, Any]
) -> None:
    behind(home)
    (home / f"{file}-shm").mkdir()
    compare(answers(home, home.with_name("copies")), expected)
