"""Each memory model may be left out: without its folders and its line in the list of models, the rest works, and all
tests pass that do not need it. `make without MODEL=tiers` runs all of these."""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

import recallog
import recallog.extending
from recallog_schemas.models import BUILT_IN
from support import needed_models, without

pytestmark = pytest.mark.models("all")

TESTS = without.ROOT / "tests"
FILES = sorted(TESTS.rglob("test_*.py"))

SCRIPT = """
import asyncio
from recallog import Event, Memory, MODELS

async def main():
    async with Memory.open("memory") as memory:
        await memory.publish(Event(space="s", agent="a", kind="agent.spoke", payload={"text": "Fresh bread today"}))
        assert [each.text for each in (await memory.episodic("s", "a")).memories] == ["Fresh bread today"]
        assert [each.text for each in (await memory.recall("s", "a", "bread")).hits] == ["Fresh bread today"]
        assert [each.preview for each in (await memory.search("s", "a", "bread")).hits] == ["Fresh bread today"]
        assert [each.text for each in (await memory.salient("s", "a")).memories] == ["Fresh bread today"]
        assert not (await memory.react()).items
        assert not (await memory.admin.verify()).findings()
        await memory.admin.rebuild()
        assert (await memory.admin.status()).records == 1
    print(*(each.name for each in MODELS))

asyncio.run(main())
"""

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
    done = without.run(tmp_path, "-c", SCRIPT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [each for each in BUILT_IN if each not in without.left_out([model])]
    done = without.run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files(FEW))
    assert done.returncode == 0, done.stdout


def test_without_any_model_the_tests_of_the_kernel_pass(tmp_path: Path) -> None:
    without.copy_without(BUILT_IN, tmp_path)
    done = without.run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files(MANY))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_test_file_imports_only_models_that_it_names(path: Path) -> None:
    needed = needed_models.needed_by_file(path)
    named = set(BUILT_IN) if needed_models.ALL in needed else needed
    assert imported(path) <= {each for name in named for each in brought(name)}


def test_each_model_that_a_test_names_is_built_in() -> None:
    assert needed_models.named() <= set(BUILT_IN)


def files(names: Iterable[str]) -> list[str]:
    return [f"tests/unit/test_{name}.py" for name in names]


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
        exporting = {"recallog": recallog, "recallog.extending": recallog.extending}.get(module)
        of = getattr(getattr(exporting, name, None), "__module__", None) or f"{module}.{name}"
        parts = str(of).split(".")
        if len(parts) > 2 and parts[1] == "models" and parts[2] in BUILT_IN:
            yield parts[2]


@cache
def brought(name: str) -> frozenset[str]:
    """The model, and those that it is built on."""
    (model,) = [each for each in recallog.MODELS if each.name == name]
    return frozenset({name}.union(*(brought(each) for each in model.after)))
