"""Notices: what the end of a run shows in red, collected from all workers of a parallel run."""

from collections.abc import Mapping

import pytest

_NOTICES = pytest.StashKey[dict[str, list[str]]]()
_OUTPUT = "recallog_notices"


def add(config: pytest.Config, title: str, line: str) -> None:
    """Show `line` under `title` at the end of the run, once."""
    lines = config.stash.setdefault(_NOTICES, {}).setdefault(title, [])
    if line not in lines:
        lines.append(line)


def send(config: pytest.Config) -> None:
    """Give the notices of a worker to the process that prints the summary."""
    output = getattr(config, "workeroutput", None)
    if output is not None:
        output[_OUTPUT] = config.stash.get(_NOTICES, {})


def receive(config: pytest.Config, output: Mapping[str, dict[str, list[str]]]) -> None:
    """Take over the notices of a worker that ended; one that crashed has no output."""
    for title, lines in output.get(_OUTPUT, {}).items():
        for line in lines:
            add(config, title, line)


def show(reporter: pytest.TerminalReporter) -> None:
    for title, lines in reporter.config.stash.get(_NOTICES, {}).items():
        reporter.section(title, sep="!", red=True, bold=True)
        for line in lines:
            reporter.line(line, red=True)
