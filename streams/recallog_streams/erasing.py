"""Erasing units: their records in a ledger, and the destruction of their keys.

A unit is what is erased as a whole: a person who is the subject of events, an entry, or a space (ADR 0111).
"""

import re
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from recallog_schemas import Event, codec, sealing
from recallog_schemas.errors import InvalidEvent
from recallog_schemas.sealing import ERASURE, Unit
from recallog_streams.ledgers.ledger import Batch, Ledger, spans_of
from recallog_streams.progress import Progress

_ERASURE = f'"kind":"{ERASURE}"'.encode()


def erased_keys(batch: Batch) -> Sequence[str]:
    """The ids of the keys that the records of a batch erase."""
    found: list[str] = []
    for _, data in batch.records:
        if _ERASURE in data and (event := _decode(data)) is not None and event.kind == ERASURE:
            found += event.payload.get("keys", ())  # another program may have written one as erased, without payload
    return found


async def keys_at(ledger: Ledger, partition: int, offsets: Iterable[int]) -> set[str]:
    """The ids of the keys of the records at some offsets; empty if none of them is sealed."""
    found = set[str]()
    if await ledger.sealing.refresh() is None:
        return found
    wanted = {*offsets}
    for first, end in spans_of(wanted):
        async for batch in ledger.read(partition, first, end):
            for offset, stored in batch.stored:
                if offset in wanted and sealing.is_sealed(stored):
                    found.update(sealing.key_ids(stored))
    return found


@dataclass(slots=True)
class Traces:
    """What a ledger has of some units of a space. Records that are already erased count as erased only."""

    keys: dict[str, None] = field(default_factory=dict)
    """The ids of their keys, in the order of the ledger."""
    units: set[Unit] = field(default_factory=set)
    """The units; for a space, also the units in it."""
    own: Counter[str] = field(default_factory=Counter)
    """The sealed records of the units themselves, by kind."""
    derived: Counter[str] = field(default_factory=Counter)
    """The records that were made from the sealed ones, by kind."""
    unsealed: Counter[str] = field(default_factory=Counter)
    """The records of the units that are not sealed with a key of the unit, by kind."""
    erased: int = 0
    """The records of the units themselves that are erased already."""

    @property
    def events(self) -> int:
        return self.own.total() + self.derived.total()


async def find_traces(
    ledger: Ledger, wanted: Collection[Unit], keys: Iterable[str], progress: Progress | None
) -> Traces:
    """The records of units of one space that the ledger has now. `keys` are the last known keys of the units."""
    await ledger.open()
    space = next(iter(wanted)).space
    partition, found = ledger.partition_of(space), Traces(dict.fromkeys(keys), {*wanted})
    end = (await ledger.ends())[partition]
    search = _Search(wanted, found)
    async for batch in ledger.read(partition, 0, end, space=space):
        for (_, data), (_, stored) in zip(batch.records, batch.stored, strict=True):
            search.look_at(data, stored)
        if progress is not None:
            progress(batch.next, end)
    return found


async def find_events(ledger: Ledger, space: str, needle: bytes) -> AsyncIterator[Event]:
    """The events of a space, without erased ones, whose bytes contain `needle`."""
    await ledger.open()
    partition = ledger.partition_of(space)
    async for batch in ledger.read(partition, 0, (await ledger.ends())[partition], space=space):
        for event in [_decode(data) for _, data in batch.records if needle in data]:
            if event is not None and not event.is_erased:
                yield event


class _Search:
    def __init__(self, wanted: Collection[Unit], found: Traces) -> None:
        self._is_whole = any(unit.kind == "space" for unit in wanted)
        self._found = found
        names = b"|".join(re.escape(msgspec.json.encode(unit.name)) for unit in wanted)
        self._mentions = re.compile(b"" if self._is_whole else names).search
        """Finds the records that may belong to a unit, so that few others are decoded."""

    def look_at(self, data: bytes, stored: bytes) -> None:
        """Note a record; `stored` are its bytes in the ledger."""
        found, ids = self._found, sealing.key_ids(stored) if sealing.is_sealed(stored) else ()
        if found.keys.keys().isdisjoint(ids) and not self._mentions(data):
            return
        is_opened = not sealing.is_sealed(data)  # if its key is missing, its payload alone cannot be read
        event = _decode(data if is_opened else sealing.erase_record(data))
        if event is None:
            return
        units = sealing.units_of(event, "all")
        own = [unit for unit in units if self._is_whole or unit in found.units]
        # The order does not say which key belongs to an event alone: it is one of the known keys.
        is_own = bool(own) or Unit(event.space, "entry", event.id) in found.units
        if event.is_erased and is_opened:
            found.erased += is_own
            return
        if own and ids:
            # An entry about a person goes with that person, with all its later texts.
            own += [unit for unit in units if unit not in own and unit[1:] == ("entry", event.id)]
            found.units.update(own)
            # The keys of an event's own units come first, in their order.
            found.keys.update((id_, None) for unit, id_ in zip(units, ids, strict=False) if unit in own)
        if not found.keys.keys().isdisjoint(ids):
            (found.own if is_own else found.derived)[event.kind] += 1
        elif is_own:
            found.unsealed[event.kind] += 1


def _decode(data: bytes) -> Event | None:
    try:
        return codec.decode(data)
    except InvalidEvent:
        return None
