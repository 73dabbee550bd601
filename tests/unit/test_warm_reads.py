"""Warm queries of an embedded memory: few calls of a thread, and all events published before the query."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from recallog import Memory, Settings
from support.events import event, numbered, run

QUERIES: dict[str, Callable[[Memory], Awaitable[Any]]] = {
    "episodic": lambda memory: memory.episodic("village", "baker"),
    "timeline": lambda memory: memory.timeline("village", "baker"),
    "salient": lambda memory: memory.salient("village", "baker", "bread"),
    "recall": lambda memory: memory.recall("village", "baker", "who owes the miller?"),
    "scene": lambda memory: memory.scene("village"),
    "agent_settings": lambda memory: memory.agent_settings("village", "baker"),
}


def without_index(home: Path) -> Memory:
    return Memory.open(Settings(home=home, index="off"))


async def thread_calls(work: Callable[[], Awaitable[object]]) -> int:
    """How often `work` calls a thread."""
    loop, calls = asyncio.get_running_loop(), 0
    original = loop.run_in_executor

    def counted(*arguments: Any) -> asyncio.Future[Any]:
        nonlocal calls
        calls += 1
        return original(*arguments)

    loop.run_in_executor = counted  # type: ignore[method-assign]
    try:
        await work()
    finally:
        loop.run_in_executor = original  # type: ignore[method-assign]
    return calls


@pytest.mark.parametrize("name", QUERIES)
def test_a_warm_query_calls_a_thread_once(tmp_path: Path, name: str) -> None:
    async def work() -> None:
        async with without_index(tmp_path) as memory:
            await memory.publish_many(numbered(20))
            await memory.episodic("village", "baker")
            assert await thread_calls(lambda: QUERIES[name](memory)) == 1

    run(work())


def test_publishing_an_event_and_reading_it_calls_a_thread_four_times(tmp_path: Path) -> None:
    """To append, to read the views' checkpoint and the new record, to commit, and to read the views."""

    async def work() -> None:
        async with without_index(tmp_path) as memory:
            for turn in range(20):
                await memory.episodic("village", "baker", after=await memory.publish(event(turn=turn)))

            async def publish_and_read() -> None:
                published = await memory.publish(event(turn=20))
                assert (await memory.episodic("village", "baker", after=published)).checkpoint == published

            assert await thread_calls(publish_and_read) == 4

    run(work())


def test_concurrent_queries_fold_a_new_event_once(tmp_path: Path) -> None:
    async def work() -> None:
        async with without_index(tmp_path) as memory:
            for turn in range(20):
                await memory.episodic("village", "baker", after=await memory.publish(event(turn=turn)))
            published = await memory.publish(event(turn=20))
            views, folded = memory._components.views, 0
            process = views.access._projector.fold.process  # type: ignore[attr-defined]

            async def counted(*given: Any) -> Any:
                nonlocal folded
                folded += 1
                return await process(*given)

            views.access._projector.fold.process = counted  # type: ignore[attr-defined]
            answers = await asyncio.gather(*(memory.episodic("village", "baker", after=published) for _ in range(20)))
            assert {each.checkpoint for each in answers} == {published}
            assert folded == 1

    run(work())


def test_a_query_during_an_append_sees_all_before_it_and_the_next_query_sees_it(tmp_path: Path) -> None:
    async def work() -> None:
        async with without_index(tmp_path) as memory:
            await memory.publish_many(numbered(20))
            await memory.episodic("village", "baker")
            for turn in range(20, 60):
                published, view = await asyncio.gather(
                    memory.publish(event(turn=turn)), memory.episodic("village", "baker")
                )
                assert view.checkpoint is not None
                assert view.checkpoint.offset in (published.offset - 1, published.offset)
                assert (await memory.episodic("village", "baker")).checkpoint == published

    run(work())


PRODUCER = """
import asyncio, sys
from pathlib import Path
from recallog_schemas import Event
from recallog_streams.ledgers.sqlite import SqliteLedger

async def main(path, count):
    ledger = SqliteLedger(Path(path), 60)
    for turn in range(int(count)):
        event = Event(space="village", agent="baker", kind="agent.spoke", turn=turn, payload={"text": "Bread!"})
        (position,) = await ledger.append([event])
        print(position.offset, flush=True)
    await ledger.close()

asyncio.run(main(*sys.argv[1:]))
"""


def test_every_query_sees_events_that_another_process_published_before_it(tmp_path: Path) -> None:
    # At any moment, also between the calls of a query, and between its reads of the ledger and of the views.
    events = 150

    async def work() -> None:
        async with without_index(tmp_path) as memory:
            await memory.publish_many(numbered(5, space="elsewhere"))
            await memory.episodic("village", "baker")
            producer = await asyncio.create_subprocess_exec(
                sys.executable, "-c", PRODUCER, str(tmp_path / "ledger.db"), str(events), stdout=subprocess.PIPE
            )
            assert producer.stdout is not None
            acknowledged = -1

            async def listen(lines: asyncio.StreamReader) -> None:
                nonlocal acknowledged
                async for line in lines:
                    acknowledged = int(line)

            listening, at_end = asyncio.create_task(listen(producer.stdout)), 0
            while not listening.done():
                began_at = acknowledged
                view = await memory.episodic("village", "baker")
                if began_at >= 0:
                    assert view.memories[-1].position.offset >= began_at
                    at_end += view.memories[-1].position.offset == began_at
                await asyncio.sleep(0)  # the listener's turn
            await listening
            assert (await producer.wait(), acknowledged) == (0, 4 + events)
            assert at_end > 0  # some queries found no new events and were read optimistically

    run(work())


def test_the_next_query_uses_a_generation_that_another_process_activated(tmp_path: Path) -> None:
    async def work() -> None:
        async with without_index(tmp_path) as memory, without_index(tmp_path) as other:
            await memory.publish_many(numbered(20))
            before = await memory.episodic("village", "baker")
            (rebuilt,) = await other.admin.rebuild()
            after = await memory.episodic("village", "baker")
            assert after.generation != before.generation
            assert after.generation == rebuilt.generation
            assert after.memories == before.memories

    run(work())


def test_views_of_a_deleted_file_are_built_again_by_the_next_query(tmp_path: Path) -> None:
    async def work() -> None:
        async with without_index(tmp_path) as memory:
            await memory.publish_many(numbered(20))
            before = await memory.episodic("village", "baker")
            for path in tmp_path.glob("views*"):
                path.unlink()
            after = await memory.episodic("village", "baker")
            assert (after.memories, after.checkpoint) == (before.memories, before.checkpoint)

    run(work())
