"""Generations: building the first one, one for an upgrade, or one for an operator's rebuild, and the cutover to it.

In each case a building generation is folded from offset zero beside the active one, and one atomic write then makes it
active. Readers never use an incomplete generation. If the builder is killed, the next process that builds continues
with the same generation.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from recallog_projections.stores.store import Checkpoint, Generation, Pointer, Store
from recallog_schemas.errors import NewDeadLetters, Rebuilding, StorageError, ViewsTooNew
from recallog_streams import dead_letters
from recallog_streams.progress import Progress
from recallog_streams.projector import Backlog, CatchUp, GenerationGone, Projector


@dataclass(frozen=True, slots=True)
class BuildInProgress:
    """A building generation of this code."""

    generation: Generation
    joined: bool
    """Whether it existed already, from another process or from before a crash."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The result of a rebuild."""

    replaced: Generation | None
    active: Generation
    joined: bool
    """See `BuildInProgress`."""


async def current(
    projector: Projector,
    partition: int,
    progress: Progress | None = None,
    backlog: Backlog | None = None,
    catch_up: "CatchUp" = Projector.catch_up,
) -> Generation:
    """The active generation, after catching up to the ledger's present end; it is built first if there is none.

    A caller that has just read the `backlog` of the active generation passes it, which saves reads.

    Raises `ViewsTooNew` if newer code has built the views, and `NewDeadLetters` if an upgrade would reject records that
    the present views have applied.
    """
    if backlog is not None:
        with suppress(Rebuilding):
            if await projector.fits(backlog.generation):
                await projector.catch_up_on(backlog, progress)
                return backlog.generation
    until = (await projector.ledger.ends())[partition]
    lost: Generation | None = None
    while True:
        pointer = await projector.store.pointer(partition)
        active = pointer.active
        try:
            if active is not None and active != lost and await projector.fits(active):
                await catch_up(projector, active, until, progress)
                with suppress(StorageError):  # another process may have ended after a cutover, before this
                    await projector.store.collect_garbage(partition)
                return active
            begun = await _begin(projector, partition, pointer)
            if begun is not None:
                # Erased content must not stay in the views because a record depends on it.
                accept = active is not None and active.keys != begun.generation.keys
                tolerated = dead_letters.KEY_MISSING
                await complete(projector, begun, progress, accept=accept, tolerated=tolerated, catch_up=catch_up)
        except Rebuilding:
            # Another process cut over meanwhile, or the store has lost the generation, which is then built again.
            lost = active if active is not None and await projector.store.checkpoint(active) is None else None


async def rebuild(
    projector: Projector, partition: int, progress: Progress | None = None, *, accept: bool = False
) -> Rebuilt:
    """Fold everything from offset zero into a new generation and cut over to it.

    Joins one in progress. Raises `NewDeadLetters`, unless `accept`, if the new generation has dead letters (up to the
    active checkpoint) that the active one does not have; it then remains a building generation.
    """
    while True:
        try:
            return await complete(projector, await begin(projector, partition), progress, accept=accept)
        except Rebuilding:
            continue  # another process cut over or aborted meanwhile


async def abort(projector: Projector, partition: int) -> Generation | None:
    """Retire the building generation and return it; None if there is none."""
    pointer = await projector.store.pointer(partition)
    if pointer.building is None or not await projector.store.retire(pointer.building):
        return None
    await projector.store.collect_garbage(partition)
    return pointer.building


async def begin(projector: Projector, partition: int) -> BuildInProgress:
    """Create a building generation of this code, or join the existing one. Raises `ViewsTooNew`."""
    while True:
        begun = await _begin(projector, partition, await projector.store.pointer(partition))
        if begun is not None:
            return begun


async def _begin(projector: Projector, partition: int, pointer: Pointer) -> BuildInProgress | None:
    """`begin` for a caller that has read `pointer`; None if another process has changed it meanwhile.

    No generation is created beside one that became active after `pointer` was read. Otherwise two processes that find
    no views would build them twice, and replace views that readers already use.
    """
    store, mine = projector.store, projector.fold.code
    for known in (pointer.active, pointer.building):
        if known is not None:
            _refuse_newer(known.code, mine)
    if pointer.building is not None and await _is_useless(projector, pointer.building):
        await store.retire(pointer.building)
    await projector.ledger.sealing.refresh()
    wanted = projector.new_generation(partition, (await projector.ledger.ends())[partition])
    found = await store.create(wanted, replaces=pointer.active)
    building = found.building
    if found.active != pointer.active or building is None or (building.code, building.keys) != (mine, wanted.keys):
        return None
    return BuildInProgress(building, joined=building != wanted)


async def complete(
    projector: Projector,
    begun: BuildInProgress,
    progress: Progress | None = None,
    *,
    accept: bool,
    tolerated: str = "",
    catch_up: CatchUp = Projector.catch_up,
) -> Rebuilt:
    """Fold the building generation up to the ledger's end and cut over to it.

    If keys of sealed records are destroyed meanwhile, it begins another generation: readers never get a mixture. New
    dead letters with the reason `tolerated` do not stop it; then it begins none, since the live views may fit again.

    Raises `NewDeadLetters` as `rebuild` does, `GenerationGone` if it was retired meanwhile, and
    `LedgerMismatch` if the live views, lost or not, have processed records that the ledger does not have.
    """
    store, building, partition = projector.store, begun.generation, begun.generation.partition
    replaced = (await store.pointer(partition)).active
    if replaced == building:  # another process that joined it has cut over already
        return Rebuilt(None, building, begun.joined)
    if replaced is not None and await store.checkpoint(replaced) is None:
        replaced = None
    compared = -1
    while True:
        # Up to the ledger's end, not to the active checkpoint, which moves on meanwhile.
        until = (await projector.ledger.ends())[partition]
        await _check_end(projector, building, replaced, until)
        try:
            done = await catch_up(projector, building, until, progress)
        except GenerationGone:
            if await projector.has_keys(building):
                raise
            await store.retire(building)
            if tolerated:  # older keys were put back, and the same were destroyed: the new views would lack the others
                raise
            begun = await begin(projector, partition)
            return await complete(projector, begun, progress, accept=accept, catch_up=catch_up)
        if replaced is not None and not accept:
            with suppress(Rebuilding):  # one of the two is gone; the next lines find out which
                compared = await _compare_dead_letters(store, replaced, building, done, compared, tolerated)
        if await store.activate(building, unless_beyond=None if replaced is None or accept else compared):
            await store.collect_garbage(partition)
            return Rebuilt(replaced, building, begun.joined)
        now = await store.pointer(partition)
        if now.active == building:
            return Rebuilt(replaced, building, begun.joined)
        if now.building != building:
            raise GenerationGone(f"the generation {building.id} is retired")
        if replaced is None and now.active is not None and (await projector.ledger.ends())[partition] <= until:
            # The active one lacks only a part, such as a collection of the index, and is beyond the ledger's end.
            raise projector.mismatch(partition, until, "is missing")


async def _check_end(projector: Projector, building: Generation, active: Generation | None, end: int) -> None:
    """Raise `LedgerMismatch` if the ledger ends before records that it had: no rebuild of it reaches the live views."""
    live = None if active is None else await projector.store.checkpoint(active)
    processed = max(building.until - 1, -1 if live is None else live.record)
    # The ends are read again, since a live writer may have gone beyond `end` before its checkpoint was read.
    if processed >= end and processed >= (await projector.ledger.ends())[building.partition]:
        raise projector.mismatch(building.partition, processed, "is missing")


async def _is_useless(projector: Projector, building: Generation) -> bool:
    """Whether the store has lost it, or this code would fold another one."""
    return await projector.store.checkpoint(building) is None or not await projector.fits(building)


async def _compare_dead_letters(
    store: Store, active: Generation, building: Generation, done: Checkpoint, compared: int, tolerated: str
) -> int:
    """The offset up to which the active generation may be replaced by `building`, which has processed up to `done`.

    Up to that offset, `building` has no dead letter for a record that the active one has applied or may apply
    meanwhile. Up to `compared` this is known already. Only dead letters are compared, and only those since the last
    round, so a builder overtakes a live writer that never pauses if it is about as fast.

    Raises `NewDeadLetters`, or `GenerationGone`.
    """
    letters = [
        each
        for each in await dead_letters.all_dead_letters(store, building, beyond=compared)
        if each.reason != tolerated
    ]
    if not letters:
        return done.offset
    live = await store.checkpoint(active)
    if live is None:
        raise GenerationGone(f"the generation {active.id} is gone")
    known = {letter.offset for letter in await dead_letters.all_dead_letters(store, active, beyond=compared)}
    new = [letter for letter in letters if letter.offset <= live.offset and letter.offset not in known]
    if new:
        raise NewDeadLetters(
            f"{len(new):,} record(s) that the live views have applied are dead letters in the new generation, the "
            f"first at {active.partition}:{new[0].offset} ({new[0].reason}: {new[0].detail}). The live views remain. "
            "Cut over anyway: recallog rebuild --accept; cancel: recallog rebuild --abort"
        )
    return min([done.offset, *(letter.offset - 1 for letter in letters if letter.offset > live.offset)])


def _refuse_newer(theirs: str, mine: str) -> None:
    """Raise `ViewsTooNew` if newer code, or the same code with longer logs, has built the views.

    Otherwise two processes with different code would replace each other's views for ever.
    """
    built, ours = json.loads(theirs), json.loads(mine)
    versions, known = _versions(built), _versions(ours)
    newer = sorted(name for name in versions if versions[name] > known.get(name, versions[name]))
    if newer:
        raise ViewsTooNew(
            f"the views were built by a newer version ({newer[0]}: {versions[newer[0]]}, here {known[newer[0]]}). "
            "Install a newer version of Recallog for this process"
        )
    longer = sorted(log for log, keep in built.get("keep", {}).items() if keep > ours["keep"].get(log, keep))
    if longer and versions == known:
        raise ViewsTooNew(
            f"the views keep {built['keep'][longer[0]]:,} entries of {longer[0]}, and this process is set to "
            f"{ours['keep'][longer[0]]:,}. Set RECALLOG_LOG_EVENTS alike for all processes of a folder; to keep less, "
            "delete its views, and they are built again"
        )


def _versions(code: Mapping[str, Any]) -> dict[str, int]:
    """The parts of a generation's code, each with its version."""
    versions = {**code["projections"], "the catalogue of kinds": code["catalogue"], "the fold": code.get("fold", 1)}
    versions["the chain of the ledger"] = code.get("chain", 0)
    return {**versions, "the identity of events": code["identity"]} if "identity" in code else versions


def check_readable(theirs: str, mine: str) -> None:
    """Raise `ViewsTooNew` or `Rebuilding` if code `mine` cannot read rows that code `theirs` has written."""
    if theirs != mine:
        _refuse_newer(theirs, mine)
        raise Rebuilding(
            "an older version has built the views, and workers of this version have not yet replaced them. Start one: "
            "recallog worker"
        )
