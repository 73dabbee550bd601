"""Appending events, compared with plain sqlite3 that writes the same rows with the same durability."""

import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks.measure import Goal, Measure, Setup, interleaved, ratio, without_garbage_collection
from benchmarks.workload import batches, villages
from recallog import Event
from recallog_schemas import codec
from recallog_streams.ledgers.sqlite import LEDGER, SqliteLedger

_RATIO = Goal("≥", 0.7)

Written = tuple[str, str, bytes]
"""Space, id and value."""


async def measure(setup: Setup) -> list[Measure]:
    most = setup.size(50_000, 10_000)
    setup.report(f"append: creating {most:,} events")
    events = list(villages(most))
    measures: list[Measure] = []
    with without_garbage_collection():
        for size, count in ((1, setup.size(300, 100)), (100, setup.size(20_000, 5_000)), (1_000, most)):
            measures += await _compare(setup, events[:count], size)
    return measures


async def _compare(setup: Setup, events: list[Event], size: int) -> list[Measure]:
    ready = list(batches(iter(events), size))
    encoded = [[(event.space, event.id, codec.encode(event)) for event in batch] for batch in ready]
    taken = await interleaved(
        setup,
        f"append: {len(events):,} events in batches of {size:,}",
        {
            "ours": lambda: _ours(_fresh(setup.folder), ready),
            "bare": lambda: _bare(_fresh(setup.folder), encoded),
        },
    )
    rates = {side: [len(events) / seconds for seconds in runs] for side, runs in taken.items()}
    return [
        Measure(f"append {size}: ours", median(rates["ours"]), "events/s"),
        Measure(f"append {size}: bare sqlite3", median(rates["bare"]), "events/s"),
        Measure(
            f"append {size}: ours ÷ bare", ratio(rates["ours"], rates["bare"]), "", _RATIO if size == 1_000 else None
        ),
    ]


def _fresh(folder: Path) -> Path:
    home = folder / "append"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    return home / "ledger.db"


async def _ours(path: Path, ready: list[list[Event]]) -> float:
    ledger = SqliteLedger(path)
    try:
        await ledger.ends()  # opens the file
        began = time.perf_counter()
        for batch in ready:
            await ledger.append(batch)
        return time.perf_counter() - began
    finally:
        await ledger.close()


async def _bare(path: Path, encoded: list[list[Written]]) -> float:
    """Without threads, checks and encoding, but with our pragmas, so that the difference is the cost of our code."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.executescript(LEDGER.schema)
        for pragma in ("synchronous=FULL", "cache_size=-16384", "wal_autocheckpoint=4096"):
            connection.execute(f"PRAGMA {pragma}")
        began = time.perf_counter()
        for batch in encoded:
            _write(connection.execute, connection, batch)
        return time.perf_counter() - began
    finally:
        connection.close()


def _write(execute: Callable[..., sqlite3.Cursor], connection: sqlite3.Connection, batch: list[Written]) -> None:
    execute("BEGIN IMMEDIATE")
    numbers = {}
    for space in {space for space, _, _ in batch}:
        execute("INSERT OR IGNORE INTO spaces (name) VALUES (?)", (space,))
        (numbers[space],) = execute("SELECT number FROM spaces WHERE name = ?", (space,)).fetchone()
    (end,) = execute("SELECT coalesce(max(offset) + 1, 0) FROM events").fetchone()
    connection.executemany(
        "INSERT INTO events (offset, space, id, value) VALUES (?, ?, ?, ?)",
        [(end + n, numbers[space], id_, data) for n, (space, id_, data) in enumerate(batch)],
    )
    execute("COMMIT")
