"""Configuration of all tests."""

import inspect
import os
import signal
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from recallog_projections import notices as said
from recallog_streams.collector import pause_collection
from support import campaigns, needed_models, notices, real_data
from support.events import run

_RAM, _RAM_BYTES_MIN = Path("/dev/shm"), 4 * 1024**3


def _use_ram() -> bool:
    """Whether the folders of tests are made in RAM, where it is large enough: on a disk they wait for it most of the
    time, because each commit of a folder does. Docker's is small, and forbids to run the scripts that some tests write.
    """
    if "TMPDIR" in os.environ or not os.access(_RAM, os.W_OK):
        return False
    status = os.statvfs(_RAM)
    return status.f_bavail * status.f_frsize >= _RAM_BYTES_MIN and not status.f_flag & os.ST_NOEXEC


if _use_ram():
    os.environ["TMPDIR"] = tempfile.tempdir = str(_RAM)  # of other processes, and of this one

# Tests must not use the memory of the developer.
for _name in [name for name in os.environ if name.startswith("RECALLOG_") and not name.startswith("RECALLOG_TEST_")]:
    del os.environ[_name]
# Many tests start processes, and each would compile all modules again, which takes half of its time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Most tests do not need the index, which is a process with a model; those that do enable it.
os.environ["RECALLOG_INDEX"] = "off"
# It ends with the test that starts it.
os.environ["RECALLOG_INDEX_IDLE_SECONDS"] = "0"
# Its process serves the folders of these tests alone: they kill it.
_SESSION = tempfile.TemporaryDirectory(prefix="recallog-session-")
os.environ["XDG_RUNTIME_DIR"] = _SESSION.name
# Some tests start commands by a fork of this process. The threads of gRPC (of the stand-in of Qdrant) end there.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "false"
# A script starts commands in the background so that they, and their processes, ignore Ctrl-C: tests would wait for it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Assertions in shared modules report the compared values, as those in test modules do.
pytest.register_assert_rewrite(
    "support.world",
    "support.folding",
    "support.twice",
)

# No deadline, since machines differ in speed, and the same examples in every run, so that a failure repeats.
settings.register_profile(
    "recallog",
    deadline=None,
    derandomize=True,
    max_examples=campaigns.examples(100),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("recallog")

_ONE_BY_ONE = ("simulation/", "unit/test_without_a_model.py")
"""Folders and files whose tests share nothing and take long."""

FOLDERS = ("live", "browser", "crash", "simulation", "contract", "fuzz", "unit", "golden")
"""The order of a run: what takes longest begins first."""

_LONGEST = ("without_a_model", "http_fuzzed", "terminals", "codec", "flip", "documentation", "soak")
"""The files of `tests/unit` that begin first: a process that begins one of them at the end makes the others wait."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(needed_models.JUST_THESE, action="store_true", help="only tests that need all models of this copy")


def pytest_configure(config: pytest.Config) -> None:
    real_data.folder()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Collect without the garbage collector: each of its runs would examine all tests that are collected so far."""
    with pause_collection():
        return (yield)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out a file that needs a memory model which this copy does not have."""
    is_test = collection_path.suffix == ".py" and collection_path.name.startswith("test_")
    return True if is_test and needed_models.missing(needed_models.needed_by_file(collection_path)) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    just_these = config.getoption(needed_models.JUST_THESE)
    left_out = {each for each in items if not _runs(each, just_these)}
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [each for each in items if each not in left_out]
    items.sort(key=_place_of)


def _place_of(item: pytest.Item) -> tuple[int, int]:
    """Where a test is in the order of a run."""
    folder = item.path.relative_to(Path(__file__).parent).parts[0]
    name = item.path.stem.removeprefix("test_")
    return FOLDERS.index(folder), _LONGEST.index(name) if name in _LONGEST else len(_LONGEST)


def _runs(item: pytest.Item, just_these: bool) -> bool:
    needed = {name for mark in item.iter_markers("models") for name in mark.args}
    there = not needed_models.missing(needed)
    return there and not (just_these and needed_models.brought(needed) != needed_models.brought([needed_models.ALL]))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Distribute a parallel run (`-n`) by `Groups`, whatever `--dist` says."""
    return Groups(config, log)


class Groups(LoadScopeScheduling):
    """One process runs all live tests, since they share a Kafka and a Redis. One runs all tests of a file, since they
    may share what the file makes once. Those of `_ONE_BY_ONE` share nothing."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file.removeprefix("tests/").startswith(_ONE_BY_ONE):
            return nodeid
        return "live" if Path(file).parent.name == "live" else file


@pytest.fixture(autouse=True)
def _every_notice_is_said_again() -> None:
    said.forget()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine, in the event loop of its fixtures."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}))
    return True


def pytest_sessionfinish(session: pytest.Session) -> None:
    notices.send(session.config)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    notices.receive(node.config, getattr(node, "workeroutput", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    notices.show(terminalreporter)
    real_data.show_skipped(terminalreporter)
