"""The page of errors: their tree, and what each means."""

from collections.abc import Iterator

from recallog_schemas import errors
from recallog_schemas.docstrings import paragraphs
from recallog_schemas.errors import RecallogError
from recallog_schemas.lazy_exports import defining_module
from recallog_tools.reference.markdown import block, code, sections, table

_INTRODUCTION = """\
Every error that Recallog raises on purpose is a `RecallogError`. Import them from `recallog`. Each message says
what happened and what to do next. `retryable` says whether the same call can succeed later. A command prints the
message to standard error and ends with the exit code: 1 the data or a check failed, 2 wrong use, 3 a service or a file
cannot be used."""


def page() -> str:
    """The page."""
    everything = list(_below(RecallogError))
    rows = [
        (code(each.__name__), str(each.exit_code), _retryable(each), " ".join(paragraphs(each))) for each in everything
    ]
    return sections(
        (
            "# Errors",
            _INTRODUCTION,
            block("text", "\n".join(_tree(RecallogError, ""))),
            table(("error", "exit code", "retryable", "meaning"), rows),
        )
    )


def _children(error: type[RecallogError]) -> list[type[RecallogError]]:
    return [each for each in error.__subclasses__() if defining_module(each) == errors.__name__]


def _below(error: type[RecallogError]) -> Iterator[type[RecallogError]]:
    """The error and its descendants, each before its own."""
    yield error
    for each in _children(error):
        yield from _below(each)


def _tree(error: type[RecallogError], indent: str) -> Iterator[str]:
    if not indent:
        yield error.__name__
    children = _children(error)
    for each in children:
        last = each is children[-1]
        yield f"{indent}{'└──' if last else '├──'} {each.__name__}"
        if _children(each):
            yield from _tree(each, indent + ("    " if last else "│   "))


def _retryable(error: type[RecallogError]) -> str:
    if "retryable" in error.__annotations__ and "retryable" not in vars(error):
        return "each failure says"
    return "yes" if error.retryable else "no"
