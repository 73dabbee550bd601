"""Use counters of entries, and the time of a space: what counts, what moves them, and what deletes them."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from recallog import Memory
from recallog.operations.parameters import At
from recallog_projections.models.long_term import tables, uses
from recallog_projections.tables import RowKey
from recallog_projections.views import builtin, clock
from recallog_schemas import Event, codec, limits, timestamps
from recallog_streams.ledgers.memory import MemoryLedger
from support.events import MOMENT, event, run
from support.folding import finish, folded

pytestmark = pytest.mark.models("long_term")

NOON = datetime.fromisoformat(MOMENT)


def at_minute(minute: int) -> datetime:
    return NOON + timedelta(minutes=minute)


def micros(minute: int) -> int:
    return timestamps.micros(at_minute(minute))


def keeps(id_: str, *, agent: str = "baker", **fields: Any) -> Event:
    audience = fields.pop("audience", None)
    payload = {"text": f"the text of {id_}", **fields}
    return event("memory.retained", id=id_, agent=agent, payload=payload, audience=audience, at=at_minute(0))


def accessed(counts: dict[str, int], *, agent: str = "baker", minute: int = 1, **lookups: int) -> Event:
    return event("memory.accessed", agent=agent, payload={"counts": counts, **lookups}, at=at_minute(minute))


def changes(kind: str, *, agent: str = "baker", **payload: Any) -> Event:
    return event(f"memory.{kind}", agent=agent, payload=payload, at=at_minute(2))


class Views:
    """The views of a ledger in which every event is twice; they must not depend on where batches end."""

    def __init__(self, events: Sequence[Event]) -> None:
        folds = []
        for records in (1, 2, 1_000):
            ledger = MemoryLedger(unique_ids=False, batch_records=records)
            for each in events:
                for _ in range(2):
                    ledger.append_bytes(codec.encode(each))
            folds.append(folded(ledger, builtin.projections()))
        self._projector, self._generation = folds[0]
        for table in (*uses.Uses.tables, *clock.ClockProjection.tables):
            rows = [self._rows(*fold, table.name) for fold in folds]
            assert all(other == rows[0] for other in rows)

    @staticmethod
    def _rows(projector: Any, generation: Any, table: str) -> dict[Any, bytes]:
        items = finish(projector.store.scan(generation, table, limit=1_000)).items
        return {item.row_key: item.data for item in items}

    def uses(self) -> dict[tuple[str, str], tuple[int, int]]:
        """Of the space "village": accesses, and when last, by owner and id."""
        ids = {
            tables.key_of(ref.offset): key[2]
            for key, data in self._rows(self._projector, self._generation, tables.IDS.name).items()
            if (ref := tables.IDS.decode(data)).status != tables.DUPLICATE
        }
        return {
            (owner, ids[key]): ((row := uses.ROWS.decode(data)).accesses, row.last_at)
            for (_, owner, key), data in self._rows(self._projector, self._generation, uses.ROWS.name).items()
        }

    def lookups(self, agent: str = "baker") -> tuple[int, int] | None:
        found = finish(
            self._projector.store.read(0, [RowKey(uses.AGENTS.name, "village", agent)], generation=self._generation)
        ).rows[0]
        return None if found is None else ((row := uses.AGENTS.decode(found)).lookups, row.hits)

    def now(self) -> int | None:
        rows = self._rows(self._projector, self._generation, clock.NOW.name)
        both = [clock.NOW.decode(found) for owner in ("", "baker") if (found := rows.get(("village", owner, "")))]
        newest = clock.newer(*both, *[None] * (2 - len(both)))
        return None if newest is None else newest.at


def test_reads_are_counted_with_the_time_of_the_newest_event() -> None:
    views = Views([keeps("a"), keeps("b"), accessed({"a": 2, "b": 1}, minute=5), accessed({"a": 3}, minute=1)])
    assert views.uses() == {("baker", "a"): (5, micros(1)), ("baker", "b"): (1, micros(5))}


def test_an_entry_that_was_never_read_has_no_row() -> None:
    assert Views([keeps("a"), accessed({"never": 1})]).uses() == {}


def test_a_read_before_the_entry_was_retained_does_not_count() -> None:
    assert Views([accessed({"a": 1}), keeps("a")]).uses() == {}


def test_reads_of_others_count_if_they_may_see_the_entry() -> None:
    events = [
        keeps("private"), keeps("told", audience=("miller",)),
        accessed({"private": 1, "told": 1}, agent="miller"), accessed({"private": 1, "told": 1}, agent="smith"),
    ]  # fmt: skip
    assert Views(events).uses() == {("baker", "told"): (1, micros(1))}


def test_reads_by_all_agents_count_for_shared_entries() -> None:
    sharing = event("space.configured", payload={"shared_kinds": ["memory.retained"]})
    assert Views([sharing, keeps("a"), accessed({"a": 4}, agent="stranger")]).uses() == {("baker", "a"): (4, micros(1))}


def test_reads_of_a_duplicate_count_nothing() -> None:
    events = [keeps("a", text="Rye."), keeps("b", text="Rye."), accessed({"b": 1})]
    assert Views(events).uses() == {}


@pytest.mark.parametrize("kind", ["retracted", "archived"])
def test_the_counts_of_an_ended_entry_remain_and_grow_no_more(kind: str) -> None:
    events = [keeps("a"), accessed({"a": 1}), changes(kind, entry="a"), accessed({"a": 1}, minute=3)]
    assert Views(events).uses() == {("baker", "a"): (1, micros(1))}


def test_an_update_keeps_the_counts() -> None:
    events = [keeps("a"), accessed({"a": 1}), changes("updated", entry="a", text="other"), accessed({"a": 1}, minute=3)]
    assert Views(events).uses() == {("baker", "a"): (2, micros(3))}


def test_counts_follow_an_entry_to_its_new_owner() -> None:
    events = [
        keeps("a"), keeps("b"), accessed({"a": 2, "b": 1}), changes("transferred", entries=["a"], to="miller"),
        accessed({"a": 1}, minute=3), accessed({"a": 1}, agent="miller", minute=4),
    ]  # fmt: skip
    assert Views(events).uses() == {("miller", "a"): (3, micros(4)), ("baker", "b"): (1, micros(1))}


@pytest.mark.parametrize("ended", [[], [changes("retracted", entry="a")]])
def test_an_erasure_deletes_the_counts(ended: list[Event]) -> None:
    events = [keeps("a"), keeps("b"), accessed({"a": 1, "b": 1}), *ended, changes("erased", entries=["a"])]
    assert Views([*events, accessed({"a": 1})]).uses() == {("baker", "b"): (1, micros(1))}


def test_an_erasure_leaves_the_counts_of_entries_that_are_retracted_with_it() -> None:
    events = [keeps("a"), keeps("b", sources=["a"]), accessed({"a": 1, "b": 1}), changes("erased", entries=["a"])]
    assert Views(events).uses() == {("baker", "b"): (1, micros(1))}


def test_a_refused_erasure_deletes_nothing() -> None:
    events = [keeps("a"), accessed({"a": 1}), changes("erased", agent="miller", entries=["a"])]
    assert Views(events).uses() == {("baker", "a"): (1, micros(1))}


def test_lookups_are_counted_by_agent() -> None:
    events = [accessed({}, hits=2, misses=1), accessed({}, misses=1), accessed({}, agent="miller", hits=1)]
    views = Views(events)
    assert (views.lookups("baker"), views.lookups("miller"), views.lookups("smith")) == ((4, 2), (1, 1), None)


def test_an_event_without_lookups_writes_none() -> None:
    assert Views([keeps("a"), accessed({"a": 1})]).lookups() is None


def test_counts_stop_at_the_largest_integer() -> None:
    most = limits.INTEGER_MAX
    events = [keeps("a"), accessed({"a": most}, hits=most, misses=most), accessed({"a": 2}, hits=1, minute=3)]
    views = Views(events)
    assert views.uses() == {("baker", "a"): (most, micros(3))}
    assert views.lookups() == (most, most)


# The time of an agent.


def test_now_is_the_time_of_the_newest_event_in_the_ledger_and_not_the_latest_time() -> None:
    spoke = [event(at=at_minute(minute)) for minute in (0, 9, 4)]
    assert Views([*spoke, event(space="city", at=at_minute(7))]).now() == micros(4)


def test_bookkeeping_moves_now() -> None:
    assert Views([event(at=at_minute(0)), event("clock.ticked", payload={}, at=at_minute(5))]).now() == micros(5)


@pytest.mark.models("beliefs")
def test_events_that_the_memory_writes_by_itself_do_not_move_now() -> None:
    trigger = f"retraction.due/{'0' * 32}/{'1' * 32}"
    done = event("reaction.done", payload={"trigger": trigger, "events": 0}, causation_id=trigger, at=at_minute(8))
    belief = event("agent.reflected", causation_id=f"reflection.due/{'0' * 32}/3", at=at_minute(9))
    assert Views([event(at=at_minute(0)), accessed({}, minute=7), done, belief]).now() == micros(0)


def test_an_agent_has_no_time_before_its_first_event() -> None:
    assert Views([accessed({"a": 1})]).now() is None


# Time travel.


async def _uses_as_of(memory: Memory, as_of: Any) -> tuple[int | None, datetime | None]:
    """The accesses of the entry "a", and the time of its owner."""

    async def ask(reading: Any) -> tuple[int | None, datetime | None]:
        use_key = RowKey(uses.ROWS.name, "village", "baker", tables.key_of(0))
        snapshot = await reading.snapshot([use_key, *clock.keys("village", "baker")])
        counted = snapshot.row(uses.ROWS, *use_key[1:])
        return counted and counted.accesses, snapshot.time_of("village", "baker")

    return await memory._access.of_space("village", At(as_of=as_of) if as_of else At(), ask)


def test_as_of_counts_and_time_are_those_of_then() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            first = await memory.publish(keeps("a"))
            second = await memory.publish(accessed({"a": 2}, minute=1))
            await memory.publish(event(at=at_minute(30)))
            await memory.publish(accessed({"a": 1}, minute=31))
            assert await _uses_as_of(memory, None) == (3, at_minute(30))
            assert await _uses_as_of(memory, first) == (None, at_minute(0))
            assert await _uses_as_of(memory, second) == (2, at_minute(0))
            assert await _uses_as_of(memory, at_minute(10)) == (2, at_minute(0))

    run(work())


def test_as_of_a_time_before_an_erasure_the_counts_are_erased_too() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many([keeps("a"), accessed({"a": 2})])
            before = await memory.publish(event(at=at_minute(30)))
            await memory.publish(changes("erased", entries=["a"]))
            assert await _uses_as_of(memory, before) == (None, at_minute(30))

    run(work())
