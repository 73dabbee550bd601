"""Kafka, Redis and Faust stand by name only where they are adapted: everything else knows ports."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = (
    ROOT / "schemas/recallog_schemas",
    ROOT / "projections/recallog_projections",
    ROOT / "streams/recallog_streams",
    ROOT / "memory/recallog",
    ROOT / "service/recallog_service",
)
NAMED = re.compile(r"kafka|redis|faust", re.IGNORECASE)
COMPOSITION = "recallog/composition.py"
"""The only module that knows schemes."""

ADAPTERS = re.compile(r"/(kafka|redis)/|/redis(_\w+)?\.py$")
"""The folders and modules of the adapters."""

WORKER = "recallog_service/worker.py"
"""Faust supervises a worker, whatever its ledger is: this module adapts it."""

EXAMPLE = re.compile(r"(kafka|redis)://[\w.:/-]+")
"""A URL in a text that users read, such as the example of a command."""


def code_in(file: Path) -> Iterator[str]:
    """The names, imports and texts of a module. Docstrings and comments may name technologies: they explain."""
    tree = ast.parse(file.read_text())
    docstrings = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str() | bytes() as value) if id(node) not in docstrings:
                yield EXAMPLE.sub("", str(value))
            case ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.alias(name=name):
                yield name
            case ast.ImportFrom(module=module):
                yield module or ""


FILES = [
    file
    for package in PACKAGES
    for file in sorted(package.rglob("*.py"))
    if not ADAPTERS.search(file.as_posix()) and file.relative_to(package.parent).as_posix() not in (COMPOSITION, WORKER)
]


def test_only_adapters_and_the_composition_name_them() -> None:
    found = {
        (file.relative_to(ROOT).as_posix(), name) for file in FILES for name in code_in(file) if NAMED.search(name)
    }
    assert found == set()


def test_a_worker_names_what_supervises_it_and_no_storage() -> None:
    names = {name for name in code_in(ROOT / "service" / WORKER) if NAMED.search(name)}
    assert {name for name in names if "redis" in name.lower()} == set()
    assert {name for name in names if "kafka" in name.lower()} == {"aiokafka", "enable_kafka"}  # of Faust itself
