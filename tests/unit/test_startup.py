"""The imports of commands: a process loads only the modules that its query needs."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from recallog import __version__ as recallog_version
from recallog_service.cli.app import SUMMARIES
from recallog_streams.collector import YOUNG_OBJECTS_MAX
from support.cli import environment_of, recallog, spawn
from support.events import event

# Runs like the installed command, and then prints the imported modules on stderr.
_COMMAND = """
import sys
from recallog_service.cli import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


def imported_by(*arguments: object, **environment: str) -> tuple[str, set[str]]:
    """The output of a command in its own process, and the modules that it imported."""
    done = subprocess.run(
        [sys.executable, "-c", _COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment_of(**environment),
        check=True,
        timeout=120,
    )
    return done.stdout, set(done.stderr.splitlines()[-1].split())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with an event and its views."""
    sent = event(payload={"text": "Fresh bread!"})
    recallog("publish", sent.space, sent.agent, sent.kind, sent.text, "--home", tmp_path)
    recallog("episodic", sent.space, sent.agent, "--home", tmp_path)
    return tmp_path


def test_the_help_imports_neither_pydantic_nor_a_view_nor_a_command() -> None:
    shown, modules = imported_by("--help")
    assert "dead-letters" in shown
    assert {name for name in modules if name.startswith(("pydantic", "recallog."))} == set()
    assert {name for name in modules if name.startswith("recallog_")} == {
        "recallog_service", "recallog_service.cli", "recallog_service.cli.app",
        "recallog_service.cli.encodings", "recallog_service.cli.installed", "recallog_service.cli.panels",
        "recallog_projections", "recallog_projections.native_threads", "recallog_streams", "recallog_streams.collector",
        "recallog_schemas", "recallog_schemas.lazy_exports", "recallog_schemas.visible",
    }  # fmt: skip


def test_the_help_is_shown_without_an_event_loop() -> None:
    _, modules = imported_by("--help")
    assert "asyncio" not in modules


@pytest.mark.parametrize(
    "command", [("long-term", "list", "village", "baker"), ("diff", "village", "baker", "0:0")], ids=" ".join
)
def test_a_command_that_compares_no_vectors_does_not_import_numpy(home: Path, command: Sequence[str]) -> None:
    _, modules = imported_by(*command, "--home", home)
    assert "numpy" not in modules


def test_the_version_imports_neither_pydantic_nor_a_view_nor_a_command() -> None:
    shown, modules = imported_by("--version")
    assert shown == f"recallog {recallog_version}\n"
    assert {name for name in modules if name.startswith(("pydantic", "recallog.", "recallog_schemas.views"))} == set()


def test_a_command_imports_no_other_command(home: Path) -> None:
    _, modules = imported_by("spaces", "--home", home)
    assert "recallog_service.cli.derived" in modules
    assert modules.isdisjoint({f"recallog_service.cli.{name}" for name in ("story", "producers", "reactors")})


@pytest.mark.parametrize("library", ["httpx", "numpy", "onnxruntime", "qdrant_edge", "rich", "tokenizers"])
def test_episodic_imports_no_library_that_it_does_not_use(home: Path, library: str) -> None:
    shown, modules = imported_by("episodic", "village", "baker", "--home", home)
    assert "Fresh bread!" in shown
    assert library not in modules


@pytest.mark.parametrize(
    "command", [("episodic", "village", "baker"), ("publish", "village", "baker", "agent.spoke", "Bread!")]
)
def test_without_the_setting_nothing_of_telemetry_is_imported(home: Path, command: Sequence[str]) -> None:
    _, modules = imported_by(*command, "--home", home)
    assert {name for name in modules if name.startswith(("opentelemetry", "recallog_streams.tracing"))} == set()


@pytest.mark.parametrize(
    ("command", "ours_max", "all_max"),
    [
        (("publish", "village", "baker", "agent.spoke", "Bread!"), 294, 649),
        (("episodic", "village", "baker"), 319, 674),
        (("status",), 319, 723),
    ],
)
def test_a_command_imports_few_modules(home: Path, command: Sequence[str], ours_max: int, all_max: int) -> None:
    """Imports are nearly all of the time of a command on a small folder: 0.3 ms of processor time a module."""
    _, modules = imported_by(*command, "--home", home)
    assert len({name for name in modules if name.startswith("recallog")}) <= ours_max
    assert len(modules) <= all_max


COMMANDS = json.loads(SUMMARIES.read_text(encoding="utf-8"))
ONE_OF_EACH_MODULE = {each["module"]: [name, *each.get("commands", ())[:1]] for name, each in COMMANDS.items()}


@pytest.mark.parametrize("command", ONE_OF_EACH_MODULE.values(), ids=" ".join)
def test_the_help_of_a_command_imports_few_modules(command: Sequence[str]) -> None:
    """Commands of one module import the same: 735 modules are a quarter of a second of processor time."""
    shown, modules = imported_by(*command, "--help")
    assert "Example: recallog" in shown
    assert len(modules) <= 735


def test_a_table_is_printed_without_the_modules_of_progress_bars(home: Path) -> None:
    shown, modules = imported_by("status", "--home", home)
    assert "1 record" in shown
    assert modules.isdisjoint({"recallog_service.cli.progress_bar", "rich.progress", "rich.live"})


def test_episodic_imports_nothing_of_the_index_the_reactors_or_other_queries(home: Path) -> None:
    _, modules = imported_by("episodic", "village", "baker", "--home", home)
    rooms = ("recallog_projections.index", "recallog.index.", "recallog.reactors.", "recallog.queries.")
    assert {name for name in modules if name.startswith(rooms)} == {
        "recallog.index.building", "recallog.index.delegation", "recallog.index.messages", "recallog.index.remote",
        "recallog.index.semantic_index", "recallog.index.served_index", "recallog.queries.timeline",
        "recallog_projections.index", "recallog_projections.index.unread",
    }  # fmt: skip


def test_a_query_that_the_index_process_answers_imports_neither_views_nor_stores_nor_the_index(home: Path) -> None:
    served = {"RECALLOG_INDEX": "embedded", "RECALLOG_INDEX_IDLE_SECONDS": "10"}
    spawn("recall", "village", "baker", "bread", "--wait", "--home", home, **served)
    shown, modules = imported_by("recall", "village", "baker", "bread", "--json", "--home", home, **served)
    assert json.loads(shown)["hits"][0]["source"] == "index"
    rooms = (
        "recallog_projections.",
        "recallog_streams.",
        "recallog.index.",
        "recallog.queries.",
        "recallog.retrieval.",
    )
    assert {name for name in modules if name.startswith(rooms)} == {
        "recallog.index.delegation", "recallog.index.messages", "recallog.index.remote", "recallog.retrieval.channels",
        "recallog_projections.breaker", "recallog_projections.native_threads", "recallog_projections.notices",
        "recallog_projections.patience", "recallog_projections.plugins", "recallog_projections.tables",
        "recallog_streams.collector", "recallog_projections.concurrency",
        "recallog_streams.positions", "recallog_streams.progress",
    }  # fmt: skip
    libraries = {"httpx", "numpy", "onnxruntime", "qdrant_edge", "rich.console", "sqlite3", "tokenizers"}
    assert modules & libraries == set()


def test_a_command_ends_without_a_look_of_the_collector_at_its_modules() -> None:
    """The interpreter collects several times when it ends: a quarter of the processor time of a command."""
    program = """
import atexit, gc, sys
from recallog_service.cli import main
sys.argv = ["recallog", "--version"]
atexit.register(lambda: print(gc.get_freeze_count()))
main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout.splitlines()[-1]) > YOUNG_OBJECTS_MAX / 10


def test_the_collector_looks_rarely_while_a_command_imports_its_modules() -> None:
    program = """
import gc, sys
from recallog_service.cli import main
sys.argv = ["recallog", "--version"]
try:
    main()
finally:
    assert "recallog.memory" not in sys.modules
    print(gc.get_threshold()[0])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout.splitlines()[-1]) == YOUNG_OBJECTS_MAX
