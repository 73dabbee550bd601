"""Figures and findings: on a terminal while it runs, as a table at the end, as JSON for programs."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from chaos.campaign import Campaign
from chaos.check import Facts
from chaos.conductor import Tolls
from chaos.rebuilds import Rebuilds
from chaos.watching import Seen

_LINE_SECONDS = 10.0

console = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


class Show:
    """Two bars on a terminal; elsewhere a line every ten seconds."""

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

    def say(self, text: str) -> None:
        """One line."""
        if not self._silent:
            console.print(text, style="dim", markup=False)

    def update(self, tolls: Tolls, seen: Seen) -> None:
        """Show how far it is."""
        self._bars.update(self._kills, completed=tolls.struck)
        self._bars.update(self._events, completed=tolls.tally.acknowledged)
        if not console.is_terminal and time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + _LINE_SECONDS
            lag = "unknown" if seen.lag is None else f"{seen.lag:,}"
            self.say(
                f"{time.monotonic() - self._began:4.0f} s  {tolls.struck}/{self._campaign.kills} kills  "
                f"{tolls.tally.acknowledged:,}/{self._campaign.events:,} events  lag {lag}"
            )


@dataclass(frozen=True)
class Report:
    """What a run found out."""

    campaign: Campaign
    tolls: Tolls
    seen: Seen
    rebuilds: Rebuilds
    rebalances: int
    facts: Facts | None
    digests: list[str]
    """Of all views, as `recallog verify` prints them: after the chaos, and after one more rebuild."""
    findings: list[str]
    seconds: dict[str, float]
    folder: Path

    @property
    def clean(self) -> bool:
        return not self.findings

    def figures(self) -> dict[str, Any]:
        """By what they are of."""
        tally = self.tolls.tally
        return {
            **{f"kill -9 of {kind}": count for kind, count in sorted(self.tolls.kills.items())},
            "two workers away at once": self.tolls.both_down,
            "workers paused (SIGSTOP)": self.tolls.pauses,
            "rebalances": self.rebalances,
            "looks at the workers": self.seen.looks,
            "looks that found one unwell": self.seen.unwell_looks,
            "rebuilds started": self.rebuilds.started,
            "rebuilds killed": self.rebuilds.killed,
            "rebuilds finished": self.rebuilds.finished,
            "rebuilds that gave up, a service was away": self.rebuilds.failed,
            "events acknowledged": tally.acknowledged,
            "events sent twice on purpose": tally.again,
            "contradictions planted": tally.contradictions,
            "calls acknowledged": tally.calls,
            "unknown outcomes retried": tally.unknown,
            "refused calls retried": tally.unavailable,
            "own writes read": tally.reads,
            "own writes asked for in vain, views away or behind": tally.reads_refused,
            **(_named(self.facts) if self.facts is not None else {}),
            **{f"seconds: {phase}": round(seconds, 1) for phase, seconds in self.seconds.items()},
        }

    def print(self) -> None:
        """For people."""
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

    def print_json(self) -> None:
        """For programs."""
        document = {
            "seed": self.campaign.seed,
            "clean": self.clean,
            "findings": self.findings,
            "figures": self.figures(),
            "digests": self.digests,
            "folder": str(self.folder),
        }
        print(json.dumps(document, indent=2))


def _named(facts: Facts) -> dict[str, int]:
    return {
        "records in the topic": facts.records,
        "different events among them": facts.events,
        "duplicates in the topic": facts.duplicates,
        "dead letters": facts.dead_letters,
        "spaces": facts.spaces,
    }
