"""What a copy of a ledger leaves out, dead letters, and how it continues while producers append to the source."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from itertools import chain

import msgspec
import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from recallog_schemas import Event, Position, codec
from recallog_schemas.errors import InvalidArgument, LedgerMismatch
from recallog_schemas.views import CopyReport
from recallog_streams.ledgers.kafka import markers
from recallog_streams.ledgers.kafka.address import KafkaAddress
from recallog_streams.ledgers.kafka.ledger import KafkaLedger
from recallog_streams.ledgers.kafka.topic_settings import RETIRED_BYTES
from recallog_streams.ledgers.ledger import Batch, Ledger, Times
from recallog_streams.ledgers.memory import MemoryLedger
from recallog_streams.migration import copy, follow
from support.events import event, run


class WrittenByOthers(MemoryLedger):
    """Two partitions, as a topic that any program can write: all records lie in the first one."""

    def __init__(self, key: bytes | None) -> None:
        super().__init__(unique_ids=False)
        self.key = key

    async def ends(self) -> list[int]:
        return [*await super().ends(), 0]

    async def read(self, partition: int, start: int, until: int, *, space: str | None = None) -> AsyncIterator[Batch]:
        async for batch in super().read(partition, start, until, space=space):
            yield msgspec.structs.replace(batch, keys=[self.key] * len(batch.records))

    def partition_of(self, space: str) -> int:
        return 1 if space == "elsewhere" else 0


@pytest.mark.parametrize(
    ("space", "key", "why"),
    [
        ("elsewhere", b"elsewhere", "wrong_partition: its space 'elsewhere' lies in partition 1"),
        ("village", b"town", "wrong_key: its key is b'town', not its space 'village'"),
        ("village", None, "wrong_key: its key is None, not its space 'village'"),
    ],
)
def test_a_record_that_lies_in_the_wrong_place_is_not_revived(space: str, key: bytes | None, why: str) -> None:
    source, target = WrittenByOthers(key), MemoryLedger()
    source.append_bytes(codec.encode(event(space=space)), space)
    report = run(copy(source, target))
    assert target.values() == []
    assert (report.copied, report.left_out, [each.why for each in report.problems]) == (0, 1, [why])


def test_a_record_in_its_place_is_copied() -> None:
    source, target = WrittenByOthers(b"village"), MemoryLedger()
    source.append_bytes(codec.encode(event(space="village")), "village")
    assert run(copy(source, target)).ok
    assert target.values() == source.values()


async def first_report(source: Ledger, target: Ledger) -> CopyReport:
    async with aclosing(follow(source, target)) as reports:
        return await anext(reports)


def fill(ledger: Ledger, ids: Sequence[tuple[str, int]]) -> None:
    for space, number in ids:
        run(ledger.append([event(space=space, id=f"{space}-{number}", payload={"text": "Bread!"})]))


_EVENTS = st.lists(st.tuples(st.sampled_from(["village", "town", "port"]), st.integers(0, 5)), max_size=30)


@given(events=_EVENTS, copied=st.integers(0, 30), unique=st.booleans())
def test_a_copy_continues_where_an_earlier_one_was_interrupted(
    events: list[tuple[str, int]], copied: int, unique: bool
) -> None:
    """Also if producers have repeated events: each record of the source is in the target once."""
    source, target = MemoryLedger(unique_ids=unique), MemoryLedger(unique_ids=False)
    fill(source, events[:copied])
    run(copy(source, target))
    fill(source, events[copied:])
    report = run(first_report(source, target))
    assert target.values() == source.values()
    assert (report.records, report.copied, report.switched) == (len(source.values()), len(source.values()), False)


@given(events=_EVENTS, others=st.lists(st.sampled_from(["village", "port", "sea"]), min_size=1, max_size=3))
def test_a_target_with_events_of_others_is_refused(events: list[tuple[str, int]], others: list[str]) -> None:
    source, target = MemoryLedger(unique_ids=False), MemoryLedger(unique_ids=False)
    fill(source, events)
    run(copy(source, target))
    fill(target, [(space, 9) for space in others])
    why = "events of space '.*', and the source has none|of space '.*' are not the first ones of the source"
    with pytest.raises(LedgerMismatch, match=why):
        run(first_report(source, target))


class DisturbedLedger(MemoryLedger):
    """A source during whose copy another program appends an event to the target."""

    def __init__(self, target: Ledger) -> None:
        super().__init__()
        self.target = target
        self.others: list[Event] = []

    async def ends(self) -> list[int]:
        await self.target.append(self.others)
        return await super().ends()


@pytest.mark.parametrize("is_copy", [False, True])
def test_a_target_that_another_program_writes_to_meanwhile_is_refused(is_copy: bool) -> None:
    """Afterwards it can be continued if that was another copy."""
    target = MemoryLedger(unique_ids=False)
    source = DisturbedLedger(target)
    source.others = [event()]
    run(source.append(source.others if is_copy else [event()]))
    with pytest.raises(LedgerMismatch, match="another program has written to it, or what a killed copy had sent has"):
        run(first_report(source, target))
    source.others = []
    if is_copy:
        assert run(first_report(source, target)).copied == 1
    else:
        with pytest.raises(LedgerMismatch, match="are not the first ones of the source"):
            run(first_report(source, target))


class LateLedger(MemoryLedger):
    """A target as on a broker: what a killed copy had sent is written while the next copy runs, or after it."""

    def __init__(self, in_flight: Sequence[Event], calls: int) -> None:
        super().__init__(unique_ids=False)
        self._in_flight, self._calls = in_flight, calls

    async def append(self, events: Sequence[Event], appended: Times = None) -> list[Position]:
        self._calls -= 1
        if self._calls == 0:
            await super().append(self._in_flight)
        return await super().append(events, appended)


def first_times(ledger: MemoryLedger) -> dict[str, list[str]]:
    """The ids of the events of each space in the order in which views count them."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for each in map(codec.decode, ledger.values()):
        found[each.space][each.id] = None
    return {space: [*ids] for space, ids in found.items()}


async def continued_report(source: Ledger, target: Ledger) -> CopyReport:
    """Of a copy that follows, which is run again when it says so."""
    try:
        return await first_report(source, target)
    except LedgerMismatch as error:
        if "what a killed copy had sent has arrived. Run the command again" not in str(error):
            raise
        return await first_report(source, target)


@pytest.mark.parametrize("way", [copy, continued_report])
@given(
    events=_EVENTS,
    killed=st.integers(0, 30),
    sent=st.integers(0, 30),
    calls=st.integers(1, 40),
    later=_EVENTS,
)
def test_what_a_killed_copy_had_sent_may_be_written_at_any_time(
    way: Callable[[Ledger, Ledger], Awaitable[CopyReport]],
    events: list[tuple[str, int]],
    killed: int,
    sent: int,
    calls: int,
    later: list[tuple[str, int]],
) -> None:
    """It is the next events. The copy that runs meanwhile ends with all events in their order, and so do later ones."""
    source = MemoryLedger()
    fill(source, events)
    ours = [codec.decode(value) for value in source.values()]
    target = LateLedger(ours[killed : killed + sent], calls + 1)
    run(target.append(ours[:killed]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("recallog_streams.migration._EVENTS_PER_CALL", 1)
        run(way(source, target))
    assert first_times(target) == first_times(source)
    fill(source, later)
    report = run(way(source, target))
    assert first_times(target) == first_times(source)
    assert report.copied == report.records == len(source.values())


@given(events=_EVENTS, others=_EVENTS, own=st.lists(st.tuples(st.sampled_from(["village", "sea"]), st.integers(6, 9))))
def test_a_copy_to_a_target_in_use_adds_what_is_missing_in_its_order(
    events: list[tuple[str, int]], others: list[tuple[str, int]], own: list[tuple[str, int]]
) -> None:
    source, target = MemoryLedger(), MemoryLedger(unique_ids=False)
    fill(source, events)
    run(copy(source, target))
    fill(target, own)
    fill(source, others)
    run(copy(source, target))
    copied, before = first_times(target), target.values()
    for space, ids in first_times(source).items():
        assert [each for each in copied[space] if each in ids] == ids
    assert {*chain(*copied.values())} == {*chain(*first_times(source).values())} | {f"{name}-{n}" for name, n in own}
    run(copy(source, target))
    assert target.values() == before


def test_events_that_are_appended_while_a_copy_follows_are_copied() -> None:
    async def scenario() -> None:
        source, target = MemoryLedger(), MemoryLedger()
        await source.append([event()])
        async with aclosing(follow(source, target)) as reports:
            await anext(reports)
            following = asyncio.ensure_future(anext(reports))
            await source.append([event(), event()])
            while target.values() != source.values():
                await asyncio.sleep(0)
            following.cancel()
            await asyncio.wait([following])

    run(scenario())


def test_a_ledger_is_not_followed_into_itself() -> None:
    ledger = MemoryLedger()
    with pytest.raises(InvalidArgument, match="the same ledger"):
        run(first_report(ledger, ledger))


def test_only_a_topic_is_retired() -> None:
    async def scenario() -> None:
        source, target = MemoryLedger(), MemoryLedger()
        async with aclosing(follow(source, target, switch=True)) as reports:
            await anext(reports)

    with pytest.raises(InvalidArgument, match="only a topic can refuse the events of producers"):
        run(scenario())


def test_a_topic_is_not_retired_in_favour_of_one_that_it_cannot_name() -> None:
    source, target = (KafkaLedger(KafkaAddress.parse(f"kafka://host/{name}")) for name in ("old", "n" * 51))
    with pytest.raises(InvalidArgument, match="at most 50 characters"):
        run(source.check_successor(target))


@pytest.mark.parametrize("name", ["t", "t" * markers.TOPIC_CHARS_MAX])
def test_a_retired_topic_takes_markers_and_no_event(name: str) -> None:
    smallest = event(id="a", space="a", agent="a", kind="a.b", payload={}, turn=0)
    value = codec.encode(smallest).replace(b',"turn":0', b"").replace(b',"schema_version":1', b"")
    value = value.replace(b',"payload":{}', b"")
    assert codec.decode(value).id == "a"
    assert size_of_batch(None, markers.marker(name)) <= RETIRED_BYTES < size_of_batch(b"a", value)
    assert size_of_batch(None, markers.marker(" " * RETIRED_BYTES)) > RETIRED_BYTES
    assert markers.topic_of(markers.marker(name)) == name


def size_of_batch(key: bytes | None, value: bytes) -> int:
    batch = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 4096)
    batch.append(0, 1_700_000_000_000, key, value, [])
    return len(batch.build())


def test_a_target_whose_events_differ_from_those_of_the_source_is_refused() -> None:
    source, target = MemoryLedger(), MemoryLedger(unique_ids=False)
    fill(source, [("village", 0), ("village", 1)])
    fill(target, [("village", 0), ("village", 9)])
    with pytest.raises(LedgerMismatch, match="its events of space 'village' are not the first ones of the source"):
        run(first_report(source, target))
