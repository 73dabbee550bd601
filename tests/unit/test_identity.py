"""Repeated events: the views count an id once if the ledger stores it more than once."""

import random
from typing import Any

import msgspec
import pytest

from recallog_projections.rows import Rows
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.store import ReadResult
from recallog_projections.views import builtin
from recallog_schemas import codec, repeats
from recallog_schemas.errors import ViewsTooNew
from recallog_streams import dead_letters, generations, identity
from recallog_streams.identity import BUCKET_EVENTS, BUCKETS, SIZES, Identity, IdTaken, bucket_of, offset_in
from recallog_streams.projector import Projector
from support.events import event
from support.folding import finish, folded, ledger_at, rows_of


def test_repeats_are_detected_exactly_over_thousands_of_ids_however_buckets_are_split() -> None:
    dice = random.Random(7)
    rows, known_ids = Rows(Identity.tables, complete=True), Identity()
    known: dict[tuple[str, str], tuple[int, str]] = {}
    for offset in range(6_000):
        space, id_ = dice.choice("ab"), f"id-{dice.randrange(3_000)}"
        text = dice.choice(["one", "two"]) if dice.random() < 0.1 else "one"
        sent = event(space=space, id=id_, at="2026-03-01T12:00:00Z", payload={"text": text})
        first = known.get((space, id_))
        if first is not None and first[1] != text:
            with pytest.raises(IdTaken) as conflict:
                known_ids.first_seen(rows, sent, offset)
            assert conflict.value.first == first[0]
        else:
            assert known_ids.first_seen(rows, sent, offset) == (first is None)
        known.setdefault((space, id_), (offset, text))
    sizes = {space: rows.get(SIZES, space) for space in "ab"}
    for space, size in sizes.items():
        assert size is not None
        assert size.events == sum(found == space for found, _ in known)
        assert size.buckets >= size.events / BUCKET_EVENTS - 1


def fold(*values: bytes) -> tuple[list[int], list[str]]:
    """The offsets of remembered events, and the dead letters."""
    projector, generation = folded(ledger_at(values, unique_ids=False))
    own = rows_of(projector.store, generation, "episodic.own").values()
    letters = finish(dead_letters.all_dead_letters(projector.store, generation))
    return [msgspec.msgpack.decode(data)[0] for data in own], [f"{p.offset} {p.reason}: {p.detail}" for p in letters]


SAID = codec.encode(event(id="debt-1", payload={"text": "nine sacks"}))


def test_a_repeat_is_skipped() -> None:
    assert fold(SAID, SAID, SAID) == ([0], [])


def test_a_repeat_written_with_other_white_space_is_skipped() -> None:
    assert fold(SAID, SAID.replace(b'":', b'" : ')) == ([0], [])


def test_a_repeat_at_another_time_is_skipped_and_the_first_time_counts() -> None:
    later = codec.encode(event(id="debt-1", at="2031-01-01T00:00:00Z", payload={"text": "nine sacks"}))
    assert fold(SAID, later, SAID) == ([0], [])


def test_the_same_id_with_other_content_becomes_a_dead_letter_and_the_first_event_remains() -> None:
    other = SAID.replace(b"nine", b"ten")
    assert fold(SAID, other, SAID) == ([0], ["1 conflict: its id names another event, at 0:0"])


def test_the_same_id_in_another_space_is_another_event() -> None:
    remembered, letters = fold(SAID, SAID.replace(b'"village"', b'"hamlet"'))
    assert (sorted(remembered), letters) == ([0, 1], [])


def test_an_entry_takes_thirty_bytes() -> None:
    values = [codec.encode(event(id=f"id-{n}")) for n in range(500)]
    projector, generation = folded(ledger_at(values, unique_ids=False))
    buckets = rows_of(projector.store, generation, BUCKETS.name).values()
    assert sum(len(BUCKETS.decode(data).entries) for data in buckets) == 500 * 30


def test_an_id_is_found_at_the_offset_of_its_first_record() -> None:
    values = [codec.encode(event(id=f"id-{n % 300}", at="2026-03-01T12:00:00Z")) for n in range(500)]
    projector, generation = folded(ledger_at(values, unique_ids=False))
    size = SIZES.decode(rows_of(projector.store, generation, SIZES.name)["village", "", ""])
    buckets = rows_of(projector.store, generation, BUCKETS.name)

    def found(id_: str) -> int | None:
        data = buckets.get(bucket_of("village", id_, size)[1:])
        return offset_in(BUCKETS.decode(data) if data else None, id_)

    assert [found(f"id-{n}") for n in range(300)] == list(range(300))
    assert found("never-said") is None


class CountingStore(MemoryStore):
    """Counts the reads of a projector."""

    reads = 0

    async def read(self, *asked: Any, **named: Any) -> ReadResult:
        self.reads += 1
        return await super().read(*asked, **named)


def test_a_batch_of_new_ids_is_fetched_in_a_few_reads_however_many_buckets_it_splits() -> None:
    store = CountingStore()
    values = [codec.encode(event(id=f"id-{n}")) for n in range(4_000)]
    ledger = ledger_at(values, unique_ids=False, batch_records=2_000)
    projector = Projector(ledger, store, [])
    generation = finish(store.create(projector.new_generation(0, 0))).building
    assert generation is not None
    finish(projector.catch_up(generation, len(values)))
    size = SIZES.decode(rows_of(store, generation, SIZES.name)["village", "", ""])
    assert size.buckets >= 4_000 / BUCKET_EVENTS - 1
    assert store.reads <= 4


def test_views_with_entries_of_an_older_version_are_rebuilt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until version 2 the time was content, so that an event published again was a dead letter."""
    later = codec.encode(event(id="debt-1", at="2031-01-01T00:00:00Z", payload={"text": "nine sacks"}))
    ledger, store = ledger_at([SAID, later], unique_ids=False), MemoryStore()
    newest = identity.VERSION
    with monkeypatch.context() as older:
        older.setattr(identity, "VERSION", 1)
        older.setattr(repeats, "content_of", codec.encode)
        old = finish(generations.current(Projector(ledger, store, builtin.projections()), 0))
    assert [letter.reason for letter in finish(dead_letters.all_dead_letters(store, old))] == ["conflict"]
    new = finish(generations.current(Projector(ledger, store, builtin.projections()), 0))
    assert new.code != old.code
    assert finish(dead_letters.all_dead_letters(store, new)) == []
    with monkeypatch.context() as older:
        older.setattr(identity, "VERSION", 1)
        with pytest.raises(ViewsTooNew, match=f"the identity of events: {newest}, here 1"):
            finish(generations.current(Projector(ledger, store, builtin.projections()), 0))


def test_views_of_a_ledger_with_unique_ids_do_not_depend_on_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = ledger_at([SAID])
    before = Projector(ledger, MemoryStore(), builtin.projections()).fold.code
    monkeypatch.setattr(identity, "VERSION", 99)
    assert Projector(ledger, MemoryStore(), builtin.projections()).fold.code == before
