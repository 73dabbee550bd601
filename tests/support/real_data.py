"""Files of real data for tests, from the folder that `RECALLOG_TEST_DATA` names."""

import os
from pathlib import Path

import pytest

VARIABLE = "RECALLOG_TEST_DATA"
UNSET = f"{VARIABLE} is not set"


def folder() -> Path | None:
    """The folder, None where the variable is not set. Raises `pytest.UsageError` if there is no such folder."""
    named = os.environ.get(VARIABLE)
    if not named:
        return None
    if not Path(named).is_dir():
        raise pytest.UsageError(f"{VARIABLE} names a folder that does not exist: {named}")
    return Path(named)


def path(name: str) -> Path:
    """The file `name` of the real data. Where the variable is not set, the test is skipped; a missing file fails it."""
    found = folder()
    if found is None:
        pytest.skip(UNSET)
    if not (found / name).is_file():
        pytest.fail(f"{found} has no file {name}", pytrace=False)
    return found / name


def show_skipped(reporter: pytest.TerminalReporter) -> None:
    """One line with the number of tests that were skipped because there is no real data."""
    skipped = [report for report in reporter.stats.get("skipped", []) if UNSET in str(report.longrepr)]
    if skipped:
        tests = "1 test" if len(skipped) == 1 else f"{len(skipped)} tests"
        reporter.line(f"{tests} on real data skipped: {UNSET}", yellow=True)
