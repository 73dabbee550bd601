"""Generations: the first one, the one that an upgrade builds, the one that an operator asks for, and the cutover.

All three are the same thing: a building generation, folded from offset zero beside the active one, which then takes
its place by one atomic write. Nobody reads a half-built one, and killing the builder anywhere loses only its work:
whoever builds next joins the generation that is there.
"""

import json
from contextlib import suppress
from dataclasses import dataclass

from recallog_projections.stores.store import Generation
from recallog_schemas.errors import NewDeadLetters, OutOfRange, Rebuilding, ViewsTooNew
from recallog_streams import dead_letters
from recallog_streams.dead_letters import Parked
from recallog_streams.projector import GenerationGone, Progress, Projector


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuild did."""

    replaced: Generation | None
    active: Generation
    joined: bool
    """The generation was under way already, by another process or before a crash."""


async def current(projector: Projector, partition: int, progress: Progress | None = None) -> Generation:
    """The active generation, brought up to the ledger's end as it is now; built first where there is none.

    Raises `ViewsTooNew` where newer code has built the views, `NewDeadLetters` where an upgrade would park what the
    replaced views remember.
    """
    until = (await projector.ledger.ends())[partition]
    lost: Generation | None = None
    while True:
        active = (await projector.store.pointer(partition)).active
        try:
            if active is not None and active != lost and active.code == projector.fold.code:
                await projector.catch_up(active, until, progress)
                return active
            await _build(projector, partition, until, progress, accept=False)
        except Rebuilding:
            # A cutover went on meanwhile; or the pointer names what the store has lost, which is then built again.
            lost = active if active is not None and await projector.store.checkpoint(active) is None else None


async def rebuild(
    projector: Projector, partition: int, progress: Progress | None = None, *, accept: bool = False
) -> Rebuilt:
    """Fold everything from offset zero into a new generation and cut over to it.

    Joins one under way. Raises `NewDeadLetters`, unless `accept`, where the new generation parks records (up to the
    active checkpoint) that the replaced one does not; it then stays beside the active one.
    """
    until = (await projector.ledger.ends())[partition]
    while True:
        try:
            return await _build(projector, partition, until, progress, accept=accept)
        except Rebuilding:
            continue  # another process cut over or gave up meanwhile


async def abort(projector: Projector, partition: int) -> Generation | None:
    """Give up the building generation; None where there is none."""
    pointer = await projector.store.pointer(partition)
    if pointer.building is None or not await projector.store.retire(pointer.building):
        return None
    await projector.store.sweep(partition)
    return pointer.building


async def new_dead_letters(projector: Projector, old: Generation, new: Generation) -> list[Parked]:
    """What `new` parks and `old` does not, up to the checkpoint of `old`."""
    store = projector.store
    checkpoint = await store.checkpoint(old)
    if checkpoint is None:
        raise GenerationGone(f"the generation {old.id} is gone")
    known = {parked.offset for parked in await dead_letters.all_parked(store, old)}
    parked = await dead_letters.all_parked(store, new, until=checkpoint.offset + 1)
    return [letter for letter in parked if letter.offset not in known]


async def _build(
    projector: Projector, partition: int, until: int, progress: Progress | None, *, accept: bool
) -> Rebuilt:
    """Bring a building generation of this code to the end and cut over."""
    store, mine = projector.store, projector.fold.code
    pointer = await store.pointer(partition)
    for known in (pointer.active, pointer.building):
        if known is not None:
            _refuse_newer(known.code, mine)
    if pointer.building is not None and await _is_useless(projector, pointer.building):
        await store.retire(pointer.building)
    wanted = projector.new_generation(partition, until)
    building = (await store.create(wanted)).building
    if building is None or building.code != mine:
        raise GenerationGone("another process builds with other code")
    replaced = pointer.active if pointer.active and await store.checkpoint(pointer.active) else None
    await projector.catch_up(building, max(until, building.until), progress)
    while True:
        if replaced is not None and not accept:
            with suppress(Rebuilding):  # it is gone: one who had joined cut over first, which activate finds out
                await _refuse_new_dead_letters(projector, replaced, building)
        if await store.activate(building):
            await store.sweep(partition)
            return Rebuilt(replaced, building, joined=building != wanted)
        now = await store.pointer(partition)
        if now.active == building:  # one who had joined cut over first
            return Rebuilt(replaced, building, joined=building != wanted)
        ahead = await store.checkpoint(now.active) if now.active else None
        if now.building != building or ahead is None:
            raise GenerationGone(f"the generation {building.id} is retired")
        await projector.catch_up(building, ahead.offset + 1, progress)


async def _is_useless(projector: Projector, building: Generation) -> bool:
    """Left behind by other code, or lost by the store."""
    return building.code != projector.fold.code or await projector.store.checkpoint(building) is None


async def _refuse_new_dead_letters(projector: Projector, active: Generation, building: Generation) -> None:
    parked = await new_dead_letters(projector, active, building)
    if parked:
        first = parked[0]
        raise NewDeadLetters(
            f"{len(parked):,} record(s) that the live views remember are dead letters in the new generation, the first "
            f"at {active.partition}:{first.offset} ({first.reason}: {first.detail}). The live views stay. Cut over all "
            "the same: recallog rebuild --accept; give it up: recallog rebuild --abort"
        )


def _refuse_newer(theirs: str, mine: str) -> None:
    """Old code that rebuilt what newer code has built would take turns with it for ever."""
    built, ours = json.loads(theirs), json.loads(mine)
    versions = {**built["projections"], "the catalogue of kinds": built["catalogue"]}
    known = {**ours["projections"], "the catalogue of kinds": ours["catalogue"]}
    newer = sorted(name for name in versions if versions[name] > known.get(name, versions[name]))
    if newer:
        raise ViewsTooNew(
            f"the views were built by a newer version ({newer[0]}: {versions[newer[0]]}, here {known[newer[0]]}). "
            "Upgrade this process: pip install --upgrade recallog"
        )


def check_position(ends: list[int], partition: int, offset: int) -> None:
    """Raise `OutOfRange` where the ledger does not hold that position."""
    if not 0 <= partition < len(ends) or not 0 <= offset < ends[partition]:
        end = ends[partition] if 0 <= partition < len(ends) else 0
        last = f"the last position is {partition}:{end - 1}" if end else "the ledger is empty"
        raise OutOfRange(f"there is no position {partition}:{offset}; {last}")
