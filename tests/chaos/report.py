"""Figures and findings of a run: progress on a terminal, a table at the end, JSON for programs."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from chaos.campaign import ActionKind, Campaign
from chaos.check import Facts
from chaos.conductor import Counts
from chaos.copies import Copies
from chaos.latencies import Latencies
from chaos.monitor import HealthSamples
from chaos.rebuilds import Rebuilds

_LINE_SECONDS = 10.0

_NAMES: dict[ActionKind, str] = {
    "kill": "kill -9 of {}",
    "pause": "SIGSTOP of {} for longer than its session",
    "stop": "SIGSTOP of {}",
    "hand over": "SIGTERM of {}",
    "wipe": "FLUSHALL of {}",
    "fill": "full disk of {}",
    "jump": "clock jumps of {}",
}

console = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


class Show:
    """Progress: two bars on a terminal; otherwise a line every ten seconds."""

    def __init__(self, campaign: Campaign, *, silent: bool = False) -> None:
        self._campaign = campaign
        self._silent = silent
        self._began = time.monotonic()
        self._next_line = self._began
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._bars = Progress(*columns, console=console, transient=True, disable=silent or not console.is_terminal)
        self._kills = self._bars.add_task("kills", total=campaign.kills)
        self._events = self._bars.add_task("events acknowledged", total=campaign.events)

    def __enter__(self) -> "Show":
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def print_line(self, text: str) -> None:
        """Print a line on stderr."""
        if not self._silent:
            console.print(text, style="dim", markup=False)

    def update(self, counts: Counts, samples: HealthSamples) -> None:
        """Show the progress."""
        self._bars.update(self._kills, completed=counts.service_kills)
        self._bars.update(self._events, completed=counts.tally.acknowledged)
        if not console.is_terminal and time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + _LINE_SECONDS
            lag = "unknown" if samples.lag is None else f"{samples.lag:,}"
            self.print_line(
                f"{time.monotonic() - self._began:4.0f} s  {counts.service_kills}/{self._campaign.kills} kills  "
                f"{counts.tally.acknowledged:,}/{self._campaign.events:,} events  lag {lag}"
            )


@dataclass(frozen=True)
class Report:
    """The result of a run."""

    campaign: Campaign
    counts: Counts
    samples: HealthSamples
    rebuilds: Rebuilds
    copies: Copies
    latencies: Latencies | None
    rebalances: int
    facts: Facts | None
    digests: list[str]
    """The digests of `recallog verify`: after the actions, and after a final rebuild."""
    findings: list[str]
    seconds: dict[str, float]
    folder: Path

    @property
    def clean(self) -> bool:
        return not self.findings

    def figures(self) -> dict[str, Any]:
        """All figures by name."""
        tally = self.counts.tally
        return {
            **{_NAMES[kind].format(target): count for (kind, target), count in sorted(self.counts.done.items())},
            "two workers down at once": self.counts.both_down,
            "rebalances": self.rebalances,
            "health samples": self.samples.total,
            "health samples with problems": self.samples.unhealthy,
            "rebuilds started": self.rebuilds.started,
            "rebuilds killed": self.rebuilds.killed,
            "rebuilds finished": self.rebuilds.finished,
            "rebuilds failed, a service was unreachable": self.rebuilds.failed,
            "copies started": self.copies.started,
            "copies killed": self.copies.killed,
            "copies whose disk was full": self.copies.full,
            "copies finished": self.copies.finished,
            "copies failed, a service was unreachable or the disk full": self.copies.failed,
            **{f"operations on lists: {what}": count for what, count in sorted(tally.operations.items())},
            **(_of_triggers(self.latencies) if self.latencies is not None else {}),
            "events acknowledged": tally.acknowledged,
            "events sent twice on purpose": tally.again,
            "contradictions planted": tally.contradictions,
            "calls acknowledged": tally.calls,
            "unknown outcomes retried": tally.unknown,
            "refused calls retried": tally.unavailable,
            "own writes read": tally.reads,
            "own writes not readable, views unreachable or behind": tally.reads_refused,
            "questions of the reader": tally.questions,
            "questions refused with a named error": tally.questions_refused,
            "seconds: the slowest question": round(tally.slowest_seconds, 1),
            **(_named(self.facts) if self.facts is not None else {}),
            **{f"seconds: {phase}": round(seconds, 1) for phase, seconds in self.seconds.items()},
        }

    def print(self) -> None:
        """Print a table, the findings and the verdict."""
        table = Table("figure", header_style="bold")
        table.add_column("value", justify="right")
        for name, value in self.figures().items():
            table.add_row(name, f"{value:,}")
        out = Console(highlight=False, soft_wrap=True, emoji=False)
        out.print(table)
        for finding in self.findings:
            out.print("[bold red]found[/] ", end="")
            out.print(finding, markup=False)
        if self.clean:
            out.print(f"[green]clean[/] digest {self.digests[-1][:16] if self.digests else ''}")
        else:
            out.print(f"seed {self.campaign.seed}; logs, histories and data: {self.folder}", markup=False)

    def document(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {
            "seed": self.campaign.seed,
            "clean": self.clean,
            "findings": self.findings,
            "figures": self.figures(),
            "digests": self.digests,
            "folder": str(self.folder),
        }


def _of_triggers(latencies: Latencies) -> dict[str, float]:
    return {
        "promises": latencies.triggers,
        "promises from 30 s after a fault on": latencies.calm,
        "seconds: their answers, median": round(latencies.p50_seconds, 2),
        "seconds: their answers, p99": round(latencies.p99_seconds, 2),
        "seconds: their answers, longest": round(latencies.max_seconds, 2),
        "seconds: the longest of all answers": round(latencies.longest_seconds, 1),
    }


def _named(facts: Facts) -> dict[str, int]:
    return {
        "records in the topic": facts.records,
        "distinct events": facts.events,
        "duplicates in the topic": facts.duplicates,
        "dead letters": facts.dead_letters,
        "spaces": facts.spaces,
        "answers of agents": facts.answers,
    }
