"""Each memory model may be left out: without its folders and its line in the list of models, the rest works, and all
tests pass that do not need it. `make without MODEL=tiers` runs all of these."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from recallog_schemas.models import BUILT_IN
from support import campaigns, named_models, needed_models, without

pytestmark = pytest.mark.models("all")

TESTS = without.ROOT / "tests"
FILES = sorted(TESTS.rglob("test_*.py"))

TEST_OF_THE_OTHERS = """
import asyncio
from pathlib import Path

from recallog import MODELS, Event, Memory

NAMES = [each.name for each in MODELS]


def test_the_models_that_are_left_work(tmp_path: Path) -> None:
    asyncio.run(use(tmp_path))


async def use(folder: Path) -> None:
    assert NAMES == Path(__file__).with_suffix(".txt").read_text().split()
    async with Memory.open(folder) as memory:
        await memory.publish(Event(space="s", agent="a", kind="agent.spoke", payload={"text": "Fresh bread today"}))
        assert [each.text for each in (await memory.episodic("s", "a")).memories] == ["Fresh bread today"]
        assert [each.text for each in (await memory.recall("s", "a", "bread")).hits] == ["Fresh bread today"]
        assert [each.preview for each in (await memory.search("s", "a", "bread")).hits] == ["Fresh bread today"]
        assert [each.text for each in (await memory.salient("s", "a")).memories] == ["Fresh bread today"]
        assert not (await memory.react()).items
        assert not (await memory.admin.verify()).findings()
        await memory.admin.rebuild()
        assert (await memory.admin.status()).records == 1
        reflecting = {"reflection_threshold": 1}
        await memory.publish(Event(space="s", agent="a", kind="agent.configured", payload=reflecting))
        await memory.publish(Event(space="s", agent="b", kind="world.observed", payload={"text": "It rains"}))
        assert len(await memory.pending("s")) == ("beliefs" in NAMES)
"""
"""It runs in the same process as the tests of `FEW`: to start one takes as long as the test."""

FEW = ("memory_publishing", "memory_views")
"""The files of tests that run in a copy without one model."""
MANY = (
    *FEW, "codec", "copying", "declared_kinds", "embedded_questions", "events", "extending",
    "fold", "formats_chat", "formats_recognised", "fusing", "generations", "http_routing", "identity", "kind_catalogue",
    "kinds", "ledger_check", "live", "memory_dead_letters", "memory_own_projections", "memory_timeline",
    "memory_visibility", "operations", "outline", "positions", "previews", "ranking",
    "read_session", "recall_of_chinese", "registered_kinds", "repeats", "routes", "rows",
    "schema_export", "testing_driver", "text_rules", "time_travel", "toy_operation",
    "views", "wrong_arguments",
)  # fmt: skip
"""The files of tests that run in a copy without any."""


@pytest.mark.parametrize("model", BUILT_IN)
def test_without_a_model_and_those_built_on_it_the_others_work(model: str, tmp_path: Path) -> None:
    without.copy_without([model], tmp_path)
    written = tmp_path / "tests/unit/test_the_others.py"
    written.write_text(TEST_OF_THE_OTHERS)
    left = [each for each in BUILT_IN if each not in without.left_out([model])]
    written.with_suffix(".txt").write_text(" ".join(left))
    check_tests(tmp_path, "the_others", *FEW)


def test_without_any_model_the_tests_of_the_kernel_pass(tmp_path: Path) -> None:
    without.copy_without(BUILT_IN, tmp_path)
    check_tests(tmp_path, *MANY)


def check_tests(copy: Path, *names: str) -> None:
    """Run files of tests in a copy. All must pass."""
    files = [f"tests/unit/test_{name}.py" for name in names]
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:schemathesis")  # its import takes long, and none uses it
    done = without.run(copy, "-m", "pytest", *options, *files, **{campaigns.IN_COPY: "1"})
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_test_file_imports_only_models_that_it_names(path: Path) -> None:
    assert imported(path) <= needed_models.brought(needed_models.needed_by_file(path))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_test_uses_only_models_that_it_or_its_file_names(path: Path) -> None:
    found: dict[str, dict[str, str]] = {}
    for test, needed in named_models.tests_in(path).items():
        there = needed_models.brought(needed | needed_models.needed_by_file(path))
        found[test] = {model: place for model, place in named_models.named_by(path, test).items() if model not in there}
    assert {test: places for test, places in found.items() if places} == {}


def test_each_model_that_a_test_names_is_built_in() -> None:
    assert needed_models.named() <= set(BUILT_IN)


@cache
def imported(path: Path) -> frozenset[str]:
    """The models that a module of the tests imports when it is imported, also through other modules of the tests."""
    found: set[str] = set()
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.ImportFrom):
            found.update(_models_in(statement))
    return frozenset(found)


def _models_in(statement: ast.ImportFrom) -> Iterator[str]:
    module = str(statement.module)
    for name in [alias.name for alias in statement.names]:
        for each in (f"{module}.{name}", module):
            path = TESTS / (each.replace(".", "/") + ".py")
            if path.exists():
                yield from imported(path)
        model = named_models.of_import(module, name)
        if model is not None:
            yield model
