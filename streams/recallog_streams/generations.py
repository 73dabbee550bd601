"""Generations: the first one, the one that an upgrade builds, the one that an operator asks for, and the cutover.

All three are the same thing: a building generation, folded from offset zero beside the active one, which then takes
its place by one atomic write. Nobody reads a half-built one, and killing the builder anywhere loses only its work:
whoever builds next joins the generation that is there.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from recallog_projections.stores.store import Checkpoint, Generation, Pointer, Store
from recallog_schemas.errors import NewDeadLetters, OutOfRange, Rebuilding, ViewsTooNew
from recallog_streams import dead_letters
from recallog_streams.projector import GenerationGone, Progress, Projector


@dataclass(frozen=True, slots=True)
class BuildInProgress:
    """A building generation of this code."""

    generation: Generation
    joined: bool
    """It was under way already, by another process or before a crash."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuild did."""

    replaced: Generation | None
    active: Generation
    joined: bool
    """See `BuildInProgress`."""


async def current(projector: Projector, partition: int, progress: Progress | None = None) -> Generation:
    """The active generation, brought up to the ledger's end as it is now; built first where there is none.

    Raises `ViewsTooNew` where newer code has built the views, `NewDeadLetters` where an upgrade would reject what the
    replaced views remember.
    """
    until = (await projector.ledger.ends())[partition]
    lost: Generation | None = None
    while True:
        pointer = await projector.store.pointer(partition)
        active = pointer.active
        try:
            if active is not None and active != lost and active.code == projector.fold.code:
                await projector.catch_up(active, until, progress)
                return active
            begun = await _begin(projector, partition, pointer)
            if begun is not None:
                await complete(projector, begun, progress, accept=False)
        except Rebuilding:
            # A cutover went on meanwhile; or the pointer names what the store has lost, which is then built again.
            lost = active if active is not None and await projector.store.checkpoint(active) is None else None


async def rebuild(
    projector: Projector, partition: int, progress: Progress | None = None, *, accept: bool = False
) -> Rebuilt:
    """Fold everything from offset zero into a new generation and cut over to it.

    Joins one under way. Raises `NewDeadLetters`, unless `accept`, where the new generation has new dead letters (up to
    the active checkpoint) that the replaced one does not; it then stays beside the active one.
    """
    while True:
        try:
            return await complete(projector, await begin(projector, partition), progress, accept=accept)
        except Rebuilding:
            continue  # another process cut over or gave up meanwhile


async def abort(projector: Projector, partition: int) -> Generation | None:
    """Give up the building generation; None where there is none."""
    pointer = await projector.store.pointer(partition)
    if pointer.building is None or not await projector.store.retire(pointer.building):
        return None
    await projector.store.collect_garbage(partition)
    return pointer.building


async def begin(projector: Projector, partition: int) -> BuildInProgress:
    """Make a building generation of this code, or join the one that is there. Raises `ViewsTooNew`."""
    while True:
        begun = await _begin(projector, partition, await projector.store.pointer(partition))
        if begun is not None:
            return begun


async def _begin(projector: Projector, partition: int, pointer: Pointer) -> BuildInProgress | None:
    """`begin` for a caller that has read `pointer`; None where another process has changed that meanwhile.

    In particular, no generation is made beside one that became active after `pointer` was read: two processes that
    find no views would otherwise build them twice, and replace views that readers already use.
    """
    store, mine = projector.store, projector.fold.code
    for known in (pointer.active, pointer.building):
        if known is not None:
            _refuse_newer(known.code, mine)
    if pointer.building is not None and await _is_useless(projector, pointer.building):
        await store.retire(pointer.building)
    wanted = projector.new_generation(partition, (await projector.ledger.ends())[partition])
    found = await store.create(wanted, replaces=pointer.active)
    if found.active != pointer.active or found.building is None or found.building.code != mine:
        return None
    return BuildInProgress(found.building, joined=found.building != wanted)


async def complete(
    projector: Projector, begun: BuildInProgress, progress: Progress | None = None, *, accept: bool
) -> Rebuilt:
    """Bring the building generation to the ledger's end and cut over to it.

    Raises `NewDeadLetters` as `rebuild` does, and `GenerationGone` where somebody gave it up meanwhile.
    """
    store, building, partition = projector.store, begun.generation, begun.generation.partition
    replaced = (await store.pointer(partition)).active
    if replaced == building:  # one who had joined cut over already
        return Rebuilt(None, building, begun.joined)
    if replaced is not None and await store.checkpoint(replaced) is None:
        replaced = None
    judged = -1
    while True:
        # To the ledger's end, not to where the active one is: it will be further by then.
        until = max(building.until, (await projector.ledger.ends())[partition])
        done = await projector.catch_up(building, until, progress)
        if replaced is not None and not accept:
            with suppress(Rebuilding):  # one of the two is gone, which the next lines find out
                judged = await _judge(store, replaced, building, done, judged)
        if await store.activate(building, unless_beyond=None if replaced is None or accept else judged):
            await store.collect_garbage(partition)
            return Rebuilt(replaced, building, begun.joined)
        now = await store.pointer(partition)
        if now.active == building:
            return Rebuilt(replaced, building, begun.joined)
        if now.building != building:
            raise GenerationGone(f"the generation {building.id} is retired")


async def _is_useless(projector: Projector, building: Generation) -> bool:
    """Left behind by other code, or lost by the store."""
    return building.code != projector.fold.code or await projector.store.checkpoint(building) is None


async def _judge(store: Store, active: Generation, building: Generation, done: Checkpoint, judged: int) -> int:
    """The offset up to which the active generation may be replaced by `building`, which has processed up to `done`.

    Up to there `building` has no dead letter for a record that the active one applied, or may apply meanwhile. Up to
    `judged` that is known already: a round costs what came since the last one, and what `building` has processed
    without parking it needs no comparison. So a live writer that never rests is overtaken by a builder that is about as
    fast.

    Raises `NewDeadLetters`, or `GenerationGone`.
    """
    letters = await dead_letters.all_dead_letters(store, building, beyond=judged)
    if not letters:
        return done.offset
    live = await store.checkpoint(active)
    if live is None:
        raise GenerationGone(f"the generation {active.id} is gone")
    known = {letter.offset for letter in await dead_letters.all_dead_letters(store, active, beyond=judged)}
    new = [letter for letter in letters if letter.offset <= live.offset and letter.offset not in known]
    if new:
        raise NewDeadLetters(
            f"{len(new):,} record(s) that the live views remember are dead letters in the new generation, the first "
            f"at {active.partition}:{new[0].offset} ({new[0].reason}: {new[0].detail}). The live views stay. Cut over "
            "all the same: recallog rebuild --accept; give it up: recallog rebuild --abort"
        )
    return min([done.offset, *(letter.offset - 1 for letter in letters if letter.offset > live.offset)])


def _refuse_newer(theirs: str, mine: str) -> None:
    """Old code that rebuilt what newer code has built would take turns with it for ever; so would shorter logs."""
    built, ours = json.loads(theirs), json.loads(mine)
    versions, known = _versions(built), _versions(ours)
    newer = sorted(name for name in versions if versions[name] > known.get(name, versions[name]))
    if newer:
        raise ViewsTooNew(
            f"the views were built by a newer version ({newer[0]}: {versions[newer[0]]}, here {known[newer[0]]}). "
            "Upgrade this process: pip install --upgrade recallog"
        )
    longer = sorted(log for log, keep in built.get("keep", {}).items() if keep > ours["keep"].get(log, keep))
    if longer and versions == known:
        raise ViewsTooNew(
            f"the views keep {built['keep'][longer[0]]:,} entries of {longer[0]}, and this process is set to "
            f"{ours['keep'][longer[0]]:,}. Set RECALLOG_LOG_EVENTS alike for all processes of a folder; to keep less, "
            "delete its views, and they are built again"
        )


def _versions(code: Mapping[str, Any]) -> dict[str, int]:
    """What the code of a generation consists of, each part with its version."""
    return {**code["projections"], "the catalogue of kinds": code["catalogue"], "the fold": code.get("fold", 1)}


def check_readable(theirs: str, mine: str) -> None:
    """Raise where rows that `theirs` has written are not for code `mine` to read: `ViewsTooNew`, or `Rebuilding`."""
    if theirs != mine:
        _refuse_newer(theirs, mine)
        raise Rebuilding(
            "the views are of an older version, until workers of this version have built theirs. Start one: recallog "
            "worker"
        )


def check_position(ends: list[int], partition: int, offset: int) -> None:
    """Raise `OutOfRange` where the ledger does not hold that position."""
    if not 0 <= partition < len(ends) or not 0 <= offset < ends[partition]:
        end = ends[partition] if 0 <= partition < len(ends) else 0
        last = f"the last position is {partition}:{end - 1}" if end else "the ledger is empty"
        raise OutOfRange(f"there is no position {partition}:{offset}; {last}")
