"""External sources of `search`: functions of a program, whose results are shown beside the hits."""

import asyncio
import gc
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from recallog import Memory, Settings
from recallog.errors import SettingsError
from recallog.extending import ExternalSource
from recallog.retrieval import bounded_calls
from recallog.retrieval.external import NO_SOURCE
from support.cli import recallog
from support.waiting import WAIT_SECONDS, until

pytestmark = pytest.mark.models("long_term")

A = "shop", "assistant"


def tickets(space: str, agent: str, query: str, limit: int) -> Sequence[Mapping[str, Any]]:
    return [{"id": f"T-{number}", "text": f"{space} {agent} {query} {number}", "score": 0.5} for number in range(9)]


async def wiki(space: str, agent: str, query: str, limit: int) -> Sequence[str]:
    return ["x" * 300]


def broken(space: str, agent: str, query: str, limit: int) -> Sequence[str]:
    raise RuntimeError("a secret of the source")


async def silent(space: str, agent: str, query: str, limit: int) -> Sequence[str]:
    await asyncio.Event().wait()
    return []


async def shop(external: Mapping[str, ExternalSource]) -> Memory:
    memory = Memory.in_memory(external=external)
    await memory.long_term.retain(*A, "Acme pays within ten days.")
    return memory


async def test_sources_are_asked_only_on_request() -> None:
    async with await shop({"broken": broken}) as memory:
        page = await memory.search(*A, "Acme")
        assert (len(page.hits), page.external, page.external_reason) == (1, (), None)


async def test_a_source_gets_the_question_and_its_first_results_are_shown() -> None:
    async with await shop({"tickets": tickets, "wiki": wiki}) as memory:
        page = await memory.search(*A, "Acme", limit=2, include_external=True)
        shown = [(hit.source, hit.id, hit.preview, hit.tokens, hit.score) for hit in page.external]
        assert shown == [
            ("tickets", "T-0", "shop assistant Acme 0", 6, 0.5),
            ("tickets", "T-1", "shop assistant Acme 1", 6, 0.5),
            ("wiki", None, "x" * 220 + "...", 75, None),
        ]
        assert page.external_reason is None
        assert [hit.preview for hit in page.hits] == ["Acme pays within ten days."]
        assert page.format().splitlines()[1:3] == [f"[tickets] «shop assistant Acme {number}»" for number in (0, 1)]
        only = await memory.search(*A, "Acme", include_external=True, external=["wiki", "unknown"])
        assert {hit.source for hit in only.external} == {"wiki"}
        assert only.external_reason == "unknown: no such source"


async def test_a_source_that_fails_or_does_not_answer_is_left_out_with_the_reason(tmp_path: Path) -> None:
    sources = {"broken": broken, "silent": silent, "tickets": tickets}
    settings = Settings(home=tmp_path, index="off", deadline_seconds=3)
    async with Memory.open(settings, external=sources) as memory:
        await memory.long_term.retain(*A, "Acme pays within ten days.")
        page = await memory.search(*A, "Acme", limit=1, include_external=True)
        assert {hit.source for hit in page.external} == {"tickets"}
        assert page.external_reason == "broken: RuntimeError; silent: no answer within 3 s"
        assert len(page.hits) == 1


@pytest.mark.parametrize("result", ["\ud800", {"text": "t", "id": "\ud800"}, {"text": 5}, {"id": "1"}, 7])
async def test_a_source_with_a_result_that_cannot_be_sent_is_left_out(result: object) -> None:
    async with await shop({"broken": lambda *_: [result], "tickets": tickets}) as memory:
        page = await memory.search(*A, "Acme", limit=1, include_external=True)
        assert "broken: " in page.model_dump_json()
        assert {hit.source for hit in page.external} == {"tickets"}


async def test_a_generator_works_in_a_thread_and_within_the_deadline(tmp_path: Path) -> None:
    released = threading.Event()

    def stuck(space: str, agent: str, query: str, limit: int) -> Iterator[str]:
        yield "Acme complained."
        released.wait()

    settings = Settings(home=tmp_path, index="off", deadline_seconds=0.2)
    try:
        async with Memory.open(settings, external={"stuck": stuck}) as memory:
            page = await memory.search(*A, "Acme", include_external=True)
            assert (page.external, page.external_reason) == ((), "stuck: no answer within 0.2 s")
            page = await memory.search(*A, "Acme", limit=1, include_external=True)
            assert [hit.preview for hit in page.external] == ["Acme complained."]
    finally:
        released.set()


async def test_the_reason_names_a_timeout_of_the_source_itself() -> None:
    def unreachable(*_: object) -> Sequence[str]:
        raise TimeoutError

    async with await shop({"wiki": unreachable}) as memory:
        page = await memory.search(*A, "Acme", include_external=True)
        assert page.external_reason == "wiki: TimeoutError"


async def test_without_sources_the_answer_says_so() -> None:
    async with await shop({}) as memory:
        page = await memory.search(*A, "Acme", include_external=True)
        assert (page.external, page.external_reason) == ((), NO_SOURCE)
        assert page.format().endswith(f"\n({NO_SOURCE})")


@pytest.mark.models("tiers")
async def test_a_search_that_asks_sources_counts_as_one() -> None:
    async with await shop({"tickets": tickets}) as memory:
        await memory.search(*A, "Acme", types=["fact"], include_external=True)
        await memory.long_term.retain(*A, "Counts are published before this one.")
        assert (await memory.tiers.stats(*A)).lookups == 1


def test_the_command_shows_what_the_sources_find_and_which_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of_a_shop.py").write_text("def find(*_):\n    return ['Acme complained.']\ndef fail(*_):\n    1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    home = ("--home", tmp_path, "--include-external")
    assert recallog("publish", *A, "agent.spoke", "Acme pays.", "--home", tmp_path).code == 0
    sources = "tickets=of_a_shop:find,wiki=of_a_shop:fail"
    shown = recallog("search", *A, "Acme", *home, RECALLOG_INDEX="off", RECALLOG_EXTERNAL=sources)
    assert shown.out.splitlines()[1:] == ["[tickets] «Acme complained.»"]
    assert "external sources: wiki: ZeroDivisionError" in shown.err
    assert NO_SOURCE in recallog("search", *A, "Acme", *home, RECALLOG_INDEX="off").err
    wrong = recallog("search", *A, "Acme", *home, RECALLOG_INDEX="off", RECALLOG_EXTERNAL="of_a_shop:find")
    assert (wrong.code, "should be name=module:function" in wrong.err) == (2, True)


async def test_a_setting_names_the_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "of_the_shop.py").write_text("def find(space, agent, query, limit):\n    return [query]\n")
    monkeypatch.syspath_prepend(tmp_path)
    async with Memory.open(Settings(home=tmp_path, index="off", external="wiki=of_the_shop:find")) as memory:
        page = await memory.search(*A, "Acme", include_external=True)
        assert [(hit.source, hit.preview) for hit in page.external] == [("wiki", "Acme")]
    async with Memory.open(Settings(home=tmp_path, index="off", external="wiki=nowhere:find")) as memory:
        with pytest.raises(SettingsError, match="RECALLOG_EXTERNAL nowhere:find"):
            await memory.search(*A, "Acme", include_external=True)


async def test_a_source_that_never_answers_does_not_take_the_threads_of_the_memory(tmp_path: Path) -> None:
    released = threading.Event()

    def stuck(space: str, agent: str, query: str, limit: int) -> Sequence[str]:
        released.wait()
        return []

    settings = Settings(home=tmp_path, index="off", deadline_seconds=0.05)
    try:
        async with Memory.open(settings, external={"stuck": stuck}) as memory:
            await memory.long_term.retain(*A, "Acme pays within ten days.")
            pages = [await memory.search(*A, "Acme", include_external=True) for _ in range(40)]
            assert {page.external_reason for page in pages} == {"stuck: no answer within 0.05 s"}
            async with asyncio.timeout(WAIT_SECONDS):
                assert await asyncio.to_thread(lambda: "free") == "free"
    finally:
        released.set()


async def test_a_source_that_never_answers_takes_few_threads_and_none_of_another_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_calls, "CALLS_MAX", 2)
    released, called = threading.Event(), []

    def stuck(space: str, agent: str, query: str, limit: int) -> Sequence[str]:
        called.append(query)
        released.wait()
        return []

    async def both_called() -> bool:
        return len(called) == 2

    settings = Settings(home=tmp_path, index="off", deadline_seconds=WAIT_SECONDS)
    try:
        async with Memory.open(settings, external={"never": stuck, "wiki": wiki}) as memory:
            waiting = [
                asyncio.create_task(memory.search(*A, "Acme", include_external=True, external=["never"]))
                for _ in range(2)
            ]
            await until(both_called, "two calls")
            page = await memory.search(*A, "Acme", include_external=True)
            assert page.external_reason == "never: 2 earlier calls have not ended"
            assert page.external
            released.set()
            assert [(await each).external_reason for each in waiting] == [None, None]
    finally:
        released.set()


async def test_what_a_source_raises_after_its_time_is_not_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    released, raised = threading.Event(), threading.Event()

    def late(space: str, agent: str, query: str, limit: int) -> Sequence[str]:
        released.wait()
        raised.set()
        raise RuntimeError("a secret of the source")

    async def has_ended() -> bool:
        return raised.is_set() and not [each for each in threading.enumerate() if each.name == "recallog-external-late"]

    async with Memory.open(
        Settings(home=tmp_path, index="off", deadline_seconds=0.05), external={"late": late}
    ) as memory:
        page = await memory.search(*A, "Acme", include_external=True)
        assert page.external_reason == "late: no answer within 0.05 s"
        released.set()
        await until(has_ended, "the source has raised")
        gc.collect()
    assert "a secret of the source" not in caplog.text


def test_a_program_ends_although_a_source_never_answers(tmp_path: Path) -> None:
    # It once waited for the source's thread.
    program = f"""
import asyncio, threading
from recallog import Memory, Settings

async def main():
    settings = Settings(home={str(tmp_path)!r}, index="off", deadline_seconds=0.1)
    async with Memory.open(settings, external={{"stuck": lambda *asked: threading.Event().wait()}}) as memory:
        print((await memory.search("acme", "ann", "Acme", include_external=True)).external_reason)

asyncio.run(main())
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=WAIT_SECONDS)
    assert (ended.returncode, ended.stdout) == (0, "stuck: no answer within 0.1 s\n"), ended.stderr
