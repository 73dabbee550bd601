"""The report: a table for people, JSON for programs."""

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.measure import Measure


def show(console: Console, measures: Sequence[Measure]) -> None:
    table = Table("measure", header_style="bold")
    for heading in ("value", "goal"):
        table.add_column(heading, justify="right", no_wrap=True)
    subject = ""
    for measure in measures:
        if subject and subject_of(measure) != subject:
            table.add_section()
        subject = subject_of(measure)
        table.add_row(measure.name, _value(measure), _goal(measure))
    console.print(table)


def document(measures: Sequence[Measure]) -> str:
    """JSON: a list of {"name", "value", "unit", "goal"}; a goal is "≥ 0.7" or null."""
    rows = [
        {
            "name": measure.name,
            "value": round(measure.value, 4),
            "unit": measure.unit,
            "goal": str(measure.goal) if measure.goal else None,
        }
        for measure in measures
    ]
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


def write(path: Path, measures: Sequence[Measure]) -> None:
    """Write `document` to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document(measures), encoding="utf-8")


def subject_of(measure: Measure) -> str:
    return measure.name.replace(":", " ").split()[0]


def _value(measure: Measure) -> str:
    digits = 0 if abs(measure.value) >= 1_000 else 1 if abs(measure.value) >= 100 else 2
    return f"{measure.value:,.{digits}f} {measure.unit}".rstrip()


def _goal(measure: Measure) -> str:
    if measure.goal is None:
        return ""
    return f"{measure.goal} [green]✓[/]" if measure.goal.met(measure.value) else f"{measure.goal} [red]✗[/]"
