"""The timeline, page by page, and the lists of spaces and agents."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from recallog import Event, Memory, Position
from recallog.composition import assemble
from recallog.views import TimelinePage
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.store import Chunk, ReadResult
from recallog_schemas.errors import InvalidArgument
from recallog_streams.ledgers.memory import MemoryLedger
from support.events import event, run

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def day(count: int = 25) -> list[Event]:
    """`count` events of the baker and as many invisible to the baker, one a minute from noon."""
    events = []
    for n in range(count):
        at = NOON + timedelta(minutes=n)
        kind = "agent.thought" if n % 5 == 0 else "agent.spoke"
        events.append(event(kind, id=f"b-{n}", turn=n, at=at, session=f"s-{n // 10}"))
        events.append(event(id=f"m-{n}", agent="miller", turn=n, at=at))
    return events


async def pages(memory: Memory, **question: Any) -> list[TimelinePage]:
    """From the newest page to the oldest."""
    found = [await memory.timeline("village", "baker", **question)]
    while (older := found[-1].older) is not None:
        assert older == found[-1].items[0].position
        found.append(await memory.timeline("village", "baker", before=older, **question))
        assert all(item.position < older for item in found[-1].items)
    return found


def walk(home: Path, events: list[Event], **question: Any) -> tuple[list[TimelinePage], list[int]]:
    """All pages, and their turns, oldest first."""

    async def work() -> list[TimelinePage]:
        async with Memory.open(home) as memory:
            await memory.publish_many(events)
            return await pages(memory, **question)

    found = run(work())
    return found, [item.event.turn for page in reversed(found) for item in page.items]


# Pages.


@pytest.mark.parametrize("limit", [1, 2, 7, 24, 25, 26, 1000])
def test_all_pages_show_each_visible_event_once_and_in_order(tmp_path: Path, limit: int) -> None:
    found, turns = walk(tmp_path, day(), limit=limit)
    assert turns == list(range(25))
    assert all(len(page.items) == limit for page in found[:-1])
    assert 0 < len(found[-1].items) <= limit


def test_the_first_page_is_the_newest_and_reads_from_old_to_new(tmp_path: Path) -> None:
    found, _ = walk(tmp_path, day(), limit=10)
    assert [item.event.turn for item in found[0].items] == list(range(15, 25))


def test_a_page_stays_the_same_while_new_events_come(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many(day())
            first = await memory.timeline("village", "baker", limit=10)
            second = await memory.timeline("village", "baker", limit=10, before=first.older)
            await memory.publish_many([event(turn=99), event(turn=100)])
            again = await memory.timeline("village", "baker", limit=10, before=first.older)
            assert again.items == second.items

    run(work())


def test_an_empty_timeline_is_one_empty_page(tmp_path: Path) -> None:
    found, turns = walk(tmp_path, [])
    assert turns == []
    assert (len(found), found[0].older, found[0].kept_from) == (1, None, None)


@pytest.mark.parametrize("limit", [0, -1, 1001])
def test_the_limit_of_a_page_is_checked(tmp_path: Path, limit: int) -> None:
    with pytest.raises(InvalidArgument, match=r"^limit: "):
        walk(tmp_path, [], limit=limit)


# Filters.


def test_a_filter_by_session(tmp_path: Path) -> None:
    assert walk(tmp_path, day(), session="s-1", limit=4)[1] == list(range(10, 20))


def test_a_filter_by_kinds(tmp_path: Path) -> None:
    assert walk(tmp_path, day(), kinds=["agent.thought"], limit=2)[1] == [0, 5, 10, 15, 20]
    assert walk(tmp_path, [], kinds=["clue.found"])[1] == []
    assert walk(tmp_path, [], kinds=[])[1] == []


def test_a_filter_by_time(tmp_path: Path) -> None:
    since, until = NOON + timedelta(minutes=3), NOON + timedelta(minutes=9)
    assert walk(tmp_path, day(), since=since, until=until, limit=4)[1] == [3, 4, 5, 6, 7, 8]
    assert walk(tmp_path, [], until=since)[1] == [0, 1, 2]


def test_times_are_accepted_in_any_zone(tmp_path: Path) -> None:
    since = (NOON + timedelta(minutes=20)).astimezone(timezone(timedelta(hours=-7)))
    assert walk(tmp_path, day(), since=since)[1] == [20, 21, 22, 23, 24]


def test_filters_are_combined(tmp_path: Path) -> None:
    question = {"session": "s-1", "kinds": ["agent.thought"], "since": NOON + timedelta(minutes=11)}
    assert walk(tmp_path, day(), **question)[1] == [15]


@pytest.mark.parametrize("bound", ["since", "until"])
def test_a_time_without_its_zone_is_an_error(tmp_path: Path, bound: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{bound}: a time needs its zone") as raised:
        walk(tmp_path, day(1), **{bound: NOON.replace(tzinfo=None)})
    assert (raised.value.path, raised.value.rule) == (bound, "time_zone")


# The retention of the views.


def long_run(own: int, shared: int) -> list[Event]:
    """Shared and own events alternately, then the rest of the longer list."""
    events = []
    for n in range(max(own, shared)):
        if n < shared:
            events.append(event("world.observed", id=f"w-{n}", agent="narrator", turn=n))
        if n < own:
            events.append(event(id=f"b-{n}", turn=n))
    return events


def test_kept_from_is_unset_while_nothing_was_dropped(tmp_path: Path) -> None:
    found, turns = walk(tmp_path, long_run(own=2000, shared=2000), limit=1000)
    assert len(turns) == 4000
    assert [page.kept_from for page in found] == [None] * 4


def test_the_last_page_has_kept_from_and_nothing_older(tmp_path: Path) -> None:
    found, turns = walk(tmp_path, long_run(own=2300, shared=100), limit=1000)
    assert [page.kept_from for page in found[:-1]] == [None] * (len(found) - 1)
    kept_from = found[-1].kept_from
    assert kept_from is not None
    assert found[-1].items[0].position == kept_from
    assert turns == list(range(300, 2300))  # the hundred shared events are older than the remaining own ones


@pytest.mark.parametrize(("own", "shared"), [(2001, 0), (0, 2001), (10, 2500), (2500, 2500), (2500, 10)])
def test_from_kept_from_on_the_timeline_is_complete(tmp_path: Path, own: int, shared: int) -> None:
    events = long_run(own, shared)
    found, _ = walk(tmp_path, events, limit=1000)
    kept_from = found[-1].kept_from
    assert kept_from is not None
    remembered = [item.event.id for page in reversed(found) for item in page.items]
    assert remembered == [each.id for each in events[kept_from.offset :]]


def test_events_dropped_from_the_views_are_still_in_the_ledger(tmp_path: Path) -> None:
    events = long_run(own=2100, shared=0)
    walk(tmp_path, events)

    async def work() -> int:
        async with Memory.open(tmp_path) as memory:
            return sum([len(batch.records) async for batch in memory.admin.records(space="village")])

    assert run(work()) == 2100


# Spaces and agents.


def test_spaces_are_listed_by_name_with_their_counts(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            assert len(await memory.spaces()) == 0
            town = event(space="town", agent="mayor")
            settings = event("agent.configured", payload={"window": 3}, session="s-9")
            await memory.publish_many([*day(3), town, settings])
            spaces = {space.space: space for space in await memory.spaces()}
            assert list(spaces) == ["town", "village"]
            village = spaces["village"]
            assert (village.events, village.agents, village.sessions) == (7, 2, 2)
            assert (village.first, village.last) == (Position(0, 0), Position(0, 7))

    run(work())


def test_agents_are_listed_by_name(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many([event(agent=agent) for agent in ("miller", "baker", "miller")])
            agents = await memory.agents("village")
            assert [(agent.name, agent.events) for agent in agents] == [("baker", 1), ("miller", 2)]
            assert (agents[1].first, agents[1].last) == (Position(0, 0), Position(0, 2))

    run(work())


def test_a_space_in_detail(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many(day(12))
            detail = await memory.space("village")
            assert detail.activity is not None
            assert detail.activity.events == 24
            assert {kind.name: kind.events for kind in detail.kinds} == {"agent.spoke": 21, "agent.thought": 3}
            assert {session.name: session.events for session in detail.sessions} == {"s-0": 10, "s-1": 2}
            assert (await memory.space("nowhere")).activity is None
            assert len(await memory.agents("nowhere")) == 0

    run(work())


async def all_pages(ask: Callable[..., Awaitable[Any]]) -> list[Any]:
    page = await ask()
    found = [*page.items]
    while page.next is not None:
        page = await ask(cursor=page.next)
        found += page.items
    return found


def test_many_spaces_and_agents_are_all_listed(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many([event(space=f"s-{n:04}", agent=f"a-{n % 3}") for n in range(2500)])
            await memory.publish_many([event(space="crowd", agent=f"a-{n:04}") for n in range(2500)])
            spaces = await all_pages(memory.spaces)
            assert [space.space for space in spaces] == ["crowd", *(f"s-{n:04}" for n in range(2500))]
            assert len(await all_pages(partial(memory.agents, "crowd"))) == 2500
            status = await memory.admin.status()
            assert (status.spaces, status.agents, status.records) == (2501, 5000, 5000)

    run(work())


class ChangingStore(MemoryStore):
    """Once `change` is set, it is awaited before the next scan."""

    def __init__(self) -> None:
        super().__init__()
        self.change: Callable[[], Awaitable[None]] | None = None

    async def scan(self, *arguments: Any, **more: Any) -> Chunk:
        if self.change is not None:
            change, self.change = self.change, None
            await change()
        return await super().scan(*arguments, **more)


@pytest.mark.parametrize("name", ["agents", "sessions", "space"])
def test_a_list_of_a_space_that_changes_while_it_is_read_is_read_at_one_checkpoint(name: str) -> None:
    async def work() -> None:
        store = ChangingStore()
        async with Memory(assemble(MemoryLedger(), lambda namespace: store)) as memory:

            async def change() -> None:
                await memory.publish(event(session="day-1"))
                await memory.catch_up()

            await memory.publish(event(space="town"))
            await memory.catch_up()
            store.change = change
            view = await getattr(memory, name)("village")
            assert (view.known, view.checkpoint) == (True, Position(0, 1))
            assert len(view.agents if name == "space" else view) == 1

    run(work())


class ReadingStore(MemoryStore):
    """Counts the entries of logs that it returns."""

    entries = 0

    async def read(self, *arguments: Any, **named: Any) -> ReadResult:
        found = await super().read(*arguments, **named)
        self.entries += sum(len(tail.entries) for tail in found.logs)
        return found


def test_a_page_reads_no_more_events_than_it_needs() -> None:
    async def work() -> None:
        store = ReadingStore()
        async with Memory(assemble(MemoryLedger(), lambda namespace: store)) as memory:
            await memory.publish_many([event(id=f"b-{n}") for n in range(600)])
            await memory.timeline("village", "baker", limit=20)
            before = store.entries
            newest = await memory.timeline("village", "baker", limit=20)
            assert store.entries - before <= 64
            assert [item.event.id for item in newest.items] == [f"b-{n}" for n in range(580, 600)]
            every = await memory.timeline("village", "baker", limit=600)
            assert len(every.items) == 600
            none = await memory.timeline("village", "baker", kinds=["world.observed"])
            assert (none.items, none.older, none.kept_from) == ((), None, None)

    run(work())
