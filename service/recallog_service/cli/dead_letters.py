"""`dead-letters`: lists, shows and retries records that could not be applied to the views."""

from typing import Annotated

import typer

from recallog import Position
from recallog_schemas.views import DeadLetter
from recallog_service.cli import console, terminal
from recallog_service.cli.terminal import Home, Json

_group = typer.Typer(help="List, show or retry records that could not be applied.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(_group, name="dead-letters")


@_group.command("list", epilog="Example: recallog dead-letters list")
def list_command(home: Home = None, as_json: Json = False) -> None:
    """List all dead letters with their reasons."""

    async def work() -> list[DeadLetter]:
        with terminal.opened(home) as (memory, _):
            async with memory:
                return await memory.dead_letters()

    _print(terminal.run(work, as_json=as_json), as_json)


@_group.command("show", epilog="Example: recallog dead-letters show 0:41")
def show_command(
    position: Annotated[str, typer.Argument(help="Position of the dead letter, for example 0:41.")],
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Show one dead letter with its content."""

    async def work() -> None:
        with terminal.opened(home) as (memory, _):
            async with memory:
                detail = await memory.dead_letter(Position.parse(position))
        if as_json:
            terminal.print_json(detail)
        else:
            _print([detail.letter], as_json)
            terminal.print_lines(f"\n{detail.content}")

    terminal.run(work, as_json=as_json)


@_group.command("retry", epilog="Example: recallog dead-letters retry")
def retry_command(home: Home = None, as_json: Json = False) -> None:
    """Rebuild the views if at least one dead letter can be applied now.

    A rebuild applies all records in order. The exit code is 1 if dead letters remain.
    """

    async def work() -> tuple[int, list[DeadLetter]]:
        with terminal.opened(home) as (memory, _), terminal.bar("rebuilding") as advance:
            async with memory:
                before = await memory.dead_letters()
                return len(before), await memory.retry_dead_letters(advance)

    before, left = terminal.run(work, as_json=as_json)
    if as_json:
        terminal.print_json(left)
    else:
        console.out.print(f"{before - len(left):,} of {before:,} applied")
        if left:
            _print(left, as_json)
    raise typer.Exit(1 if left else 0)


def _print(letters: list[DeadLetter], as_json: bool) -> None:
    if as_json:
        terminal.print_json(letters)
    elif letters:
        console.print_table(
            ("views", "position", "reason", "detail", "space", "kind", "id"),
            [(x.views, x.position, x.reason, x.detail, x.space or "?", x.kind or "?", x.id or "?") for x in letters],
        )
    else:
        console.out.print("no dead letters")
