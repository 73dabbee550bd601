"""Commands derived from operations: arguments, options, help and output follow from the declaration.

A positional parameter becomes an argument, a keyword-only parameter an option. A sequence becomes an option that may
be repeated, named in the singular.
"""

import inspect
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from recallog import Memory, Progress
from recallog.operations import pipeline
from recallog.operations.facade import Facade, all_operations
from recallog.operations.operation import FROM_FILE, Operation, Scope
from recallog_projections import notices
from recallog_schemas.docstrings import paragraphs
from recallog_schemas.errors import IndexUnavailable, InvalidArgument, OutOfRange, ViewsBehind
from recallog_schemas.models import import_parts
from recallog_service.cli import panels, rendering, terminal, unknown_names
from recallog_service.cli.parameters import (
    IDS_OF_EVENTS,
    LIMIT,
    Limit,
    choices_of,
    is_repeated,
    lacks_limit,
    make_parameter,
    name_parameter,
    parameter,
    spoken,
)
from recallog_service.command_lines import flag

_GROUPS = {"dead-letters": "List, show or retry records that could not be applied."}
"""Summaries of groups that do not belong to a facade. A facade's summary is the first line of its docstring."""

_BY_HAND = frozenset({"publish", "react", "copy", "schema"})
"""Commands that do more than their operation and are written by hand. Models have others in `commands`, each with
the `NAME` of its command or group."""

_WITHOUT_MEMORY = frozenset({"catalogue"})
"""Operations that answer without a memory: they describe the catalogue."""

_PANELS = {Scope.READ: panels.ASK, Scope.PUBLISH: panels.KEEP, Scope.FORGET: panels.KEEP, Scope.OPERATE: panels.OPERATE}

_WAIT = "wait_index"
"""The parameter that becomes `--wait`: the command itself waits, and shows the progress of the index."""


@dataclass(slots=True)
class CommandLine:
    """One command: an operation, and the operations that its options select instead."""

    words: Sequence[str]
    operation: Operation
    instead: dict[str, Operation] = field(default_factory=dict)
    """By the name of the option, with underscores."""

    @property
    def operations(self) -> Sequence[Operation]:
        return [self.operation, *self.instead.values()]

    def value_of(self, option: str) -> str | None:
        """The parameter that receives an option's value: the one that only the selected operation requires."""
        selected = self.instead[option].parameters.items()
        required = [name for name, each in selected if each.default is each.empty]
        return next((name for name in required if name not in self.operation.parameters), None)


def lines(facade: type[Facade] = Memory) -> list[CommandLine]:
    """The commands of a facade's operations, in the order of their declaration."""
    found: dict[tuple[str, ...], CommandLine] = {}
    selected = []
    for operation in all_operations(facade).values():
        *words, last = operation.command.split() or [""]
        if last.startswith("--"):
            selected.append((tuple(words), last.removeprefix("--").replace("-", "_"), operation))
        elif last:
            found[*words, last] = CommandLine((*words, last), operation)
    for path, option, operation in selected:
        found[path].instead[option] = operation
    return list(found.values())


def names(facade: type[Memory] = Memory) -> list[str]:
    """The names of the commands and groups that are derived from a facade."""
    by_hand = _BY_HAND | {each.NAME for each in import_parts("recallog_service", "commands")}
    return [name for name in dict.fromkeys(line.words[0] for line in lines(facade)) if name not in by_hand]


def register(app: typer.Typer, name: str, facade: type[Memory] = Memory) -> None:
    """Add the command `name`, or the group of commands of this name, to `app`."""
    summary = summary_of(name, facade)
    if summary is not None:
        group = typer.Typer(cls=panels.PanelGroup, help=summary, no_args_is_help=True)
        app.add_typer(group, name=name, rich_help_panel=panel_of(name, facade))
        app = group
    add(app, name, facade)


def add(app: typer.Typer, name: str, facade: type[Memory] = Memory) -> None:
    """Add the command `name`, or the commands of the group of this name, to `app`."""
    for line in lines(facade):
        if line.words[0] == name:
            command = _Command(line, facade)
            details: dict[str, Any] = {
                "help": command.help,
                "epilog": f"Example: {line.operation.example}",
                "rich_help_panel": _PANELS[line.operation.scope],
            }
            app.command(line.words[-1], **details)(command.make_function())


def panel_of(name: str, facade: type[Facade] = Memory) -> str:
    """The panel of a command; for a group, the panel of its first command."""
    return next(_PANELS[line.operation.scope] for line in lines(facade) if line.words[0] == name)


def summary_of(name: str, facade: type[Memory] = Memory) -> str | None:
    """The summary of a group of commands; None for a single command."""
    if all(len(line.words) == 1 for line in lines(facade) if line.words[0] == name):
        return None
    part = facade.facades.get(name.replace("-", "_"))
    return _GROUPS.get(name) if part is None else paragraphs(part)[0]


class _Command:
    """The parameters of a command, and what it does."""

    def __init__(self, line: CommandLine, facade: type[Memory]) -> None:
        self._line = line
        self._facade = facade
        self._output = _output_parameters(line.operation)
        self._limits_output = all(map(lacks_limit, line.operations))

    @property
    def help(self) -> str:
        return "\n\n".join(spoken(part, self._line.operation) for part in self._line.operation.description)

    def make_function(self) -> Any:
        """The function that Typer runs: its signature is that of the command."""

        def run(**given: Any) -> None:
            self._run(given)

        parameters = self._parameters()
        vars(run)["__signature__"] = inspect.Signature(parameters)
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    def _parameters(self) -> list[inspect.Parameter]:
        line = self._line
        found: dict[str, inspect.Parameter] = {}
        taken = {line.value_of(option) for option in line.instead}
        for operation in line.operations:
            for name, each in operation.parameters.items():
                if name not in {*found, *taken, _WAIT}:
                    # If an option selects another operation, parameters that only this one requires become optional.
                    is_shared = all(name in one.parameters for one in line.operations)
                    found[name] = parameter(operation, name, required=each.default is each.empty and is_shared)
        found |= {option: self._selecting(option) for option in line.instead}
        if _WAIT in line.operation.parameters:
            found["wait"] = make_parameter("wait", terminal.Wait, False)
            found["index"] = make_parameter("index", terminal.Index, None)
        if self._limits_output:
            found[LIMIT] = make_parameter(LIMIT, Limit, None)
        if self._line.operation.scope is Scope.OPERATE:
            found["projections"] = make_parameter("projections", terminal.Projections, None)
        common = make_parameter("home", terminal.Home, None), make_parameter("as_json", terminal.Json, False)
        return [*found.values(), *self._output, *common]

    def _selecting(self, option: str) -> inspect.Parameter:
        """The option that selects another operation: with a value, or as a flag."""
        operation, name = self._line.instead[option], self._line.value_of(option)
        text = spoken(operation.summary, operation)
        if name is None:
            return make_parameter(option, Annotated[bool, typer.Option(flag(option), help=text)], False)
        kind = list[str] if is_repeated(operation, name) else str
        metavar = name.rsplit("_", 1)[-1].upper().removesuffix("S" if kind is not str else "")
        return make_parameter(
            option, Annotated[kind | None, typer.Option(flag(option), metavar=metavar, help=text)], None
        )

    def _run(self, given: dict[str, Any]) -> None:
        """Print the answer. The exit code says whether the request was found or done."""
        home, as_json, index = given.pop("home"), given.pop("as_json"), given.pop("index", None)
        wait, own = given.pop("wait", False), terminal.join_names(given.pop("projections", None))
        output = {each.name: given.pop(each.name) for each in self._output}
        limit = given.pop(LIMIT) if self._limits_output else None
        operation = self._select_operation(given)
        arguments = {name: value for name, value in given.items() if value is not None and value != []}

        async def work() -> tuple[Any, str | None]:
            valid = _validate_arguments(operation, arguments)
            chosen = {"index": index, "projections": own}
            with terminal.open_memory(home, facade=self._facade, missing=_if_missing(operation), **chosen) as (
                memory,
                _,
            ):
                async with memory:
                    if _has_short_ids(operation) or not IDS_OF_EVENTS.isdisjoint(valid):
                        from recallog_service.cli import short_ids

                        valid = await short_ids.written_out(memory, operation, valid)
                    if wait and await _wait_for_index(memory, valid["space"]) and _WAIT in operation.parameters:
                        valid = {**valid, _WAIT: True}  # an index that has stopped meanwhile is an error
                    with terminal.bar(operation.name.replace("_", " ")) as advance:
                        return await _call_operation(memory, operation, valid, advance)

        answer, unknown = terminal.run(work, as_json=as_json)
        if limit is not None:
            answer = answer.shorten(limit)
        if as_json:
            terminal.print_json_text(operation.to_json(answer).decode())
            rendering.write_picture(answer, output.get("picture"))
        else:
            rendering.renderer(operation.answer)(_on_a_terminal(operation, answer), **output)
            rendering.note_rest(answer, limit)
        if _WAIT in operation.parameters and not wait and answer.degraded is not None:
            terminal.note("--wait waits until the index contains all events")
        if unknown is not None:
            terminal.note(unknown)
        elif not answer.ok:
            _note_ids(operation, arguments)
        raise typer.Exit(0 if answer.ok and unknown is None else 1)

    def _select_operation(self, given: dict[str, Any]) -> Operation:
        """The operation that the options select. Only its arguments remain in `given`; options of other operations are
        refused."""
        chosen, by = self._line.operation, ""
        for option, operation in self._line.instead.items():
            value = given.pop(option)
            if not value:
                continue
            if by:
                raise typer.BadParameter(f"cannot be combined with {flag(by)}", param_hint=flag(option))
            chosen, by = operation, option
            if (name := self._line.value_of(option)) is not None:
                given[name] = value
        default_of = {name: each.default for one in self._line.operations for name, each in one.parameters.items()}
        for name in [name for name in given if name not in chosen.parameters]:
            if given.pop(name) not in (None, [], default_of[name]):
                others = " or ".join(flag(option) for option in self._line.instead)
                why = f"cannot be combined with {flag(by)}" if by else f"needs {others}"
                raise typer.BadParameter(why, param_hint=flag(name))
        return chosen


def _has_short_ids(operation: Operation) -> bool:
    """Whether the operation takes short ids: ids of an agent in a model."""
    return bool(operation.group) and "agent" in operation.parameters


def _note_ids(operation: Operation, arguments: dict[str, Any]) -> None:
    """Name the command that lists the ids, after the arguments named an unknown one."""
    if _has_short_ids(operation):
        from recallog_service.cli import short_ids

        if (command := short_ids.listing_command(operation, arguments)) is not None:
            terminal.note(f"list the ids: {command}")


def _on_a_terminal(operation: Operation, answer: Any) -> Any:
    """The answer as a terminal shows it; the answer itself if the output is not a terminal."""
    if not _has_short_ids(operation) or not sys.stdout.isatty():
        return answer
    from recallog_service.cli import short_ids

    return short_ids.shorten_ids(operation, answer)


def _validate_arguments(operation: Operation, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments in the types of the operation. An error names an option as it was written."""
    try:
        return operation.validate(_with_files(operation, arguments), strict=False)
    except InvalidArgument as error:
        name, _, part = error.path.partition(".")
        message = str(error).removeprefix(error.path)
        of_object = f" {part}" if part and not part.isdecimal() else ""
        given, choices = arguments.get(name), choices_of(operation, name)
        if isinstance(given, str) and (near := get_close_matches(given, choices, 1)):
            message += f"; did you mean {near[0]!r}?"
        raise InvalidArgument(
            f"{name_parameter(operation, name)}{of_object}{message}", path=error.path, rule=error.rule
        ) from None


def _with_files(operation: Operation, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with the contents of files in place of their names; "-" is standard input."""
    found = dict(arguments)
    for name in found:
        if FROM_FILE in operation.arguments.model_fields[name].metadata:
            try:
                data = sys.stdin.buffer.read() if found[name] == "-" else Path(found[name]).read_bytes()
                found[name] = data.decode("utf-8-sig")
            except (OSError, UnicodeError) as error:
                raise InvalidArgument(f"{name}: {found[name]} cannot be read: {error}", path=name) from None
    return found


def _if_missing(operation: Operation) -> Literal["refuse", "create", "empty"]:
    """What to do if the folder has no memory: only writing creates one."""
    if operation.name in _WITHOUT_MEMORY:
        return "empty"
    return "create" if operation.scope is Scope.PUBLISH else "refuse"


async def _call_operation(
    memory: Memory, operation: Operation, valid: dict[str, Any], advance: Progress
) -> tuple[Any, str | None]:
    """The answer, and a message about an unknown name in the arguments that may be why it is empty; None if there is
    none."""

    async def invoke() -> tuple[Any, str | None]:
        call = pipeline.of_memory(memory, operation, valid, dict.fromkeys(operation.callbacks, advance))
        if not operation.read_only:  # a notice, such as what was scrubbed, is a warning
            return await pipeline.perform(call), None
        with notices.collect_notices() as told:
            answer = await pipeline.perform(call)
        return answer, told[0] if told else None

    try:
        answer, misspelt = await invoke()
        if misspelt is None and not unknown_names.may_be_unknown(answer, valid):
            return answer, None
        await unknown_names.catch_up(memory, valid["space"])
        unknown = await unknown_names.unknown_name(memory, valid)
        if misspelt is not None:
            return answer, unknown and misspelt  # shared events make the answer non-empty
        is_final = unknown is not None or valid.get("as_of") is not None or not operation.read_only
        return answer if is_final else (await invoke())[0], unknown
    except OutOfRange:
        if valid.get("space") is not None:
            await unknown_names.refuse_unknown(memory, valid)
        raise


async def _wait_for_index(memory: Memory, space: str) -> bool:
    """Wait until the index has processed all events. If the index is unavailable, a note says that the answer is
    degraded."""
    with terminal.bar("indexing") as advance:
        try:
            await memory.catch_up_index(advance, partition=await memory.admin.partition_of(space))
        except (IndexUnavailable, ViewsBehind) as error:
            terminal.note(f"not waiting for the index: {error}")
            return False
    return True


def _output_parameters(operation: Operation) -> list[inspect.Parameter]:
    """The parameters, besides the answer, of the function that prints it."""
    found = inspect.signature(rendering.renderer(operation.answer)).parameters.values()
    return [each for each in found if each.kind is each.KEYWORD_ONLY]
