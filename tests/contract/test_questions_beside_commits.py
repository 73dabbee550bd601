"""Questions are answered although other processes move the views on under them, at every moment at which they can.

The holder of a lock was stopped, so that questions fold in memory what the views lack. It continues at the worst
moments: each time that such a fold is about to read the views, these have one record more.
"""

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from contract.test_reading_without_writing import content, memory_in
from flip.questions import QUESTIONS, Question
from flip.story import Topics, batches
from recallog import Memory, Settings, layout
from recallog.reading.projection_group import ProjectionGroup
from recallog_projections.stores.overlay import OverlayStore
from recallog_schemas.errors import OutOfRange
from support.events import event, numbered, run

pytestmark = pytest.mark.models("all")

BEHIND = 2
"""Batches that the views lack."""
NOT_OF_VIEWS = {"publish_many", "admin.status", "admin.verify"}
"""What writes, and what an operator asks, which is answered from the views as they are."""
WRITING = {"admin.abort_rebuild", "admin.abort_reindex", "admin.plan_rebuild"}
ASKED = [each for each in QUESTIONS if each.operation not in NOT_OF_VIEWS | WRITING]


def impatient(home: Path) -> Memory:
    """A memory that hardly waits for a lock."""
    settings = Settings(home=home, index="off", lock_wait_seconds=0.05, deadline_seconds=0.05, count_accesses=False)
    return Memory.open(settings, projections=[Topics()])


class OtherProcess:
    """Another process, which commits to the views without asking for their lock: it holds it."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._groups: dict[str, ProjectionGroup] = {each.store.location: each for each in memory._components.groups()}
        self.commits = 0
        self.publishes = False
        """Whether it publishes an event before each commit, so that the views never reach the ledger's end."""

    async def commit_one(self, location: str) -> None:
        """Fold the next record into the views at `location`."""
        if self.publishes:
            await self._memory.publish(event(space="elsewhere"))
        group = self._groups[location]
        active = (await group.store.pointer(0)).active
        assert active is not None
        checkpoint = await group.store.checkpoint(active)
        assert checkpoint is not None
        (end,) = await group.builder.ledger.ends()
        if checkpoint.offset + 1 < end:
            async for batch in group.builder.ledger.read(0, checkpoint.offset + 1, checkpoint.offset + 2):
                assert await group.builder.process(active, batch, checkpoint) is not None
            self.commits += 1


@contextmanager
def held(home: Path) -> Iterator[None]:
    """The locks of the views are held."""
    locks = [FileLock(home / layout.views_lock(name)) for name in ("", Topics.name)]
    for lock in locks:
        lock.acquire()
    yield
    for lock in locks:
        lock.release()


@asynccontextmanager
async def disturbed(home: Path, patch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Memory, OtherProcess]]:
    """A memory whose folds in memory find other views at each read, and the process that moves them."""
    read, scan = OverlayStore.read, OverlayStore.scan
    async with impatient(home) as memory, memory_in(home) as other_memory:
        other = OtherProcess(other_memory)

        def after_a_commit(call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
            async def called(store: OverlayStore, *given: Any, **more: Any) -> Any:
                if store.location:  # a fold that begins from nothing reads no views
                    await other.commit_one(store.location)
                return await call(store, *given, **more)

            return called

        with held(home), patch.context() as patched:
            patched.setattr(OverlayStore, "read", after_a_commit(read))
            patched.setattr(OverlayStore, "scan", after_a_commit(scan))
            yield memory, other


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose views lack the last batches."""
    home = tmp_path_factory.mktemp("behind") / "home"

    async def work() -> None:
        async with memory_in(home) as memory:
            for number, batch in enumerate(batches()):
                await memory.publish_many(batch)
                if number < len(batches()) - BEHIND:
                    await memory.catch_up()

    run(work())
    return home


@pytest.fixture(scope="module")
def current(behind: Path) -> Path:
    """The same folder with views that are up to date."""
    home = Path(shutil.copytree(behind, behind.with_name("current")))

    async def work() -> None:
        async with memory_in(home) as memory:
            await memory.catch_up()

    run(work())
    return home


async def answered(question: Question, memory: Memory, folder: Path) -> Any:
    folder.mkdir()
    try:
        return content(question, await question.put(memory, folder))
    except OutOfRange as error:
        return str(error)


@pytest.mark.parametrize("question", ASKED, ids=lambda each: each.name)
def test_a_question_that_every_read_finds_disturbed_is_answered(
    question: Question, behind: Path, current: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Path(shutil.copytree(behind, tmp_path / "home"))

    async def work() -> None:
        async with disturbed(home, monkeypatch) as (memory, _):
            found = await answered(question, memory, tmp_path / "found")
        async with memory_in(current) as memory:
            assert found == await answered(question, memory, tmp_path / "expected")

    run(work())


ENDLESS: dict[str, Callable[[Memory], Awaitable[Any]]] = {
    "episodic": lambda memory: memory.episodic("village", "baker"),
    "context": lambda memory: memory.context("village", "baker", scene="who burned the mill?"),
    "recall": lambda memory: memory.recall("village", "baker", "who burned the mill?"),
    "a scan": lambda memory: memory.spaces(),
    "a read of one's own write": lambda memory: memory.episodic("village", "baker", after="0:19"),
    "the past": lambda memory: memory.episodic("village", "baker", as_of="0:10"),
    "a projection of one's own": lambda memory: memory.log_entries(Topics.tables[1], "village"),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_question_is_answered_beside_publishers_that_never_pause(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The views move on, and so does the ledger's end: they need what the ledger held when the question was put."""
    home = tmp_path / "home"

    async def work() -> None:
        async with memory_in(home) as memory:
            await memory.publish_many(numbered(3))
            await memory.catch_up()
            await memory.publish_many(numbered(17, first=3))
        async with disturbed(home, monkeypatch) as (memory, other):
            other.publishes = True
            await ENDLESS[name](memory)
            assert (other.commits > 5) == (name != "the past")

    run(work())
