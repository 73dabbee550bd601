"""Reading needs no writing: in a read-only folder, and on a full disk, every question is answered as elsewhere."""

import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from flip.questions import QUESTIONS, Question
from flip.story import Topics, batches
from recallog import Memory, Settings
from recallog_projections.stores.sqlite import VIEWS
from recallog_schemas.errors import OutOfRange
from support import old_ledger
from support.events import run
from support.read_only import read_only

LATEST = len(batches()) - 1
WRITING = {"publish_many", "admin.abort_rebuild", "admin.abort_reindex", "admin.plan_rebuild"}
ASKED = [question for question in QUESTIONS if question.operation not in WRITING]
OF_THE_STORE = {"generation", "building", "building_checkpoint", "ledger_bytes", "views_bytes"}
"""Fields that describe the files, not what they contain."""
OF_THE_VIEWS = {"spaces", "agents", "sessions", "pending", "pending_total", "unreflected", "unreflected_total"}
"""Fields of `status`, which folds nothing: they are of the views as they are."""


def memory_in(home: Path) -> Memory:
    settings = Settings(home=home, index="off", lock_wait_seconds=1.0, deadline_seconds=0.3)
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
                    found[question.name] = _content(question, await question.put(memory, place))
                except OutOfRange as error:
                    found[question.name] = str(error)
        return found

    try:
        return run(work())
    finally:
        shutil.rmtree(folder)


def _content(question: Question, answer: Any) -> Any:
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
    old_ledger.write(home / "ledger.db", [each for batch in batches() for each in batch])


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
    for name, answer in expected.items():
        assert found[name] == answer, name


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
