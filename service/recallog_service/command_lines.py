"""Command lines: how the command line names parameters, and the command that answers what an operation answers."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from recallog.operations.operation import Operation


def flag(name: str) -> str:
    """The option of a name: `--as-of`."""
    return f"--{name.replace('_', '-')}"


def singular(name: str) -> str:
    """The name of a list without its plural: an option that may be repeated has it."""
    return name.removesuffix("es") if name.endswith("xes") else name.removesuffix("s")


def command_line(operation: Operation, arguments: Mapping[str, Any]) -> str:
    """The command with these arguments, to be pasted into a shell; "" for an operation without a command."""
    *words, last = operation.command.split() or [""]
    if not last:
        return ""
    by_place = [name for name in operation.positional if name in arguments]
    placed = [str(arguments[name]) for name in by_place]
    if last.startswith("--"):
        # An option that selects the operation, with a value if the operation requires one.
        takes_value = (
            by_place and operation.parameters[by_place[-1]].default is operation.parameters[by_place[-1]].empty
        )
        placed.insert(len(placed) - bool(takes_value), last)
    else:
        words.append(last)
    options = [word for name in arguments if name not in by_place for word in _option(name, arguments[name])]
    return shlex.join(["recallog", *words, *placed, *options])


def _option(name: str, value: Any) -> Iterator[str]:
    match value:
        case None | False:
            return
        case True:
            yield flag(name)
        case list() | tuple():
            for each in value:
                yield from (flag(singular(name)), str(each))
        case _:
            yield from (flag(name), str(value))
