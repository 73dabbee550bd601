"""The check of a ledger: every record is read, past damaged ones, and compared with kept values of its hash chain."""

from bisect import bisect_right
from collections.abc import Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from operator import attrgetter, itemgetter

from recallog_projections.stores.store import CHAIN_START
from recallog_schemas import Position, limits, sealing
from recallog_schemas.errors import StorageCorrupt
from recallog_streams import chain
from recallog_streams.ledgers.ledger import Batch, Ledger

KeptValue = tuple[int, bytes]
"""An offset, and the value of the chain after it."""


class ProblemKind(Enum):
    """What is wrong with some records of a ledger."""

    DAMAGED = "damaged"
    """They cannot be read: a checksum fails, or offsets between others have no record."""
    CHANGED = "changed"
    """They can be read, but the kept values were computed from other records."""
    MISSING = "missing"
    """The ledger ends before them."""
    KEY_MISSING = "key_missing"
    """Some of them are sealed, and their keys are neither in the store of keys nor destroyed there."""


@dataclass(frozen=True, slots=True)
class RecordsProblem:
    """What is wrong with the records from offset `first` to `last`."""

    problem: ProblemKind
    first: int
    last: int
    reason: str = ""
    """The ledger's message about damaged records, without a remedy; or the number of records that lack their keys."""


async def check(ledger: Ledger, partition: int, kept: Sequence[KeptValue]) -> list[RecordsProblem]:
    """Everything that is wrong with the records of a partition, in the order of offsets.

    `kept` holds values of the chain in the order of offsets. Changed records are named by the range between two of
    them.
    """
    start, end = 0, (await ledger.ends())[partition]
    comparison, problems, found = _Comparison(kept), list[RecordsProblem](), 0
    unopened = list[int]()
    while start < end:
        try:
            async with aclosing(ledger.read(partition, start, end)) as batches:  # type: ignore[type-var]
                async for batch in batches:
                    comparison.add(batch)
                    start = batch.next
                    if batch.sealed is not None:
                        unopened += [offset for offset, data in batch.records if sealing.is_sealed(data)]
        except StorageCorrupt as error:
            damaged, found = _make_problem(error, start, end), found + 1
            if found == limits.VERIFY_DAMAGED_MAX:
                reason = f"{error.finding}; the rest was not read"
                damaged = RecordsProblem(ProblemKind.DAMAGED, damaged.first, end - 1, reason)
            problems.append(damaged)
            start = damaged.last + 1
            comparison.skip(start)
    if unopened:
        reason = f"the keys of {len(unopened):,} sealed records are missing in {ledger.sealing.location}"
        problems.append(RecordsProblem(ProblemKind.KEY_MISSING, unopened[0], unopened[-1], reason))
    problems += [RecordsProblem(ProblemKind.CHANGED, first, last) for first, last in comparison.changed]
    if kept and kept[-1][0] >= end:
        problems.append(RecordsProblem(ProblemKind.MISSING, end, kept[-1][0]))
    return _join_problems(problems)


async def values_at(ledger: Ledger, partition: int, offsets: Collection[int]) -> dict[int, bytes]:
    """The value of the chain after each of `offsets`, computed from the first record, up to a damaged record."""
    values, value = dict[int, bytes](), CHAIN_START
    wanted = sorted(offsets, reverse=True)
    try:
        async with aclosing(ledger.read(partition, 0, wanted[0] + 1)) as batches:  # type: ignore[type-var]
            async for batch in batches:
                begin = 0
                while wanted and wanted[-1] < batch.next:
                    end = _end(batch, wanted[-1], begin)
                    value = values[wanted.pop()] = chain.link_records(value, batch.stored[begin:end])
                    begin = end
                value = chain.link_records(value, batch.stored[begin:])
    except StorageCorrupt:
        pass  # `check` reports it
    return values


class _Comparison:
    """Compares records with kept values of their chain, one range between two of them after the other.

    After a range that differs, two candidates for the chain are continued: the kept value at its end, and the value
    computed from the ledger. If the next kept value agrees with the latter, the kept value between them is wrong.
    """

    def __init__(self, kept: Sequence[KeptValue]) -> None:
        self._ranges = [(before + 1, last, value) for (before, _), (last, value) in pairwise([(-1, b""), *kept])]
        self._ranges.reverse()
        self._candidates = [_Candidate(CHAIN_START, 0)]
        self.changed: list[tuple[int, int]] = []
        """First and last offset of each range with other records than its kept value."""

    def add(self, batch: Batch) -> None:
        begin = 0
        while self._ranges and self._ranges[-1][1] < batch.next:
            end = _end(batch, self._ranges[-1][1], begin)
            self._link(batch.stored[begin:end])
            self._close()
            begin = end
        if self._ranges:
            self._link(batch.stored[begin:])

    def skip(self, until: int) -> None:
        """Continue at the offset `until`: the records before it cannot be read, nor can their ranges be compared."""
        self._candidates = []
        while self._ranges and self._ranges[-1][1] < until:
            self._close()
            self._candidates = [] if self._ranges and self._ranges[-1][0] < until else self._candidates

    def _link(self, records: Sequence[tuple[int, bytes]]) -> None:
        for each in self._candidates:
            each.value = chain.link_records(each.value, records)

    def _close(self) -> None:
        first, last, kept = self._ranges.pop()
        agreeing = next((each for each in self._candidates if each.value == kept), None)
        if agreeing is not None:
            del self.changed[agreeing.changed :]
            self._candidates = []
        elif self._candidates:
            self.changed.append((first, last))
        self._candidates = [*self._candidates[:1], _Candidate(kept, len(self.changed))]


@dataclass(slots=True)
class _Candidate:
    """A value that the chain may have, if the kept value from which it was computed is right."""

    value: bytes
    changed: int
    """How many changed ranges were known at that kept value."""


def _end(batch: Batch, last: int, begin: int) -> int:
    """The index of the first record after the offset `last`."""
    return bisect_right(batch.stored, last, lo=begin, key=itemgetter(0))


def _make_problem(error: StorageCorrupt, start: int, end: int) -> RecordsProblem:
    """The records that `error` is about. Raises `error` if it names no records to skip."""
    first = Position.parse(error.position).offset if error.position else start
    until = end if error.until is None else error.until
    if not start <= first < until:
        raise error
    return RecordsProblem(ProblemKind.DAMAGED, first, min(until, end) - 1, error.finding)


def _join_problems(problems: Sequence[RecordsProblem]) -> list[RecordsProblem]:
    """`problems` in the order of offsets, adjacent ranges of the same problem as one."""
    joined: list[RecordsProblem] = []
    for each in sorted(problems, key=attrgetter("first")):
        before = joined[-1] if joined else None
        if before is not None and before.problem is each.problem and before.last + 1 == each.first:
            joined[-1] = RecordsProblem(before.problem, before.first, each.last, before.reason)
        else:
            joined.append(each)
    return joined
