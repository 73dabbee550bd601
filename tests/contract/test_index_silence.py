"""An index process that says nothing costs one deadline and then nothing, whatever it is that does not answer.

The service is a real process that is stopped by a signal, or a socket that accepts and does not use the protocol.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from recallog import Memory, layout
from recallog.index import messages
from recallog.settings import Settings
from recallog_schemas import Event
from recallog_schemas.errors import IndexUnavailable
from recallog_schemas.views import RecallView
from support.events import event, run
from support.read_only import read_only
from support.waiting import WAIT_SECONDS

DEADLINE_SECONDS = 1.0
BUSY_SECONDS = 15.0
"""What a machine that stands still for some seconds may add to a deadline, for the answer by words too."""
QUESTION = "Who set fire to the building where flour is ground?"
ANSWER = "The smith burned the mill."
TEXTS = ["Bread!", "It was dark.", ANSWER, "I saw the river."]

_HOLDER = """
import sys, time
from filelock import FileLock
with FileLock(sys.argv[1]):
    print(1, flush=True)
    time.sleep(60)
"""


def events(texts: list[str] = TEXTS) -> list[Event]:
    return [event(payload={"text": text}) for text in texts]


def settings(home: Path, **more: Any) -> Settings:
    given = {"index_idle_seconds": 0.0, "deadline_seconds": DEADLINE_SECONDS} | more
    return Settings(home=home, index="embedded", **given)


def address(home: Path) -> messages.ServiceAddress:
    return msgspec.json.decode((home / layout.INDEX_ADDRESS).read_bytes(), type=messages.ServiceAddress)


async def seconds(work: Awaitable[Any]) -> tuple[float, Any]:
    """How long `work` takes, and its result."""
    began = time.monotonic()
    result = await work
    return time.monotonic() - began, result


def socket_in(home: Path) -> str:
    """The path of a socket for a stand-in of the process that serves `home`: paths of tests are too long."""
    path = Path(os.environ["XDG_RUNTIME_DIR"]) / f"{home.parent.name[-20:]}.socket"
    path.unlink(missing_ok=True)
    return str(path)


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def build(home: Path) -> Path:
    """Make a folder whose index is built, and not served."""

    async def work() -> None:
        async with Memory.open(settings(home)) as memory:
            await memory.publish_many(events())
            await memory.catch_up_index()

    run(work())
    return home


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("silence") / "memory")


@pytest.fixture
def built(folder: Path, tmp_path: Path) -> Path:
    """A copy of that folder."""
    return Path(shutil.copytree(folder, tmp_path / "memory"))


@asynccontextmanager
async def indexed(home: Path) -> AsyncIterator[Memory]:
    """A memory whose index is served."""
    async with Memory.open(settings(home)) as memory:
        await memory.catch_up_index()
        yield memory


@pytest.mark.models("prompt")
def test_a_stopped_service_costs_one_deadline_then_nothing_and_answers_again_when_it_continues(built: Path) -> None:
    async def work() -> None:
        async with indexed(built) as memory:
            before = await _until_current(memory)
            with stopped(address(built).pid):
                took, answer = await seconds(memory.recall("village", "baker", QUESTION))
                assert took < DEADLINE_SECONDS + BUSY_SECONDS
                assert "has said nothing for 1 s" in answer.degraded
                assert f"kill -CONT {address(built).pid}" in answer.degraded
                for ask in (
                    lambda: memory.recall("village", "baker", QUESTION),
                    lambda: memory.search("village", "baker", QUESTION),
                    lambda: memory.context("village", "baker", scene=QUESTION),
                ):
                    asked = [await seconds(ask()) for _ in range(3)]
                    assert all("said nothing" in answer.degraded for _, answer in asked)
                    # On a busy machine the others may be the next attempt, or wait for the machine.
                    assert min(took for took, _ in asked) < DEADLINE_SECONDS
                assert (await memory.context("village", "baker")).text
                assert (await memory.salient("village", "baker", QUESTION)).relevance_by.startswith("words: ")
                assert (await memory.admin.status()).records == len(TEXTS)
                await memory.publish(event(payload={"text": "The mill is built again."}))
            await _until_current(memory)
            assert (await memory.recall("village", "baker", QUESTION)).hits[0].text == before.hits[0].text

    run(work())


async def _until_current(memory: Memory) -> RecallView:
    """The first answer by the index: the breaker lets a call try after some seconds."""
    async with asyncio.timeout(WAIT_SECONDS):
        while (answer := await memory.recall("village", "baker", QUESTION)).degraded is not None:
            await asyncio.sleep(0.05)
    return answer


def test_what_waits_for_the_index_does_not_wait_for_a_stopped_service(built: Path) -> None:
    async def work() -> None:
        async with indexed(built) as memory:
            with stopped(address(built).pid):
                for waiting in (
                    memory.catch_up_index(),
                    memory.recall("village", "baker", QUESTION, wait_index=True),
                    memory.admin.rebuild("index"),
                    memory.admin.verify("index"),
                ):
                    began = time.monotonic()
                    with pytest.raises(IndexUnavailable, match="said nothing for 1 s"):
                        await waiting
                    assert time.monotonic() - began < DEADLINE_SECONDS + BUSY_SECONDS

    run(work())


_BUSY = """
import contextlib, os, socket, sys, time
from pathlib import Path
import msgspec
from filelock import FileLock
from recallog import layout
from recallog.index import messages
from recallog_schemas.errors import IndexUnavailable

def received(stream):
    return stream.read(int.from_bytes(stream.read(messages.LENGTH_BYTES), "big"))

with FileLock(Path(sys.argv[1]) / layout.INDEX_LOCK), socket.socket(socket.AF_UNIX) as server:
    server.bind(sys.argv[2])
    server.listen()
    address = messages.ServiceAddress(sys.argv[2], "token", os.getpid(), sys.argv[1])
    (Path(sys.argv[1]) / layout.INDEX_ADDRESS).write_bytes(msgspec.json.encode(address))
    print(1, flush=True)
    while True:
        client, _ = server.accept()
        with client, client.makefile("rb") as stream:
            received(stream)
            call = messages.call(received(stream))
            until = time.process_time() + 2.0
            while time.process_time() < until:
                pass
            healthy = messages.Result(msgspec.json.encode(messages.HealthReport("", 0, "")))
            failed = messages.failure(IndexUnavailable("computed to the end"))
            with contextlib.suppress(BrokenPipeError):
                client.sendall(messages.frame_message(healthy if isinstance(call, messages.Health) else failed))
"""


def test_work_on_the_index_waits_for_a_service_that_computes_and_a_question_does_not(built: Path) -> None:
    async def work() -> None:
        command = [sys.executable, "-c", _BUSY, str(built), socket_in(built)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == b"1\n"
                async with Memory.open(settings(built)) as memory:
                    answer = await memory.recall("village", "baker", QUESTION)
                    assert "has said nothing for 1 s" in answer.degraded
                    for waiting in (memory.admin.verify("index"), memory.admin.rebuild("index")):
                        with pytest.raises(IndexUnavailable, match="computed to the end"):
                            await waiting
            finally:
                process.kill()

    run(work())


def test_a_memory_is_closed_within_the_deadline_although_its_service_is_stopped(built: Path) -> None:
    async def work() -> None:
        async with indexed(built) as memory:
            pid = address(built).pid
            with stopped(pid):
                took, _ = await seconds(memory.close())
                assert took < DEADLINE_SECONDS + BUSY_SECONDS
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)

    run(work())


def test_a_service_that_is_stopped_while_it_starts_is_not_waited_for(built: Path) -> None:
    async def work() -> None:
        async with Memory.open(settings(built)) as memory:
            # As a process that holds the lock, has not come so far as to listen, and is stopped.
            command = [sys.executable, "-c", _HOLDER, str(built / layout.INDEX_LOCK)]
            with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
                try:
                    assert process.stdout is not None
                    assert process.stdout.readline() == b"1\n"
                    os.kill(process.pid, signal.SIGSTOP)
                    answer = await memory.recall("village", "baker", QUESTION)
                    assert "shown no sign of life for 1 s" in answer.degraded
                    assert str(built / layout.INDEX_LOCK) in answer.degraded
                finally:
                    process.kill()
            await _until_current(memory)

    run(work())


class Talker:
    """Listens, and sends the same bytes to every client, in place of a service."""

    def __init__(self, says: bytes) -> None:
        self._says = says

    @asynccontextmanager
    async def in_place(self, home: Path) -> AsyncIterator[None]:
        (home / layout.INDEX).mkdir(parents=True, exist_ok=True)
        server = await asyncio.start_unix_server(self._serve, path := socket_in(home))
        (home / layout.INDEX_ADDRESS).write_bytes(
            msgspec.json.encode(messages.ServiceAddress(path, "token", os.getpid(), str(home)))
        )
        try:
            yield
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(self._says)
        with contextlib.suppress(OSError):
            await reader.read()
        writer.close()


@pytest.mark.parametrize(
    "says",
    [
        b"",
        b"\0\0",
        (100).to_bytes(4, "big") + b"half",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\0\0\0\5hello",
        b"\0\0\0\0",
    ],
    ids=["nothing", "half a length", "half a frame", "another protocol", "garbage", "an empty frame"],
)
def test_a_stale_address_at_which_another_program_listens_costs_one_answer(built: Path, says: bytes) -> None:
    async def work() -> None:
        async with Memory.open(settings(built)) as memory, Talker(says).in_place(built):
            took, answer = await seconds(memory.recall("village", "baker", QUESTION))
            assert answer.considered == len(TEXTS)
            assert answer.degraded is None or took < DEADLINE_SECONDS + BUSY_SECONDS
            await _until_current(memory)

    run(work())


def test_the_address_of_a_process_that_has_ended_costs_nothing(built: Path) -> None:
    async def work() -> None:
        with socket.socket(socket.AF_UNIX) as silent, subprocess.Popen([sys.executable, "-c", ""]) as gone:
            silent.bind(socket_in(built))
            silent.listen()
            gone.wait()
            stale = messages.ServiceAddress(silent.getsockname(), "token", gone.pid, str(built))
            (built / layout.INDEX_ADDRESS).write_bytes(msgspec.json.encode(stale))
            async with Memory.open(settings(built, deadline_seconds=WAIT_SECONDS)) as memory:
                assert (await memory.recall("village", "baker", QUESTION)).degraded is None

    run(work())


@pytest.mark.parametrize("content", [b"\xff garbage", b'{"socket": "", "token": "", "pid": -5, "home": "HOME"}'])
def test_a_damaged_address_file_is_replaced_while_its_service_runs(built: Path, content: bytes) -> None:
    async def work() -> None:
        async with indexed(built) as memory:
            (built / layout.INDEX_ADDRESS).write_bytes(content.replace(b"HOME", bytes(built)))
            assert (await memory.recall("village", "baker", QUESTION)).considered == len(TEXTS)
            await _until_current(memory)

    run(work())


def test_a_file_in_place_of_the_index_is_named_everywhere(built: Path) -> None:
    shutil.rmtree(built / layout.INDEX)
    (built / layout.INDEX).touch()

    async def work() -> None:
        async with Memory.open(settings(built)) as memory:
            cause = f"{built / layout.INDEX} is not a folder: move it away"
            assert cause in ((await memory.recall("village", "baker", QUESTION)).degraded or "")
            assert [cause in each.reason for each in (await memory.admin.verify()).not_compared] == [True]
            index = (await memory.admin.status()).index
            assert index is not None
            assert (index.state, bool(index.problem)) == ("unavailable", True)
            (built / layout.INDEX).unlink()
            await _until_current(memory)

    run(work())


def test_an_index_on_a_read_only_file_system_is_named_as_such(built: Path) -> None:
    async def work(place: Path) -> None:
        async with Memory.open(settings(place)) as memory:
            answer = await memory.recall("village", "baker", QUESTION)
            assert answer.considered == len(TEXTS)
            assert "cannot be served: it is on a read-only file system" in (answer.degraded or "")

    with read_only(built) as place:
        run(work(place))


def test_a_log_that_cannot_be_written_does_not_keep_the_index_from_being_served(built: Path) -> None:
    (built / layout.INDEX_LOG).unlink()
    (built / layout.INDEX_LOG).mkdir()

    async def work() -> None:
        async with indexed(built) as memory:
            await _until_current(memory)

    run(work())
