"""The page of views: each answer, and each type that an answer contains, with its fields and its text."""

import dataclasses
import inspect
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from recallog.operations.facade import Facade, all_operations
from recallog.operations.operation import Operation
from recallog_schemas.docstrings import attribute_docstrings, paragraphs
from recallog_schemas.lazy_exports import defining_module
from recallog_schemas.views import ListView, View
from recallog_tools.reference import facades
from recallog_tools.reference.markdown import code, docstring, sections, table
from recallog_tools.reference.signatures import signature_text, type_text

_INTRODUCTION = """\
An operation answers with a view: an immutable pydantic model. Import views from `recallog.views`.
`view.model_dump_json()` is its JSON, whose schema is in [`schemas/json/views`](../../schemas/json/views), and
`view.format()` its text. `view.ok` says whether what was requested was found, done or confirmed; if not, the exit code
of a command is 1.

The types that views contain are described here too."""


def page(facade: type[Facade]) -> str:
    """The page, by name of the type."""
    operations = list(all_operations(facade).values())
    documented = described(facade)
    parts = [_section(each, documented, operations) for each in documented]
    return sections(("# Views", _INTRODUCTION, *parts))


def described(facade: type[Facade]) -> Sequence[type[Any]]:
    """The types of answers, and those that they contain, by name."""
    found: set[type[Any]] = set()
    waiting = [each.answer for each in all_operations(facade).values()]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting += [part for annotation in fields(each).values() for part in contained(annotation)]
    return sorted(found, key=lambda each: each.__name__)


def fields(documented: type[Any]) -> Mapping[str, Any]:
    """The types of the fields of a model or a dataclass."""
    if issubclass(documented, BaseModel):
        return {name: field.annotation for name, field in documented.model_fields.items()}
    hints = typing.get_type_hints(documented)
    return {field.name: hints[field.name] for field in dataclasses.fields(documented)}


def contained(annotation: Any) -> Iterator[type[Any]]:
    """The models and dataclasses in a type, from left to right."""
    if inspect.isclass(annotation) and (issubclass(annotation, BaseModel) or dataclasses.is_dataclass(annotation)):
        yield annotation
    for each in typing.get_args(annotation):
        yield from contained(each)


def _section(each: type[Any], documented: Sequence[type[Any]], operations: Sequence[Operation]) -> str:
    answers = [facades.link(operation) for operation in operations if operation.answer is each]
    parts = [
        f"[{code(whole.__name__)}](#{whole.__name__.lower()})"
        for whole in documented
        if any(each in contained(annotation) for annotation in fields(whole).values())
    ]
    uses = [f"Answer of {', '.join(answers)}." if answers else "", f"Part of {', '.join(parts)}." if parts else ""]
    return sections(
        (
            f"## {each.__name__}",
            docstring(each),
            " ".join(use for use in uses if use),
            _fields(each),
            "\n".join(_methods(each)),
        )
    ).rstrip()


def _fields(each: type[Any]) -> str:
    descriptions = attribute_docstrings(each)
    rows = [(code(name), _type(annotation), descriptions.get(name, "")) for name, annotation in fields(each).items()]
    return table(("field", "type", "description"), rows)


def _type(annotation: Any) -> str:
    text = code(type_text(annotation))
    first = next(contained(annotation), None)
    return text if first is None else f"[{text}](#{first.__name__.lower()})"


def _methods(each: type[Any]) -> Iterator[str]:
    """One line for each public method and property; `format()`, which every view has, is the first."""
    if issubclass(each, View):
        yield f"- `format()`: {_one_line(each.format)}"
    if issubclass(each, ListView):
        yield "- `len(view)`, `view[0]` and `for item in view`: the items."
    found: dict[str, Any] = {}
    for base in reversed(each.__mro__):
        if defining_module(base).startswith("recallog_schemas.") and base not in (View, ListView):
            found |= vars(base)
    for name, value in found.items():
        if name.startswith("_") or name in ("format", "ok"):
            continue
        if isinstance(value, property):
            yield f"- `{name}`: {_one_line(value)}"
        elif isinstance(value, classmethod):
            yield f"- `{_signature(f'{each.__name__}.{name}', getattr(each, name))}`: {_one_line(value)}"
        elif inspect.isfunction(value):
            yield f"- `{_signature(name, value)}`: {_one_line(value)}"


def _signature(name: str, function: Any) -> str:
    text = signature_text(name, inspect.signature(function))
    return " ".join(text.split()).replace("( ", "(").replace(", )", ")")


def _one_line(documented: object) -> str:
    return " ".join(paragraphs(documented))
