"""A reranker that does not answer: recall has a deadline, and takes few threads."""

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from recallog import Memory, Settings
from recallog.extending import Reranker
from recallog.retrieval import bounded_calls
from support.events import event
from support.waiting import WAIT_SECONDS, until

A = "village", "baker"


class Stuck(Reranker):
    """Answers each question after `released`, in the reverse order."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.calls = 0

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        self.calls += 1
        self.released.wait()
        return [float(place) for place in range(len(texts))]


async def told(memory: Memory) -> None:
    of = {"space": "village", "agent": "baker"}
    texts = ("The mill burned to the ground.", "The mill was built last year.")
    await memory.publish_many([event("world.observed", **of, payload={"text": text}) for text in texts])


async def test_a_reranker_that_does_not_answer_in_time_leaves_the_original_order(tmp_path: Path) -> None:
    stuck = Stuck()
    settings = Settings(home=tmp_path, index="off", deadline_seconds=0.05)
    try:
        async with Memory.open(settings) as memory, Memory.open(settings, reranker=stuck) as reranking:
            await told(memory)
            plain = await memory.recall(*A, "What burned at the mill?", top_k=1)
            async with asyncio.timeout(WAIT_SECONDS):
                late = await reranking.recall(*A, "What burned at the mill?", top_k=1)
            assert late.hits == plain.hits
            assert late.degraded == "the reranker failed: Unanswered: no answer within 0.25 s"
            page = await reranking.search(*A, "What burned at the mill?", limit=1)
            assert [hit.id for hit in page.hits] == [hit.event.id for hit in plain.hits]
            assert page.degraded == late.degraded
    finally:
        stuck.released.set()


async def test_a_reranker_that_never_answers_takes_few_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_calls, "CALLS_MAX", 2)
    stuck = Stuck()

    async def both_called() -> bool:
        return stuck.calls == 2

    async def has_ended() -> bool:
        return all(each.name != "recallog-reranker" for each in threading.enumerate())

    settings = Settings(home=tmp_path, index="off", deadline_seconds=WAIT_SECONDS)
    try:
        async with Memory.open(settings, reranker=stuck) as memory:
            await told(memory)
            waiting = [asyncio.create_task(memory.recall(*A, "What burned?")) for _ in range(2)]
            await until(both_called, "two calls")
            third = await memory.recall(*A, "What burned?")
            assert (third.degraded, len(third.hits)) == (
                "the reranker failed: Unanswered: 2 earlier calls have not ended",
                2,
            )
            stuck.released.set()
            assert [(await each).degraded for each in waiting] == [None, None]
            await until(has_ended, "the threads have ended")
            again = await memory.recall(*A, "What burned?")
            assert (again.degraded, again.hits[0].parts) == (None, {"reranker": 1.0})
    finally:
        stuck.released.set()


async def test_a_time_limit_of_the_function_itself_is_its_error() -> None:
    def fail() -> None:
        raise TimeoutError("the socket timed out")

    with pytest.raises(TimeoutError, match="the socket timed out"):
        await bounded_calls.call_within(WAIT_SECONDS, "recallog-test", fail)


class Exhausted(Reranker):
    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        return [next(iter(()))]


async def test_a_reranker_that_lacks_a_next_item_fails_at_once(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, index="off", deadline_seconds=WAIT_SECONDS)
    async with Memory.open(settings, reranker=Exhausted()) as memory:
        await told(memory)
        found = await memory.recall(*A, "What burned?")
        assert found.degraded == "the reranker failed: RuntimeError: StopIteration()"
