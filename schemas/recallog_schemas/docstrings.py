"""The docstrings of classes and attributes as text. Only the source has docstrings of attributes.

This module reads source files: use it for exports and generated pages, not in calls.
"""

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise

from pydantic import BaseModel

from recallog_schemas.lazy_exports import defining_module


def paragraphs(documented: object) -> Sequence[str]:
    """The docstring of a class or a function in paragraphs, each as one line; empty if it has no docstring."""
    text = inspect.cleandoc(getattr(documented, "__doc__", None) or "")
    return [" ".join(part.split()) for part in text.split("\n\n") if part]


def attribute_docstrings(documented: type) -> Mapping[str, str]:
    """The docstrings under the attributes of a class and of its bases, by attribute, each as one line.

    A class whose source is not available has none.
    """
    found: dict[str, str] = {}
    for base in reversed(documented.__mro__):
        # `ListView[Event]` is a class of its own; the attributes are those of `ListView`.
        if base not in BaseModel.__mro__ and "[" not in base.__name__:
            found |= _own_docstrings(base)
    return found


def _own_docstrings(documented: type) -> Mapping[str, str]:
    return _docstrings_in(defining_module(documented)).get(documented.__qualname__, {})


@cache
def _docstrings_in(module: str) -> Mapping[str, Mapping[str, str]]:
    """The docstrings of attributes in a module, by the qualified name of their class. `inspect.getsource(cls)` would
    parse the whole module for each class."""
    try:
        parsed = ast.parse(inspect.getsource(sys.modules[module]))
    except (KeyError, OSError, TypeError, SyntaxError):
        return {}
    return dict(_classes_within(parsed, ""))


def _classes_within(node: ast.AST, prefix: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.ClassDef):
            yield prefix + each.name, _attributes_of(each)
            yield from _classes_within(each, f"{prefix}{each.name}.")
        elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _classes_within(each, f"{prefix}{each.name}.<locals>.")
        elif isinstance(each, ast.stmt):
            yield from _classes_within(each, prefix)


def _attributes_of(definition: ast.ClassDef) -> Mapping[str, str]:
    return {
        attribute.target.id: " ".join(text.value.value.split())
        for attribute, text in pairwise(definition.body)
        if isinstance(attribute, ast.AnnAssign)
        and isinstance(attribute.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }
