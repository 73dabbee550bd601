"""Progress of a run, one line from time to time, and its figures at the end."""

import json
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from soak.run import PROCESSES, Outcome

console = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


class Show:
    """Prints a line from time to time, and writes the figures so far, so that a run can be watched."""

    def __init__(self, seconds: float, result: Path | None) -> None:
        self._every = min(max(seconds / 60, 5), 60)
        self._line_at = time.monotonic()
        self._result = result

    def sampled(self, outcome: Outcome) -> None:
        if time.monotonic() < self._line_at:
            return
        self._line_at += self._every
        sample = outcome.samples[-1]
        processes = "  ".join(
            f"{name} {used.memory_mb:.0f}/{used.resident_mb:.0f} MB {used.descriptors} fd {used.threads} thr"
            for name in PROCESSES
            for used in (sample.processes[name],)
        )
        disk = sum(sample.disk.values()) / max(sample.events, 1)
        console.print(
            f"{sample.seconds:6.0f} s  {sample.events:,} events  {disk:,.0f} B/event  {processes}", markup=False
        )
        if self._result is not None:
            self._result.write_text(json.dumps(outcome.document()))


def print_outcome(outcome: Outcome, out: Console) -> None:
    """A table of the trends, what the load did, and the verdict."""
    table = Table("series", header_style="bold")
    for name in ("first", "last", "trend", "limit"):
        table.add_column(name, justify="right")
    table.add_column("unit")
    for each in outcome.judged():
        figures = (f"{value:,.2f}" for value in (each.first, each.last, each.growth, each.limit))
        table.add_row(each.series, *figures, each.unit, style="red" if each.grows else None)
    out.print(table)
    if outcome.samples:
        first, last = outcome.samples[0], outcome.samples[-1]
        seconds = max(last.seconds - first.seconds, 1)
        cpu = sum(last.processes[name].cpu_seconds - first.processes[name].cpu_seconds for name in PROCESSES) / seconds
        out.print(f"{last.seconds:,.0f} s, {last.events:,} events, {cpu:.2f} cores used", markup=False)
    for name, report in outcome.reports.items():
        out.print(f"{name}: {report.get('counts', {})}", markup=False)
    out.print(f"verify: {outcome.verified}", markup=False)
    for problem in outcome.problems():
        out.print("[bold red]finding[/] ", end="")
        out.print(problem, markup=False)
    if not outcome.problems():
        out.print("[green]clean[/]")
