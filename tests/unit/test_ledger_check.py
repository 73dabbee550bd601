"""The check of a ledger against kept values of its chain names exactly the ranges whose records changed."""

import random
from collections.abc import AsyncIterator, Collection, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog_schemas import limits
from recallog_schemas.errors import StorageCorrupt
from recallog_streams import chain
from recallog_streams.ledger_check import KeptValue, ProblemKind, RecordsProblem, check, values_at
from recallog_streams.ledgers.ledger import Batch
from recallog_streams.ledgers.memory import MemoryLedger
from support import campaigns
from support.folding import finish

BLOCK = 7
"""Offsets between kept values in these tests."""


class Damaged(MemoryLedger):
    """Some records cannot be read: the records before them can, and reading continues after them."""

    def __init__(self, values: Sequence[bytes], damaged: Collection[int] = (), batch_records: int = 5) -> None:
        super().__init__(batch_records=batch_records)
        for value in values:
            self.append_bytes(value)
        self._damaged = sorted(damaged)

    async def read(self, partition: int, start: int, until: int, *, space: str | None = None) -> AsyncIterator[Batch]:
        first = next((offset for offset in self._damaged if start <= offset < until), until)
        async for batch in super().read(partition, start, first, space=space):
            yield batch
        if first < until:
            raise StorageCorrupt(f"no {first}", position=f"0:{first}", until=first + 1)


def kept_of(values: Sequence[bytes], every: int = BLOCK) -> list[KeptValue]:
    """The chain after each block, and after the last record."""
    ends = sorted({*range(every - 1, len(values), every), len(values) - 1})
    return [(end, chain.link_records(bytes(16), list(enumerate(values[: end + 1])))) for end in ends]


def blocks_with(offsets: Collection[int], size: int) -> list[tuple[int, int]]:
    """First and last offset of the blocks of `offsets`, adjacent ones as one."""
    found: list[tuple[int, int]] = []
    for number in sorted({offset // BLOCK for offset in offsets}):
        first, last = number * BLOCK, min(number * BLOCK + BLOCK, size) - 1
        if found and found[-1][1] + 1 == first:
            first = found.pop()[0]
        found.append((first, last))
    return found


def ranges(problems: Sequence[RecordsProblem], wanted: ProblemKind) -> list[tuple[int, int]]:
    return [(each.first, each.last) for each in problems if each.problem is wanted]


@settings(max_examples=campaigns.examples(200))
@given(seed=st.integers(0, 2**32), size=st.integers(1, 60), batch=st.integers(1, 70), data=st.data())
def test_exactly_the_changed_blocks_are_named(seed: int, size: int, batch: int, data: st.DataObject) -> None:
    dice = random.Random(seed)
    values = [dice.randbytes(3) for _ in range(size)]
    changed = data.draw(st.sets(st.integers(0, size - 1), max_size=4), label="changed")
    damaged = data.draw(st.sets(st.integers(0, size - 1), max_size=3), label="damaged")
    now = [b"?" + value if offset in changed else value for offset, value in enumerate(values)]
    problems = finish(check(Damaged(now, damaged, batch), 0, kept_of(values)))
    unreadable = {offset // BLOCK for offset in damaged}
    comparable = {offset for offset in changed if offset // BLOCK not in unreadable}
    assert {
        offset for first, last in ranges(problems, ProblemKind.DAMAGED) for offset in range(first, last + 1)
    } == damaged
    assert ranges(problems, ProblemKind.CHANGED) == blocks_with(comparable, size)
    assert not ranges(problems, ProblemKind.MISSING)


def test_a_kept_value_that_is_wrong_is_no_change_of_the_ledger() -> None:
    values = [b"%d" % n for n in range(40)]
    kept = kept_of(values)
    kept[2] = (kept[2][0], b"-" * 16)
    assert finish(check(Damaged(values), 0, kept)) == []


def test_a_lost_kept_value_makes_the_range_longer() -> None:
    values = [b"%d" % n for n in range(40)]
    kept = kept_of(values)
    del kept[2]
    values[15] = b"another"
    assert ranges(finish(check(Damaged(values), 0, kept)), ProblemKind.CHANGED) == [(14, 27)]


def test_records_that_the_ledger_lost_at_its_end_are_named() -> None:
    values = [b"%d" % n for n in range(40)]
    problems = finish(check(Damaged(values[:33]), 0, kept_of(values)))
    assert problems == [RecordsProblem(ProblemKind.MISSING, 33, 39)]


def test_without_kept_values_damaged_records_are_named() -> None:
    values = [b"%d" % n for n in range(40)]
    problems = finish(check(Damaged(values, {3, 4, 20}), 0, []))
    assert [(each.first, each.last, each.reason) for each in problems] == [(3, 4, "no 3"), (20, 20, "no 20")]


def test_of_very_many_damaged_records_the_rest_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "VERIFY_DAMAGED_MAX", 3)
    values = [b"%d" % n for n in range(40)]
    problems = finish(check(Damaged(values, range(0, 40, 2)), 0, []))
    assert [(each.first, each.last) for each in problems] == [(0, 0), (2, 2), (4, 39)]
    assert "the rest was not read" in problems[-1].reason


def test_values_at_positions_are_those_of_the_chain() -> None:
    values = [b"%d" % n for n in range(40)]
    kept = dict(kept_of(values, every=1))
    assert finish(values_at(Damaged(values), 0, {0, 3, 21, 39})) == {offset: kept[offset] for offset in (0, 3, 21, 39)}
    assert finish(values_at(Damaged(values, {21}), 0, {0, 3, 21, 39})) == {offset: kept[offset] for offset in (0, 3)}


def test_an_error_that_names_no_record_behind_it_leaves_the_rest_unread() -> None:
    class Unreadable(Damaged):
        async def read(
            self, partition: int, start: int, until: int, *, space: str | None = None
        ) -> AsyncIterator[Batch]:
            async for batch in super().read(partition, start, min(until, 10), space=space):
                yield batch
            if until > 10:
                raise StorageCorrupt("the file is damaged")

    problems = finish(check(Unreadable([b"%d" % n for n in range(40)]), 0, []))
    assert problems == [RecordsProblem(ProblemKind.DAMAGED, 10, 39, "the file is damaged")]
