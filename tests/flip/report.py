"""Figures and findings of a run: progress, a table at the end, JSON for programs."""

import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from flip.folders import VIEWS
from flip.judge import FINDINGS, Outcome, Verdict, is_of
from flip.run import Trial
from recallog import layout

LINE_SECONDS = 15.0
AREAS = ("ledger", "views", "index", "others")
"""The parts of a folder; the others are locks, the address and the log of the index's process, and leftovers."""
_SHOWN = 5
"""How many trials of one kind of finding are listed."""

console = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


class Show:
    """Progress: a bar on a terminal, otherwise a line from time to time.

    No thread refreshes it: a process that forks must have none.
    """

    def __init__(self, trials: int) -> None:
        self._trials = trials
        self._done = 0
        self._findings = 0
        self._began = self._line = time.monotonic()
        columns = (
            TextColumn("trials"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
        )
        self._bar = Progress(
            *columns, console=console, transient=True, auto_refresh=False, disable=not console.is_terminal
        )
        self._task = self._bar.add_task("", total=trials)

    def __enter__(self) -> "Show":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def ended(self, trial: Trial) -> None:
        """Count a trial."""
        self._done += 1
        self._findings += any(outcome.verdict in FINDINGS for outcome in trial.outcomes)
        text = f"{self._findings:,} with findings"
        self._bar.update(self._task, completed=self._done, description=text)
        self._bar.refresh()
        if not console.is_terminal and time.monotonic() - self._line > LINE_SECONDS:
            self._line = time.monotonic()
            seconds = self._line - self._began
            console.print(f"{seconds:4.0f} s  {self._done:,}/{self._trials:,} trials  {text}", markup=False)


@dataclass
class Report:
    """The result of a run."""

    seed: int
    only: str
    """The beginning of the paths of the files that were damaged."""
    base: Path
    trials: Sequence[Trial]
    seconds: float
    _groups: dict[tuple[str, ...], list[tuple[Trial, Outcome]]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for trial in self.trials:
            for outcome in trial.outcomes:
                if outcome.verdict in FINDINGS:
                    self._groups[_group(trial, outcome)].append((trial, outcome))

    @property
    def clean(self) -> bool:
        return not self._groups

    def figures(self, area: str = "") -> dict[str, int]:
        """All figures by name; those of the trials that damaged one part of the folder."""
        trials = [trial for trial in self.trials if area in ("", _area(trial))]
        counts = Counter(outcome.verdict for trial in trials for outcome in trial.outcomes)
        missed = [trial for trial in trials if any(one.verdict is Verdict.MISSED for one in trial.outcomes)]
        found = [trial for trial in trials if any(one.verdict in FINDINGS for one in trial.outcomes)]
        return {
            "trials": len({trial.plan.number for trial in trials}),
            "calls": sum(counts.values()) - counts[Verdict.UNNAMED] - counts[Verdict.NOT_HEALED],
            **{str(verdict): counts[verdict] for verdict in Verdict},
            "trials with missed rows": len(missed),
            "trials with findings": len(found),
        }

    def print(self, out: Console) -> None:
        """Print a table, the findings and the verdict."""
        table = Table("figure", header_style="bold")
        columns = [self.figures(), *map(self.figures, AREAS)]
        for name in ("all", *AREAS):
            table.add_column(name, justify="right")
        for name, value in columns[0].items():
            style = "red" if value and name in FINDINGS else None
            table.add_row(name, *(f"{column[name]:,}" for column in columns), style=style)
        out.print(table)
        for (verdict, file, _), found in sorted(self._groups.items(), key=lambda item: -len(item[1])):
            trials = list(dict.fromkeys(trial.plan.number for trial, _ in found))
            calls = Counter(outcome.question.partition("(")[0] for _, outcome in found)
            trial, outcome = found[0]
            out.print(f"[bold red]{verdict}[/] {len(trials):,} trials, {len(found):,} calls: ", end="")
            out.print(f"{file}: {', '.join(name for name, _ in calls.most_common(_SHOWN))}", markup=False)
            out.print(f"    {trial.plan.describe()}", markup=False)
            out.print(f"    {outcome.stage}: {outcome.question}: {outcome.detail}", markup=False, style="dim")
            out.print(f"    trials {', '.join(map(str, trials[:_SHOWN]))}; {self._repeat(trials[0])}", markup=False)
        slowest = max((outcome for trial in self.trials for outcome in trial.outcomes), key=lambda one: one.seconds)
        out.print(f"{self.seconds:.0f} s; slowest call {slowest.seconds:.1f} s: {slowest.question}", markup=False)
        out.print("[green]clean[/]" if self.clean else f"seed {self.seed}; the folders: {self.base}")

    def _repeat(self, number: int) -> str:
        only = f" --file {self.only}" if self.only else ""
        return f"make flip ARGS='--seed {self.seed}{only} --trial {number} --base {self.base}'"

    def document(self) -> dict[str, Any]:
        """Everything, as JSON has it."""
        return {
            "seed": self.seed,
            "clean": self.clean,
            "seconds": round(self.seconds, 1),
            "figures": self.figures(),
            "by_area": {area: self.figures(area) for area in AREAS},
            "findings": [
                {
                    **dict(zip(("verdict", "file", "text"), group, strict=True)),
                    "trials": sorted({trial.plan.number for trial, _ in found}),
                    "first": found[0][1].document(),
                    "mutations": [mutation.document() for mutation in found[0][0].plan.mutations],
                    "repeat": self._repeat(found[0][0].plan.number),
                }
                for group, found in self._groups.items()
            ],
            "errors": dict(
                Counter(
                    _general(outcome.detail)
                    for trial in self.trials
                    for outcome in trial.outcomes
                    if outcome.verdict in (Verdict.NAMED, Verdict.BY_WORDS)
                ).most_common()
            ),
        }

    def to_json(self) -> str:
        """Everything, as JSON."""
        return json.dumps(self.document(), indent=2, ensure_ascii=False)


def _area(trial: Trial) -> str:
    """The part of the folder that a trial damaged; of two, the one that matters more."""
    found = {_area_of(mutation.file) for mutation in trial.plan.mutations}
    return next(area for area in AREAS if area in found)


def _area_of(file: str) -> str:
    if is_of(layout.LEDGER, file):
        return "ledger"
    if any(is_of(views, file) for views in VIEWS):
        return "views"
    if file.startswith(str(layout.INDEX_ENGINE)) or is_of(str(layout.INDEX_ROWS), file):
        return "index"
    return "others"


def _group(trial: Trial, outcome: Outcome) -> tuple[str, ...]:
    """What findings of the same cause probably have in common."""
    files = "+".join(_kind_of(mutation.file) for mutation in trial.plan.mutations)
    named = outcome.verdict in (Verdict.WRONG, Verdict.UNNAMED, Verdict.NOT_HEALED)
    return (str(outcome.verdict), files, "" if named else _general(outcome.detail)[:160])


def _kind_of(file: str) -> str:
    return f"index/engine/…/{Path(file).name}" if file.startswith("index/engine") else file


def _general(text: str) -> str:
    """A message without what differs between trials."""
    text = re.sub(r"/\S*/trial-\d+/home", "…", text)
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]+|[0-9a-f]{8,}|\d+", "#", text)
