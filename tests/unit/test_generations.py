"""Generations: first start, upgrade, rebuild, cutover, and refused ledgers."""

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import ClassVar

import msgspec
import pytest

from recallog_projections.projection import Projection
from recallog_projections.rows import Changes, Rows
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.store import Checkpoint, Generation, Outcome, Pointer, Store
from recallog_projections.views import builtin
from recallog_projections.views.activity import ActivityProjection
from recallog_schemas import Record, codec
from recallog_schemas.errors import LedgerMismatch, NewDeadLetters, ViewsTooNew
from recallog_streams import generations
from recallog_streams.ledgers.memory import MemoryLedger
from recallog_streams.projector import Projector
from support.events import numbered
from support.folding import dead_letter_offsets, finish, ledger_at
from support.scheduler import Process, SteppedLedger, SteppedStore


class NewerActivity(ActivityProjection):
    version: ClassVar[int] = ActivityProjection.version + 1


class OlderActivity(ActivityProjection):
    version: ClassVar[int] = ActivityProjection.version - 1


class Refusing(NewerActivity):
    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        for record in run:
            if record.event.turn == 3:
                raise ValueError("not this one")
            super().apply(rows, [record])


def projector_of(ledger: MemoryLedger, store: Store, activity: ActivityProjection | None = None) -> Projector:
    projections: Sequence[Projection] = [
        (activity or projection) if projection.name == "activity" else projection
        for projection in builtin.projections()
    ]
    return Projector(ledger, store, projections)


def stepped(store: MemoryStore) -> SteppedStore:
    return SteppedStore(store, lambda: False, [])


@pytest.fixture
def ledger() -> MemoryLedger:
    return ledger_at([codec.encode(each) for each in numbered(10)], batch_records=3)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def test_the_first_query_builds_the_first_generation(ledger: MemoryLedger, store: MemoryStore) -> None:
    active = finish(generations.current(projector_of(ledger, store), 0))
    pointer = finish(store.pointer(0))
    assert (pointer.active, pointer.building) == (active, None)
    assert finish(store.checkpoint(active)).offset == 9  # type: ignore[union-attr]


def test_the_first_generation_becomes_active_only_at_the_end_of_the_ledger(
    ledger: MemoryLedger, store: MemoryStore
) -> None:
    builder = Process("builder", _query(Projector(ledger, stepped(store), builtin.projections())))
    reached = []
    while builder.alive:
        builder.step()
        active = finish(store.pointer(0)).active
        if active is not None:
            reached.append(finish(store.checkpoint(active)).offset)  # type: ignore[union-attr]
    assert set(reached) == {9}


async def _query(projector: Projector) -> None:
    await generations.current(projector, 0)


@pytest.mark.parametrize("views", ["none", "of older code", "lost"])
@pytest.mark.parametrize("ahead_by", range(0, 40))
def test_two_processes_that_find_no_views_build_them_once(
    ledger: MemoryLedger, store: MemoryStore, views: str, ahead_by: int
) -> None:
    """The second one builds and cuts over while the first one is at any of its calls."""
    if views == "of older code":
        finish(generations.current(projector_of(ledger, store, OlderActivity()), 0))
    elif views == "lost":
        del store._tables[finish(generations.current(projector_of(ledger, store), 0)).id]
    found: list[Generation] = []

    async def first() -> None:
        found.append(await generations.current(projector_of(ledger, stepped(store)), 0))

    process = Process("first", first())
    for _ in range(ahead_by):
        if process.alive:
            process.step()
    second = finish(generations.current(projector_of(ledger, store), 0))
    while process.alive:
        process.step()
    assert found == [second]
    assert finish(store.pointer(0)) == Pointer(active=second)
    assert list(store._tables) == [second.id]


@pytest.mark.parametrize("step", range(0, 40))
def test_a_live_writer_that_goes_on_during_a_rebuild_does_not_stop_it(
    ledger: MemoryLedger, store: MemoryStore, step: int
) -> None:
    """The ledger grows, and the live views follow it, while the rebuild is at any of its calls."""
    finish(generations.current(projector_of(ledger, store), 0))

    async def rebuild() -> None:
        stepped_ledger = SteppedLedger(ledger, lambda: False)
        projector = Projector(stepped_ledger, stepped(store), builtin.projections())
        await generations.rebuild(projector, 0)

    process = Process("rebuild", rebuild())
    for _ in range(step):
        if process.alive:
            process.step()
    finish(ledger.append(numbered(2, first=10)))
    finish(generations.current(projector_of(ledger, store), 0))
    while process.alive:
        process.step()
    active = finish(generations.current(projector_of(ledger, store), 0))
    assert finish(store.checkpoint(active)).offset == 11  # type: ignore[union-attr]


def test_the_next_query_folds_only_new_records(ledger: MemoryLedger, store: MemoryStore) -> None:
    projector = projector_of(ledger, store)
    first = finish(generations.current(projector, 0))
    finish(ledger.append(numbered(2, first=10)))
    seen: list[tuple[int, int]] = []
    assert finish(generations.current(projector, 0, lambda *progress: seen.append(progress))) == first
    assert seen == [(12, 12)]


def test_newer_code_builds_a_generation_of_its_own_and_cuts_over(ledger: MemoryLedger, store: MemoryStore) -> None:
    old = finish(generations.current(projector_of(ledger, store), 0))
    new = finish(generations.current(projector_of(ledger, store, NewerActivity()), 0))
    assert finish(store.pointer(0)).active == new != old
    assert finish(store.checkpoint(old)) is None


def test_a_commit_of_the_replaced_generation_is_refused(ledger: MemoryLedger, store: MemoryStore) -> None:
    old = finish(generations.current(projector_of(ledger, store), 0))
    checkpoint = finish(store.checkpoint(old))
    finish(generations.rebuild(projector_of(ledger, store), 0))
    assert checkpoint is not None
    outcome = finish(store.commit(old, checkpoint, Checkpoint(checkpoint.offset + 1), Changes()))
    assert outcome is Outcome.RETIRED


def test_older_code_is_refused_on_views_of_newer_code(ledger: MemoryLedger, store: MemoryStore) -> None:
    new = finish(generations.current(projector_of(ledger, store, NewerActivity()), 0))
    for ask in (generations.current, generations.rebuild):
        with pytest.raises(ViewsTooNew, match=f"activity: {NewerActivity.version}, here {ActivityProjection.version}"):
            finish(ask(projector_of(ledger, store), 0))
    assert finish(store.pointer(0)).active == new


def test_code_with_an_older_catalogue_is_refused_on_newer_views(ledger: MemoryLedger, store: MemoryStore) -> None:
    projector = projector_of(ledger, store)
    theirs = msgspec.structs.replace(
        projector.new_generation(0, 0), code=json.dumps({**json.loads(projector.fold.code), "catalogue": 99})
    )
    finish(store.create(theirs))
    assert finish(store.activate(theirs))
    with pytest.raises(ViewsTooNew, match="catalogue of kinds: 99"):
        finish(generations.current(projector, 0))


def test_a_rebuild_joins_the_one_that_a_crash_left_behind(ledger: MemoryLedger, store: MemoryStore) -> None:
    projector = projector_of(ledger, store)
    active = finish(generations.current(projector, 0))
    left = finish(store.create(projector.new_generation(0, 10), replaces=active)).building
    assert left is not None
    finish(projector.catch_up(left, 4))
    rebuilt = finish(generations.rebuild(projector_of(ledger, store), 0))
    assert (rebuilt.active, rebuilt.joined) == (left, True)


def test_an_unfinished_generation_of_other_code_is_abandoned(ledger: MemoryLedger, store: MemoryStore) -> None:
    old = projector_of(ledger, store)
    left = finish(store.create(old.new_generation(0, 10))).building
    active = finish(generations.current(projector_of(ledger, store, NewerActivity()), 0))
    assert active != left
    assert finish(store.pointer(0)).building is None


def test_an_aborted_rebuild_leaves_the_live_views(ledger: MemoryLedger, store: MemoryStore) -> None:
    projector = projector_of(ledger, store)
    active = finish(generations.current(projector, 0))
    left = finish(store.create(projector.new_generation(0, 10), replaces=active)).building
    assert left is not None
    assert finish(generations.abort(projector, 0)) == left
    assert finish(generations.abort(projector, 0)) is None
    assert finish(generations.current(projector, 0)) == active


def test_new_dead_letters_prevent_the_cutover_until_they_are_accepted(ledger: MemoryLedger, store: MemoryStore) -> None:
    old = finish(generations.current(projector_of(ledger, store), 0))
    refusing = projector_of(ledger, store, Refusing())
    for ask in (generations.current, generations.rebuild):
        with pytest.raises(NewDeadLetters, match=r"0:3 \(projection_failed"):
            finish(ask(refusing, 0))
    assert finish(store.pointer(0)).active == old
    rebuilt = finish(generations.rebuild(refusing, 0, accept=True))
    assert (rebuilt.replaced, rebuilt.joined) == (old, True)
    assert finish(store.pointer(0)).active == rebuilt.active


@pytest.mark.parametrize("ahead_by", range(0, 60))
def test_a_record_applied_by_the_live_views_between_comparison_and_cutover_prevents_the_cutover(
    store: MemoryStore, ahead_by: int
) -> None:
    """The new generation had it as a dead letter, and replaced views that had been compared before they applied it."""
    ledger = ledger_at([codec.encode(each) for each in numbered(3)])
    live = projector_of(ledger, store)
    old = finish(generations.current(live, 0))
    ledger.append_bytes(codec.encode(numbered(1, first=3)[0]))
    builder = Process("builder", _refused_or_first(projector_of(ledger, stepped(store), Refusing())))
    for _ in range(ahead_by):
        if builder.alive:
            builder.step()
    if finish(store.pointer(0)).active == old:
        finish(live.catch_up(old, 4))
    checkpoint = finish(store.checkpoint(old))
    remembered_it = checkpoint is not None and checkpoint.record == 3
    while builder.alive:
        builder.step()
    assert (finish(store.pointer(0)).active == old) == remembered_it


async def _refused_or_first(projector: Projector) -> None:
    with suppress(NewDeadLetters):
        await generations.rebuild(projector, 0)


@pytest.mark.parametrize("ahead_by", range(0, 80, 4))
def test_a_dead_letter_of_both_generations_does_not_prevent_the_cutover(store: MemoryStore, ahead_by: int) -> None:
    ledger = ledger_at([codec.encode(each) for each in numbered(3)])
    live = projector_of(ledger, store, Refusing())
    old = finish(generations.current(live, 0))
    for each in numbered(3, first=3):
        ledger.append_bytes(codec.encode(each))
    builder = Process("builder", _rebuilt(projector_of(ledger, stepped(store), Refusing())))
    for offset in (3, 4, 5):
        for _ in range(ahead_by):
            if builder.alive:
                builder.step()
        if finish(store.pointer(0)).active == old:
            finish(live.catch_up(old, offset + 1))
    while builder.alive:
        builder.step()
    active = finish(store.pointer(0)).active
    assert active is not None
    assert (active != old, dead_letter_offsets(store, active)) == (True, [3])


async def _rebuilt(projector: Projector) -> None:
    await generations.rebuild(projector, 0)


def test_a_fast_live_writer_does_not_postpone_the_cutover_indefinitely(
    ledger: MemoryLedger, store: MemoryStore
) -> None:
    old = finish(generations.current(projector_of(ledger, store), 0))

    async def live() -> None:
        projector = Projector(SteppedLedger(ledger, lambda: False), stepped(store), builtin.projections())
        for each in numbered(1_000, first=10):
            ledger.append_bytes(codec.encode(each))
            await generations.current(projector, 0)

    builder = Process(
        "builder", _rebuilt(Projector(SteppedLedger(ledger, lambda: False), stepped(store), builtin.projections()))
    )
    writer = Process("writer", live())
    while builder.alive:
        builder.step()
        writer.step()
    assert writer.alive
    writer.kill()
    assert finish(store.pointer(0)).active != old


def test_an_active_generation_that_the_store_has_lost_is_built_again(ledger: MemoryLedger, store: MemoryStore) -> None:
    lost = finish(generations.current(projector_of(ledger, store), 0))
    del store._tables[lost.id]
    active = finish(generations.current(projector_of(ledger, store), 0))
    assert active != lost
    assert finish(store.checkpoint(active)).offset == 9  # type: ignore[union-attr]


def test_views_of_another_ledger_are_refused(ledger: MemoryLedger, store: MemoryStore) -> None:
    finish(generations.current(projector_of(ledger, store), 0))
    other = ledger_at([codec.encode(each) for each in numbered(10)])
    with pytest.raises(LedgerMismatch, match="another ledger"):
        finish(generations.current(projector_of(other, store), 0))


def test_a_ledger_that_lost_its_last_processed_record_is_refused(ledger: MemoryLedger, store: MemoryStore) -> None:
    finish(generations.current(projector_of(ledger, store), 0))
    del ledger._values[-1]
    with pytest.raises(LedgerMismatch, match="is missing"):
        finish(generations.current(projector_of(ledger, store), 0))


def test_a_ledger_with_another_last_processed_record_is_refused(ledger: MemoryLedger, store: MemoryStore) -> None:
    finish(generations.current(projector_of(ledger, store), 0))
    ledger._values[-1] = ("village", codec.encode(numbered(1, first=99)[0]))
    with pytest.raises(LedgerMismatch, match="is another one"):
        finish(generations.current(projector_of(ledger, store), 0))
