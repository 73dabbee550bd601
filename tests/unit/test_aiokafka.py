"""Internals of aiokafka are used in one module only, and its version is capped."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INTERNALS = ROOT / "streams/recallog_streams/ledgers/kafka/aiokafka_internals.py"
PUBLIC = {"aiokafka", "aiokafka.errors", "aiokafka.helpers"}
"""The modules whose names aiokafka documents."""


def sources() -> list[Path]:
    rooms = ("schemas", "projections", "streams", "memory", "service")
    return sorted(path for room in rooms for path in (ROOT / room).rglob("*.py") if path != INTERNALS)


def below_the_public_api(source: str) -> Iterator[str]:
    """The imports of aiokafka's internal modules and names, and private attributes of objects where it is imported."""
    tree = ast.parse(source)
    imported = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    imported += [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    of_aiokafka = [name for name in imported if name.split(".")[0] == "aiokafka"]
    yield from (name for name in of_aiokafka if name not in PUBLIC)
    for node in ast.walk(tree) if of_aiokafka else ():
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "aiokafka":
            submodules = {name.removeprefix("aiokafka.") for name in PUBLIC}
            yield from (name.name for name in node.names if name.name.startswith("_"))
            yield from (
                name.name
                for name in node.names
                if node.module == "aiokafka" and name.name.islower() and name.name not in submodules
            )
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            owner = node.value
            if not (isinstance(owner, ast.Name) and owner.id in ("self", "cls")):
                yield ast.unparse(node)


def test_no_other_module_uses_internals_of_aiokafka() -> None:
    found = {str(path.relative_to(ROOT)): list(below_the_public_api(path.read_text())) for path in sources()}
    assert len(found) > 100
    assert {path: uses for path, uses in found.items() if uses} == {}


@pytest.mark.parametrize(
    "source",
    [
        "from aiokafka.client import AIOKafkaClient",
        "import aiokafka.conn",
        "from aiokafka import client",
        "from aiokafka import _private",
        "from aiokafka import AIOKafkaConsumer\nconsumer._fetcher",
        "from aiokafka import AIOKafkaConsumer\nself._consumer._fetcher.error_future",
    ],
)
def test_each_use_of_internals_is_found(source: str) -> None:
    assert list(below_the_public_api(source)) != []


def test_the_version_of_aiokafka_is_capped() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (wanted,) = (name for name in project["optional-dependencies"]["cluster"] if name.startswith("aiokafka"))
    assert wanted == "aiokafka[zstd]>=0.14,<0.15"
