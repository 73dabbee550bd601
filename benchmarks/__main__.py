"""`python -m benchmarks`: measure everything, print a table, write build/bench.json."""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks import (
    agents,
    append,
    breakdown,
    console,
    context,
    doors,
    due,
    facts,
    fold,
    graph,
    index,
    items,
    long_term,
    operations,
    parallel,
    past,
    presets,
    query,
    recall,
    remember,
    report,
    resident,
    synchronous,
    tiers,
)
from benchmarks.measure import Measure, Setup

SUBJECTS: Mapping[str, Callable[[Setup], Awaitable[list[Measure]]]] = {
    "append": append.measure,
    "fold": fold.measure,
    "parallel": parallel.measure,
    "breakdown": breakdown.measure,
    "query": query.measure,
    "operations": operations.measure,
    "synchronous": synchronous.measure,
    "remember": remember.measure,
    "agents": agents.measure,
    "due": due.measure,
    "items": items.measure,
    "long_term": long_term.measure,
    "facts": facts.measure,
    "graph": graph.measure,
    "resident": resident.measure,
    "past": past.measure,
    "index": index.measure,
    "recall": recall.measure,
    "presets": presets.measure,
    "tiers": tiers.measure,
    "context": context.measure,
    "http": doors.measure,
    "console": console.measure,
}
BUILD = Path(__file__).parents[1] / "build"


def main(
    only: Annotated[str, typer.Option(metavar="NAME", help="Only subjects whose name contains NAME.")] = "",
    quick: Annotated[bool, typer.Option("--quick", help="Use fewer events. The figures are rough.")] = False,
) -> None:
    """Measure Recallog: append, fold, parallel, breakdown, query, operations, synchronous, remember, agents, due,
    items, long_term, facts, graph, resident, past, index, recall, presets, tiers, context, http, console.

    Prints a table and writes build/bench.json. Works in a temporary folder, which it removes.

    Example: python -m benchmarks --only fold --quick
    """
    chosen = {name: run for name, run in SUBJECTS.items() if only in name}
    if not chosen:
        raise typer.BadParameter(f"no subject's name contains {only!r}; choose from {', '.join(SUBJECTS)}")
    progress = Console(stderr=True, highlight=False, style="dim")
    measures: list[Measure] = []
    for name, run in chosen.items():
        began = time.perf_counter()
        measures += _measured(run, quick, progress)
        progress.print(f"{name}: {time.perf_counter() - began:.0f} s")
    report.show(Console(), measures)
    report.write(BUILD / "bench.json", measures)
    progress.print(f"written to {BUILD / 'bench.json'}")


def _measured(run: Callable[[Setup], Awaitable[list[Measure]]], quick: bool, progress: Console) -> list[Measure]:
    async def measured(setup: Setup) -> list[Measure]:
        return await run(setup)

    # Not under /tmp, which may be in memory, where fsync costs nothing.
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=BUILD) as folder:
        return asyncio.run(measured(Setup(Path(folder), quick, progress.print)))


if __name__ == "__main__":
    typer.run(main)
