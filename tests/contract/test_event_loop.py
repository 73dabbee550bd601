"""The event loop is never blocked, and a cancelled call returns to its caller at once.

No test measures time. A blocking function is released by the event loop itself, or after the caller has returned: a
call that blocked the loop would never end.
"""

import asyncio
import os
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from recallog import Memory, layout
from recallog.components import Components
from recallog.composition import compose
from recallog.index import messages, remote
from recallog.index.hosting import Lease
from recallog.index.service_process import ServiceProcess
from recallog.settings import Settings
from recallog_projections.concurrency import cancel_all
from recallog_projections.index.engines import edge, folder
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_projections.sqlite.file import SqliteFile
from recallog_projections.stores.sqlite import SqliteStore
from recallog_schemas.errors import IndexUnavailable, StorageError
from recallog_streams.ledgers.sqlite import SqliteLedger
from support.events import event, run

GIVE_UP_SECONDS = 30.0
"""After which a thread that waits for its release fails the test, where it would otherwise hang."""


class Blocking:
    """A blocking function that returns `result` once it is released."""

    def __init__(self, result: object = None) -> None:
        self.released = threading.Event()
        self.entered = threading.Event()
        self._result = result

    def __call__(self, *arguments: object) -> Any:
        self.entered.set()
        assert self.released.wait(GIVE_UP_SECONDS), "the event loop did not go on"
        return self._result


async def until(holds: Callable[[], bool]) -> None:
    """Wait until `holds` returns true; the test's time limit ends an endless wait."""
    while not holds():
        await asyncio.sleep(0.001)


class BusyService:
    """Stands in for the index process of a folder: answers no call before it is released."""

    def __init__(self) -> None:
        self.held: list[messages.Call] = []
        self.cancelled = 0
        """The calls whose client has disconnected."""
        self.released = asyncio.Event()

    @asynccontextmanager
    async def serving(self, home: Path) -> AsyncIterator[None]:
        path = Path(os.environ["XDG_RUNTIME_DIR"]) / "busy.socket"
        path.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(self._serve, path)
        address = messages.ServiceAddress(str(path), "token", os.getpid(), str(home))
        (home / layout.INDEX).mkdir(parents=True)
        (home / layout.INDEX_ADDRESS).write_bytes(msgspec.json.encode(address))
        async with server:
            yield
            self.released.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._received(reader)
            self.held.append(messages.call(await self._received(reader)))
            released, disconnected = self.released.wait(), reader.read(1)
            done, left = await asyncio.wait(
                {asyncio.create_task(released), gone := asyncio.create_task(disconnected)},
                return_when=asyncio.FIRST_COMPLETED,
            )
            await cancel_all(*left)
            if gone in done:
                self.cancelled += 1
                return
            writer.write(
                messages.frame_message(messages.Result(msgspec.json.encode(messages.HealthReport("all is well"))))
            )
            await writer.drain()
        finally:
            writer.close()

    async def _received(self, reader: asyncio.StreamReader) -> bytes:
        length = int.from_bytes(await reader.readexactly(messages.LENGTH_BYTES), "big")
        return await reader.readexactly(length)


def test_a_cancelled_call_to_the_index_process_frees_its_caller_and_is_cancelled_there(tmp_path: Path) -> None:
    async def work() -> None:
        service = BusyService()
        async with service.serving(tmp_path):
            call = asyncio.create_task(remote.call(tmp_path, messages.Health(), deadline_seconds=GIVE_UP_SECONDS))
            await until(lambda: len(service.held) == 1)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert not service.released.is_set()
            await until(lambda: service.cancelled == 1)

    run(work())


def test_a_call_to_the_index_process_does_not_wait_for_another_one(tmp_path: Path) -> None:
    async def work() -> None:
        service = BusyService()
        async with service.serving(tmp_path):
            calls = [
                asyncio.create_task(remote.call(tmp_path, messages.Health(), deadline_seconds=GIVE_UP_SECONDS))
                for _ in range(3)
            ]
            await until(lambda: len(service.held) == 3)  # although none is answered
            service.released.set()
            assert {msgspec.json.decode(await call)["problem"] for call in calls} == {"all is well"}

    run(work())


def test_an_index_process_that_says_nothing_is_not_waited_for_forever(tmp_path: Path) -> None:
    async def work() -> None:
        service = BusyService()
        async with service.serving(tmp_path):
            with pytest.raises(IndexUnavailable, match="has said nothing for"):
                await remote.call(tmp_path, messages.Health(), deadline_seconds=0.1)

    run(work())


def test_the_loop_is_not_blocked_while_the_index_process_does_not_report_its_health(tmp_path: Path) -> None:
    async def work() -> None:
        service = BusyService()
        async with compose_embedded(tmp_path) as components, service.serving(tmp_path):
            assert components.index is not None
            asking = asyncio.create_task(components.index.start())
            await until(lambda: len(service.held) == 1)
            service.released.set()
            assert (await asking).problem == "all is well"

    run(work())


@asynccontextmanager
async def compose_embedded(home: Path) -> AsyncIterator[Components]:
    components = compose(Settings(home=home, index="embedded"))
    try:
        yield components
    finally:
        await components.close()


_LINGERING = "import sys; sys.stdin.buffer.read(); open(sys.argv[1]).read()"
"""A process that has heard that it should end, and ends when the pipe is written to."""


def test_the_loop_is_not_blocked_while_the_index_process_ends(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    async def work() -> None:
        service = ServiceProcess(Settings(home=tmp_path, index_idle_seconds=0, deadline_seconds=GIVE_UP_SECONDS))
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen([sys.executable, "-c", _LINGERING, str(pipe)], stdin=theirs)
        service._process = process
        service._lease = Lease(ours, process.pid, Settings(home=tmp_path))
        closing = asyncio.create_task(service.close())
        writing = asyncio.create_task(asyncio.to_thread(pipe.open, "w"))  # opens when the process reads
        file = await writing
        assert not closing.done()
        assert process.poll() is None
        file.close()
        await closing
        assert process.returncode == 0
        with pytest.raises(IndexUnavailable, match="is closed"):
            await service.start()

    run(work())


def test_a_cancelled_close_still_ends_the_index_process(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    async def work() -> None:
        service = ServiceProcess(Settings(home=tmp_path, index_idle_seconds=0, deadline_seconds=GIVE_UP_SECONDS))
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen([sys.executable, "-c", _LINGERING, str(pipe)], stdin=theirs)
        service._process = process
        service._lease = Lease(ours, process.pid, Settings(home=tmp_path))
        closing = asyncio.create_task(service.close())
        file = await asyncio.to_thread(pipe.open, "w")
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert process.poll() is None
        file.close()
        await until(lambda: process.poll() is not None)
        assert process.returncode == 0

    run(work())


def test_the_loop_is_not_blocked_while_a_folder_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        index = compose(Settings(home=tmp_path / "memory", index="embedded")).index
        assert index is not None
        for module, name, measure in (
            (folder, "disk_bytes", index.size_bytes),
            (edge, "disk_bytes", EdgeEngine(tmp_path / "engine").size_bytes),
            (SqliteFile, "_size_bytes", SqliteStore(tmp_path / "views.db").size_bytes),
            (SqliteFile, "_size_bytes", SqliteLedger(tmp_path / "ledger.db").size_bytes),
        ):
            blocking = Blocking(7)
            monkeypatch.setattr(module, name, blocking)
            measuring = asyncio.create_task(measure())
            await until(blocking.entered.is_set)
            blocking.released.set()
            assert await measuring == 7

    run(work())


@pytest.mark.parametrize(
    "make", [lambda folder: SqliteLedger(folder / "file"), lambda folder: SqliteStore(folder / "file")]
)
def test_a_cancelled_close_frees_its_caller_and_the_file_is_closed_when_its_thread_is_free(
    tmp_path: Path, make: Callable[[Path], SqliteLedger | SqliteStore]
) -> None:
    async def work() -> None:
        opened = make(tmp_path)
        blocking = Blocking()
        reading = asyncio.create_task(opened._file.run(blocking))
        await until(blocking.entered.is_set)
        closing = asyncio.create_task(opened.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert not reading.done()
        with pytest.raises(StorageError, match="is closed"):
            await opened._file.run(lambda connection: None)
        blocking.released.set()
        await reading
        await until(lambda: not opened._file.is_open)

    run(work())


def test_a_cancelled_publish_returns_while_another_process_holds_the_ledger_and_can_be_repeated(
    tmp_path: Path,
) -> None:
    sent = event(payload={"text": "Bread!"})

    async def work() -> None:
        async with Memory.open(Settings(home=tmp_path, index="off")) as memory:
            await memory.publish(event(payload={"text": "The first."}))
            other = sqlite3.connect(tmp_path / layout.LEDGER, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            publishing = asyncio.create_task(memory.publish(sent))
            for _ in range(100):
                await asyncio.sleep(0)
            assert not publishing.done()
            publishing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await publishing
            assert other.in_transaction
            other.execute("ROLLBACK")
            other.close()
            await memory.publish(sent)
            assert [shown.text for shown in (await memory.episodic(sent.space, sent.agent)).memories][1:] == ["Bread!"]

    run(work())
