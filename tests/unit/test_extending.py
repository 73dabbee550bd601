"""The examples of docs/extending work, and adapters from outside the package are found by their scheme."""

import ast
import importlib
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from recallog import Memory, Settings, wrap
from recallog_projections import plugins
from recallog_projections.index.embedders.embedder import Passage
from recallog_projections.index.embedders.registry import embedder
from recallog_schemas.errors import SettingsError
from support.cli import recallog
from support.events import event, run
from support.installed import formats_read_again, without_ours

ROOT = Path(__file__).parents[2]
ADAPTERS = ROOT / "adapters"
PAGES = (
    *(f"extending/{page}" for page in ("memory-model", "reactors", "models", "storage", "retrieval")),
    "extending",
    "extending/formats",
)
GUIDE = "\n".join((ROOT / "docs" / f"{page}.md").read_text() for page in PAGES)
PYTHON = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
TOML = [tomllib.loads(block) for block in re.findall(r"^```toml\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)]
(
    MODEL, REACTOR, REACTOR_TEST, CHAT_MODEL, REFLECTOR, EXTRACTOR, SYNTHESIZER, SUMMARIZER, RERANKER, STORE, CONTRACT,
    INDEX, EXTERNAL_SOURCE, EMBEDDER, GIVEN_EMBEDDER, COMPONENTS, DIARY,
) = PYTHON  # fmt: skip
MODEL_PROJECT, STORE_PROJECT, LEDGER_PROJECT, EMBEDDER_PROJECT, DIARY_PROJECT = TOML

Install = Callable[..., Path]


def write_distribution(site: Path, project: dict[str, dict[str, object]], module: str, code: str) -> Path:
    """Write an installed distribution: one module and its metadata."""
    name, version = project["project"]["name"], project["project"]["version"]
    groups = project["project"]["entry-points"]
    assert isinstance(groups, dict)
    lines = [
        line
        for group, entries in groups.items()
        for line in (f"[{group}]", *(f"{scheme} = {target}" for scheme, target in entries.items()))
    ]
    metadata = site / f"{str(name).replace('-', '_')}-{version}.dist-info"
    metadata.mkdir(parents=True)
    summary = project["project"].get("description", "")
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {summary}\n")
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
    (site / f"{module}.py").write_text(code)
    return site


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs distributions for one test."""
    before = set(sys.modules)

    def installed(project: dict[str, dict[str, object]], module: str, code: str, site: str = "site") -> Path:
        folder = write_distribution(tmp_path / site, project, module, code)
        monkeypatch.syspath_prepend(folder)
        importlib.invalidate_caches()
        return folder

    yield installed
    for name in set(sys.modules) - before:
        if name.startswith(("recallog_ramdisk", "recallog_hashed", "recallog_diary")):
            del sys.modules[name]


@pytest.fixture
def ramdisk(install: Install) -> None:
    """The distribution of the guide's store is installed."""
    install(STORE_PROJECT, "recallog_ramdisk", STORE)


def settings_of(tmp_path: Path, views: str) -> Settings:
    return Settings(home=tmp_path / "home", views=views, index="off")


# A store from outside the package.


@pytest.mark.usefixtures("ramdisk")
def test_a_store_of_an_installed_distribution_serves_its_scheme(tmp_path: Path) -> None:
    async def work() -> None:
        settings = settings_of(tmp_path, f"ramdisk://{tmp_path / 'disk'}")
        async with Memory.open(settings) as memory:
            position = await memory.publish(event(turn=3))
            view = await memory.episodic("village", "baker", after=position)
            assert view.format() == "[turn 003][agent.spoke] Bread!"
            assert [report.records for report in await memory.admin.rebuild()] == [1]
            verified = await memory.admin.verify()
            assert verified.clean
            assert verified.records == 1
        async with Memory.open(settings) as memory:
            assert len((await memory.episodic("village", "baker")).memories) == 1

    run(work())
    assert (tmp_path / "disk" / "recallog.db").is_file()
    assert sorted(file.name for file in (tmp_path / "home").glob("views*.db")) == []


@pytest.mark.usefixtures("ramdisk")
def test_the_factory_s_own_error_reaches_the_caller(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="name a folder"):
        Memory.open(settings_of(tmp_path, "ramdisk://"))


def test_the_database_of_the_guide_meets_the_contracts_as_the_guide_tests_it(install: Install, tmp_path: Path) -> None:
    assert_contracts_hold(install(STORE_PROJECT, "recallog_ramdisk", STORE), CONTRACT)


def assert_contracts_hold(folder: Path, suites: str) -> None:
    """Run contract suites in another process, which has the distributions of a folder."""
    (folder / "test_of_the_guide.py").write_text(suites)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "--rootdir", str(folder), "test_of_the_guide.py"]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment)
    assert done.returncode == 0, done.stdout[-4_000:]


REMINDERS_SUITE = """
from recallog import Event
from recallog.testing.contracts import ModelContract
from recallog_reminders import MODEL


class TestReminders(ModelContract):
    def model(self):
        return MODEL

    def events(self):
        happened = [
            ("reminder.set", {"text": "Pay the miller."}),
            ("reminder.set", {"text": "Take bread to the smith."}),
            ("reminder.forgotten", {"id": "e-0"}),
            ("reminder.forgotten", {"id": "unknown"}),
            ("session.ended", {}),
            ("reminder.set", {"text": "Buy flour."}),
        ]
        return [
            Event(space="village", agent="baker", kind=kind, payload=payload, id=f"e-{number}", session="s-1")
            for number, (kind, payload) in enumerate(happened)
        ]
"""


def test_the_model_of_the_guide_meets_the_contract(install: Install) -> None:
    assert_contracts_hold(install(MODEL_PROJECT, "recallog_reminders", MODEL), REMINDERS_SUITE)


DIARY_SUITE = """
from recallog.testing.contracts import ReaderContract
from recallog_diary import FORMAT


class TestDiary(ReaderContract):
    def format(self):
        return FORMAT

    def files(self):
        pages = [("2026-03-01", "baker", "It snows."), ("2026-03-02", "miller", "The wheel turns again.")]
        lines = [f'{{"day": "{day}", "by": "{by}", "page": "{page}"}}' for day, by, page in pages]
        return {"one page": lines[0].encode(), "two pages": "\\n".join([*lines, ""]).encode()}
"""


def test_the_format_of_the_guide_meets_the_contract(install: Install) -> None:
    assert_contracts_hold(install(DIARY_PROJECT, "recallog_diary", DIARY), DIARY_SUITE)


def test_the_ledger_of_the_guide_is_the_package_that_is_tested() -> None:
    package = ROOT / "tests" / "packages" / "recallog-plain-files" / "pyproject.toml"
    assert tomllib.loads(package.read_text())["project"]["entry-points"] == LEDGER_PROJECT["project"]["entry-points"]


def test_without_its_package_the_suites_say_what_to_install() -> None:
    sys.modules.pop("recallog.testing.contracts", None)
    with (
        without_ours(),
        pytest.raises(ModuleNotFoundError, match=r"pip install \./adapters/recallog-testing in a clone"),
    ):
        importlib.import_module("recallog.testing.contracts")


# Lookup by scheme.


def open_views(tmp_path: Path, scheme: str) -> None:
    Memory.open(Settings(home=tmp_path / "home", views=f"{scheme}://somewhere", index="off"))


def open_ledger(tmp_path: Path, scheme: str) -> None:
    Memory.open(Settings(ledger=f"{scheme}://somewhere", views=str(tmp_path / "views"), index="off"))


def open_engine(tmp_path: Path, scheme: str) -> None:
    Memory.open(Settings(home=tmp_path / "home", ledger=None, views=None, index=f"{scheme}://somewhere"))


def open_embedder(tmp_path: Path, scheme: str) -> None:
    embedder(f"{scheme}:somewhere")


GROUPS = [
    (plugins.STORES, open_views),
    (plugins.LEDGERS, open_ledger),
    (plugins.ENGINES, open_engine),
    (plugins.EMBEDDERS, open_embedder),
]


@pytest.mark.parametrize(("group", "open_with"), GROUPS)
def test_an_unknown_scheme_is_refused_and_the_message_names_the_group(
    tmp_path: Path, group: str, open_with: Callable[[Path, str], None]
) -> None:
    with pytest.raises(SettingsError, match=re.escape(group)):
        open_with(tmp_path, "nowhere")


@pytest.mark.parametrize(("group", "open_with"), GROUPS)
def test_a_scheme_that_two_distributions_register_is_refused_and_both_are_named(
    tmp_path: Path, install: Install, group: str, open_with: Callable[[Path, str], None]
) -> None:
    for name in ("recallog_ramdisk_one", "recallog_ramdisk_two"):
        project = {"name": name, "version": "1.0", "entry-points": {group: {"twice": f"{name}:factory"}}}
        install({"project": project}, name, "", site=name)
    with pytest.raises(SettingsError, match=r"registered 2 times in .*_one:factory, .*_two:factory"):
        open_with(tmp_path, "twice")


@pytest.mark.parametrize(("group", "open_with"), GROUPS)
def test_a_factory_that_cannot_be_imported_is_named(
    tmp_path: Path, install: Install, group: str, open_with: Callable[[Path, str], None]
) -> None:
    target = "recallog_ramdisk_broken:factory"
    project = {"name": "broken", "version": "1.0", "entry-points": {group: {"broken": target}}}
    install({"project": project}, "recallog_ramdisk_broken", "import a_module_that_is_not_installed\n")
    with pytest.raises(SettingsError, match=f"{target}, registered in {re.escape(group)}, cannot be imported"):
        open_with(tmp_path, "broken")


# `importlib.metadata` asks each finder for distributions: the finder of this script sees every scan.
OBSERVED = """
import asyncio, sys
from importlib.metadata import DistributionFinder

from recallog import Settings
from recallog.composition import compose
from recallog_projections.index.embedders.registry import embedder
from recallog_schemas.errors import SettingsError

scans = []


class Observer(DistributionFinder):
    def find_spec(self, name, path=None, target=None):
        return None

    def find_distributions(self, context=DistributionFinder.Context()):
        if context.name is None:
            scans.append(context)
        return ()


async def build(**settings):
    try:
        await compose(Settings(home=sys.argv[1], **settings)).close()
    except SettingsError as error:
        assert "recallog.stores" in str(error), error


async def main():
    sys.meta_path.append(Observer())
    await build(index="off")
    await build(ledger="memory://", views="memory://")
    await build(index="embedded")
    await build(index="http://127.0.0.1:1")
    await build(ledger="kafka://127.0.0.1:1/recallog", views="redis://127.0.0.1:1/0", index="http://127.0.0.1:1")
    embedder("minilm").close()
    print("own schemes:", len(scans))
    await build(views="other://", index="off")
    print("another scheme:", len(scans))


asyncio.run(main())
"""


def test_entry_points_are_scanned_only_for_schemes_that_are_not_our_own(tmp_path: Path) -> None:
    script = tmp_path / "observed.py"
    script.write_text(OBSERVED)
    ended = subprocess.run(
        [sys.executable, script, tmp_path / "home"], capture_output=True, text=True, check=False, env=os.environ
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == ["own schemes: 0", "another scheme: 1"]


# The other examples of the guide.


@pytest.mark.models("all")
@pytest.mark.parametrize(
    "code",
    [
        REACTOR,
        REACTOR + REACTOR_TEST,
        CHAT_MODEL,
        REFLECTOR,
        EXTRACTOR,
        SYNTHESIZER,
        SUMMARIZER,
        RERANKER,
        INDEX,
        EXTERNAL_SOURCE,
        COMPONENTS,
    ],
    ids=[
        "reactor",
        "driver",
        "chat_model",
        "reflector",
        "extractor",
        "synthesizer",
        "summarizer",
        "reranker",
        "index",
        "external_source",
        "components",
    ],
)
def test_the_examples_that_need_no_distribution_run(code: str) -> None:
    assert "\nassert " in code
    exec(compile(code, "docs/extending", "exec"), {"__name__": "extending"})


def test_the_embedder_of_an_installed_distribution_serves_its_scheme(install: Install) -> None:
    install(EMBEDDER_PROJECT, "recallog_hashed", EMBEDDER)
    found = embedder("hashed:64", api_key="secret")
    first, again, other = found.embed([Passage("The mill burned."), Passage("the MILL burned."), Passage("Bread!")])
    assert found.dimension == 64
    assert np.linalg.norm(first.vector) == pytest.approx(1)
    assert first.vector @ again.vector == pytest.approx(1)
    assert first.vector @ other.vector < 0.9
    assert embedder("hashed").dimension == 256
    found.close()


def test_the_example_that_gives_an_embedder_runs(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(EMBEDDER_PROJECT, "recallog_hashed", EMBEDDER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RECALLOG_INDEX")  # the tests turn the index off
    assert "\nassert " in GIVEN_EMBEDDER
    exec(compile(GIVEN_EMBEDDER, "docs/extending", "exec"), {"__name__": "extending"})


# A format and a command.


@pytest.fixture
def diary(install: Install, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The distribution of the guide's format and command is installed."""
    with formats_read_again():
        install(DIARY_PROJECT, "recallog_diary", DIARY)
        yield
        monkeypatch.undo()


@pytest.mark.usefixtures("diary")
def test_the_format_and_the_command_of_an_installed_distribution_are_found(tmp_path: Path) -> None:
    file = tmp_path / "diary.jsonl"
    file.write_text('{"day": "2026-03-01", "by": "baker", "page": "It snows."}\n')
    done = recallog("ingest", file, "--space", "village", "--home", tmp_path)
    assert "Total: 1 added" in done.out
    assert "(read as diary, 1 space)" in done.out
    assert recallog("diary", "village", "baker", "--home", tmp_path).out == "2026-03-01 It snows.\n"


@pytest.mark.usefixtures("diary")
def test_the_help_shows_the_command_of_an_installed_distribution_with_its_summary() -> None:
    shown = " ".join(recallog("--help").out.split())
    assert "diary Print the diary of an agent." in shown
    assert "Example: recallog diary village baker" in recallog("diary", "--help").out


def test_a_command_that_cannot_be_imported_is_named(install: Install) -> None:
    target = "recallog_diary_broken:register"
    project = {"name": "broken", "version": "1.0", "entry-points": {plugins.COMMANDS: {"broken": target}}}
    install({"project": project}, "recallog_diary_broken", "import a_module_that_is_not_installed\n")
    done = recallog("broken")
    assert done.code == 2
    assert f"{target}, registered in recallog.commands, cannot be imported" in done.err


@pytest.fixture
def alone() -> Iterator[None]:
    """Only Recallog is installed."""
    with without_ours():
        yield


MISSING = [
    ("recallog-eval", [{"sample_id": "a", "conversation": {}}]),
    ("recallog-formats", {"messages": [{"type": "human", "content": "Hello."}]}),
    ("recallog-formats", [{"lc": 1, "type": "constructor", "id": ["HumanMessage"], "kwargs": {"content": "Hello."}}]),
    ("recallog-formats", {"messages": [], "choices": [{"message": {"role": "assistant", "content": "Hello."}}]}),
    ("recallog-formats", {"object": "list", "data": [{"object": "chat.completion", "choices": []}]}),
    ("recallog-formats", {"input": {"messages": []}, "preferred_output": []}),
    ("recallog-formats", {"request": {"messages": []}, "response": None}),
    ("recallog-formats", {"custom_id": "1", "body": {"messages": []}}),
    ("recallog-formats", {"custom_id": "1", "params": {"messages": []}}),
    ("recallog-formats", {"type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn"}),
    ("recallog-formats", {"thread_id": "t", "values": {"messages": [{"type": "ai", "data": {"content": "Hello."}}]}}),
]


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(("package", "document"), MISSING)
def test_a_file_that_a_package_reads_is_refused_without_it_and_the_package_is_named(
    tmp_path: Path, package: str, document: object
) -> None:
    file = tmp_path / "log.json"
    file.write_text(json.dumps(document))
    done = recallog("ingest", file, "--home", tmp_path / "home")
    assert done.code == 1
    assert f"{package} reads the format" in done.err


@pytest.mark.usefixtures("alone")
def test_a_format_that_a_package_reads_is_wrong_use_without_it_and_the_package_is_named(tmp_path: Path) -> None:
    done = recallog("ingest", "--format", "langchain", tmp_path / "log.json", "--home", tmp_path / "home")
    assert done.code == 2
    assert "recallog-formats reads the format langchain. " in done.err
    assert "pip install ./adapters/recallog-formats in a clone of Recallog" in done.err


@pytest.mark.usefixtures("alone")
def test_eval_is_wrong_use_without_its_package_and_the_package_is_named() -> None:
    done = recallog("eval", "locomo", "locomo.json")
    assert done.code == 2
    assert "recallog eval is a command of recallog-eval. " in done.err
    assert "pip install ./adapters/recallog-eval in a clone of Recallog" in done.err


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("command", ["install", "uninstall", "hook"])
def test_a_command_for_coding_agents_is_wrong_use_without_its_package_and_the_package_is_named(command: str) -> None:
    done = recallog(command, "codex")
    assert done.code == 2
    assert f"recallog {command} is a command of recallog-agents. " in done.err
    assert "pip install ./adapters/recallog-agents in a clone of Recallog" in done.err


KNOW_INTERNALS = ("recallog-demo", "recallog-testing")
"""The demo forges stored bytes, and drivers of tests run the real projector and the loop of reactors."""


def test_the_packages_of_the_repository_import_what_the_guide_says() -> None:
    listed = re.findall(r"`(recallog[\w.]+)`", GUIDE.partition("## What they import")[2])
    public = {"recallog", "recallog.views", "recallog.extending", *listed}
    for file in ADAPTERS.rglob("*.py"):
        name = file.relative_to(ADAPTERS).parts[0]
        if name in KNOW_INTERNALS:
            continue
        own = name.replace("-", "_")
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith(("recallog.", "recallog_")):
                names = {f"{node.module}.{each.name}" for each in node.names}
                is_own = str(node.module).partition(".")[0] == own
                assert is_own or node.module in public or names <= public, (file, node.module)


def test_the_guide_shows_the_groups_and_factories_that_the_code_has() -> None:
    for group in (plugins.LEDGERS, plugins.STORES, plugins.ENGINES, plugins.EMBEDDERS):
        assert f"| `{group}` | `factory(" in GUIDE


def test_wrapping_a_client_without_its_package_names_the_command_that_installs_it() -> None:
    with without_ours(), pytest.raises(SettingsError, match=r"pip install \./adapters/recallog-wrap in a clone"):
        wrap(object())
