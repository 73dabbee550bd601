"""The contract of ledgers. An adapter's test class inherits one of the two suites and implements `make`."""

import asyncio
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from recallog_schemas import Event, Position, codec, limits
from recallog_schemas.errors import IdConflict, InvalidEvent, RecallogError
from recallog_streams.ledgers.ledger import Batch, Ledger, record_at
from recallog_testing.running import one_loop, run
from recallog_testing.sample_events import event, numbered


async def batches(ledger: Ledger, start: int, until: int, space: str | None = None) -> list[Batch]:
    return [batch async for batch in ledger.read(0, start, until, space=space)]


def read(ledger: Ledger, start: int = 0, until: int | None = None, space: str | None = None) -> list[Batch]:
    """All batches up to `until`, or to the ledger's end."""
    return run(batches(ledger, start, end(ledger) if until is None else until, space))


def append_all(ledger: Ledger, events: list[Event]) -> None:
    """Append more events than one call accepts."""
    for start in range(0, len(events), limits.APPEND_EVENTS_MAX):
        run(ledger.append(events[start : start + limits.APPEND_EVENTS_MAX]))


def offsets(found: list[Batch]) -> list[int]:
    return [offset for batch in found for offset, _ in batch.records]


def events_in(ledger: Ledger, space: str | None = None) -> list[Event]:
    return [codec.decode(data) for batch in read(ledger, space=space) for _, data in batch.records]


def times(ledger: Ledger, space: str | None = None) -> list[int]:
    """The time at which each record was first appended."""
    return [each for batch in read(ledger, space=space) for each in batch.appended or ()]


def end(ledger: Ledger) -> int:
    (found,) = run(ledger.ends())
    return found


class LedgerContract(ABC):
    """Order, bounds and durability; for ledgers of one partition."""

    @abstractmethod
    def make(self, folder: Path) -> Ledger:
        """A new, empty ledger."""

    @pytest.fixture
    def ledger(self, tmp_path: Path) -> Iterator[Ledger]:
        with one_loop():
            ledger = self.make(tmp_path)
            yield ledger
            run(ledger.close())

    def test_a_new_ledger_ends_at_offset_zero(self, ledger: Ledger) -> None:
        assert run(ledger.ends()) == [0]

    def test_the_end_read_without_a_thread_equals_the_end(self, ledger: Ledger) -> None:
        run(ledger.append(numbered(3)))
        assert ledger.end_here(0) in (3, None)

    def test_records_read_without_a_thread_are_the_first_batch(self, ledger: Ledger) -> None:
        run(ledger.append(numbered(3)))
        found = ledger.read_here(0, 1, 3)
        assert found is None or [found] == read(ledger, 1, 3)

    def test_an_event_that_was_changed_to_no_event_is_refused_and_nothing_is_written(self, ledger: Ledger) -> None:
        changed = event()
        changed.payload["mood"] = float("nan")
        with pytest.raises(InvalidEvent, match=r"^payload\.mood: NaN"):
            run(ledger.append([changed]))
        with pytest.raises(InvalidEvent, match=r"^2\.payload\.mood: NaN") as raised:
            run(ledger.append([*numbered(2), changed]))
        assert raised.value.path == "2.payload.mood"
        assert end(ledger) == 0

    def test_append_returns_positions_in_the_order_of_the_events(self, ledger: Ledger) -> None:
        assert run(ledger.append(numbered(3))) == [Position(0, 0), Position(0, 1), Position(0, 2)]

    def test_appending_continues_at_the_end_of_the_ledger(self, ledger: Ledger) -> None:
        run(ledger.append(numbered(3)))
        assert run(ledger.append(numbered(1, first=3))) == [Position(0, 3)]

    def test_four_events_end_at_four(self, ledger: Ledger) -> None:
        run(ledger.append(numbered(4)))
        assert run(ledger.ends()) == [4]

    def test_of_six_events_three_are_read_from_offset_three(self, ledger: Ledger) -> None:
        run(ledger.append(numbered(6)))
        assert offsets(read(ledger, 3)) == [3, 4, 5]

    def test_a_range_includes_start_and_excludes_until(self, ledger: Ledger) -> None:
        run(ledger.append(numbered(6)))
        assert offsets(read(ledger, 2, 4)) == [2, 3]

    def test_an_empty_range_has_no_records(self, ledger: Ledger) -> None:
        run(ledger.append(numbered(2)))
        assert read(ledger, 1, 1) == []

    def test_an_event_is_read_as_it_was_appended(self, ledger: Ledger) -> None:
        sent = event(
            turn=42, session="s1", audience=("miller",), payload={"text": "Überraschung 🎂", "n": [1, 2.5, None]}
        )
        run(ledger.append([sent]))
        assert events_in(ledger) == [sent]

    def test_appends_and_reads_at_the_same_time_see_each_record_once(self, ledger: Ledger) -> None:
        sent = numbered(200)

        async def work() -> None:
            appending = [asyncio.create_task(ledger.append([each])) for each in sent]
            while not all(each.done() for each in appending):
                await asyncio.sleep(0)
                (until,) = await ledger.ends()
                assert offsets(await batches(ledger, 0, until)) == [*range(until)]
            assert sorted([at.offset for each in appending for at in await each]) == [*range(len(sent))]

        run(work())
        assert sorted(each.id for each in events_in(ledger)) == sorted(each.id for each in sent)

    def test_appending_nothing_writes_nothing(self, ledger: Ledger) -> None:
        assert run(ledger.append([])) == []
        assert end(ledger) == 0

    @pytest.mark.parametrize("space", [None, "village", "nobody.was.here"])
    def test_batches_follow_one_another_from_start_to_until(self, ledger: Ledger, space: str | None) -> None:
        run(ledger.append([*numbered(3), *numbered(4, space="city")]))
        found = read(ledger, 1, 6, space)
        assert [batch.start for batch in found] + [6] == [1] + [batch.next for batch in found]

    def test_a_read_of_one_space_leaves_out_the_others(self, ledger: Ledger) -> None:
        village, city = numbered(5), numbered(5, space="city")
        run(ledger.append([sent for pair in zip(village, city, strict=True) for sent in pair]))
        assert events_in(ledger, "city") == city

    def test_an_unknown_space_has_no_records(self, ledger: Ledger) -> None:
        run(ledger.append(numbered(2)))
        assert offsets(read(ledger, space="nobody.was.here")) == []

    @pytest.mark.parametrize("space", [None, "village"])
    def test_more_records_than_a_batch_holds_come_in_several_batches(self, ledger: Ledger, space: str | None) -> None:
        many = limits.READ_BATCH_RECORDS + 1
        append_all(ledger, numbered(many))
        found = read(ledger, space=space)
        assert len(found) > 1
        assert max(len(batch.records) for batch in found) <= limits.READ_BATCH_RECORDS
        assert offsets(found) == list(range(many))

    def test_exactly_one_batch_of_records_is_read_completely(self, ledger: Ledger) -> None:
        append_all(ledger, numbered(limits.READ_BATCH_RECORDS))
        found = read(ledger)
        assert (len(offsets(found)), found[-1].next) == (limits.READ_BATCH_RECORDS, limits.READ_BATCH_RECORDS)

    @pytest.mark.parametrize("space", [None, "village"])
    def test_large_records_come_in_batches_of_bounded_bytes(self, ledger: Ledger, space: str | None) -> None:
        large = [event(turn=n, payload={"text": "x" * 200 * 1024}) for n in range(90)]
        run(ledger.append([*numbered(3, space="city"), *large[:45], *numbered(3, space="city", first=3), *large[45:]]))
        found = read(ledger, space=space)
        sizes = [[len(data) for _, data in batch.records] for batch in found]
        assert max(sum(batch) for batch in sizes) <= limits.READ_BATCH_BYTES
        assert all(sum(batch) + following[0] > limits.READ_BATCH_BYTES for batch, following in pairwise(sizes))
        assert [batch.start for batch in found[1:]] == [batch.next for batch in found[:-1]]
        assert [sent for sent in events_in(ledger, space) if sent.space == "village"] == large

    def test_a_record_larger_than_the_batch_limit_is_a_batch_of_its_own(
        self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run(ledger.append(numbered(3)))
        monkeypatch.setattr(limits, "READ_BATCH_BYTES", 1)
        assert [(batch.start, batch.next, len(batch.records)) for batch in read(ledger)] == [
            (0, 1, 1), (1, 2, 1), (2, 3, 1),
        ]  # fmt: skip

    @pytest.mark.parametrize("count", [1, 300])
    def test_a_record_has_the_time_at_which_it_was_appended(self, ledger: Ledger, count: int) -> None:
        before = time.time_ns() // 1_000_000
        run(ledger.append(numbered(count)))
        found = times(ledger)
        assert len(found) == count
        assert all(before <= each <= time.time_ns() // 1_000_000 for each in found)

    def test_a_record_has_the_time_that_is_given_or_now_if_that_is_later(self, ledger: Ledger) -> None:
        run(ledger.append(numbered(3), [1_700_000_000_000, 0, 9_000_000_000_000]))
        *given, late = times(ledger)
        assert given == [1_700_000_000_000, 0]
        assert late <= time.time_ns() // 1_000_000

    def test_the_times_of_one_space_are_those_of_its_records(self, ledger: Ledger) -> None:
        run(ledger.append([event(space="city"), event(), event(space="city")], [1_000, 2_000, 3_000]))
        assert times(ledger, "city") == [1_000, 3_000]

    def test_an_event_is_found_by_its_id(self, ledger: Ledger) -> None:
        run(ledger.append([event(id="e1"), event(id="e2"), event(id="e3")]))
        assert run(ledger.find("village", "e2")) == Position(0, 1)

    def test_an_id_is_looked_up_in_its_own_space_only(self, ledger: Ledger) -> None:
        run(ledger.append([event(id="e1"), event(id="e1", space="city"), event(id="e2")]))
        assert run(ledger.find("city", "e1")) == Position(0, 1)
        assert run(ledger.find("city", "e2")) is None

    @pytest.mark.parametrize("space", ["village", "nobody.was.here"])
    def test_an_unknown_id_is_not_found(self, ledger: Ledger, space: str) -> None:
        run(ledger.append([event(id="e1")]))
        assert run(ledger.find(space, "e2")) is None

    def test_an_id_stored_twice_is_found_at_its_first_record(self, ledger: Ledger) -> None:
        run(ledger.append([event(id="e0"), sent := event(id="e1")]))
        run(ledger.append([sent]))
        assert run(ledger.find("village", "e1")) == Position(0, 1)

    def test_too_many_events_in_one_call_are_refused_and_none_is_written(self, ledger: Ledger) -> None:
        with pytest.raises(RecallogError, match="limit is 10,000"):
            run(ledger.append([event()] * (limits.APPEND_EVENTS_MAX + 1)))
        assert end(ledger) == 0

    def test_one_event_too_large_rejects_the_whole_call(self, ledger: Ledger) -> None:
        with pytest.raises(RecallogError, match="262,144"):
            run(ledger.append([event(), event(payload={"text": "x" * limits.EVENT_BYTES_MAX})]))
        assert end(ledger) == 0

    def test_the_same_id_in_another_space_is_another_event(self, ledger: Ledger) -> None:
        run(ledger.append([event(id="e1"), event(id="e1", space="city", payload={"text": "Smoke!"})]))
        assert [sent.space for sent in events_in(ledger)] == ["village", "city"]

    def test_the_manifest_never_changes(self, ledger: Ledger) -> None:
        before = run(ledger.manifest())
        run(ledger.append(numbered(1)))
        assert run(ledger.manifest()) == before

    def test_two_ledgers_have_two_manifests(self, ledger: Ledger, tmp_path: Path) -> None:
        other = self.make(tmp_path / "other")
        try:
            assert run(other.manifest()) != run(ledger.manifest())
        finally:
            run(other.close())

    def test_every_space_belongs_to_an_existing_partition(self, ledger: Ledger) -> None:
        partitions = run(ledger.manifest()).partitions
        assert all(0 <= ledger.partition_of(f"space-{n}") < partitions for n in range(50))

    def test_a_record_is_found_by_its_offset(self, ledger: Ledger) -> None:
        sent = numbered(3)
        run(ledger.append(sent))
        assert run(record_at(ledger, 0, 1)) == codec.encode(sent[1])

    @pytest.mark.parametrize("offset", [-1, 3, 1000])
    def test_an_offset_outside_the_ledger_has_no_record(self, ledger: Ledger, offset: int) -> None:
        run(ledger.append(numbered(3)))
        assert run(record_at(ledger, 0, offset)) is None

    def test_its_size_grows_with_its_events(self, ledger: Ledger) -> None:
        run(ledger.append(numbered(1)))
        before = run(ledger.size_bytes())
        noise = random.Random(7).randbytes(50_000).hex()  # a ledger may compress
        run(ledger.append([event(payload={"text": noise})]))
        assert run(ledger.size_bytes()) >= before + 50_000


class UniqueIdsContract(LedgerContract):
    """A ledger that stores each id once per space."""

    def test_it_declares_that_ids_are_unique(self, ledger: Ledger) -> None:
        assert ledger.unique_ids

    def test_an_event_appended_twice_is_stored_once(self, ledger: Ledger) -> None:
        sent = event(turn=42)
        run(ledger.append([sent]))
        run(ledger.append([sent]))
        assert events_in(ledger) == [sent]

    def test_an_event_twice_in_one_call_is_stored_once(self, ledger: Ledger) -> None:
        sent = event()
        run(ledger.append([sent, sent]))
        assert events_in(ledger) == [sent]

    def test_a_repeated_event_returns_its_first_position(self, ledger: Ledger) -> None:
        first, second, third = numbered(3)
        run(ledger.append([first, second]))
        assert run(ledger.append([third, first, third])) == [Position(0, 2), Position(0, 0), Position(0, 2)]

    @pytest.mark.parametrize("place", [0, 49, 50, 119])
    def test_a_repeat_among_many_new_events_is_stored_once_wherever_it_is(self, ledger: Ledger, place: int) -> None:
        first, *new = numbered(121)
        run(ledger.append([first]))
        positions = run(ledger.append([*new[:place], first, *new[place:]]))
        assert positions.pop(place) == Position(0, 0)
        assert positions == [Position(0, offset) for offset in range(1, 121)]
        assert events_in(ledger) == [first, *new]

    def test_an_event_published_again_at_another_time_is_a_repeat_and_the_first_time_counts(
        self, ledger: Ledger
    ) -> None:
        first, later = event(id="e1", at="2026-03-01T12:00:00Z"), event(id="e1", at="2026-03-02T08:00:00Z")
        run(ledger.append([first]))
        assert run(ledger.append([later, event(id="e2"), later])) == [Position(0, 0), Position(0, 1), Position(0, 0)]
        assert events_in(ledger)[0] == first

    def test_an_event_twice_in_one_call_at_different_times_is_stored_once(self, ledger: Ledger) -> None:
        first, later = event(id="e1", at="2026-03-01T12:00:00Z"), event(id="e1", at="2026-03-02T08:00:00Z")
        assert run(ledger.append([first, later])) == [Position(0, 0), Position(0, 0)]
        assert events_in(ledger) == [first]

    def test_a_retry_of_a_partly_stored_call_writes_the_rest(self, ledger: Ledger) -> None:
        sent = numbered(5)
        run(ledger.append(sent[:2]))
        run(ledger.append(sent))
        assert events_in(ledger) == sent

    def test_an_id_reused_for_other_content_is_refused_and_nothing_of_the_call_is_written(self, ledger: Ledger) -> None:
        run(ledger.append([event(id="e1")]))
        with pytest.raises(IdConflict, match=r"e1.*0:0.*payload\.text") as conflict:
            run(ledger.append([event(id="e2"), event(id="e1", payload={"text": "Cake!"}), event(id="e3")]))
        assert (conflict.value.path, conflict.value.position) == ("payload.text", "0:0")
        assert [sent.id for sent in events_in(ledger)] == ["e1"]

    def test_an_id_with_two_contents_in_one_call_is_refused_and_nothing_of_the_call_is_written(
        self, ledger: Ledger
    ) -> None:
        with pytest.raises(IdConflict, match=r"e1.*two events of this call.*payload\.text") as conflict:
            run(ledger.append([event(id="e1"), event(id="e1", payload={"text": "Cake!"})]))
        assert (conflict.value.path, conflict.value.position) == ("payload.text", "")
        assert end(ledger) == 0

    def test_ids_of_a_refused_call_can_be_used_again(self, ledger: Ledger) -> None:
        run(ledger.append([event(id="e1")]))
        with pytest.raises(IdConflict):
            run(ledger.append([event(id="e2"), event(id="e1", payload={"text": "Cake!"})]))
        assert run(ledger.append([event(id="e2", payload={"text": "Tart!"})])) == [Position(0, 1)]


class RepeatedIdsContract(LedgerContract):
    """A ledger that stores a repeated event again, as Kafka does; the views count it once."""

    def test_it_declares_that_ids_may_repeat(self, ledger: Ledger) -> None:
        assert not ledger.unique_ids

    def test_a_repeat_is_stored_again(self, ledger: Ledger) -> None:
        sent = event()
        assert run(ledger.append([sent, sent])) == [Position(0, 0), Position(0, 1)]

    def test_an_id_with_other_content_is_stored_too(self, ledger: Ledger) -> None:
        run(ledger.append([event(id="e1"), event(id="e1", payload={"text": "Cake!"})]))
        assert [sent.id for sent in events_in(ledger)] == ["e1", "e1"]
