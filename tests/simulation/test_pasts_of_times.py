"""A past as of a time that begins from a snapshot has the rows of the fold of all records."""

import random
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from recallog import Event, Memory
from recallog.reading.pasts import Pasts
from recallog.reading.read_session import ReadSession
from recallog.settings import Settings
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.store import Generation
from recallog_projections.tables import Log, LogName
from recallog_projections.views import time_blocks
from recallog_schemas import triggers
from recallog_schemas.models.long_term.triggers import MIGRATION
from recallog_streams import answers, dead_letters, definitions
from support.campaigns import trials
from support.events import MOMENT, run
from support.random_entries import WorldEvents

pytestmark = pytest.mark.models("all")

EVENTS, MOMENTS = 120, 4
NOT_OF_A_PAST = {answers.TABLE, dead_letters.TABLE, dead_letters.COUNT, definitions.TABLE, time_blocks.BLOCKS}
"""Which later parts of an answer count is compared by the rows of those parts."""


def random_history(rng: random.Random) -> list[Event]:
    """Events in the order of their times, but for some that are late or early, and parts of competing answers."""
    world, late = WorldEvents(rng), rng.choice((0.0, 0.03, 0.2, 1.0))
    history: list[Event] = []
    ids = set[str]()
    for number in range(EVENTS):
        new = random_part(rng) if rng.random() < 0.1 else world.event()
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


@pytest.mark.parametrize("seed", range(trials(25, of=1_000)))
def test_a_past_as_of_a_time_has_the_rows_of_the_fold_of_all_records(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(time_blocks, "BLOCK_EVENTS", rng.choice((1, 3, 8)))
    history = random_history(rng)

    async def work(folder: Path) -> None:
        settings = Settings.of_folder(folder).model_copy(update={"snapshot_records": rng.choice((5, 12))})
        async with Memory.open(settings) as memory:
            parts = memory._components
            for part in (history[: EVENTS // 2], history[EVENTS // 2 :]):
                await parts.ledger.append(part)
                await memory.episodic("village", "baker")
                pasts, end = Pasts(parts.ledger), (await parts.ledger.ends())[0]
                folded = replace(parts.views, snapshot_records=0)
                for _ in range(MOMENTS):
                    moment = rng.choice(history).at + timedelta(microseconds=rng.choice((-1, 0, 1)))
                    until = rng.choice((end, end, rng.randrange(1, end + 1)))
                    whole = await pasts.below(folded, "village", until, moment)
                    found = await pasts.below(parts.views, "village", until, moment)
                    assert isinstance(whole.store, MemoryStore)
                    assert not isinstance(found.store, MemoryStore)
                    all_of = [each for each in parts.views.builder.fold.tables if each not in NOT_OF_A_PAST]
                    tables = {each.name for each in all_of if not isinstance(each, Log)}
                    (kept,) = whole.store._tables.values()
                    logs = {name: 10_000 for name in kept.logs}
                    assert {*found.store._entries} <= {*logs}
                    assert await contents(found, logs, tables) == await contents(whole, logs, tables)

    with tempfile.TemporaryDirectory() as folder:
        run(work(Path(folder)))
