"""The error names the full disk, which damages no file of the index, and when there is space again the index goes
on."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from recallog import Memory, layout
from recallog.index.service_process import ServiceProcess
from recallog.index_service import crashes
from recallog.settings import Settings
from recallog_projections.index.engines.edge import FREE_BYTES_MIN, EdgeEngine
from recallog_schemas.errors import IndexUnavailable, ViewsBehind
from support.events import event, run
from support.index_process import DEADLINE_SECONDS
from support.read_only import FULL_DISK_BYTES, resize, small_disk
from support.waiting import until

QUESTION = "Who set fire to the building where flour is ground?"
ANSWER = "The smith burned the mill."
TEXTS = ["Bread!", "It was dark.", ANSWER, "I saw the river."]
LARGE_DISK_BYTES = FREE_BYTES_MIN + 512 * 1024 * 1024
FULL = "the disk is full"


def settings(home: Path) -> Settings:
    return Settings(home=home, index="embedded", index_idle_seconds=0.0, deadline_seconds=DEADLINE_SECONDS)


def used_bytes(disk: Path) -> int:
    status = os.statvfs(disk)
    return (status.f_blocks - status.f_bfree) * status.f_frsize


async def state(memory: Memory) -> tuple[str, str]:
    index = (await memory.admin.status()).index
    assert index is not None
    return index.state, index.problem


async def says_full(memory: Memory) -> bool:
    """Whether an answer by words names the full disk. None speaks of damage."""
    answer = await memory.recall("village", "baker", QUESTION)
    assert answer.considered >= len(TEXTS)
    assert "damaged" not in (answer.degraded or "")
    return FULL in (answer.degraded or "")


async def is_current(memory: Memory) -> bool:
    answer = await memory.recall("village", "baker", QUESTION)
    return answer.degraded is None and answer.index_behind == 0


def test_an_index_on_a_full_disk_says_so_and_goes_on_when_there_is_space(tmp_path: Path) -> None:
    async def work(home: Path) -> None:
        async with Memory.open(settings(home)) as memory:
            await memory.publish_many([event(payload={"text": text}) for text in TEXTS])

            # No shard can be created.
            await until(lambda: says_full(memory), "the answer names the full disk")
            assert (await state(memory))[0] == "unavailable"
            assert FULL in (await state(memory))[1]
            with pytest.raises((ViewsBehind, IndexUnavailable), match=FULL):
                await memory.recall("village", "baker", QUESTION, wait_index=True)

            resize(home.parent, LARGE_DISK_BYTES)
            await until(lambda: is_current(memory), "the index is built")

            # An open shard answers, and takes no more points.
            resize(home.parent, used_bytes(home.parent) + FULL_DISK_BYTES)
            await memory.publish(event(payload={"text": "The mill is built again."}))

            async def fails() -> bool:
                return (await state(memory))[0] == "failing" and FULL in (await state(memory))[1]

            await until(fails, "status names the full disk")
            answer = await memory.recall("village", "baker", QUESTION)
            assert (answer.hits[0].text, answer.degraded, answer.index_behind) == (ANSWER, None, 1)

        # None is opened.
        async with Memory.open(settings(home)) as memory:
            await until(lambda: says_full(memory), "a new process names the full disk")
            resize(home.parent, LARGE_DISK_BYTES)
            await until(lambda: is_current(memory), "the index goes on")
        assert not [*home.rglob("*.damaged")]
        assert (home / layout.INDEX_CRASHES).stat().st_size == 0

    with small_disk(tmp_path / "disk") as disk:
        run(work(disk / "memory"))


@pytest.mark.parametrize("is_full", [True, False])
def test_crashes_on_a_full_disk_do_not_set_the_files_of_the_engine_aside(tmp_path: Path, is_full: bool) -> None:
    """The disk was filled so fast that the engine did not notice: the system has ended its process."""
    report = f'Fatal Python error: Bus error\n\n  File "{Path("engines/edge.py")}", line 1 in _upsert\n'
    with small_disk(tmp_path / "disk") as disk:
        if not is_full:
            resize(disk, LARGE_DISK_BYTES)
        home = disk / "memory"
        (home / layout.INDEX_ENGINE).mkdir(parents=True)
        (home / layout.INDEX_CRASHES).write_text(report * crashes.CRASHES)
        with crashes.CrashReports().of_folder(home):
            pass
        assert (home / layout.INDEX_ENGINE).exists() == is_full
        assert (home / layout.INDEX_CRASHES).stat().st_size == 0


@pytest.mark.parametrize(
    ("is_full", "why"), [(True, "The disk of .* is full: free some space"), (False, "may be damaged")]
)
def test_the_end_of_a_process_is_explained_by_a_full_disk_if_it_is_full(
    tmp_path: Path, is_full: bool, why: str
) -> None:
    async def work(home: Path) -> None:
        home.mkdir()
        service = ServiceProcess(settings(home))
        try:
            await service.start()
            resize(home.parent, FULL_DISK_BYTES if is_full else LARGE_DISK_BYTES)
            assert service._process is not None
            service._process.send_signal(signal.SIGBUS)
            await asyncio.to_thread(service._process.wait)
            with pytest.raises(IndexUnavailable, match=why):
                await service.begin()
        finally:
            await service.close()

    with small_disk(tmp_path / "disk") as disk:
        run(work(disk / "memory"))


def test_a_full_disk_is_an_error_of_every_call_that_writes_and_loses_nothing(tmp_path: Path) -> None:
    async def work(folder: Path) -> None:
        engine = EdgeEngine(folder)
        for call in (engine.create("memories", 4), engine.create("memories", 4)):
            with pytest.raises(IndexUnavailable, match=FULL):
                await call
        resize(folder.parent, LARGE_DISK_BYTES)
        await engine.create("memories", 4)
        resize(folder.parent, used_bytes(folder.parent) + FULL_DISK_BYTES)
        with pytest.raises(IndexUnavailable, match=FULL):
            await engine.count("memories")
        assert await engine.collections() == {"memories"}
        resize(folder.parent, LARGE_DISK_BYTES)
        assert await engine.count("memories") == 0
        resize(folder.parent, used_bytes(folder.parent) + FULL_DISK_BYTES)
        assert await engine.count("memories") == 0
        with pytest.raises(IndexUnavailable, match=FULL):
            await engine.delete("memories", ["00000000-0000-0000-0000-000000000001"])
        await engine.close()

    with small_disk(tmp_path / "disk") as disk:
        (disk / "engine").mkdir()
        run(work(disk / "engine"))
