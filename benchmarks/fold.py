"""Folding in one process, with decoding: catching up with new events, and a rebuild from offset zero."""

from pathlib import Path
from statistics import median

from benchmarks.homes import grow, opened, restore_views
from benchmarks.measure import Goal, Measure, Setup, interleaved, seconds, without_garbage_collection
from benchmarks.workload import villages
from recallog_streams import generations

BEFORE = 20_000
"""Events that the views contain before the measurement starts."""

_RATE = Goal("≥", 30_000)


async def measure(setup: Setup) -> list[Measure]:
    grown = setup.size(100_000, 20_000)
    folder = setup.folder / "fold"
    setup.report(f"fold: appending {BEFORE + grown:,} events")
    await grow(folder, villages(BEFORE + grown), BEFORE)
    with without_garbage_collection():
        taken = await interleaved(
            setup, "fold: live, then rebuild", {"live": lambda: _live(folder), "rebuild": lambda: _rebuild(folder)}
        )
    return [
        Measure("fold: live", median(grown / run for run in taken["live"]), "events/s", _RATE),
        Measure("fold: rebuild", median((BEFORE + grown) / run for run in taken["rebuild"]), "events/s", _RATE),
    ]


async def _live(folder: Path) -> float:
    restore_views(folder)
    async with opened(folder) as home:
        return await seconds(generations.current(home.projector, 0))


async def _rebuild(folder: Path) -> float:
    """Builds a new generation while the views that `_live` has updated exist."""
    async with opened(folder) as home:
        return await seconds(generations.rebuild(home.builder, 0))
