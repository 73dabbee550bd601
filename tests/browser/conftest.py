"""The browser, and the servers of folders that are filled once. `make test-browser` installs what these tests need."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from recallog_tools import browsing

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from browser.served import Worlds

collect_ignore_glob = [] if find_spec("playwright") else ["test_*.py"]
"""Without playwright the other tests run as they did."""


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    if browsing.find_program() is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(browsing.MISSING)
    with browsing.launch() as launched:
        yield launched


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Worlds]":
    from browser.served import Worlds

    with ExitStack() as running:
        yield Worlds(tmp_path_factory.mktemp("worlds"), running)
