"""Docstrings as text: of classes in paragraphs, and of attributes, which only the source has.

Everything here reads source files. It is for exports and generated pages, not for calls.
"""

import ast
import inspect
import textwrap
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise

from pydantic import BaseModel


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


@cache
def _own_docstrings(documented: type) -> Mapping[str, str]:
    try:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(documented))).body
    except (OSError, TypeError, ValueError, SyntaxError):
        return {}
    if not isinstance(definition, ast.ClassDef) or definition.name != documented.__name__:
        return {}  # Python 3.13 finds the line of a class that `exec` has made in whatever file has such a line
    return {
        attribute.target.id: " ".join(text.value.value.split())
        for attribute, text in pairwise(definition.body)
        if isinstance(attribute, ast.AnnAssign)
        and isinstance(attribute.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }
