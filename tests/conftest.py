"""Configuration of all tests."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from support import notices, real_data

# Tests must not use the memory of the developer.
for _name in [name for name in os.environ if name.startswith("RECALLOG_") and not name.startswith("RECALLOG_TEST_")]:
    del os.environ[_name]
# Most tests do not need the index, which is a process with a model; those that do enable it.
os.environ["RECALLOG_INDEX"] = "off"

# Assertions in shared modules report the compared values, as those in test modules do.
pytest.register_assert_rewrite(
    "contract.engine_contract",
    "contract.ledger_contract",
    "contract.store_contract",
    "support.world",
    "support.folding",
)

# No deadline, since machines differ in speed, and the same examples in every run, so that a failure repeats.
settings.register_profile("recallog", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("recallog")

FOLDERS = ("live", "crash", "simulation", "contract", "unit", "golden")
"""The order of a run: what takes longest begins first."""


def pytest_configure(config: pytest.Config) -> None:
    real_data.folder()


@pytest.hookimpl(tryfirst=True)  # before xdist reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say which tests one worker of a parallel run must run: all live tests, since they share a Kafka and a Redis, and
    the tests of a file, since they may share what the file makes once."""
    tests = Path(__file__).parent

    def order(item: pytest.Item) -> int:
        return FOLDERS.index(item.path.relative_to(tests).parts[0])

    for item in items:
        folder = item.path.relative_to(tests).parts[0]
        if folder == "simulation":
            continue  # its tests share nothing
        item.add_marker(pytest.mark.xdist_group(folder if folder == "live" else str(item.path.relative_to(tests))))
    items.sort(key=order)


def pytest_sessionfinish(session: pytest.Session) -> None:
    notices.send(session.config)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    notices.receive(node.config, getattr(node, "workeroutput", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    notices.show(terminalreporter)
    real_data.show_skipped(terminalreporter)
