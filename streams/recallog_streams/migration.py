"""Copying the events of one ledger to another, for example from a folder to a cluster or back.

The views are not copied. They are computed from the copy.
"""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from recallog_schemas import Event, Position, codec, limits, sealing
from recallog_schemas.errors import IdConflict, InvalidEvent
from recallog_schemas.sealing import Unit
from recallog_schemas.views import CopyReport, LeftOut
from recallog_streams.ledgers.ledger import Batch, Ledger
from recallog_streams.placement import misplacement
from recallog_streams.progress import Progress
from recallog_streams.sealing import made_from

_EVENTS_PER_CALL = 1_000


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
    In the views of the source such records are dead letters. A repeated run writes the same events again to a target
    without unique ids (Kafka), where the views count each once.
    """
    await source.open()  # `partition_of` needs it
    ends = await source.ends()
    copied = refused = 0
    problems: list[LeftOut] = []
    units: dict[str, Unit] = {}

    def refuse(position: Position, why: str) -> None:
        nonlocal refused
        refused += 1
        if len(problems) < limits.STATUS_ITEMS:
            problems.append(LeftOut(position=position, why=why))

    done = 0
    for partition, end in enumerate(ends):
        async for batch in source.read(partition, 0, end):
            events = _events_of(source, batch, units, refuse)
            for first in range(0, len(events), _EVENTS_PER_CALL):
                copied += await _append(target, events[first : first + _EVENTS_PER_CALL], refuse)
            if progress is not None:
                progress(done + batch.next, sum(ends))
        done += end
    return CopyReport(records=sum(ends), copied=copied, left_out=refused, problems=tuple(problems))


def _events_of(
    source: Ledger, batch: Batch, units: dict[str, Unit], refuse: Callable[[Position, str], None]
) -> list[_Found]:
    """The events of a batch that are in the right place. `units` receives the units of the source's keys."""
    events = []
    for number, (offset, data) in enumerate(batch.records):
        position = Position(batch.partition, offset)
        try:
            event = codec.decode(data)
        except InvalidEvent as error:
            refuse(position, str(error))
            continue
        wrong = None
        if batch.keys is not None:
            expected = source.partition_of(event.space)
            wrong = misplacement(batch.partition, batch.keys[number], event.space, expected)
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


async def _append(target: Ledger, events: Sequence[_Found], refuse: Callable[[Position, str], None]) -> int:
    """Append the events. Returns how many of them are in `target` now."""
    derived = [each for each in events if each.sources and target.sealing.seals]
    units = [*{unit for each in derived for unit in each.sources}]
    ids = dict(zip(units, await target.sealing.keys.keys_of(units) if units else (), strict=True))
    keys = {(each.event.space, each.event.id): {ids[unit].id for unit in each.sources} for each in derived}
    try:
        with made_from(keys):
            await target.append([each.event for each in events], [each.appended for each in events])
    except IdConflict as error:
        if len(events) == 1:
            refuse(events[0].position, str(error))
            return 0
        half = len(events) // 2
        return await _append(target, events[:half], refuse) + await _append(target, events[half:], refuse)
    return len(events)
