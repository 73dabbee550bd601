"""Publishing: an acknowledged event is stored once, an id has one content, a call writes all or nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

from recallog import Event, Memory, Position, Settings
from recallog_schemas import limits
from recallog_schemas.errors import EventTooLarge, IdConflict, OutOfRange, RecallogError
from support.events import event, numbered, run


def test_publish_many_returns_a_position_for_each_event_in_order(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            assert await memory.publish(event()) == Position(0, 0)
            assert [*await memory.publish_many(numbered(3))] == [Position(0, 1), Position(0, 2), Position(0, 3)]
            assert await memory.admin.ledger_ends() == [4]

    run(work())


def test_publishing_the_same_event_again_returns_its_first_position(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            events = numbered(3)
            first = await memory.publish_many(events)
            assert await memory.publish_many(events) == first
            assert await memory.publish(events[1]) == first[1]
            assert await memory.admin.ledger_ends() == [3]
            assert len((await memory.episodic("village", "baker")).memories) == 3

    run(work())


def test_an_event_twice_in_one_call_is_written_once(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            sent = event()
            assert [*await memory.publish_many([sent, sent])] == [Position(0, 0), Position(0, 0)]

    run(work())


def test_an_id_with_other_content_is_a_conflict_and_nothing_of_the_call_is_written(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish(event(id="e-1"))
            with pytest.raises(IdConflict, match=r"e-1.*0:0.*payload\.text; nothing was written"):
                await memory.publish_many([event(id="e-0"), event(id="e-1", payload={"text": "Cake!"})])
            assert await memory.admin.ledger_ends() == [1]
            assert len((await memory.episodic("village", "baker")).memories) == 1

    run(work())


def test_an_event_published_again_later_is_a_repeat_and_its_first_time_counts(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            first = event(id="e-1")
            again = event(id="e-1")
            assert again.at > first.at
            assert [*await memory.publish_many([first]), *await memory.publish_many([again])] == [Position(0, 0)] * 2
            assert [each.event for each in (await memory.episodic("village", "baker")).memories] == [first]

    run(work())


def test_an_id_counts_within_its_space(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            same = [event(id="e-1", space=space, payload={"text": space}) for space in ("village", "town")]
            assert [*await memory.publish_many(same)] == [Position(0, 0), Position(0, 1)]

    run(work())


def test_one_event_that_is_too_large_rejects_the_whole_call(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            with pytest.raises(EventTooLarge):
                await memory.publish_many([event(), event(payload={"text": "x" * limits.EVENT_BYTES_MAX})])
            assert await memory.admin.ledger_ends() == [0]

    run(work())


def test_a_call_with_too_many_events_is_refused(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            with pytest.raises(RecallogError, match="10,000"):
                await memory.publish_many([event(id="x")] * (limits.APPEND_EVENTS_MAX + 1))
            assert len(await memory.publish_many([])) == 0

    run(work())


# Reading own writes.


def test_a_query_after_a_position_sees_its_event(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            for turn in range(5):
                position = await memory.publish(event(turn=turn))
                view = await memory.episodic("village", "baker", after=position)
                assert view.memories[-1].position == position

    run(work())


@pytest.mark.parametrize("position", [Position(0, 1), Position(0, 10**9), Position(1, 0)])
def test_waiting_for_a_missing_position_is_an_error(tmp_path: Path, position: Position) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish(event())
            with pytest.raises(OutOfRange) as raised:
                await memory.episodic("village", "baker", after=position)
            assert raised.value.path == "after"
            with pytest.raises(OutOfRange):
                await memory.timeline("village", "baker", after=position)

    run(work())


# Concurrent use.


def test_two_memories_on_one_folder_see_each_other_s_events(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as one, Memory.open(tmp_path) as two:
            for turn in range(0, 20, 2):
                await one.publish(event(turn=turn))
                assert (await two.episodic("village", "baker")).memories[-1].event.turn == turn
                await two.publish(event(turn=turn + 1))
                assert (await one.episodic("village", "baker")).memories[-1].event.turn == turn + 1

    run(work())


WRITER = """
import asyncio, sys
from recallog import Event, Memory

async def main(home, agent):
    async with Memory.open(home) as memory:
        for turn in range(30):
            said = Event(id=f"{agent}-{turn}", space="village", agent=agent, kind="agent.spoke", turn=turn,
                         payload={"text": f"{agent} {turn}"})
            position = await memory.publish(said)
            view = await memory.episodic("village", agent, after=position)
            assert view.memories[-1].event == said, view

asyncio.run(main(*sys.argv[1:]))
"""


def test_processes_on_one_folder_publish_and_read_at_once(tmp_path: Path) -> None:
    agents = ["baker", "miller", "smith"]
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), agent], stderr=subprocess.PIPE, text=True)
        for agent in agents
    ]
    for writer in writers:
        _, sent = writer.communicate(timeout=60)
        assert (writer.returncode, sent) == (0, "")

    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            assert await memory.admin.ledger_ends() == [90]
            for agent in agents:
                page = await memory.timeline("village", agent, limit=100)
                assert [item.event.turn for item in page.items] == list(range(30))
            assert (await memory.admin.verify()).clean

    run(work())


def test_a_memory_closed_without_use_creates_no_file(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path / "new"):
            pass

    run(work())
    assert not (tmp_path / "new").exists()


def test_the_folder_defaults_to_the_environment_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECALLOG_HOME", str(tmp_path / "mine"))

    async def work() -> None:
        async with Memory.open() as memory:
            await memory.publish(event())
        async with Memory.open(Settings(home=tmp_path / "mine")) as memory:
            assert await memory.admin.ledger_ends() == [1]

    run(work())


def test_one_memory_serves_many_tasks_at_once(tmp_path: Path) -> None:
    import asyncio

    async def say(memory: Memory, agent: str) -> list[Event]:
        for turn in range(10):
            position = await memory.publish(event(agent=agent, turn=turn))
            await memory.episodic("village", agent, after=position)
        return [item.event for item in (await memory.timeline("village", agent)).items]

    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            found = await asyncio.gather(*(say(memory, f"agent-{n}") for n in range(10)))
            assert [[each.turn for each in events] for events in found] == [list(range(10))] * 10

    run(work())
