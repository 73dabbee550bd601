"""The index service of a folder, with real processes, real signals and the real model.

Processes are checked by pid: a service that outlives the users of its folder, and its idle time, is a leak.
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from recallog import Memory, layout
from recallog.index import remote
from recallog.index.messages import Health, ServiceAddress
from recallog.settings import Settings
from recallog_projections.index.engines.folder import collections_in
from recallog_projections.index.store import made_with
from recallog_schemas import Event
from recallog_schemas.errors import IndexUnavailable
from support.cli import recallog, spawn
from support.events import event, recorded, run
from support.index_process import (
    DEADLINE_SECONDS,
    Asker,
    address,
    ended,
    exists,
    is_alive,
    is_listening,
    serving_pid,
    settings,
    wait_until,
)
from support.waiting import until

QUESTION = "Who set fire to the building where flour is ground?"
ANSWER = "The smith burned the mill."
TEXTS = ["Bread!", "It was dark.", ANSWER, "I saw the river."]


def events(texts: list[str]) -> list[Event]:
    return [event(payload={"text": text}) for text in texts]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A folder with events; no service of it may be left after the test."""
    home = tmp_path / "memory"

    async def fill() -> None:
        async with Memory.open(Settings(home=home, index="off")) as memory:
            await memory.publish_many(events(TEXTS))

    run(fill())
    yield home
    with contextlib.suppress(FileNotFoundError):
        ended(address(home).pid)


def test_two_processes_that_query_at_once_get_equal_answers_of_one_service(home: Path) -> None:
    askers = [Asker(home), Asker(home)]
    for asker in askers:
        asker.say(QUESTION)
    one, other = (asker.answer() for asker in askers)
    for answer in (one, other):
        assert answer["degraded"] is None
        assert answer["hits"][0]["text"] == ANSWER
        assert {hit["source"] for hit in answer["hits"]} == {"index"}
    assert one == other
    pid = serving_pid(home)
    assert len(collections_in(home / layout.INDEX_ENGINE)) == 1
    for asker in askers:
        asker.close()
    ended(pid)
    assert not exists(pid)


def test_a_service_ends_with_its_starter_and_the_next_query_starts_another(home: Path) -> None:
    starter, other = Asker(home), Asker(home)
    before = starter.ask(QUESTION)
    assert other.ask(QUESTION) == before
    first = serving_pid(home)
    starter.kill()
    ended(first)
    after = other.ask(QUESTION)
    second = serving_pid(home)
    assert second != first
    assert after == before
    starter.close()
    other.close()
    ended(second)


def entry_histories(number: int) -> list[Event]:
    """Entries that are retained, corrected, and of which every other one is erased."""
    found: list[Event] = []
    for n in range(number):
        found.append(event(id=f"entry-{n}", kind="memory.retained", payload={"text": f"House {n} owes for flour."}))
        found.append(event(kind="memory.updated", payload={"entry": f"entry-{n}", "text": f"House {n} has paid."}))
        if n % 2:
            found.append(event(kind="memory.erased", payload={"entries": [f"entry-{n}"]}))
    return found


@pytest.mark.models("long_term")
def test_all_is_indexed_in_the_end_whatever_kills_the_service_meanwhile(home: Path) -> None:
    texts = [f"Sack {n} of flour went to house {n % 7}." for n in range(300)]

    async def work() -> None:
        async with Memory.open(settings(home)) as memory:
            await memory.publish_many([*events(texts), *entry_histories(100)])
            killed: list[int] = []
            for moment in ("listening", "writing points", "committing"):
                # While the index is being built, a query does not wait for the service that it starts.
                await until(lambda: _is_served_after_a_query(memory, home), "a query has started a service")
                pid = serving_pid(home)
                await until(lambda moment=moment: _has_come_to(moment, memory, home), f"the service is {moment}")
                os.kill(pid, signal.SIGKILL)
                await asyncio.to_thread(ended, pid)
                killed.append(pid)
            assert len(set(killed)) == 3
            await _whole(memory, len(TEXTS) + len(texts) + 2 * 50)  # each entry with the form before its update
            await memory.publish(
                event(kind="memory.erased", payload={"entries": [f"entry-{n}" for n in range(0, 40, 2)]})
            )
            os.kill(serving_pid(home), signal.SIGKILL)
            await _whole(memory, len(TEXTS) + len(texts) + 2 * 30)

    run(work())


async def _is_served_after_a_query(memory: Memory, home: Path) -> bool:
    await memory.recall("village", "baker", QUESTION)
    return is_listening(home)


async def _has_come_to(moment: str, memory: Memory, home: Path) -> bool:
    assert memory._components.index is not None
    rows = memory._components.index.rows
    pointer = await rows.pointer(0)
    generation = pointer.active or pointer.building
    if moment == "listening":
        return True
    if moment == "writing points":
        return generation is not None and bool(collections_in(home / layout.INDEX_ENGINE))
    checkpoint = await rows.checkpoint(generation) if generation is not None else None
    return checkpoint is not None and checkpoint.offset >= 0


async def _whole(memory: Memory, documents: int) -> None:
    """The next query starts a killed service, and reports the restart once."""
    for tries_left in reversed(range(3)):
        try:
            await memory.catch_up_index()
            report = await memory.admin.verify()
            break
        except IndexUnavailable:
            if not tries_left:
                raise
    assert [check.difference for check in report.tables] == [None] * len(report.tables)
    assert {check.table: check.rows for check in report.tables}["index.document"] == documents
    answer = await memory.recall("village", "baker", "Did the smith burn the mill?", wait_index=True)
    assert (answer.hits[0].text, answer.degraded) == (ANSWER, None)


def test_a_killed_service_costs_at_most_one_degraded_answer(home: Path) -> None:
    async def work() -> None:
        async with Memory.open(settings(home)) as memory:
            await memory.recall("village", "baker", QUESTION, wait_index=True)
            pid = serving_pid(home)
            os.kill(pid, signal.SIGKILL)
            await asyncio.to_thread(ended, pid)
            await memory.recall("village", "baker", QUESTION)
            answer = await memory.recall("village", "baker", QUESTION)
            assert (answer.hits[0].text, answer.degraded) == (ANSWER, None)

    run(work())


def test_a_client_with_a_wrong_token_gets_no_answer(home: Path) -> None:
    async def work() -> None:
        async with Memory.open(settings(home)) as memory:
            await memory.recall("village", "baker", QUESTION, wait_index=True)
            right = address(home)
            assert (home / layout.INDEX_ADDRESS).stat().st_mode & 0o077 == 0
            wrong = home.parent / "elsewhere"
            (wrong / layout.INDEX).mkdir(parents=True)
            for token in ("0" * 32, "", right.token[:-1], right.token.upper() + "ü"):
                (wrong / layout.INDEX_ADDRESS).write_bytes(
                    msgspec.json.encode(ServiceAddress(right.socket, token, right.pid, str(wrong)))
                )
                with pytest.raises(IndexUnavailable, match="not being served"):
                    await remote.call(wrong, Health())
            reader, writer = await asyncio.open_unix_connection(right.socket)
            writer.write((5).to_bytes(4, "big") + b"hello")
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()
            assert (await memory.recall("village", "baker", QUESTION)).degraded is None

    run(work())


def test_a_folder_with_a_long_name_and_spaces_in_it_is_served(tmp_path: Path) -> None:
    home = tmp_path / ("a memory of the village, " * 6).strip() / ("ü" * 60) / ("x" * 60)

    async def work() -> int:
        async with Memory.open(settings(home)) as memory:
            await memory.publish_many(events(TEXTS))
            answer = await memory.recall("village", "baker", QUESTION, wait_index=True)
            assert (answer.hits[0].text, answer.degraded) == (ANSWER, None)
            return serving_pid(home)

    ended(run(work()))


def test_closing_the_memory_ends_the_process_that_it_started_and_leaves_no_zombie(home: Path) -> None:
    async def work() -> int:
        async with Memory.open(settings(home)) as memory:
            await memory.recall("village", "baker", QUESTION, wait_index=True)
            return serving_pid(home)

    pid = run(work())
    assert not exists(pid)
    assert not (home / layout.INDEX_ADDRESS).exists()


@pytest.mark.models("long_term")
def test_the_process_that_asks_counts_the_entries_it_is_shown_and_the_service_does_not(home: Path) -> None:
    async def work() -> None:
        async with Memory.open(settings(home)) as memory:
            await memory.long_term.retain("village", "baker", "The mill burned.", type="lesson", entry_id="mill")
            await memory.catch_up_index()
            for _ in range(2):
                view = await memory.long_term.lessons("village", "baker", "mill")
                assert view.relevance_by == "semantic"
            view = await memory.recall("village", "baker", "mill", preset="four_channel")
            assert [hit.event.id for hit in view.hits] == ["mill"]
        async with Memory.open(Settings(home=home, index="off")) as memory:
            records = await recorded(memory)
        assert [each.payload for each in records if each.kind == "memory.accessed"] == [
            {"counts": {"mill": 3}, "hits": 3}
        ]

    run(work())


def test_a_memory_that_does_not_use_the_index_starts_no_process(home: Path) -> None:
    async def work() -> None:
        async with Memory.open(settings(home)) as memory:
            await memory.episodic("village", "baker")
            salient = await memory.salient("village", "baker", QUESTION)
            assert salient.relevance_by == "words: the index is not being served; recall starts it"
            await memory.admin.status()
            await memory.admin.verify()

    run(work())
    assert not (home / layout.INDEX).exists()


def test_a_stale_address_file_does_not_prevent_a_new_service(home: Path) -> None:
    (home / layout.INDEX).mkdir()
    stale = ServiceAddress("/nowhere", "0" * 32, 2**22 - 1, str(home))
    (home / layout.INDEX_ADDRESS).write_bytes(msgspec.json.encode(stale))

    async def work() -> None:
        async with Memory.open(settings(home)) as memory:
            answer = await memory.recall("village", "baker", QUESTION, wait_index=True)
            assert (answer.hits[0].text, answer.degraded) == (ANSWER, None)

    run(work())


def test_the_service_builds_the_index_with_the_settings_of_its_memory(home: Path) -> None:
    async def work() -> bool:
        async with Memory.open(settings(home, index_token_vectors=False)) as memory:
            await memory.recall("village", "baker", QUESTION, wait_index=True)
            assert memory._components.index is not None
            active = (await memory._components.index.rows.pointer(0)).active
            assert active is not None
            return made_with(active.code).token_vectors

    assert run(work()) is False


# A service with an idle time outlives its starter.


def idle_seconds(seconds: float) -> dict[str, str]:
    return {
        "RECALLOG_INDEX": "embedded",
        "RECALLOG_INDEX_IDLE_SECONDS": str(seconds),
        "RECALLOG_DEADLINE_SECONDS": str(DEADLINE_SECONDS),
    }


def chapters(count: int) -> bytes:
    texts = [*TEXTS, *(f"Sack {n} of flour went to house {n % 7}." for n in range(count))]
    lines = [
        {"space": "village", "agent": "baker", "kind": "agent.spoke", "turn": turn, "payload": {"text": text}}
        for turn, text in enumerate(texts)
    ]
    return "\n".join(map(json.dumps, lines)).encode()


def test_an_index_is_finished_after_the_ingest_that_began_it_has_ended(tmp_path: Path) -> None:
    home = tmp_path / "memory"
    begun = spawn("ingest", "-", "--home", home, stdin=chapters(100), **idle_seconds(30))
    assert begun.code == 0
    assert begun.err == "indexing in the background for recall; recallog status shows how far it is\n"
    pid = serving_pid(home)

    async def finished() -> None:
        # It waits for the views of the index, and starts no process: no query is made.
        async with Memory.open(Settings(home=home, index="off")) as memory:
            end = (await memory.admin.ledger_ends())[0]
        async with Memory.open(settings(home)) as memory:
            assert memory._components.index is not None
            rows = memory._components.index.rows

            async def all_is_indexed() -> bool:
                active = (await rows.pointer(0)).active
                checkpoint = await rows.checkpoint(active) if active is not None else None
                return checkpoint is not None and checkpoint.offset + 1 == end

            await until(all_is_indexed, "all is indexed")

    run(finished())
    assert serving_pid(home) == pid
    question = "Did the smith burn the mill?"
    found = spawn("recall", "village", "baker", question, "--json", "--home", home, **idle_seconds(30)).json
    assert (found["degraded"], found["hits"][0]["text"]) == (None, ANSWER)
    assert serving_pid(home) == pid
    os.kill(pid, signal.SIGTERM)
    ended(pid)


def test_a_recall_while_the_index_is_built_is_answered_at_once_by_words_and_says_how_far_it_is(tmp_path: Path) -> None:
    spawn("ingest", "-", "--no-index", "--home", tmp_path, stdin=chapters(100), **idle_seconds(5))
    assert not (tmp_path / layout.INDEX).exists()
    question = ["recall", "village", "baker", "Who burned the mill?"]
    first = spawn(*question, "--json", "--home", tmp_path, **idle_seconds(5))
    assert first.code == 0
    assert first.json["hits"][0]["text"] == ANSWER
    why = "only words were compared: the index is being built, 0 % done; try again"
    assert first.json["degraded"] == why
    assert first.err == "--wait waits until the index contains all events\n"
    pid = serving_pid(tmp_path)
    waited = spawn(*question, "--wait", "--json", "--home", tmp_path, **idle_seconds(5))
    assert (waited.json["degraded"], waited.json["hits"][0]["source"], waited.err) == (None, "index", "")
    ended(pid)
    assert not (tmp_path / layout.INDEX_ADDRESS).exists()


def test_a_recall_waits_for_the_process_of_an_index_that_is_built(home: Path) -> None:
    async def build() -> None:
        async with Memory.open(settings(home)) as memory:
            await memory.catch_up_index()

    run(build())
    assert not (home / layout.INDEX_ADDRESS).exists()
    found = recallog("recall", "village", "baker", QUESTION, "--json", "--home", home, RECALLOG_INDEX="embedded")
    assert (found.json["degraded"], found.json["hits"][0]["text"]) == (None, ANSWER)


def test_closing_the_memory_leaves_a_service_with_an_idle_time(home: Path) -> None:
    async def work() -> int:
        async with Memory.open(settings(home, index_idle_seconds=1)) as memory:
            await memory.recall("village", "baker", QUESTION, wait_index=True)
            return serving_pid(home)

    pid = run(work())
    assert is_alive(pid)
    ended(pid)
    wait_until(lambda: not exists(pid), "the process that started it reaps it")


def test_a_service_ends_when_its_folder_is_deleted(tmp_path: Path) -> None:
    home = tmp_path / "memory"
    spawn("ingest", "-", "--home", home, stdin=chapters(0), **idle_seconds(600))
    pid = serving_pid(home)
    shutil.rmtree(home, ignore_errors=True)
    ended(pid)


def test_a_service_that_cannot_index_ends_when_it_is_idle(home: Path) -> None:
    broken = Settings(home=home, index="embedded", embedder="onnx:/nowhere", index_idle_seconds=1)

    async def work() -> int:
        async with Memory.open(broken) as memory:
            await memory.start_index()
            pid = serving_pid(home)

            async def says_why() -> bool:
                found = await memory.recall("village", "baker", QUESTION)
                return found.degraded is not None and "cannot be built" in found.degraded

            await until(says_why, "the answer says why there is no index")
            return pid

    ended(run(work()))


def test_a_service_with_a_wrong_embedder_makes_way_for_a_program_with_another_one(home: Path) -> None:
    async def ask(embedder: str, *, wait_index: bool = False) -> str | None:
        async with Memory.open(settings(home, embedder=embedder, index_idle_seconds=5)) as memory:
            return (await memory.recall("village", "baker", QUESTION, wait_index=wait_index)).degraded

    async def says_why() -> bool:
        return "cannot be built" in (await ask("onnx:/nowhere") or "")

    async def work() -> str | None:
        await until(says_why, "the answer says why there is no index")
        return await ask("minilm", wait_index=True)

    assert run(work()) is None
    ended(serving_pid(home))


def test_there_is_no_index_to_start_if_it_is_off() -> None:
    async def work() -> bool:
        async with Memory.in_memory() as memory:
            return await memory.start_index()

    assert run(work()) is False
