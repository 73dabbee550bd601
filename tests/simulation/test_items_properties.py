"""Random histories of items compared with a brute-force search of the ledger's bytes; writers that race."""

import asyncio
import json
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog import Conflict, Memory
from recallog.models.items import queries as queries
from recallog.models.working import queries as working
from recallog.reading.readings import SpaceReading
from recallog_projections.models.items import projection as items
from recallog_projections.stores.store import Generation
from recallog_projections.tables import LogName
from recallog_schemas import limits
from recallog_schemas.models.items import limits as items_limits
from recallog_schemas.timestamps import micros
from recallog_streams.projector import Projector
from support.folding import about, all_rows, finish, folded, ledger_at, reading_of
from support.items_oracle import QUEUE, Bounds, Shelf, shelves

pytestmark = pytest.mark.models("prompt")

SEEDS = st.integers(0, 2**32)
BATCHES = st.sampled_from((1, 3, 1000))
BOUNDS = Bounds(blocks=3, keys=3, chars=40, elements=3, bytes=150, daily=120, lengthy=70, bullet=6, memory=60)
"""Small, so that random changes meet every limit."""
NAMESPACES = (["working"], ["session", "x1"], ["session", "x2"], ["notes"], ["notes", "old"], ["notes/old"], ["%"])
KEYS = ("a", "b", "c", "d/e", "%2F", QUEUE)
DOCUMENTS = ("MEMORY.md", "memory/2026-03-01.md", "memory/2026-03-01.txt", "memory/today.md", "USER.md")
FACTS = ("- Bread", "- BREAD!", "- sacks\n- bread, nine loaves", "plain\n# Bread", "- \u017fack\n- SACK")
VALUES: Sequence[Any] = (
    None, True, 7, "", "Bread!", "x" * 60, "ü" * 39, {"owes": [9, {"b": 1, "a": None}]}, {"x": "y" * 50}, [], ["one"],
    ["x" * 60, 2, "three"], [1, 2, 3, 4, 5],
)  # fmt: skip
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@contextmanager
def small() -> Iterator[None]:
    """The fold with the limits of `BOUNDS`."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(limits, "WORKING_BLOCKS_MAX", BOUNDS.blocks)
        patched.setattr(items_limits, "SCRATCHPAD_KEYS_MAX", BOUNDS.keys)
        patched.setattr(items_limits, "SCRATCHPAD_CHARS_MAX", BOUNDS.chars)
        patched.setattr(items_limits, "QUEUE_VALUES_MAX", BOUNDS.elements)
        patched.setattr(limits, "ITEM_VALUE_BYTES_MAX", BOUNDS.bytes)
        patched.setattr(items_limits, "DAILY_CHARS_MAX", BOUNDS.daily)
        patched.setattr(items_limits, "DAILY_CHARS_UNCOMPACTED", BOUNDS.lengthy)
        patched.setattr(items_limits, "DAILY_BULLET_CHARS", BOUNDS.bullet)
        patched.setattr(items_limits, "MEMORY_DOCUMENT_CHARS", BOUNDS.memory)
        yield


def history(rng: random.Random, events: int) -> list[bytes]:
    """Changes of two agents in two spaces, some of them delivered twice, and events that change nothing."""
    made: list[bytes] = []
    for number in range(events):
        if made and rng.random() < 0.1:
            made.append(rng.choice(made))
            continue
        what = rng.choices(("put", "appended", "deleted", "moved", "drained", "spoke"), (8, 8, 2, 3, 6, 1))[0]
        in_queue = what in ("appended", "drained") and rng.random() < 0.7
        payload: dict[str, Any] = {
            "namespace": ["session", "x1"] if in_queue else rng.choice(NAMESPACES),
            "key": QUEUE if in_queue else rng.choice(KEYS),
        }
        if rng.random() < 0.25 and not in_queue:
            payload |= {"namespace": ["workspace"], "key": rng.choice(DOCUMENTS)}
        if what == "put":
            payload["value"] = rng.choice(VALUES)
        elif what == "appended":
            payload["text"] = rng.choice(("", "x", "Bread! ", "y" * 30))
            if rng.random() < 0.5:
                payload |= {"text": rng.choice(FACTS), "block": rng.random() < 0.9}
        elif what == "moved":
            payload["to"] = rng.choice(KEYS)
        elif what == "drained":
            payload["upto"] = rng.randrange(20)
        if rng.random() < 0.3 and what != "drained":
            payload["base"] = _base(rng, made)
        event = {
            "envelope": 1,
            "id": f"e-{number}",
            "space": rng.choice(("village", "village", "city")),
            "agent": rng.choice(("baker", "miller")),
            "kind": f"item.{what}" if what != "spoke" else "agent.spoke",
            "at": (NOON + timedelta(seconds=rng.randrange(-500, 500))).isoformat().replace("+00:00", "Z"),
            "payload": payload if what != "spoke" else {"text": "Bread!"},
        }
        made.append(json.dumps(event).encode())
    return made


def _base(rng: random.Random, made: Sequence[bytes]) -> int | str:
    """A version, or the digest of a value that some item may have."""
    if rng.random() < 0.7 or not made:
        return rng.randrange(5)
    shelf = rng.choice([*shelves(made, BOUNDS).values()] or [Shelf()])
    return rng.choice([item.sha256 for item in shelf.items.values()] or ["0" * 64])


def check(projector: Projector, generation: Generation, values: Sequence[bytes], until: str = "9999") -> None:
    """Every item, key list, order and refusal is that of the oracle, by rows and by queries."""
    reading = reading_of(projector, generation)
    expected = shelves(values, BOUNDS, until)
    rows = all_rows(projector, generation)
    assert len(rows[items.ROWS.name]) == sum(len(shelf.items) for shelf in expected.values())
    listed = [(names, shelf) for shelf in expected.values() for names in {names for names, _ in shelf.items}]
    assert len(rows[items.NAMESPACES.name]) == sum(names in (("working",), *_pads()) for names, _ in listed)
    assert len(rows[items.NEWEST.name]) == sum(
        len(names) + 1 for shelf in expected.values() for names, _ in shelf.items
    )
    for (space, agent), shelf in expected.items():
        _check_agent(reading, space, agent, shelf)


def _pads() -> list[tuple[str, ...]]:
    return [("session", "x1"), ("session", "x2")]


def _check_agent(reading: SpaceReading, space: str, agent: str, shelf: Shelf) -> None:
    for (names, key), item in shelf.items.items():
        found = finish(queries.get(about(reading, space, agent), names, key)).item
        assert found is not None, (names, key)
        assert (found.value, found.version, found.sha256) == (item.value, item.version, item.sha256)
        assert (found.position.offset, micros(found.at)) == (item.offset, micros(datetime.fromisoformat(item.at)))
    for namespace in ([], *NAMESPACES):
        by_change = _pages(reading, space, agent, namespace, newest_first=True)
        assert by_change == shelf.newest(namespace), namespace
        by_key = _pages(reading, space, agent, namespace, newest_first=False)
        assert sorted(by_key) == sorted(by_change)
        assert by_key == sorted(by_key, key=lambda each: items.path_of(*each))
    for session, names in ((None, ("working",)), ("x1", ("session", "x1"))):
        blocks = finish(working.blocks(about(reading, space, agent), None, session)).blocks
        assert [block.label for block in blocks] == shelf.keys(names)
        assert [block.content for block in blocks] == [shelf.items[names, key].value for key in shelf.keys(names)]
    log = LogName(items.REFUSALS.name, space, agent)
    tail = finish(reading.snapshot(logs=[(log, limits.LOG_EVENTS_KEPT)])).tail(items.REFUSALS, space, agent)
    assert [(each.event, each.why) for each in items.REFUSALS.decode_all(tail.entries)] == shelf.refused


def _pages(
    reading: SpaceReading, space: str, agent: str, namespace: Sequence[str], *, newest_first: bool
) -> list[tuple[tuple[str, ...], str]]:
    found, cursor = [], None
    while True:
        page = finish(queries.page(about(reading, space, agent), namespace, 4, cursor, newest_first=newest_first))
        found += [(item.namespace, item.key) for item in page.items]
        cursor = page.next
        if cursor is None:
            return found


@settings(max_examples=60, deadline=None)
@given(SEEDS, BATCHES, st.booleans())
def test_items_of_random_histories_are_those_of_the_oracle(seed: int, batch_records: int, unique_ids: bool) -> None:
    with small():
        values = history(random.Random(seed), 150)
        kept = list(dict.fromkeys(values)) if unique_ids else values
        ledger = ledger_at(kept, unique_ids=unique_ids, batch_records=batch_records)
        check(*folded(ledger), kept)


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_the_rows_are_the_same_in_batches_of_one_and_of_a_thousand(seed: int) -> None:
    with small():
        values = history(random.Random(seed), 200)
        found = [all_rows(*folded(ledger_at(values, unique_ids=False, batch_records=records))) for records in (1, 1000)]
        assert found[0] == found[1]


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.integers(-500, 500))
def test_the_past_of_random_histories_is_that_of_the_oracle(seed: int, seconds: int) -> None:
    until = NOON + timedelta(seconds=seconds)
    with small():
        values = history(random.Random(seed), 120)
        past = folded(ledger_at(values, unique_ids=False), remember_until=until)
        check(*past, values, until.isoformat().replace("+00:00", "Z"))


def test_writers_that_race_with_one_base_lose_no_update(tmp_path: Path) -> None:
    """Each of three writers adds 15 to a counter, one at a time, and begins again after a conflict."""

    async def add(memory: Memory, agent: str) -> int:
        conflicts = 0
        for _ in range(15):
            while True:
                found = (await memory.items.get("village", agent, "counts", "sacks")).item
                value, version = (found.value, found.version) if found is not None else (0, 0)
                try:
                    await memory.items.put("village", agent, "counts", "sacks", value + 1, base=version)
                except Conflict:
                    conflicts += 1
                else:
                    break
        return conflicts

    async def work() -> None:
        memories = [Memory.open(tmp_path) for _ in range(3)]
        conflicts = await asyncio.gather(*(add(memory, "baker") for memory in memories))
        found = (await memories[0].items.get("village", "baker", "counts", "sacks")).item
        assert found is not None
        assert (found.value, found.version) == (45, 45)
        assert sum(conflicts) > 0
        for memory in memories:
            await memory.close()

    asyncio.run(work())
