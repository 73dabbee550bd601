"""Filters of fields: what each condition means, what is refused, pages while others write, and what stays hidden."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from recallog import Event, Memory, Remote, Settings
from recallog.reading import filters
from recallog_schemas import limits
from recallog_schemas.errors import InvalidArgument
from recallog_service.access import Access
from recallog_service.http.app import Application
from support.cli import recallog
from support.events import run
from support.http import served

pytestmark = pytest.mark.models("tiers")

SPACE, AGENT = "inn", "host"
PAYLOAD: dict[str, Any] = {
    "text": "The room above the mill.",
    "category": "rooms",
    "metadata": {
        "city": "Bern",
        "stars": 4,
        "open": True,
        "a.b": 1,
        "of": {"owner": "Ann"},
        "until": "2026-03-01T12:00:00+02:00",
        "list": ["x", 1],
        "objects": [{"one": 1}],
    },
    "tags": ["vip", 1],
}
EVENT = Event(
    id="caf\u00e9",
    space=SPACE,
    agent=AGENT,
    kind="agent.spoke",
    payload=PAYLOAD,
    turn=3,
    session="monday",
    at=datetime(2026, 3, 1, 10, tzinfo=UTC),
)


def passes(wanted: Any, event: Event = EVENT) -> bool:
    return filters.compile_filter(filters.plain(wanted))(event)


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"metadata.city": "Bern", "turn": 3},
        {"metadata": {"city": "Bern", "of": {"owner": "Ann"}}},
        {"metadata": {"a.b": 1}},
        {"metadata.city": {"$ne": "Rome", "$gt": "Berm", "$lte": "Bern"}},
        {"metadata.none": None},
        {"metadata.none": {"$ne": 1}},
        {"metadata.none": {"$exists": False}},
        {"metadata.none": {"$nin": ["a"]}},
        {"metadata.stars": {"$in": [3, 4.0]}},
        {"metadata.open": True},
        {"metadata.list": ["x", 1]},
        {"metadata.list": ("x", 1)},
        {"metadata.objects": [{"one": 1.0}]},
        {"tags": {"$contains": "vip"}},
        {"payload.text": {"$contains": "mill"}},
        {"category": {"$not": {"$in": ["food"]}}},
        {"id": "cafe\u0301"},
        {"at": {"$gte": "2026-03-01T11:00:00+01:00", "$lt": datetime(2026, 3, 2, tzinfo=UTC)}},
        {"metadata.until": {"$gte": "2026-03-01T10:00:00Z", "$lt": datetime(2026, 3, 1, 10, 1, tzinfo=UTC)}},
        {"$or": [{"turn": 9}, {"$and": [{"turn": 3}, {"session": "monday"}]}]},
        {"$not": {"turn": 3, "session": "tuesday"}},
    ],
    ids=str,
)
def test_a_filter_that_the_event_passes(wanted: Any) -> None:
    assert passes(wanted)


@pytest.mark.parametrize(
    "wanted",
    [
        {"metadata.city": "bern"},
        {"metadata.city": {"$gt": 1}},
        {"metadata.stars": "4"},
        {"metadata.stars": {"$gt": "3"}},
        {"metadata.open": 1},
        {"metadata.open": {"$gte": 0}},
        {"metadata.none": {"$gt": 0}},
        {"metadata.none.below": {"$exists": True}},
        {"metadata.list": {"$contains": True}},
        {"metadata.objects": [{"one": True}]},
        {"tags": {"$contains": "vi"}},
        {"tags": {"$nin": [["vip", 1]]}},
        {"metadata.of": {"owner": "Bob"}},
        {"subject": {"$exists": True}},
        {"$not": {}},
    ],
    ids=str,
)
def test_a_filter_that_the_event_does_not_pass(wanted: Any) -> None:
    assert not passes(wanted)


@pytest.mark.parametrize(
    ("wanted", "path", "said"),
    [
        ({"catgory": 1}, "filter.catgory", "did you mean category? For a key of the metadata, write metadata.catgory"),
        ({"metadat.city": 1}, "filter.metadat.city", "is not a field; did you mean metadata.city?"),
        ({"city": 1}, "filter.city", "For a key of the metadata, write metadata.city"),
        ({"AND": []}, "filter.AND", "did you mean $and?"),
        ({"turn": {"gt": 3}}, "filter.turn.gt", "did you mean $gt?"),
        ({"metadata.x": {"gt": 3}}, "filter.metadata.x.gt", "did you mean $gt? A part of this name is metadata.x.gt"),
        ({"turn": {"x": 3}}, "filter.turn.x", "turn has no parts"),
        ({"turn": {"$gtt": 3}}, "filter.turn.$gtt", "did you mean $gt?"),
        ({"$or": []}, "filter.$or", "a list of filters"),
        ({"$or": [{"turn": {"$in": 3}}]}, "filter.$or.0.turn.$in", "a list of values"),
        ({"$not": []}, "filter.$not", "a JSON object"),
        ({"at": {"$gt": "noon"}}, "filter.at.$gt", "should be a time"),
        ({"turn": {"$gt": None}}, "filter.turn.$gt", "a number, a text or a time"),
        ({"turn": {"$exists": 1}}, "filter.turn.$exists", "true or false"),
        ({"turn": float("nan")}, "filter.turn", "JSON has no NaN"),
        ({"metadata": {}}, "filter.metadata", "an object with operators"),
        ({"turn": {"$eq": {"a": 1}}}, "filter.turn.$eq", "not an object"),
        ({"payload.x": {"$in": ["x" * limits.FILTER_BYTES_MAX]}}, "filter", "bytes as JSON"),
        ({"turn": object()}, "filter", "should be JSON"),
        ("[1]", "filter", "should be a JSON object"),
    ],
)
def test_a_wrong_filter_is_refused_with_its_place_and_the_nearest_name(wanted: Any, path: str, said: str) -> None:
    async def work() -> InvalidArgument:
        async with Memory.in_memory() as memory:
            with pytest.raises(InvalidArgument) as raised:
                await memory.recall(SPACE, AGENT, "room", filter=wanted)
            return raised.value

    error = run(work())
    assert error.path == path
    assert said in str(error)


def test_a_filter_that_is_nested_without_end_is_refused() -> None:
    wanted: dict[str, Any] = {"turn": 1}
    for _ in range(limits.FILTER_DEPTH_MAX):
        wanted = {"$not": wanted}
    with pytest.raises(InvalidArgument, match="deeper than 16 levels"):
        filters.plain(wanted)
    endless: dict[str, Any] = {}
    endless["$not"] = endless
    with pytest.raises(InvalidArgument):
        filters.plain(endless)


def test_the_time_of_what_a_text_says_decides_which_value_counts() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            retain = memory.long_term.retain
            now = await retain(SPACE, AGENT, "Ann lives in Oslo.", at="2026-03-01T00:00:00Z")
            before = await retain(SPACE, AGENT, "Ann lives in Rome.", at="2020-03-01T00:00:00Z")
            page = await memory.long_term.list(SPACE, AGENT, filter={"at": {"$lt": "2025-01-01T00:00:00Z"}})
            (entry,) = page.entries
            assert (entry.id, entry.superseded_by) == (before.id, now.id)
            assert entry.at == datetime(2020, 3, 1, tzinfo=UTC)

    run(work())


@pytest.mark.parametrize("order", ["newest", "priority"])
def test_pages_of_entries_are_complete_while_another_writer_retains_more(order: Any) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many([kept(f"e-{number}", number) for number in range(40)])
            wanted = [f"e-{number}" for number in range(40) if number % 3]
            seen: list[str] = []
            cursor = None
            while True:
                page = await memory.long_term.list(
                    SPACE, AGENT, order=order, limit=4, cursor=cursor, filter={"metadata.third": {"$ne": 0}}
                )
                seen += [entry.id for entry in page.entries]
                cursor = page.next
                if cursor is None:
                    break
                await memory.publish_many([kept(f"new-{len(seen)}-{number}", number) for number in range(7)])
            assert sorted(seen) == sorted(wanted)
            assert len(set(seen)) == len(seen)

    run(work())


def test_pages_of_a_timeline_are_complete_while_another_writer_publishes() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many([spoken(number) for number in range(40)])
            seen: list[int] = []
            before = None
            while True:
                wanted = {"metadata.third": 1}
                page, *_ = await asyncio.gather(
                    memory.timeline(SPACE, AGENT, limit=4, before=before, filter=wanted),
                    memory.publish_many([spoken(number) for number in range(100, 105)] if before else []),
                )
                seen += [item.event.payload["number"] for item in reversed(page.items)]
                before = page.older
                if before is None:
                    break
            assert seen == [number for number in range(39, -1, -1) if number % 3 == 1]

    run(work())


def test_a_filter_finds_nothing_that_the_agent_may_not_see() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many([spoken(1), kept("e-1", 1)])
            for wanted in ({}, {"metadata.third": 1}, {"$not": {"metadata.third": 0}}, {"agent": AGENT}):
                assert not (await memory.recall(SPACE, "guest", "room", filter=wanted)).hits
                assert not (await memory.timeline(SPACE, "guest", filter=wanted)).items
                assert not (await memory.tiers.retrieve(SPACE, "guest", "room", filter=wanted)).hits

    run(work())


def test_a_filter_is_the_same_at_every_door(tmp_path: Path) -> None:
    wanted = {"metadata": {"third": 1}, "$not": {"payload.number": {"$gte": 5}}}

    async def work() -> None:
        async with Memory.open(Settings(home=tmp_path, index="off")) as memory:
            await memory.publish_many([spoken(number) for number in range(9)])
            async with (
                served(Application(memory, Access.of(Settings(home=tmp_path)))) as (_, url),
                Remote(url) as remote,
            ):
                for asked in (memory, remote):
                    page = await asked.timeline(SPACE, AGENT, filter=wanted)
                    assert [item.text for item in page.items] == ["Room 1.", "Room 4."]
                    found = await asked.recall(SPACE, AGENT, "which room?", filter=json.dumps(wanted))
                    assert {hit.text for hit in found.hits} == {"Room 1.", "Room 4."}
                with pytest.raises(InvalidArgument, match="did you mean category"):
                    await remote.timeline(SPACE, AGENT, filter={"catgory": "rooms"})

    run(work())
    command = ["timeline", SPACE, AGENT, "--filter", json.dumps(wanted), "--home", str(tmp_path)]
    lines = recallog(*command, RECALLOG_INDEX="off").out.splitlines()
    assert [number for number in range(9) if any(f"Room {number}." in line for line in lines)] == [1, 4]


def kept(id_: str, number: int) -> Event:
    payload = {"text": f"Room {id_} is free.", "dedup": "off", "tier": "slow", "metadata": {"third": number % 3}}
    return Event(id=id_, space=SPACE, agent=AGENT, kind="memory.retained", payload=payload)


def spoken(number: int) -> Event:
    payload = {"text": f"Room {number}.", "number": number, "metadata": {"third": number % 3}}
    return Event(space=SPACE, agent=AGENT, kind="agent.spoke", payload=payload)
