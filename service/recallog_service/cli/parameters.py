"""Parameters of operations on the command line: arguments and options of simple types, with their help."""

import inspect
import re
import types
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
import typer
from pydantic.fields import FieldInfo

from recallog import Memory, Position
from recallog.operations.facade import find_operation
from recallog.operations.operation import FROM_FILE, Operation
from recallog_schemas.views.base import Bounded
from recallog_service.command_lines import flag, singular

IDS_OF_EVENTS = frozenset({"event_id", "further", "ids", "entry"})
"""Parameters of kernel operations that take short ids, see `event_ids`."""
_LIMITS = frozenset({"top_k", "window"})
"""Parameters that limit the list in an answer: their options get the additional name `--limit`."""

LIMIT = "limit"
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="Print at most this many items of the list.")]
"""The option of commands whose operation does not limit the list of its answer."""


def make_parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """A parameter of a generated function, for Typer."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def parameter(operation: Operation, name: str, *, required: bool) -> inspect.Parameter:
    """One parameter of an operation for Typer. Numbers and truth values keep their types; everything else is a text or
    a list of texts, which the operation parses."""
    given = operation.arguments.model_fields[name]
    if FROM_FILE in given.metadata:
        text = f"File with JSON, or - for stdin. {spoken(given.description or '', operation)}"
        return make_parameter(name, Annotated[str, typer.Argument(help=text)])
    kind, repeated = _kind(given.annotation)
    info: dict[str, Any] = {"help": spoken(given.description or "", operation)}
    simple: Any = kind if kind in (bool, int, float) else str
    if simple in (int, float):
        info |= _bounds(given)
    elif simple is str:
        info["metavar"] = _metavar(given.annotation, kind)
    annotation = list[simple] if repeated else simple
    default: Any = inspect.Parameter.empty
    if not required:
        default = None if given.is_required() else given.default
        annotation = annotation | None if default is None else annotation
    if name in operation.positional:
        info["metavar"] = f"{name.removesuffix('s').upper()}..." if repeated else None
        return make_parameter(name, Annotated[annotation, typer.Argument(**info)], default)
    if repeated:
        info["help"] += " Repeatable."
    names = [name_parameter(operation, name)] + ["--limit"] * (name in _LIMITS and operation.read_only)
    return make_parameter(name, Annotated[annotation, typer.Option(*names, **info)], default)


def lacks_limit(operation: Operation) -> bool:
    """Whether a reading operation answers a list and has no parameter that limits it."""
    is_list = isinstance(operation.answer, type) and issubclass(operation.answer, Bounded)
    return is_list and operation.read_only and operation.parameters.keys().isdisjoint({LIMIT, *_LIMITS})


def name_parameter(operation: Operation, name: str) -> str:
    """The name of a parameter on the command line: an argument's own, else its option; `--kind` for `kinds`."""
    if name in operation.positional:
        return name
    return flag(singular(name) if is_repeated(operation, name) else name)


def is_repeated(operation: Operation, name: str) -> bool:
    """Whether a parameter is a sequence, so that its option may be repeated."""
    _, repeated = _kind(operation.arguments.model_fields[name].annotation)
    return repeated


def choices_of(operation: Operation, name: str) -> Sequence[str]:
    """The allowed values of a parameter if it is a choice of words; otherwise empty."""
    given = operation.arguments.model_fields.get(name)
    kind = None if given is None else _kind(given.annotation)[0]
    return get_args(kind) if get_origin(kind) is Literal else ()


def spoken(text: str, operation: Operation) -> str:
    """Documentation in the words of the command line: options for parameters, commands for operations."""

    def word(found: re.Match[str]) -> str:
        name = found[1]
        if name in operation.parameters:
            return name.upper() if name in operation.positional else name_parameter(operation, name)
        named = find_operation(name, Memory, operation.group)
        return f"`recallog {named.command}`" if named is not None and named.command else found[0]

    without_markup = r"\\["
    return re.sub(r"\[(?=[a-z#/@])", without_markup, re.sub(r"`([\w.]+)`", word, text))


def _kind(annotation: Any) -> tuple[Any, bool]:
    """The type of one value, without None, and whether it may be repeated. A union of several types is a text."""
    alternatives = _alternatives(annotation)
    kind = alternatives[0] if len(alternatives) == 1 else str
    return (get_args(kind)[0], True) if get_origin(kind) is Sequence else (kind, False)


def _alternatives(annotation: Any) -> Sequence[Any]:
    union = get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)
    return [each for each in union if each is not type(None)]


def _bounds(given: FieldInfo) -> dict[str, Any]:
    bounds: dict[str, Any] = {}
    for bound in given.metadata:
        if isinstance(bound, annotated_types.Ge):
            bounds["min"] = bound.ge
        elif isinstance(bound, annotated_types.Le):
            bounds["max"] = bound.le
    return bounds


def _metavar(annotation: Any, kind: Any) -> str | None:
    """The placeholder of the value in the help: the words of a choice, a kind of text, or None for the default."""
    if get_origin(kind) is Literal:
        return "|".join(get_args(kind))
    alternatives = _alternatives(annotation)
    return "|".join(word for each, word in ((Position, "POSITION"), (datetime, "TIME")) if each in alternatives) or None
