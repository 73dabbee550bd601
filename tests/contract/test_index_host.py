"""One process serves all folders of a user: what they share, and what they do not.

Processes, signals and the model are real.
"""

import asyncio
import os
import resource
import shutil
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from recallog import Memory, layout
from recallog.index import hosting, messages
from recallog.index.delegation import encode
from recallog.index.hosting import Lease
from recallog.index.service_process import ServiceProcess
from recallog.index_service.host import _serving, _write_log
from recallog.index_service.service import Service
from recallog.retrieval.query import RecallQuery
from recallog.settings import Settings
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_schemas.errors import IndexLost, IndexUnavailable, RecallogError
from recallog_streams.stop_signal import StopSignal
from support.events import event, recorded, run
from support.index_process import Asker, address, ended, is_alive, is_listening, serving_pid, settings, wait_until
from support.waiting import WAIT_SECONDS, until

MILL = ("Who set fire to the building where flour is ground?", "The smith burned the mill.")
BOAT = ("Who took the vessel that floats?", "The fisher stole the boat.")


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """Two folders with different events. Their process has ended after the test."""
    found = (tmp_path / "one", tmp_path / "other")

    async def fill() -> None:
        for home, (_, answer) in zip(found, (MILL, BOAT), strict=True):
            async with Memory.open(Settings(home=home, index="off")) as memory:
                texts = ("Bread!", "It was dark.", answer, "I saw the river.")
                await memory.publish_many([event(payload={"text": text}) for text in texts])

    run(fill())
    yield found
    for home in found:
        if is_listening(home):
            ended(address(home).pid)


async def opened(closing: AsyncExitStack, *each: Settings) -> list[Memory]:
    return [await closing.enter_async_context(Memory.open(one)) for one in each]


async def answered(memory: Memory, question: str, **more: Any) -> tuple[str, str | None]:
    answer = await memory.recall("village", "baker", question, **more)
    return answer.hits[0].text, answer.degraded


def test_two_folders_are_served_by_one_process_and_each_answers_from_its_own_events(homes: tuple[Path, Path]) -> None:
    async def work() -> None:
        async with AsyncExitStack() as closing:
            memories = await opened(closing, *map(settings, homes))
            for memory, (question, answer) in zip(memories, (MILL, BOAT), strict=True):
                assert await answered(memory, question, wait_index=True) == (answer, None)
            assert address(homes[0]).pid == address(homes[1]).pid
            assert address(homes[0]).token != address(homes[1]).token
            for memory, (_, other) in zip(memories, (BOAT, MILL), strict=True):
                found = await memory.recall("village", "baker", other, top_k=100)
                assert other not in {hit.text for hit in found.hits}
            await memories[0].close()
            assert not is_listening(homes[0])
            assert await answered(memories[1], BOAT[0]) == (BOAT[1], None)

    run(work())


@pytest.mark.models("long_term")
def test_a_copy_of_a_folder_that_is_served_is_not_answered_from_the_original(homes: tuple[Path, Path]) -> None:
    """The copy contains the address of the service, which outlives the programs that have closed the folder."""

    async def work() -> None:
        original, copy = homes[0], homes[0].with_name("copy")
        async with AsyncExitStack() as closing:
            (first,) = await opened(closing, settings(original))
            assert await answered(first, MILL[0], wait_index=True) == (MILL[1], None)
            shutil.copytree(original, copy)
            await first.publish(event(payload={"text": BOAT[1]}))
            (second,) = await opened(closing, settings(copy))
            for wait_index in (False, True):
                found = await second.recall("village", "baker", BOAT[0], wait_index=wait_index)
                assert BOAT[1] not in {hit.text for hit in found.hits}
            await second.long_term.retain("village", "baker", "The miller keeps a cat.")
            assert [len(await recorded(memory)) for memory in (first, second)] == [5, 5]
            assert address(copy).token != address(original).token

    run(work())


@pytest.mark.models("long_term")
def test_what_is_sealed_depends_on_the_program_that_calls_and_not_on_the_first_one(homes: tuple[Path, Path]) -> None:
    async def work() -> None:
        async with AsyncExitStack() as closing:
            unsealed, sealed = await opened(closing, settings(homes[0], seal="off"), settings(homes[0]))
            await unsealed.recall("village", "baker", MILL[0], wait_index=True)
            for memory, text in ((unsealed, "The miller keeps a cat."), (sealed, "The fisher is in debt.")):
                await memory.long_term.retain("village", "baker", text)

    run(work())
    stored = b"".join(path.read_bytes() for path in homes[0].glob("ledger.db*"))
    assert (b"keeps a cat" in stored, b"is in debt" in stored) == (True, False)


def test_programs_that_start_at_the_same_time_get_one_process(homes: tuple[Path, Path]) -> None:
    for _ in range(3):
        askers = [Asker(home) for home in (*homes, *homes)]
        for asker, (question, _) in zip(askers, (MILL, BOAT) * 2, strict=True):
            asker.say(question)
        for asker, (_, answer) in zip(askers, (MILL, BOAT) * 2, strict=True):
            found = asker.answer()
            assert (found["hits"][0]["text"], found["degraded"]) == (answer, None)
        pids = {serving_pid(home) for home in homes}
        assert len(pids) == 1
        for asker in askers:
            asker.close()
        ended(pids.pop())


def test_all_folders_go_on_after_a_crash_of_the_process(homes: tuple[Path, Path]) -> None:
    async def work() -> None:
        async with AsyncExitStack() as closing:
            memories = await opened(closing, *map(settings, homes))
            for memory, (question, _) in zip(memories, (MILL, BOAT), strict=True):
                await memory.recall("village", "baker", question, wait_index=True)
                await memory.publish(event(payload={"text": "The smith fled over the hills."}))
            crashed = address(homes[0]).pid
            os.kill(crashed, signal.SIGKILL)
            await asyncio.to_thread(ended, crashed)
            for memory, (question, answer) in zip(memories, (MILL, BOAT), strict=True):
                await memory.recall("village", "baker", question)  # it may report the crash
                assert await answered(memory, question) == (answer, None)
                assert (await answered(memory, "Who escaped across the mountains?", wait_index=True))[1] is None
                assert len(await recorded(memory)) == 5
                report = await memory.admin.verify()
                assert [check.difference for check in report.tables] == [None] * len(report.tables)
            assert address(homes[0]).pid == address(homes[1]).pid != crashed

    run(work())


@pytest.mark.parametrize("fault", ["model", "rows", "folder"])
def test_a_folder_that_cannot_be_served_does_not_stop_the_others(homes: tuple[Path, Path], fault: str) -> None:
    broken, home = homes

    async def work() -> None:
        async with AsyncExitStack() as closing:
            more = {"embedder": "onnx:/nowhere"} if fault == "model" else {}
            bad, good = await opened(closing, settings(broken, **more), settings(home))
            if fault == "rows":
                (broken / layout.INDEX).mkdir()
                (broken / layout.INDEX_ROWS).write_bytes(b"no database" * 1_000)
            if fault == "folder":
                (broken / layout.INDEX).write_text("no folder")
            assert await answered(good, BOAT[0], wait_index=True) == (BOAT[1], None)
            found = await bad.recall("village", "baker", "Who burned the mill?")
            assert found.hits[0].text == MILL[1]
            assert await answered(good, BOAT[0]) == (BOAT[1], None)

    run(work())


def test_each_folder_is_served_with_its_own_settings(homes: tuple[Path, Path]) -> None:
    async def work() -> list[bool]:
        async with AsyncExitStack() as closing:
            each = settings(homes[0], index_token_vectors=False), settings(homes[1])
            return [await _has_token_vectors(memory) for memory in await opened(closing, *each)]

    assert run(work()) == [False, True]


async def _has_token_vectors(memory: Memory) -> bool:
    from recallog_projections.index.store import made_with

    await memory.catch_up_index()
    assert memory._components.index is not None
    active = (await memory._components.index.rows.pointer(0)).active
    assert active is not None
    return made_with(active.code).token_vectors


def test_settings_arrive_as_they_were_given_and_no_other_secret_is_sent(tmp_path: Path) -> None:
    given = Settings(
        home=tmp_path, embedder_api_key="sk-embed", model_api_key="sk-chat", seal="all", keys="redis://h:1/0"
    )
    sent = messages.encode_settings(given)
    assert b"sk-chat" not in sent
    arrived = messages.decode_settings(sent)
    assert arrived.embedder_api_key is not None
    assert arrived.embedder_api_key.get_secret_value() == "sk-embed"
    assert (arrived.home, arrived.seal, arrived.keys) == (tmp_path, "all", "redis://h:1/0")


def test_the_process_does_not_have_the_secrets_of_the_program_that_starts_it(
    homes: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECALLOG_EMBEDDER_API_KEY", "sk-embed")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-chat")

    async def work() -> bytes:
        async with Memory.open(settings(homes[0])) as memory:
            await memory.recall("village", "baker", MILL[0], wait_index=True)
            return Path(f"/proc/{address(homes[0]).pid}/environ").read_bytes()

    environment = run(work())
    assert not [secret for secret in (b"sk-embed", b"sk-chat") if secret in environment]
    assert b"RECALLOG_" not in environment


def test_the_process_may_open_as_many_files_as_the_system_allows(homes: tuple[Path, Path]) -> None:
    """It has the files of all folders; a program that starts it, those of its own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))

    async def work() -> tuple[int, int]:
        async with Memory.open(settings(homes[0])) as memory:
            await memory.recall("village", "baker", MILL[0], wait_index=True)
            return resource.prlimit(address(homes[0]).pid, resource.RLIMIT_NOFILE)

    try:
        assert run(work()) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("differs", ["version", "proxy"])
def test_another_version_and_other_variables_of_libraries_lead_to_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, differs: str
) -> None:
    one = hosting.find_socket(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-chat")
    assert hosting.find_socket(tmp_path / "elsewhere") == one
    if differs == "version":
        monkeypatch.setattr(hosting, "__version__", "0.0.0")
    else:
        monkeypatch.setenv("https_proxy", "http://proxy:3128")
    assert hosting.find_socket(tmp_path) != one


def test_the_folder_of_the_socket_is_open_to_its_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Path(os.environ["XDG_RUNTIME_DIR"])
    folder = hosting.find_socket(tmp_path).parent
    assert (folder.parent, folder.stat().st_mode & 0o777) == (session, 0o700)
    shared, linked = session / "shared", session / "linked"
    shared.mkdir()
    shared.chmod(0o777)
    linked.symlink_to(folder)
    monkeypatch.setattr("tempfile.tempdir", str(session))
    beside = session / f"recallog-{os.getuid()}"
    for unsuitable in (shared, linked):
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(unsuitable))
        assert hosting.find_socket(session / "m").parent == beside
    beside.chmod(0o755)
    assert hosting.find_socket(session / "m").parent == session / "m" / layout.INDEX


def test_a_relative_folder_for_the_session_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "session").mkdir(0o700)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "session")
    found = hosting.find_socket(tmp_path / "m")
    assert found.is_absolute()
    assert "session" not in found.parts


@pytest.mark.parametrize("name", [b"deleted", b"not UTF-8: \xff"])
def test_a_program_in_an_unusual_working_folder_can_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: bytes
) -> None:
    folder = tmp_path / os.fsdecode(name)
    folder.mkdir()
    monkeypatch.chdir(folder)
    if name == b"deleted":
        folder.rmdir()
    own, other = socket.socketpair()
    Lease(own, 0, settings(tmp_path)).close()
    assert other.recv(messages.HANDSHAKE_BYTES_MAX)
    other.close()


def test_a_request_to_a_process_that_has_just_ended_is_not_an_error(tmp_path: Path) -> None:
    own, other = socket.socketpair()
    other.close()
    lease = Lease(own, 0, settings(tmp_path))
    with pytest.raises(EOFError):
        lease.read_ending()
    assert not lease.is_served
    lease.close()


def test_a_folder_for_which_no_call_came_is_closed_too(tmp_path: Path) -> None:
    """Its process may serve other folders for days."""

    async def work() -> None:
        (tmp_path / layout.INDEX).mkdir()
        stopping, engine = StopSignal(), EdgeEngine(tmp_path / layout.INDEX_ENGINE)
        async with Memory.open(Settings(home=tmp_path, index="off")) as memory:
            await memory.publish(event())
        service = Service(settings(tmp_path), stopping, engine, tmp_path, "socket")
        stopping.set()
        await service.run()
        with pytest.raises(IndexUnavailable, match="closed"):
            await engine.collections()

    run(work())


def test_a_call_that_comes_while_a_service_ends_is_for_the_next_one(tmp_path: Path) -> None:
    """The service has closed its memory, and was found a moment before."""

    async def work() -> Sequence[messages.Frame]:
        stopping, engine = StopSignal(), EdgeEngine(tmp_path / layout.INDEX_ENGINE)
        (tmp_path / layout.INDEX).mkdir()
        service = Service(settings(tmp_path), stopping, engine, tmp_path, "socket")
        serving = asyncio.create_task(service.run())
        call = messages.Perform("recall", b'{"space": "village", "agent": "baker", "query": "mill"}', 10_000)
        await service._answer(call, lambda *_: None)
        closed = service._memory(10_000)
        service.stop()
        await serving
        with pytest.raises(RecallogError, match="closed"):
            await closed.recall("village", "baker", "mill")
        return [await service._answer(each, lambda *_: None) for each in (call, messages.Health())]

    assert run(work()) == [messages.Gone(), messages.Gone()]


def test_a_service_that_ends_closes_the_memory_of_a_query_that_waits_for_the_index(tmp_path: Path) -> None:
    """The memory was once made after the wait, when the others had been closed, and stayed open."""

    async def work() -> messages.Frame:
        stopping, engine = StopSignal(), EdgeEngine(tmp_path / layout.INDEX_ENGINE)
        (tmp_path / layout.INDEX).mkdir()
        service = Service(settings(tmp_path), stopping, engine, tmp_path, "socket")
        serving = asyncio.create_task(service.run())
        query = RecallQuery("village", "baker", "mill")
        waiting = asyncio.create_task(
            service._answer(messages.Recall(encode(query), 10, 10_000, past=False), lambda *_: None)
        )
        await asyncio.sleep(0)  # the query begins
        (memory,) = service._memories.values()
        service.stop()
        await serving
        with pytest.raises(RecallogError, match="closed"):
            await memory.recall("village", "baker", "mill")
        return await waiting

    assert run(work()) == messages.Gone()


def test_each_program_that_waits_for_a_folder_learns_that_its_serving_has_ended(homes: tuple[Path, Path]) -> None:
    """Otherwise it would report that the process has died."""
    process = ServiceProcess(settings(homes[0]))
    process._ask()
    assert process._lease is not None
    pid = serving_pid(homes[0])
    waiting = [_ask_to_serve(process, homes[0]) for _ in range(5)]
    wait_until(lambda: all(each.read_ending() is None and each.is_served for each in waiting), "all wait")
    assert process._lease.end(WAIT_SECONDS) == messages.Ending(elsewhere=False, is_last=True)
    for lease in waiting:
        assert lease.read_ending(WAIT_SECONDS) == messages.Ending(elsewhere=False, is_last=True)
        lease.close()
    ended(pid)


def _ask_to_serve(process: ServiceProcess, home: Path) -> Lease:
    place = process._connect(hosting.find_socket(home))
    assert place is not None
    return Lease(place, hosting.pid_of_peer(place), settings(home))


def test_what_the_engine_logs_is_in_the_log_of_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / layout.INDEX_ENGINE

    async def work() -> None:
        engine = EdgeEngine(folder)
        await engine.create("0-made", 4)
        (folder / "0-made" / "points.db").write_bytes(b"")
        _serving.set(tmp_path)
        with _write_log(tmp_path), pytest.raises(IndexLost):
            await engine.count("0-made")
        await engine.close()

    run(work())
    assert "set aside" in (tmp_path / layout.INDEX_LOG).read_text()


def test_a_folder_is_not_served_if_no_place_is_suitable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("x" * 100)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    monkeypatch.setattr("tempfile.tempdir", str(long))

    async def work() -> None:
        async with Memory.open(settings(long / "memory")) as memory:
            await memory.publish(event(payload={"text": MILL[1]}))
            found = await memory.recall("village", "baker", "Who burned the mill?")
            assert found.hits[0].text == MILL[1]
            await _raises(memory, "XDG_RUNTIME_DIR")

    run(work())


async def _raises(memory: Memory, message: str) -> None:
    with pytest.raises(IndexUnavailable, match=message):
        await memory.catch_up_index()


def test_a_folder_is_closed_when_it_is_idle_and_the_process_serves_the_others(homes: tuple[Path, Path]) -> None:
    async def work() -> int:
        async with AsyncExitStack() as closing:
            idle, used = await opened(closing, settings(homes[0], index_idle_seconds=0.5), settings(homes[1]))
            for memory in (used, idle):
                await memory.catch_up_index()
            pid = address(homes[1]).pid

            async def is_closed() -> bool:
                return not is_listening(homes[0])

            await until(is_closed, "the idle folder is closed")
            assert await answered(used, BOAT[0]) == (BOAT[1], None)
            assert await answered(idle, MILL[0]) == (MILL[1], None)
            assert address(homes[0]).pid == pid
            return pid

    pid = run(work())
    ended(pid)


def test_folders_are_served_again_after_the_socket_was_deleted(homes: tuple[Path, Path]) -> None:
    async def work() -> None:
        async with Memory.open(settings(homes[0])) as memory:
            await memory.recall("village", "baker", MILL[0], wait_index=True)
            pid = address(homes[0]).pid
            Path(address(homes[0]).socket).unlink()
            await asyncio.to_thread(ended, pid)
            assert await answered(memory, MILL[0]) == (MILL[1], None)
            assert address(homes[0]).pid != pid

    run(work())


def test_a_folder_that_another_process_holds_is_refused_and_the_process_ends(homes: tuple[Path, Path]) -> None:
    from recallog.index.ownership import Ownership

    home = homes[0]
    owner = Ownership(home, "custom")
    owner.take()
    try:
        process = ServiceProcess(settings(home))
        process._ask()
        assert process._lease is not None
        pid = process._lease.pid
        ending = process._lease.read_ending(WAIT_SECONDS)
        assert ending is not None
        assert (ending.elsewhere, ending.is_last) == (True, True)
        process._lease.close()
        ended(pid)
    finally:
        owner.release()


def test_requests_that_are_not_of_the_protocol_end_no_folder(homes: tuple[Path, Path]) -> None:
    async def work() -> None:
        async with Memory.open(settings(homes[0])) as memory:
            await memory.recall("village", "baker", MILL[0], wait_index=True)
            place = hosting.find_socket(homes[0])
            hello = messages.frame_message(messages.Handshake(""))
            wrong: Sequence[bytes] = (
                b"",
                b"GET / HTTP/1.1\r\n\r\n",
                hello,
                hello + messages.frame_message(messages.Health()),
                hello + messages.frame_message(messages.Serve(b"{", "/")),
                hello + messages.frame_message(messages.Serve(b'{"home": 5}', "/")),
            )
            for sent in wrong:
                reader, writer = await asyncio.open_unix_connection(place)
                writer.write(sent)
                writer.write_eof()
                assert b"Result" not in await reader.read()
                writer.close()
            assert await answered(memory, MILL[0]) == (MILL[1], None)

    run(work())


def test_an_error_of_one_folder_reaches_the_program_that_asked_for_it(homes: tuple[Path, Path]) -> None:
    async def work() -> None:
        async with Memory.open(settings(homes[0])) as memory:
            await memory.recall("village", "baker", MILL[0], wait_index=True)
            (homes[1] / layout.INDEX).write_text("no folder")
            lease = _ask_to_serve(ServiceProcess(settings(homes[0])), homes[1])
            assert lease.pid == address(homes[0]).pid
            with pytest.raises(RecallogError, match="index"):
                await asyncio.to_thread(lease.read_ending, WAIT_SECONDS)
            lease.close()
            assert is_alive(lease.pid)
            assert await answered(memory, MILL[0]) == (MILL[1], None)

    run(work())
