"""Copying the events of one ledger to another, for example from a folder to a cluster or back.

The views are not copied. They are computed from the copy.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Sequence
from typing import NamedTuple

from recallog_schemas import Event, Position, codec, limits, sealing
from recallog_schemas.errors import IdConflict, InvalidArgument, InvalidEvent, LedgerMismatch
from recallog_schemas.sealing import Unit
from recallog_schemas.views import CopyReport, LeftOut
from recallog_streams.ledgers.ledger import Batch, Ledger
from recallog_streams.placement import misplacement
from recallog_streams.progress import Progress
from recallog_streams.sealing import made_from

_EVENTS_PER_CALL = 1_000
_FEW_RECORDS = 10_000
"""A copy has caught up when so many records, which take about a second, have arrived while it copied the last ones."""
_POLL_SECONDS = 0.2


class _Found(NamedTuple):
    """An event of the source, with its position and time there."""

    position: Position
    event: Event
    appended: int
    sources: Collection[Unit]
    """The units that it is made from: in the target it is sealed with their keys too."""


async def copy(source: Ledger, target: Ledger, progress: Progress | None = None) -> CopyReport:
    """Append every event of `source` to `target`, in the order of each space, with the times at which they were first
    appended. Can be run again with the same target.

    A record that is not a valid event is left out. So is a record in the wrong partition or under the wrong key, which
    would become valid in its right place, and, in a target with unique ids, a record whose id belongs to another event.
    In the views of the source such records are dead letters.

    It continues an earlier run, also one that was killed: it reads what the target has, which may be other events too,
    and appends the events that are missing. What a killed process had sent can be written while the next one runs, and
    is then in a target without unique ids (Kafka) twice, where the views count each event once.
    """
    await source.open()  # `partition_of` needs it
    copier = _Copier(source, target, progress)
    await copier.skip_present()
    await copier.copy_until(await source.ends())
    await copier.append_missing()
    return copier.report()


async def follow(
    source: Ledger, target: Ledger, *, switch: bool = False, progress: Progress | None = None
) -> AsyncGenerator[CopyReport]:
    """As `copy`, while producers append to `source`. Yields a report when the target has caught up, and continues.

    It continues an earlier run as `copy` does. With `switch`, once the target has caught up, the source is retired, its
    last events are copied, and it names the target to its producers. The last report then says so.

    Raises `LedgerMismatch` if `target` has events that the source does not have, or if another program writes to it,
    `InvalidArgument` if the source cannot be retired, and `LedgerMoved` if it was in favour of another ledger.
    """
    await source.open()
    if await source.manifest() == await target.manifest():
        raise InvalidArgument("the source and the target are the same ledger", path="target")
    if switch:
        await source.check_successor(target)
    copier = _Copier(source, target, progress)
    await copier.skip_present()
    while await copier.copy_until(await source.ends()) > _FEW_RECORDS:
        pass
    await copier.append_missing(only_copies=True)
    await copier.check_alone()
    yield copier.report()
    while not switch:
        await asyncio.sleep(_POLL_SECONDS)
        await copier.copy_until(await source.ends())
    while await copier.copy_until(await source.retire()):
        pass  # the source is retired again until there are no more: a new leader could have accepted some
    await copier.check_alone()
    await source.name_successor(target)
    yield copier.report(switched=True)


class _Copier:
    """Copies a ledger in steps, each up to other ends."""

    def __init__(self, source: Ledger, target: Ledger, progress: Progress | None) -> None:
        self._source, self._target, self._progress = source, target, progress
        self._next: list[int] = []
        """By partition of the source: the offset from which the next step reads."""
        self._units: dict[str, Unit] = {}
        """By id of the source's keys."""
        self._records = self._copied = self._refused = 0
        self._problems: list[LeftOut] = []
        self._present: dict[str, int] = {}
        """By space: a hash of the ids of its events in the target, in their order, until the source has shown these."""
        self._shown: dict[str, int] = {}
        """The same of the events that the source has shown of the spaces in `_present`."""
        self._written: int | None = None
        """Records in the target, if only this process writes to it; None for a target with unique ids."""

    def report(self, *, switched: bool = False) -> CopyReport:
        problems = tuple(self._problems)
        copied, left_out = self._copied, self._refused
        return CopyReport(records=self._records, copied=copied, left_out=left_out, problems=problems, switched=switched)

    async def skip_present(self) -> None:
        """Skip the events that the target has: usually the first ones of each space, since a copy keeps their order.

        A target with unique ids skips them itself.
        """
        if self._target.unique_ids:
            return
        ends = await self._target.ends()
        self._written = sum(ends)
        async for space, id_ in _read_ids(self._target, ends):
            self._present[space] = hash((self._present.get(space, 0), id_))

    async def append_missing(self, *, only_copies: bool = False) -> None:
        """Append the events that `copy_until` has skipped and the target lacks. These are of spaces of which the target
        has some events twice, or events that the source does not have.

        With `only_copies`, raise `LedgerMismatch` if it has others, or those of the source in another order.
        """
        if only_copies and (others := self._present.keys() - self._shown.keys()):
            raise self._make_mismatch(f"it has events of space {min(others)!r}, and the source has none")
        had: dict[str, dict[str, None]] = {space: {} for space in self._shown}
        wanted: dict[str, dict[str, None]] = {space: {} for space in self._shown}
        self._present, self._shown = {}, {}
        if not had:
            return
        async for space, id_ in _read_ids(self._target, await self._target.ends()):
            if space in had:
                had[space][id_] = None
        for partition, end in enumerate(self._next):
            async for batch in self._source.read(partition, 0, end):
                events = _events_of(self._source, batch, self._units, lambda *_: None)
                skipped = [each for each in events if each.event.space in had]
                await self._append([each for each in skipped if each.event.id not in had[each.event.space]])
                for each in skipped:
                    wanted[each.event.space][each.event.id] = None
        for space, ids in had.items():
            if only_copies and [*ids] != [*wanted[space]][: len(ids)]:
                raise self._make_mismatch(f"its events of space {space!r} are not the first ones of the source")

    async def check_alone(self) -> None:
        """Raise `LedgerMismatch` if another process has written to a target without unique ids meanwhile."""
        if self._written not in (None, sum(await self._target.ends())):
            raise self._make_mismatch("another program has written to it, or what a killed copy had sent has arrived")

    async def copy_until(self, ends: Sequence[int]) -> int:
        """Copy the records below `ends`, and return how many they are."""
        self._next = self._next or [0] * len(ends)
        before = self._records
        for partition, end in enumerate(ends):
            async for batch in self._source.read(partition, self._next[partition], end):
                self._records += len(batch.records)
                events = _events_of(self._source, batch, self._units, self._refuse)
                missing = [each for each in events if not self._is_present(each.event)]
                self._copied += len(events) - len(missing) + await self._append(missing)
                self._next[partition] = batch.next
                if self._progress is not None:
                    self._progress(sum(self._next), sum(ends))
        return self._records - before

    def _is_present(self, event: Event) -> bool:
        if event.space not in self._present:
            return False
        self._shown[event.space] = hash((self._shown.get(event.space, 0), event.id))
        if self._shown[event.space] == self._present[event.space]:
            del self._shown[event.space], self._present[event.space]
        return True

    def _refuse(self, position: Position, why: str) -> None:
        self._refused += 1
        if len(self._problems) < limits.STATUS_ITEMS:
            self._problems.append(LeftOut(position=position, why=why))

    async def _append(self, events: Sequence[_Found]) -> int:
        """Append the events. Returns how many of them are in the target now."""
        if len(events) > _EVENTS_PER_CALL:
            return await self._append(events[:_EVENTS_PER_CALL]) + await self._append(events[_EVENTS_PER_CALL:])
        target = self._target
        derived = [each for each in events if each.sources and target.sealing.seals]
        units = [*{unit for each in derived for unit in each.sources}]
        ids = dict(zip(units, await target.sealing.keys.keys_of(units) if units else (), strict=True))
        keys = {(each.event.space, each.event.id): {ids[unit].id for unit in each.sources} for each in derived}
        try:
            with made_from(keys):
                await target.append([each.event for each in events], [each.appended for each in events])
        except IdConflict as error:
            if len(events) == 1:
                self._refuse(events[0].position, str(error))
                return 0
            half = len(events) // 2
            return await self._append(events[:half]) + await self._append(events[half:])
        if self._written is not None:
            self._written += len(events)
        return len(events)

    def _make_mismatch(self, why: str) -> LedgerMismatch:
        return LedgerMismatch(
            f"{self._target.location} is not just a copy of {self._source.location}: {why}. Run the command again: it "
            "compares all events. If this error remains, copy to a new topic, and let nothing else write to it"
        )


async def _read_ids(ledger: Ledger, ends: Sequence[int]) -> AsyncIterator[tuple[str, str]]:
    """The spaces and ids of the events below `ends`."""
    for partition, end in enumerate(ends):
        async for batch in ledger.read(partition, 0, end):
            for each in _events_of(ledger, batch, {}, lambda *_: None):
                yield each.event.space, each.event.id


def _events_of(
    ledger: Ledger, batch: Batch, units: dict[str, Unit], refuse: Callable[[Position, str], None]
) -> list[_Found]:
    """The events of a batch that are in the right place. `units` receives the units of the ledger's keys."""
    events = []
    for number, (offset, data) in enumerate(batch.records):
        position = Position(batch.partition, offset)
        try:
            event = codec.decode(data)
        except InvalidEvent as error:
            refuse(position, str(error))
            continue
        place = ledger.partition_of(event.space)
        wrong = None if batch.keys is None else misplacement(batch.partition, batch.keys[number], event.space, place)
        if wrong is None:
            sources = _sources(event, batch.stored[number][1], units)
            events.append(_Found(position, event, batch.time_of(number), sources))
        else:
            refuse(position, f"{wrong.reason}: {wrong.detail}")
    return events


def _sources(event: Event, stored: bytes, units: dict[str, Unit]) -> Collection[Unit]:
    """The units of the sources of a sealed event. A record names the keys of its own units first, and keys that earlier
    records have not named are its own."""
    ids = () if event.is_erased else sealing.key_ids(stored)
    own = sealing.units_of(event, "all")
    for id_, unit in zip(ids, own, strict=False):
        units.setdefault(id_, unit)
    return {units[id_] for id_ in ids if id_ in units}.difference(own)
