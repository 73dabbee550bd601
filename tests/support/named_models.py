"""Which built-in memory models a test names in its body, and in what it calls or refers to in modules of the tests.

A test names a model where it imports something of it, calls an operation, runs a command or asks for a path, or names
a table. The kinds of a model do not count: any process stores events of any kind.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType

import recallog
import recallog.extending
import recallog.views
from recallog.operations.facade import all_operations
from recallog_schemas.lazy_exports import defining_module
from recallog_schemas.models import BUILT_IN, import_parts

TESTS = Path(__file__).parents[1]

_EXPORTING: Mapping[str, ModuleType] = {each.__name__: each for each in (recallog, recallog.extending, recallog.views)}
_PATH = re.compile(r"/v1/(?:.*/)?(?:(?P<group>[\w-]+)/)?(?P<name>[\w-]+)(?:\?.*)?")

Definition = tuple[Path, str]
"""A module of the tests, and the name of a function, class or constant in it."""


def tests_in(path: Path) -> "dict[str, frozenset[str]]":
    """The names of the tests of a file, with the models that their marks name, without those of the file's mark."""
    found: dict[str, frozenset[str]] = {}
    for name, nodes in _module(path).definitions.items():
        for node in nodes:
            if name.startswith("test_") and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found[name] = frozenset(each for mark in node.decorator_list for each in _marked(mark))
    return found


def named_by(path: Path, name: str) -> dict[str, str]:
    """The models that a test names, each with a place that names it."""
    found: dict[str, str] = {}
    seen: set[Definition] = set()
    left = [(path, name)]
    while left:
        each = left.pop()
        if each not in seen:
            seen.add(each)
            models, others = _named(*each)
            found = dict(models) | found
            left.extend(others)
    return found


def of_import(module: str, name: str) -> str | None:
    """The model that a name belongs to which is imported from a module of the product."""
    value = getattr(_EXPORTING.get(module), name, None)
    return _model_of(defining_module(value) if isinstance(value, type | FunctionType) else f"{module}.{name}")


class _Module:
    """A module of the tests: what it defines and imports at its top level."""

    def __init__(self, path: Path) -> None:
        self.definitions: dict[str, list[ast.stmt]] = {}
        self.imports: dict[str, tuple[str, str]] = {}
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.ImportFrom):
                names = {each.asname or each.name: (str(statement.module), each.name) for each in statement.names}
                self.imports.update(names)
            for name in _defined(statement):
                self.definitions.setdefault(name, []).append(statement)


_module = cache(_Module)


def _defined(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case ast.Assign(targets=targets):
            yield from (node.id for each in targets for node in ast.walk(each) if isinstance(node, ast.Name))


@cache
def _named(path: Path, name: str) -> tuple[Mapping[str, str], frozenset[Definition]]:
    """The models that a definition names by itself, and the definitions that it refers to."""
    module = _module(path)
    if name in module.imports and name not in module.definitions:
        return _imported(path, name)
    models: dict[str, str] = {}
    others: set[Definition] = set()
    for node in [each for statement in module.definitions.get(name, []) for each in _nodes(statement)]:
        models |= {model: f"{path.name}: {name}: {ast.unparse(node)[:60]}" for model in _models_of(node)}
        others.update(_referred(path, node))
    return models, frozenset(others)


def _imported(path: Path, name: str) -> tuple[Mapping[str, str], frozenset[Definition]]:
    source, original = _module(path).imports[name]
    where = _path_of(source)
    if where is not None:
        return {}, frozenset({(where, original)})
    model = of_import(source, original)
    return ({model: f"{path.name}: import {original}"} if model else {}), frozenset()


def _referred(path: Path, node: ast.AST) -> Iterator[Definition]:
    match node:
        case ast.Name(id=name):
            yield path, name
        case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in _module(path).imports:
            where = _path_of(".".join(_module(path).imports[name]))
            if where is not None:
                yield where, attribute
        case ast.arg(arg=name):  # a fixture
            yield path, name
            for folder in (path.parent, TESTS):
                if (folder / "conftest.py").exists():
                    yield folder / "conftest.py", name


def _path_of(module: str) -> Path | None:
    path = TESTS / (module.replace(".", "/") + ".py")
    return path if path.exists() else None


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what is in it, without annotations, and without cases that have marks of their own."""
    yield node
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not any(_marked(child)):
                    yield from _nodes(child)


def _marked(node: ast.AST) -> Iterator[str]:
    """The models of a mark, or of a case with a mark."""
    match node:
        case ast.Call(func=ast.Attribute(attr="models", value=ast.Attribute(attr="mark"))):
            yield from (str(each.value) for each in node.args if isinstance(each, ast.Constant))
        case ast.Call(func=ast.Attribute(attr="param")):
            for keyword in node.keywords:
                yield from (each for inner in ast.walk(keyword.value) for each in _marked(inner))


def _models_of(node: ast.AST) -> Iterator[str]:
    """The models that a node names."""
    match node:
        case ast.Constant(value=str(text)):
            yield from _of_text(text)
        case ast.JoinedStr(values=parts):
            yield from _of_text("".join(each.value if isinstance(each, ast.Constant) else "x" for each in parts))
        case ast.Attribute(attr=name, value=ast.Attribute(attr=facade) | ast.Name(id=facade)):
            yield from _known(_operations().get(f"{facade}.{name}"))
        case ast.ImportFrom(module=module, names=names):
            yield from (model for each in names for model in _known(of_import(str(module), each.name)))
        case ast.Call(func=ast.Attribute(attr=name), args=arguments):
            if arguments:  # all these operations have some
                yield from _known(_operations().get(name))
            if name not in ("get", "pop", "split"):
                yield from _of_words(arguments)
        case ast.Call(args=arguments) | ast.List(elts=arguments):
            yield from _of_words(arguments)


def _of_text(text: str) -> Iterator[str]:
    if "." in text:
        yield from _known(_tables().get(text))
    path = _PATH.fullmatch(text)
    if path is not None:
        yield from _known(_commands().get(f"{path['group']} {path['name']}") or _commands().get(path["name"]))


def _of_words(nodes: list[ast.expr]) -> Iterator[str]:
    """The model of a command, whose words come first."""
    words = [str(each.value) for each in nodes[:2] if isinstance(each, ast.Constant)]
    yield from _known(_commands().get(" ".join(words)) or _commands().get(" ".join(words[:1])))


def _known(model: str | None) -> Iterator[str]:
    if model is not None:
        yield model


@cache
def _operations() -> dict[str, str]:
    """The models by the names of their operations, such as `tiers.entry` and `context`."""
    named = {name: _model_of(each.function.__module__) for name, each in all_operations(recallog.Memory).items()}
    return {name: model for name, model in named.items() if model}


@cache
def _commands() -> dict[str, str]:
    """The models by the words of their commands, which are also the ends of their paths."""
    operations = all_operations(recallog.Memory)
    return {operations[name].command: model for name, model in _operations().items() if operations[name].command}


@cache
def _tables() -> dict[str, str]:
    parts = import_parts("recallog_projections", "views")
    tables = {table.name: part.__name__ for part in parts for make in part.PROJECTIONS for table in make().tables}
    named = {name: _model_of(module) for name, module in tables.items() if not name.startswith("due.")}
    return {name: model for name, model in named.items() if model}


def _model_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[2] if len(parts) > 2 and parts[1] == "models" and parts[2] in BUILT_IN else None
