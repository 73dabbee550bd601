"""The history of a space: all its events, in pages, by author, kind, session, time and words."""

from typing import Any

import pytest

from recallog import Event, Memory, Position
from recallog.composition import assemble
from recallog_projections.stores.memory import MemoryStore
from recallog_schemas import limits
from recallog_schemas.errors import OutOfRange
from recallog_schemas.views import HistoryPage
from recallog_streams.ledgers.memory import MemoryLedger
from support.events import event, numbered, run
from support.partitioned import PartitionedLedger


def history_of(*events: Event, **given: Any) -> HistoryPage:
    async def work() -> HistoryPage:
        async with Memory.in_memory() as memory:
            await memory.publish_many(events)
            return await memory.history("village", **given)

    return run(work())


def texts(page: HistoryPage) -> list[str]:
    return [each.text for each in page.items]


def test_a_history_has_every_event_oldest_first_also_private_ones_and_bookkeeping() -> None:
    page = history_of(
        event(payload={"text": "one"}),
        event("agent.thought", agent="miller", payload={"text": "two"}),
        event(payload={"text": "three"}, audience=[]),
        event("agent.configured", payload={"window": 3}),
        event(space="castle", payload={"text": "elsewhere"}),
    )
    assert texts(page) == ["one", "two", "three", ""]
    assert page.older is None
    assert page.known


def test_pages_lead_from_the_newest_event_to_the_oldest() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many([each for n in range(100) for each in (*numbered(1, first=n), event(space="x"))])
            found: list[str] = []
            before: Position | None = None
            sizes = []
            while True:
                page = await memory.history("village", limit=30, before=before)
                found, before = texts(page) + found, page.older
                sizes.append(len(page.items))
                if before is None:
                    break
            assert found == [f"village {n}" for n in range(100)]
            assert sizes == [30, 30, 30, 10]

    run(work())


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"author": "miller"}, ["Flour, please."]),
        ({"kinds": ["agent.thought"]}, ["Is it late?"]),
        ({"session": "monday"}, ["BREAD!"]),
        ({"containing": "bread"}, ["BREAD!"]),
        ({"containing": "<.*>"}, []),
        ({"since": "2026-03-02T00:00:00Z"}, ["Flour, please.", "Is it late?"]),
        ({"until": "2026-03-02T00:00:00Z"}, ["BREAD!"]),
        ({"start": "0:1", "before": "0:2"}, ["Flour, please."]),
    ],
)
def test_events_are_selected(given: dict[str, Any], shown: list[str]) -> None:
    page = history_of(
        event(payload={"text": "BREAD!"}, session="monday", at="2026-03-01T12:00:00Z"),
        event(payload={"text": "Flour, please."}, agent="miller", at="2026-03-02T12:00:00Z"),
        event("agent.thought", payload={"text": "Is it late?"}, at="2026-03-03T12:00:00Z"),
        **given,
    )
    assert texts(page) == shown


def test_a_page_is_searched_in_a_part_of_the_ledger_and_says_where_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HISTORY_RECORDS", 40)
    page = history_of(event(payload={"text": "Needle"}), *numbered(100), limit=5, containing="needle")
    assert texts(page) == []
    assert page.older == Position(0, 61)


def test_a_text_is_that_which_the_space_declares_for_the_kind() -> None:
    declared = {"kinds": {"oven.heated": {"text": "{degrees} degrees", "importance": 0.5}}}
    page = history_of(
        event("space.configured", payload=declared),
        event("oven.heated", payload={"degrees": 250}),
        kinds=["oven.heated"],
    )
    assert texts(page) == ["250 degrees"]


def test_a_record_that_is_no_event_is_left_out() -> None:
    async def work() -> None:
        ledger = MemoryLedger()
        await ledger.append([event(payload={"text": "Bread!"})])
        ledger._values.append(("village", b"{not an event"))
        ledger._appended.append(0)
        async with Memory(assemble(ledger, lambda namespace: MemoryStore())) as memory:
            await memory.publish(event(payload={"text": "Flour!"}))
            assert texts(await memory.history("village")) == ["Bread!", "Flour!"]

    run(work())


def test_an_unknown_space_has_an_empty_history() -> None:
    page = history_of(event(space="castle"))
    assert (page.items, page.older, page.known) == ((), None, False)
    assert page.format() == "(nothing)"


@pytest.mark.parametrize("path", ["start", "before"])
def test_a_position_of_another_partition_is_refused(path: str) -> None:
    async def work() -> None:
        components = assemble(PartitionedLedger(4), lambda namespace: MemoryStore())
        async with Memory(components) as memory:
            await memory.publish(event(space="village-1"))
            other: Any = await memory.publish(event(space="village-2"))
            with pytest.raises(OutOfRange, match="lies in partition 1, not in 2") as raised:
                await memory.history("village-1", **{path: other})
            assert raised.value.path == path

    run(work())
