"""A handler takes one reading, and no function takes many parameters."""

import ast
from collections.abc import Iterator
from pathlib import Path

import recallog

PACKAGE = Path(recallog.__file__).parent
PARAMETERS_MAX = 6
COMPOSE = {"operations/facade.py": {"operation"}, "composition.py": {"assemble"}, "memory.py": {"in_memory", "open"}}
"""Functions with a parameter for each thing that a program may say."""
READ_ROWS = {"reading/read_session.py": {"page"}}
OPTIONS = {"memory.py": {"_recall"}}
"""Methods behind two operations with the same options."""
READINGS = {"AgentReading", "SpaceReading"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions() -> Iterator[tuple[str, Function]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, Function):
                yield path.relative_to(PACKAGE).as_posix(), node


def parameters_of(function: Function) -> list[ast.arg]:
    given = function.args
    return [each for each in (*given.posonlyargs, *given.args, *given.kwonlyargs) if each.arg not in ("self", "cls")]


def is_declared(function: Function) -> bool:
    """Whether it is an operation, or checks its arguments as one."""
    return any(ast.unparse(each).partition("(")[0] in ("operation", "checked") for each in function.decorator_list)


def test_no_function_has_more_than_six_parameters() -> None:
    exceptions = {
        (path, name) for group in (COMPOSE, READ_ROWS, OPTIONS) for path, names in group.items() for name in names
    }
    many = {
        (path, each.name)
        for path, each in functions()
        if len(parameters_of(each)) > PARAMETERS_MAX and not is_declared(each) and each.name != "__init__"
    }
    assert many == exceptions


def test_a_handler_has_its_space_and_agent_from_its_reading() -> None:
    twice = [
        (path, each.name)
        for path, each in functions()
        if parameters_of(each)
        and parameters_of(each)[0].annotation is not None
        and ast.unparse(parameters_of(each)[0].annotation).strip("'\"") in READINGS
        and {"space", "agent", "ledger", "log_events"} & {one.arg for one in parameters_of(each)}
    ]
    assert twice == []


def test_no_query_is_a_lambda_of_a_reading() -> None:
    lambdas = [
        (path.name, node.lineno)
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Lambda) and [one.arg for one in node.args.args] == ["reading"]
    ]
    assert lambdas == []
