"""A past as of a time that begins from a snapshot has the rows of the fold of all records."""

import random
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from recallog import Event, Memory
from recallog.components import Components
from recallog.composition import assemble
from recallog.reading.pasts import Pasts
from recallog.reading.read_session import ReadSession
from recallog.settings import Settings
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.store import Generation
from recallog_projections.tables import Log, LogName
from recallog_projections.views import time_blocks
from recallog_schemas import limits, triggers
from recallog_schemas.models.long_term.triggers import MIGRATION
from recallog_streams import answers, dead_letters, definitions, identity
from recallog_streams.ledgers.memory import MemoryLedger
from recallog_streams.projector import Projector
from support.campaigns import trials
from support.events import MOMENT, run
from support.random_entries import WorldEvents

pytestmark = pytest.mark.models("all")

EVENTS, MOMENTS, APPENDS = 120, 2, 8
NOT_OF_A_PAST = {answers.TABLE, dead_letters.TABLE, dead_letters.COUNT, definitions.TABLE, *identity.Identity.tables}
"""Which later parts of an answer count is compared by the rows of those parts."""


def random_history(rng: random.Random) -> list[Event]:
    """Events in the order of their times, except some that are late or early, and parts of competing answers."""
    world, late, answering = WorldEvents(rng), rng.choice((0.0, 0.03, 0.2, 1.0)), rng.choice((0.1, 0.4))
    history: list[Event] = []
    ids = set[str]()
    for number in range(EVENTS):
        new = random_part(rng) if rng.random() < answering else world.event()
        minute = rng.randrange(60) if rng.random() < late else 60 * number // EVENTS
        at = datetime.fromisoformat(MOMENT) + timedelta(minutes=minute, microseconds=rng.randrange(3))
        if (new.space, new.id) not in ids:
            history.append(new.model_copy(update={"at": at}))
        ids.add((new.space, new.id))
    return history


def random_part(rng: random.Random) -> Event:
    """A part of one of two answers to one of few triggers."""
    trigger = triggers.caused_by(MIGRATION, "village", "baker", rng.choice("abc"))
    return Event(
        id=trigger.part_id(rng.choice(("0123456789", "abcdef0123")), rng.randrange(1, 4)),
        space="village",
        agent="baker",
        kind="memory.retained",
        payload={"text": f"Rye costs {rng.randrange(99)}."},
        causation_id=trigger.id,
    )


async def contents(past: ReadSession, logs: Mapping[LogName, int], tables: set[str]) -> object:
    """All rows of tables, and the tails of logs."""
    assert isinstance(past.source, Generation)
    rows = {name: [item for item, _ in [pair async for pair in past.scan(name)]] for name in tables}
    tails = (await past.read([], [*logs.items()])).logs
    return rows, dict(zip(logs, tails, strict=True))


async def append_and_check(
    parts: Components, history: Sequence[Event], rng: random.Random, moments: Sequence[datetime]
) -> None:
    """Append a history in parts. After each, compare the kept pasts of one process with folds of all records."""
    pasts, size = Pasts(parts.ledger), len(history) // APPENDS
    for start in range(0, len(history), size):
        *_, last = await parts.ledger.append(history[start : start + size])
        await parts.views.access.catch_up(0, last, None)  # no snapshot has records that the views do not have
        await check(parts, pasts, rng, moments)


async def check(parts: Components, pasts: Pasts, rng: random.Random, moments: Sequence[datetime]) -> None:
    """Compare pasts with folds of all records from the first."""
    (end,) = await parts.ledger.ends()
    tables = {each.name for each in parts.views.builder.fold.tables if each not in NOT_OF_A_PAST}
    logs = {each.name for each in parts.views.builder.fold.tables if isinstance(each, Log)}
    for moment in moments:
        until = rng.choice((end, end, rng.randrange(1, end + 1)))
        projector = Projector(
            parts.ledger, MemoryStore(), parts.views.projections, space="village", remember_until=moment
        )
        generation = await projector.first_generation(0, until)
        await projector.catch_up(generation, until)
        whole = ReadSession(projector.store, 0, generation)
        found = await pasts.below(parts.views, "village", until, moment)
        (kept,) = projector.store._tables.values()  # type: ignore[attr-defined]
        names = dict.fromkeys(kept.logs, 10000)
        assert await contents(found, names, tables - logs) == await contents(whole, names, tables - logs)


@pytest.mark.parametrize("seed", range(trials(25, of=1_000)))
def test_a_past_as_of_a_time_has_the_rows_of_the_fold_of_all_records(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(time_blocks, "BLOCK_EVENTS", rng.choice((1, 3, 8)))
    history = random_history(rng)
    moments = [rng.choice(history).at + timedelta(microseconds=rng.choice((-1, 0, 1))) for _ in range(MOMENTS)]

    async def work(folder: Path) -> None:
        settings = Settings.of_folder(folder).model_copy(update={"snapshot_records": rng.choice((5, 12))})
        async with Memory.open(settings) as memory:
            await append_and_check(memory._components, history, rng, moments)

    with tempfile.TemporaryDirectory() as folder:
        run(work(Path(folder)))


@pytest.mark.parametrize("seed", range(trials(25, of=1_000)))
def test_a_past_that_begins_from_one_in_memory_counts_repeats_once(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(time_blocks, "BLOCK_EVENTS", rng.choice((1, 3, 8)))
    monkeypatch.setattr(limits, "PAST_STEP_RECORDS", rng.choice((5, 12)))
    history = random_history(rng)
    for number in range(2, len(history)):
        if rng.random() < 0.1:  # a repeat or a conflict, at another time
            changed = {"at": rng.choice(history).at} | rng.choice(({}, {"turn": 777}))
            history[number] = rng.choice(history[:number]).model_copy(update=changed)
    moments = [rng.choice(history).at for _ in range(MOMENTS)]

    async def work() -> None:
        parts = assemble(MemoryLedger(unique_ids=False), lambda name: MemoryStore())
        await append_and_check(parts, history, rng, moments)

    run(work())
