"""The first page: what the reference contains, and a table of all operations."""

from recallog.operations.facade import Facade, all_operations
from recallog.operations.operation import Operation
from recallog_schemas import limits
from recallog_schemas.docstrings import paragraphs
from recallog_tools.reference import facades
from recallog_tools.reference.markdown import code, sections, table

_INTRODUCTION = """\
An *operation* is anything that a program or a person may request of a memory: a query, a write, or the work of an
operator. Each is a method in Python and, with few exceptions, a command of `recallog` with the same arguments and the
same answer. `recallog COMMAND --help` shows the arguments of a command, and `--json` prints the answer as JSON.

```python
from recallog import Memory

async with Memory.open("./memory") as memory:
    view = await memory.recall("village", "baker", "who owes the miller?", top_k=3)
    print(view.format())
    status = await memory.admin.status()
```

Without an event loop, `from recallog.sync import Memory` has the same methods without `await`: see
[scripts and notebooks](../scripts-and-notebooks.md). `recallog.Remote` has the operations of a memory
[behind a server](../remote.md)."""

_CONVENTIONS = f"""\
## Names

The name of a space or an agent is what people and identity providers write: `village`, `auth0|65f2`, `user:123`,
`ann+shop@example.org`, `张伟`, `Project X`. It has 1 to {limits.NAME_BYTES_MAX} bytes in UTF-8. It has no control,
format or line characters, no blank at its ends, and no `*`, which stands for any name in grants. `.`, `..` and `-` are
not names.

Names and ids are compared in the normal form NFC: however `Jürgen` is composed, it is one name. Answers have this form.

## Positions and times

A position names an event in the ledger. Give it as a `Position`, as a text such as `0:41` (partition 0, offset 41),
or as an object with `partition` and `offset`, as it is in the JSON of answers. A time is a `datetime` with a time zone,
or a text in ISO 8601 such as `2026-03-01T12:00:00Z`.

## Arguments

All arguments are checked before an operation begins. An invalid one raises [`InvalidArgument`](errors.md), whose `path`
names it. An argument of an unknown name is refused."""

_SCOPES = {
    "read": "queries",
    "publish": "writing events",
    "forget": "removing what was remembered",
    "operate": "the work of an operator: status, verification, rebuilds, copies",
}


def overview(facade: type[Facade]) -> str:
    """The page."""
    operations = all_operations(facade).values()
    return sections(
        (
            "# API reference",
            _INTRODUCTION,
            "## Pages",
            "\n".join(_pages(facade)),
            "## Operations",
            table(("operation", "summary", "scope", "command"), map(_row, operations)),
            _CONVENTIONS,
            "## Scopes",
            "The scope of an operation is the permission that a caller needs. It matters where a memory is served to "
            "others.",
            table(("scope", "permits"), ((code(scope), text) for scope, text in _SCOPES.items())),
        )
    )


def _pages(facade: type[Facade]) -> list[str]:
    main = facades.MAIN
    return [
        f"- [{main}]({main}.md): {_summary(facade)}",
        *(f"- [{main}.{group}]({group}.md): {_summary(each)}" for group, each in facade.facades.items()),
        "- [Views](views.md): the answers, field by field.",
        "- [Kinds](kinds.md): the catalogue of kinds, with importance, readers, text and payload.",
        "- [Errors](errors.md): the errors, with exit codes.",
        "- [Settings](settings.md): the settings and their environment variables.",
        f"- [JSON Schemas]({facades.SCHEMAS}): of events, payloads, answers, and the arguments of each operation.",
    ]


def _summary(facade: type[Facade]) -> str:
    return next(iter(paragraphs(facade)), "")


def _row(operation: Operation) -> tuple[str, ...]:
    command = code(f"recallog {operation.command}") if operation.command else ""
    return facades.link(operation), operation.summary, code(operation.scope.value), command
