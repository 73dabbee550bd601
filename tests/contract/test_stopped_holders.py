"""A process is stopped (SIGSTOP) while it holds a lock of the folder: questions are answered without it, in time."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import pytest

from recallog import Memory, Settings, layout
from recallog_projections.stores.sqlite import SqliteStore
from recallog_schemas.errors import LockTimeout
from recallog_streams.locks.folder import FolderLock
from support.events import event, numbered, run

DEADLINE_SECONDS = 0.4
BUSY_SECONDS = 15.0
"""What a machine that stands still for some seconds may add to a deadline."""
LOCK_WAIT_SECONDS = 60.0
"""How long a query would take that waits for a lock as writers do: much longer than those two together."""
PUBLISH_SECONDS = 1.5
SLOW_SECONDS = 2.0
"""A deadline within which also a busy machine folds a small batch."""

HOLDER = """
import os, signal, sqlite3, sys
from filelock import FileLock
what, path = sys.argv[1:]
if what == "lock":
    held = FileLock(path)
    held.acquire()
else:
    held = sqlite3.connect(path, isolation_level=None)
    if what == "exclusive":
        held.execute("PRAGMA locking_mode=EXCLUSIVE")
    held.execute("BEGIN IMMEDIATE")
    held.execute("SELECT count(*) FROM sqlite_schema").fetchone()
print("held", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
"""


@contextmanager
def stopped(what: str, path: Path) -> Iterator[None]:
    """A stopped process that holds a lock file, the write lock of a database, or all of one (`exclusive`)."""
    command = [sys.executable, "-c", HOLDER, what, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        os.waitpid(process.pid, os.WUNTRACED)
        yield
        process.send_signal(signal.SIGCONT)
        process.kill()


def memory_in(home: Path, deadline: float = DEADLINE_SECONDS, lock_wait: float = LOCK_WAIT_SECONDS) -> Memory:
    return Memory.open(Settings(home=home, index="off", lock_wait_seconds=lock_wait, deadline_seconds=deadline))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder whose views lack the newest of 20 events."""

    async def work() -> None:
        async with memory_in(tmp_path) as memory:
            await memory.publish_many(numbered(19))
            await memory.catch_up()
            await memory.publish(event(turn=19, payload={"text": "The newest."}))

    run(work())
    return tmp_path


async def newest(memory: Memory) -> int:
    return (await memory.episodic("village", "baker")).memories[-1].event.turn


@pytest.mark.parametrize(
    ("what", "file"),
    [
        ("lock", layout.views_lock()),
        ("database", layout.views_file()),
        ("exclusive", layout.views_file()),
        ("lock", f"{layout.views_file()}.making"),
        ("database", layout.LEDGER),
    ],
)
def test_a_query_answers_within_its_deadline(home: Path, what: str, file: str) -> None:
    if file.endswith(".making"):
        (home / layout.views_file()).unlink()

    async def work() -> None:
        async with memory_in(home) as memory:
            began = time.monotonic()
            assert await newest(memory) == 19
            assert time.monotonic() - began < DEADLINE_SECONDS + BUSY_SECONDS
            assert len((await memory.spaces()).items) == 1
            assert (await memory.salient("village", "baker")).memories

    with stopped(what, home / file):
        run(work())
    run(work())


def test_only_one_query_in_a_while_waits_for_the_lock(home: Path) -> None:
    async def work() -> None:
        async with memory_in(home) as memory:
            assert await newest(memory) == 19
            took = []
            for _ in range(10):
                began = time.monotonic()
                assert await newest(memory) == 19
                took.append(time.monotonic() - began)
            assert median(took) < DEADLINE_SECONDS / 2  # on a busy machine one of them may be the next that waits

    with stopped("lock", home / layout.views_lock()):
        run(work())


def test_up_to_date_views_are_read_without_any_lock(home: Path) -> None:
    async def work() -> None:
        async with memory_in(home, deadline=LOCK_WAIT_SECONDS) as memory:
            await memory.admin.ledger_ends()
            began = time.monotonic()
            assert await newest(memory) == 19
            assert time.monotonic() - began < LOCK_WAIT_SECONDS / 2

    run(work())
    with stopped("lock", home / layout.views_lock()), stopped("database", home / layout.views_file()):
        run(work())


def test_the_query_after_the_holder_has_gone_brings_the_views_up_to_date(home: Path) -> None:
    async def work() -> None:
        async with memory_in(home) as memory:
            with stopped("lock", home / layout.views_lock()):
                assert await newest(memory) == 19
            await memory.catch_up()
            assert [row.lag for row in (await memory.admin.status()).partitions] == [0]
            assert await newest(memory) == 19

    run(work())


def test_publishing_waits_as_long_as_the_setting_says(home: Path) -> None:
    async def work() -> None:
        async with memory_in(home, lock_wait=PUBLISH_SECONDS) as memory:
            began = time.monotonic()
            with pytest.raises(LockTimeout, match=r"another process has held the ledger .* for more than 1\.5 s"):
                await memory.publish(event(turn=20))
            assert PUBLISH_SECONDS <= time.monotonic() - began < PUBLISH_SECONDS + BUSY_SECONDS
            assert await newest(memory) == 19

    with stopped("database", home / layout.LEDGER):
        run(work())


def test_a_ledger_that_a_stopped_process_holds_alone_cannot_be_read(home: Path) -> None:
    """As while it is closed by its last user, or recovered after a crash."""

    async def work() -> None:
        async with memory_in(home) as memory:
            began = time.monotonic()
            with pytest.raises(LockTimeout, match="fuser"):
                await newest(memory)
            assert time.monotonic() - began < DEADLINE_SECONDS + BUSY_SECONDS

    with stopped("exclusive", home / layout.LEDGER):
        run(work())
    run_newest = memory_in(home)

    async def afterwards() -> None:
        async with run_newest as memory:
            assert await newest(memory) == 19

    run(afterwards())


def test_a_holder_that_makes_progress_is_waited_for(tmp_path: Path) -> None:
    """A process that builds the views holds the lock most of the time; others do not build them again in memory."""

    async def work() -> None:
        async with memory_in(tmp_path, deadline=SLOW_SECONDS) as memory:
            for first in range(0, 200, 20):
                await memory.publish_many(numbered(20, first=first))
            access = memory._components.views.access
            folds: list[object] = []
            in_memory = access.in_memory

            async def counted(*given: object) -> object:
                folds.append(given)
                return await in_memory(*given)  # type: ignore[arg-type]

            access.in_memory = counted  # type: ignore[method-assign,assignment]
            slow = asyncio.create_task(_fold_slowly(tmp_path))
            assert await newest(memory) == 199
            await slow
            assert not folds

    run(work())


async def _fold_slowly(home: Path) -> None:
    """Fold the ledger in small batches, and hold the lock between them, as long as a reader waits for it at most."""
    from recallog_projections.views import builtin
    from recallog_streams import generations
    from recallog_streams.ledgers.sqlite import SqliteLedger
    from recallog_streams.projector import Projector

    lock = FolderLock(home / layout.views_lock(), 60)
    ledger, store = SqliteLedger(home / layout.LEDGER), SqliteStore(home / layout.views_file())
    projector = Projector(ledger, store, builtin.projections(2_000), batch_records=20)
    begun = await generations.begin(projector, 0)
    async with lock():
        for until in range(20, 201, 20):
            await projector.catch_up(begun.generation, until)
            await asyncio.sleep(SLOW_SECONDS / 8)
        await generations.complete(projector, begun, accept=True)
    await store.close()
    await ledger.close()
