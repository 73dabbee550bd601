"""Command lines: the names of parameters on the command line, and the command of an operation."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from recallog.operations.operation import Operation


def flag(name: str) -> str:
    """The option for the name of a parameter: `--as-of`."""
    return f"--{name.replace('_', '-')}"


def singular(name: str) -> str:
    """The singular of a list's name, which a repeatable option has."""
    return name.removesuffix("es") if name.endswith("xes") else name.removesuffix("s")


def command_line(operation: Operation, arguments: Mapping[str, Any]) -> str:
    """The command line of an operation with these arguments, quoted for a shell; "" for an operation without a
    command."""
    *words, last = operation.command.split() or [""]
    if not last:
        return ""
    by_place = [name for name in operation.positional if name in arguments]
    placed = [str(arguments[name]) for name in by_place]
    if last.startswith("--"):
        # The option that selects the operation, with a value if the operation requires one.
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
