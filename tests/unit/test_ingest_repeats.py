"""An ingest into a ledger that stores repeats, as Kafka does: the views know which events are repeats."""

from collections.abc import Sequence

import pytest

from recallog import Event, Memory, Position
from recallog.extending import MemoryLedger, MemoryStore, assemble
from recallog_schemas.errors import Rebuilding, StorageUnavailable
from recallog_service.formats.item import Item
from recallog_service.ingest import Ingested, ingest
from support.events import event, run

NOON, LATER = "2026-03-01T12:00:00Z", "2026-03-02T08:00:00Z"


def repeating() -> Memory:
    ledger = MemoryLedger(unique_ids=False)
    return Memory(assemble(ledger, lambda namespace: MemoryStore()))


async def ingested(memory: Memory, events: Sequence[Event]) -> Ingested:
    return await ingest(memory, [Item(number, event=each) for number, each in enumerate(events, 1)], batch=2)


def exported(*times: str) -> list[Event]:
    return [event(id=f"e-{n}", at=at, payload={"text": f"line {n}"}) for n, at in enumerate(times)]


def test_repeats_are_known_and_those_at_another_time_are_reported() -> None:
    async def work() -> None:
        async with repeating() as memory:
            first = await ingested(memory, exported(NOON, NOON, NOON))
            assert (first.added, first.known, first.other_times) == (3, 0, 0)
            again = await ingested(memory, exported(NOON, LATER, NOON, LATER))
            assert (again.added, again.known, again.other_times) == (1, 3, 1)
            assert [(found.id, found.position) for found in again.first_other_times] == [("e-1", Position(0, 1))]
            texts = [shown.text for shown in (await memory.episodic("village", "baker")).memories]
            assert texts == ["line 0", "line 1", "line 2", "line 3"]

    run(work())


def test_an_event_twice_in_a_file_at_different_times_is_known_and_reported() -> None:
    async def work() -> None:
        async with repeating() as memory:
            found = await ingested(memory, [*exported(NOON), *exported(LATER)])
            assert (found.added, found.known, found.other_times) == (1, 1, 1)

    run(work())


def test_a_conflict_is_not_reported_as_an_event_at_another_time() -> None:
    async def work() -> None:
        async with repeating() as memory:
            await ingested(memory, exported(NOON))
            other = event(id="e-0", at=LATER, payload={"text": "another text"})
            assert (await ingested(memory, [other])).other_times == 0
            assert [letter.reason for letter in await memory.admin.dead_letters()] == ["conflict"]

    run(work())


@pytest.mark.parametrize("error", [Rebuilding("no views yet"), StorageUnavailable("the store is down")])
def test_an_ingest_needs_no_views(error: Exception) -> None:
    class Unreadable(MemoryStore):
        async def pointer(self, *_: object) -> None:  # type: ignore[override]
            raise error

        read = read_current = pointer  # type: ignore[assignment]

    async def work() -> None:
        async with Memory(assemble(MemoryLedger(unique_ids=False), lambda namespace: Unreadable())) as memory:
            found = await ingested(memory, exported(NOON, NOON, NOON))
            assert (found.added, found.known) == (3, 0)

    run(work())


def copies(*texts: str, session: str) -> list[Item]:
    said = [
        event("user.injected", id=f"e-{n}", session=session, payload={"text": text}) for n, text in enumerate(texts)
    ]
    return [Item(number, event=each, is_copied=True) for number, each in enumerate(said, 1)]


def test_a_copied_record_is_known_in_any_session_and_its_rest_is_added() -> None:
    async def work() -> None:
        async with repeating() as memory:
            await ingest(memory, copies("Why is", "Look.", session="monday"), batch=10)
            found = await ingest(memory, copies("Why is the oven cold?", "Look.", "Thanks.", session="fork"), batch=10)
            assert (found.added, found.known, found.problems) == (2, 2, ())
            again = await ingest(memory, copies("Why is the oven cold?", "Look.", "Thanks.", session="fork"), batch=10)
            assert (again.added, again.problems, list(await memory.admin.dead_letters())) == (0, (), [])
            texts = [shown.text for shown in (await memory.episodic("village", "baker")).memories]
            assert texts == ["Why is", "Look.", " the oven cold?", "Thanks."]

    run(work())


def test_a_record_with_other_content_under_the_id_of_a_copied_one_is_refused() -> None:
    async def work() -> None:
        async with repeating() as memory:
            await ingest(memory, copies("Look.", session="monday"), batch=10)
            found = await ingest(memory, copies("Wait.", session="monday"), batch=10, keep_going=True)
            assert (found.added, len(found.problems), list(await memory.admin.dead_letters())) == (0, 1, [])

    run(work())
