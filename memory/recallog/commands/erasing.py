"""Erasures: one event and the destruction of its keys make the content of a unit unreadable everywhere.

1. the keys of the unit are retired: later events get new ones. Keys of entries are retired when they are destroyed
2. the ledger is searched for the keys that its records name
3. an event says which keys are erased, by whom and why
4. the keys are destroyed
5. views and index are built again next to the present ones, and replace them

After a crash between 3 and 4, the next process that folds the event destroys the keys. Therefore an interrupted erasure
is always completed.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from recallog.access import MemoryAccess
from recallog.commands.making import make_event
from recallog_schemas import Event, Position, limits
from recallog_schemas.errors import InvalidArgument, ViewsBehind
from recallog_schemas.sealing import ERASURE, Unit
from recallog_schemas.views import ErasureReport, KindCount
from recallog_streams import erasing, generations
from recallog_streams.erasing import Traces
from recallog_streams.keys.sealing_keys import name_of
from recallog_streams.progress import Progress

if TYPE_CHECKING:
    from recallog.reading.projection_group import ProjectionGroup
    from recallog_projections.stores.store import Store

_POLL_SECONDS = 0.1
WORKER_SECONDS = 60.0
"""How long an erasure waits for workers that make no progress."""
COLLECTED_SECONDS = 60.0
"""How long an erasure waits until former views are deleted."""


def unit_of(space: str, subject: str | None, entry: str | None, *, all_: bool) -> Unit:
    """The unit that the arguments of a call name. Raises `InvalidArgument` unless they name exactly one."""
    if (subject is not None) + (entry is not None) + all_ != 1:
        text = "subject: give a subject, an entry, or all (the whole space): one of them"
        raise InvalidArgument(text, path="subject", rule="one_of")
    if subject is not None:
        return Unit(space, "subject", subject)
    return Unit(space, "space", "") if entry is None else Unit(space, "entry", entry)


async def erase(
    access: MemoryAccess,
    units: Sequence[Unit],
    by: str,
    reason: str | None,
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> ErasureReport:
    """Erase units of one kind and one space. Returns when no view and no index contains them."""
    ledger, progress = access.components.ledger, progress or access.progress
    await ledger.open()
    store = None if await ledger.sealing.refresh() is None else ledger.sealing.keys
    known: Sequence[str] = ()
    if store is not None:
        present = await store.present([name_of(unit) for unit in units])
        is_entry = units[0].kind == "entry"  # only this call knows the key of a single event
        known = [key.id for key in present.values()] if dry_run or is_entry else await store.retire(units)
    found = await erasing.find_traces(ledger, units, known, progress)
    if dry_run or store is None:
        return _report(units, found, None, dry_run=dry_run)
    position, partition = None, ledger.partition_of(units[0].space)
    keys: Sequence[str] = ()
    if found.events:
        keys = [*dict.fromkeys([*found.keys, *(() if is_entry else await store.retire([*found.units]))])]
        position = (await access.append(_events(units, keys, found, by, reason)))[-1]
    await store.destroy(keys, partition)
    if end := (await ledger.ends())[partition]:  # even if nothing was found: another call may have been interrupted
        await fold_again(access, position or Position(partition, end - 1), progress)
    return _report(units, found, position, dry_run=False)


async def erase_events(access: MemoryAccess, space: str, ids: Sequence[str], by: str) -> ErasureReport:
    """Erase single events that are each sealed with a separate key."""
    return await erase(access, [Unit(space, "entry", id_) for id_ in ids], by, None)


def _events(units: Sequence[Unit], keys: Sequence[str], found: Traces, by: str, reason: str | None) -> list[Event]:
    """The events that record an erasure: one, or several if it has more names or keys than one event can hold."""
    names = [unit.name for unit in units if unit.name]
    more = {"unit": units[0].kind, "events": found.events} | ({} if reason is None else {"reason": reason})
    parts = zip_longest(_parts(names, limits.EVENT_IDS_MAX), _parts(keys, limits.ERASED_KEYS_MAX), fillvalue=())
    return [
        make_event(units[0].space, by, ERASURE, {"names": [*some], "keys": [*of_some], **more})
        for some, of_some in parts
    ]


def _parts(texts: Sequence[str], size: int) -> list[Sequence[str]]:
    return [texts[first : first + size] for first in range(0, len(texts), size)]


def _report(units: Sequence[Unit], found: Traces, position: Position | None, *, dry_run: bool) -> ErasureReport:
    return ErasureReport(
        space=units[0].space,
        unit=units[0].kind,
        names=tuple(unit.name for unit in units if unit.name),
        dry_run=dry_run,
        erased=found.events,
        kinds=_counts(found.own),
        made_from=_counts(found.derived),
        unsealed=_counts(found.unsealed),
        erased_before=found.erased,
        position=position,
    )


def _counts(kinds: Counter[str]) -> tuple[KindCount, ...]:
    return tuple(KindCount(kind=kind, events=count) for kind, count in sorted(kinds.items()))


async def fold_again(access: MemoryAccess, erased: Position, progress: Progress | None) -> None:
    """Wait until all views and the index have processed the event at `erased`.

    Generations that were begun earlier cannot process it: see `Projector.commit`.
    """
    components = access.components
    for group in components.groups():
        if components.ledger.folded_by_workers:
            await _wait_for_workers(group, erased, progress)
        else:
            async with group.catching_up(None, 0.0) as catch_up:
                await generations.current(group.builder, erased.partition, progress, catch_up=catch_up)
            await group.store.collect_garbage(erased.partition)
        await _wait_until_collected(group.store, erased.partition)
    if components.index is not None and components.index.exists():
        await access.memory.catch_up_index(progress, partition=erased.partition)
        await _wait_until_collected(components.index.rows, erased.partition)


async def _wait_until_collected(store: "Store", partition: int) -> None:
    """Wait until former generations are deleted, even from the bytes of files."""
    give_up = time.monotonic() + COLLECTED_SECONDS
    while await store.has_garbage(partition):
        if time.monotonic() > give_up:
            raise ViewsBehind(
                f"the keys are destroyed, and {store.location} still has bytes of former views, which another process "
                "reads, or for whose deletion the disk has no space. Erase the same again"
            )
        await asyncio.sleep(_POLL_SECONDS)


async def _wait_for_workers(group: "ProjectionGroup", erased: Position, progress: Progress | None) -> None:
    store, done, since = group.store, -1, time.monotonic()
    while True:
        pointer = await store.pointer(erased.partition)
        shown = [each for each in (pointer.active, pointer.building) if each is not None]
        offsets = [-1 if each is None else each.offset for each in [await store.checkpoint(of) for of in shown]]
        if pointer.active is not None and offsets[0] >= erased.offset:
            return
        if sum(offsets) != done:
            done, since = sum(offsets), time.monotonic()
            if progress is not None and offsets:
                progress(min(offsets[-1], erased.offset) + 1, erased.offset + 1)
        if time.monotonic() - since > WORKER_SECONDS:
            raise ViewsBehind(
                f"the keys are destroyed, and no worker builds the views {group.name} of partition "
                f"{erased.partition} again. Start one: recallog worker. Until then old views may show what is erased"
            )
        await asyncio.sleep(_POLL_SECONDS)
