"""Commands derived from operations: arguments, options, help and output follow from the declaration.

A parameter that may be given by its place becomes an argument, and any other an option. A sequence becomes an option
that may be repeated, named in the singular.
"""

import inspect
import re
import sys
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, get_args, get_origin

import annotated_types
import typer
from pydantic_core import PydanticUndefined

from recallog import Memory, Position
from recallog.operations.operation import Operation, all_operations
from recallog_schemas.errors import IndexUnavailable, ViewsBehind
from recallog_service.cli import rendering, terminal

_GROUPS = {"dead-letters": "List, show or retry records that could not be applied."}
"""Summaries of the groups of commands."""

_BY_HAND = frozenset({"publish", "react", "copy", "schema"})
"""Commands that are more than their operation: fields as options, following what falls due, a source, a group."""

_WAIT = "wait_index"
"""A parameter that the command line has the other way round: a person at a terminal waits for the index by default."""


@dataclass(slots=True)
class Line:
    """One command: an operation, and those that its options select instead."""

    words: Sequence[str]
    operation: Operation
    instead: dict[str, Operation] = field(default_factory=dict)
    """By the name of the option, with underscores."""

    @property
    def operations(self) -> Sequence[Operation]:
        return [self.operation, *self.instead.values()]


def lines(facade: type[Memory] = Memory) -> list[Line]:
    """The commands of a facade's operations, in the order of their declaration."""
    found: dict[tuple[str, ...], Line] = {}
    later = []
    for operation in all_operations(facade).values():
        *words, last = operation.command.split() or [""]
        if last.startswith("--"):
            later.append((tuple(words), last.removeprefix("--").replace("-", "_"), operation))
        elif last:
            found[*words, last] = Line((*words, last), operation)
    for path, option, operation in later:
        found[path].instead[option] = operation
    return list(found.values())


def names(facade: type[Memory] = Memory) -> list[str]:
    """The names of the commands, and groups of commands, that are derived from a facade and not written by hand."""
    return [name for name in dict.fromkeys(line.words[0] for line in lines(facade)) if name not in _BY_HAND]


def register(app: typer.Typer, name: str, facade: type[Memory] = Memory) -> None:
    """Add the command `name`, or the group of commands of this name, to `app`."""
    if name in _GROUPS:
        group = typer.Typer(help=_GROUPS[name], no_args_is_help=True)
        app.add_typer(group, name=name)
        app = group
    add(app, name, facade)


def add(app: typer.Typer, name: str, facade: type[Memory] = Memory) -> None:
    """Add the command `name`, or the commands of the group of this name, to `app`."""
    for line in lines(facade):
        if line.words[0] == name:
            _add(app, line, facade)


def _add(app: typer.Typer, line: Line, facade: type[Memory]) -> None:
    command = _Command(line, facade)

    def run(**given: Any) -> None:
        command.run(given)

    vars(run)["__signature__"] = inspect.Signature(command.parameters)
    run.__annotations__ = {each.name: each.annotation for each in command.parameters}
    text = "\n\n".join(_spoken(part, line.operation) for part in line.operation.description)
    app.command(line.words[-1], help=text, epilog=f"Example: {line.operation.example}")(run)


class _Command:
    """The parameters of a command, and what it does."""

    def __init__(self, line: Line, facade: type[Memory]) -> None:
        self._line = line
        self._facade = facade
        self._value_of: dict[str, str] = {}
        """For an option that selects another operation and has a value: the parameter that takes it."""
        found: dict[str, inspect.Parameter] = {}
        for operation in line.operations:
            for name in operation.parameters:
                if name not in found and name != _WAIT:
                    found[name] = _parameter(operation, name, optional=bool(line.instead))
        for option, operation in line.instead.items():
            found |= {option: self._selecting(option, operation, found)}
        waits = any(_WAIT in operation.parameters for operation in line.operations)
        own = [terminal.parameter("no_wait", terminal.NoWait, False), terminal.parameter("index", terminal.Index, None)]
        self._output = _output_parameters(line.operation)
        common = [terminal.parameter("home", terminal.Home, None), terminal.parameter("as_json", terminal.Json, False)]
        self.parameters = [*found.values(), *(own if waits else ()), *self._output, *common]

    def _selecting(self, option: str, operation: Operation, found: dict[str, inspect.Parameter]) -> inspect.Parameter:
        """The option that selects `operation`: it takes what only this operation requires, or it is a flag."""
        required = [
            name
            for name, each in operation.parameters.items()
            if each.default is each.empty and name not in self._line.operation.parameters
        ]
        help_text = _spoken(operation.summary, operation)
        if not required:
            return terminal.parameter(option, Annotated[bool, typer.Option(_flag(option), help=help_text)], False)
        (name,) = required
        del found[name]
        self._value_of[option] = name
        metavar = name.rsplit("_", 1)[-1].upper()
        return terminal.parameter(
            option, Annotated[str | None, typer.Option(_flag(option), metavar=metavar, help=help_text)], None
        )

    def run(self, given: dict[str, Any]) -> None:
        """Print the answer; the exit code says whether what was requested was found or done."""
        home, as_json = given.pop("home"), given.pop("as_json")
        settings = {"index": given.pop("index", None)}
        wait = not given.pop("no_wait", True)
        output = {each.name: given.pop(each.name) for each in self._output}
        operation = self._selected(given)
        arguments = {name: value for name, value in given.items() if value is not None and value != []}

        async def work() -> Any:
            valid = operation.validated(arguments, strict=False)
            with terminal.opened(home, facade=self._facade, **settings) as (memory, _):
                async with memory:
                    if wait:
                        await _wait_for_index(memory, valid["space"])
                    with terminal.bar(operation.name.replace("_", " ")) as advance:
                        return await operation.invoke(memory, valid, **dict.fromkeys(operation.callbacks, advance))

        answer = terminal.run(work, as_json=as_json)
        if as_json:
            sys.stdout.write(operation.to_json(answer).decode() + "\n")
        else:
            rendering.renderer(operation.answer)(answer, **output)
        raise typer.Exit(0 if answer.ok else 1)

    def _selected(self, given: dict[str, Any]) -> Operation:
        """The operation that the options select. Options that only others have are refused."""
        chosen, by = self._line.operation, ""
        for option, operation in self._line.instead.items():
            value = given.pop(option)
            if value in (None, False):
                continue
            if by:
                raise typer.BadParameter(f"cannot be combined with {_flag(by)}", param_hint=_flag(option))
            chosen, by = operation, option
            if option in self._value_of:
                given[self._value_of[option]] = value
        for each in self.parameters:
            if each.name in given and each.name not in chosen.parameters and given.pop(each.name) != each.default:
                instead = f"cannot be combined with {_flag(by)}" if by else "needs " + " or ".join(self._flags())
                raise typer.BadParameter(instead, param_hint=_flag(each.name))
        return chosen

    def _flags(self) -> list[str]:
        return [_flag(option) for option in self._line.instead]


async def _wait_for_index(memory: Memory, space: str) -> None:
    """Wait until the index has processed all present events. An unavailable index is not waited for: the answer says
    that it is degraded."""
    with terminal.bar("indexing") as advance:
        try:
            await memory.catch_up_index(advance, partition=await memory.admin.partition_of(space))
        except (IndexUnavailable, ViewsBehind) as error:
            terminal.note(f"not waiting for the index: {error}")


def _output_parameters(operation: Operation) -> list[inspect.Parameter]:
    """What the function that prints the answer takes besides it."""
    found = inspect.signature(rendering.renderer(operation.answer)).parameters.values()
    return [each for each in found if each.kind is each.KEYWORD_ONLY]


def _parameter(operation: Operation, name: str, *, optional: bool) -> inspect.Parameter:
    """A parameter of an operation as Typer takes it: an argument or an option of a simple type.

    `optional`: an option need not be given, since another operation may be selected, which does not take it.
    """
    given = operation.arguments.model_fields[name]
    required = given.is_required() and not (optional and name not in operation.positional)
    types_of = _without_none(given.annotation)
    (item,) = types_of if len(types_of) == 1 else (str,)
    repeated = get_origin(item) is Sequence
    if repeated:
        (item,) = get_args(item)
    bounds = {type(bound): bound for bound in given.metadata}
    info: dict[str, Any] = {"help": _spoken(given.description or "", operation)}
    if get_origin(item) is Literal:
        item = StrEnum(name, {value: value for value in get_args(item)})
    elif item in (int, float):
        at_least, at_most = bounds.get(annotated_types.Ge), bounds.get(annotated_types.Le)
        info["min"] = None if at_least is None else at_least.ge
        info["max"] = None if at_most is None else at_most.le
    elif item is not bool:
        info["metavar"], item = _metavar(name, types_of), str
    annotation: Any = list[item] if repeated else item  # type: ignore[valid-type]
    default = inspect.Parameter.empty if required else given.get_default()
    if not required and default in (None, PydanticUndefined):
        default = None
        annotation = annotation | None
    if name in operation.positional:
        if repeated:
            info["metavar"] = f"{name.removesuffix('s').upper()}..."
        extra = typer.Argument(**info)
    else:
        info["help"] += " Repeatable." if repeated else ""
        extra = typer.Option(_flag(name.removesuffix("s") if repeated else name), **info)
    return terminal.parameter(name, Annotated[annotation, extra], default)


def _without_none(annotation: Any) -> tuple[Any, ...]:
    """The alternatives of a type without None."""
    if get_origin(annotation) in (typing.Union, types.UnionType):
        return tuple(each for each in get_args(annotation) if each is not type(None))
    return (annotation,)


def _metavar(name: str, types_of: Sequence[Any]) -> str | None:
    """What stands for the value in the help: a kind of text, or nothing special."""
    words = [word for kind, word in ((Position, "POSITION"), (datetime, "TIME")) if kind in types_of]
    return "|".join(words) or None


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _spoken(text: str, operation: Operation) -> str:
    """Documentation in the words of the command line: options for parameters, commands for operations."""

    def word(found: re.Match[str]) -> str:
        name = found[1]
        if name in operation.parameters:
            return name.upper() if name in operation.positional else _flag(name)
        commands = [each.command for each in all_operations(Memory).values() if each.name == name and each.command]
        return f"`recallog {commands[0]}`" if commands else found[0]

    return re.sub(r"\[(?=[a-z#/@])", r"\\[", re.sub(r"`(\w+)`", word, text))
