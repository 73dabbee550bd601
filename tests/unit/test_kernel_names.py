"""The kernel names no memory model: neither its modules, nor its kinds, tables, operations, views and limits."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FunctionType

import pytest

import recallog
from recallog.operations.facade import all_operations
from recallog_schemas import limits
from recallog_schemas.lazy_exports import defining_module
from recallog_schemas.models import BUILT_IN, import_parts

pytestmark = pytest.mark.models("all")

ROOT = Path(__file__).parents[2]
PACKAGES = (
    ROOT / "schemas/recallog_schemas",
    ROOT / "projections/recallog_projections",
    ROOT / "streams/recallog_streams",
    ROOT / "memory/recallog",
    ROOT / "service/recallog_service",
)

WORDS = {
    "conversation", "conversations", "entries", "graph", "items", "prompt", "stream", "turns", "Block",
    "MESSAGE_BYTES_MAX", "Nearest",
}  # fmt: skip
"""Names of models that are words of the kernel too: conversations of files, entries of the ledger, items of a list, the
graph of a network, a prompt for a question, streams of bytes, turns of a space, messages between processes."""

EXCEPTIONS = {
    # One event `agent.configured` has all settings of an agent: it stays valid, and its row stays as it is, whether or
    # not the process that reads it has the model. See ADR 0080.
    "recallog_schemas/kinds/settings.py": {"tiers", "working"},
    "recallog_schemas/views/settings.py": {"tiers", "working"},
    "recallog_projections/views/settings.py": {"tiers", "working"},
    "recallog/queries/spaces.py": {"tiers", "working"},
    "recallog/operations/configuration.py": {"tiers", "working"},
    # One event `space.configured` has all settings of a space, as `agent.configured` those of an agent.
    "recallog_schemas/kinds/trust.py": {"facts", "beliefs"},
    "recallog_schemas/kinds/catalogue.py": {"tiers"},
    # The page of a difference links the items whose ids have pages.
    "recallog_service/console/pages/agent.py": {"beliefs"},
    # The folder of RECALLOG_WORKSPACE is one of the settings of a process, which are one class.
    "recallog/settings.py": {"workspace"},
    "recallog/other_settings.py": {"workspace"},
    # Recall filters by `tier`, a field that the engine indexes: which fields those are is part of its contract.
    "recallog/memory.py": {"tiers"},
    "recallog/operations/parameters.py": {"tiers"},
    "recallog/retrieval/query.py": {"tiers"},
    "recallog/retrieval/recall.py": {"tiers"},
    "recallog_projections/index/engines/engine.py": {"tiers"},
    "recallog_projections/index/engines/conditions.py": {"tiers"},
    "recallog_service/http/disclosure.py": {"tiers"},
    # A process waits while another one is working; a process stops when it has worked enough.
    "recallog_streams/stop_signal.py": {"working"},
}
"""By module, the names that it has for the reason above them."""


@cache
def names_of_models() -> frozenset[str]:
    """What belongs to the built-in models, by name."""
    found = set(BUILT_IN)
    found.update(model.operations.attribute for model in recallog.MODELS if model.operations is not None)
    found.update(
        operation.qualified_name
        for operation in all_operations(recallog.Memory).values()
        if operation.qualified_name.partition(".")[0] in recallog.Memory.facades.keys() - {"admin"}
    )
    for part in import_parts("recallog_schemas", "kinds"):
        found.update(kind.name for kind in part.KINDS)
    for part in (*import_parts("recallog_schemas", "views"), *import_parts("recallog_schemas", "payloads")):
        classes = {name: value for name, value in vars(part).items() if isinstance(value, type | FunctionType)}
        found.update(name for name, value in classes.items() if defining_module(value) == part.__name__)
    for part in import_parts("recallog_schemas", "limits"):
        found.update(name for name in vars(part) if name.isupper() and not hasattr(limits, name))
    for part in import_parts("recallog_projections", "views"):
        for make in part.PROJECTIONS:
            projection = make()
            tables = [table.name for table in projection.tables if not table.name.startswith("due.")]
            found.update((projection.name, *tables))
    return frozenset(name for name in found - WORDS if name and not name.startswith("_"))


def names_in(tree: ast.AST) -> Iterator[str]:
    """The names and the texts in a module, without docstrings."""
    docstrings = {each.value for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if node not in docstrings:
                yield text
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.keyword(arg=str(name)) | ast.arg(arg=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.alias(name=name):
                yield name.rpartition(".")[2]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_the_kernel_names_no_model_but_where_a_reason_is_given(package: Path) -> None:
    found: dict[str, set[str]] = {}
    for path in package.rglob("*.py"):
        module = path.relative_to(package.parent)
        if module.parts[1] != "models":
            named = names_of_models().intersection(names_in(ast.parse(path.read_text(encoding="utf-8"))))
            if named:
                found[str(module)] = named
    assert found == {module: names for module, names in EXCEPTIONS.items() if module.startswith(f"{package.name}/")}
