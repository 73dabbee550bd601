"""`tail`: prints the records of the ledger in order. Also the option for where `tail` and `watch` begin."""

import json
from typing import Annotated, Any

import typer

from recallog import Memory, Position
from recallog.following.entries import LedgerEntry, check_partition, entries_of, follow, newest, newest_in_space
from recallog_schemas import codec
from recallog_schemas.errors import InvalidArgument, OutOfRange
from recallog_schemas.views import indent_continuation, one_line
from recallog_service.cli import panels, terminal, unknown_names
from recallog_service.cli.terminal import Home, Json

_NEWEST_RECORDS = 20

Start = Annotated[
    str | None,
    typer.Option("--from", metavar="POSITION", help="Position to begin at, for example 0:41; default: the last 20."),
]


def register(app: typer.Typer) -> None:
    app.command("tail", epilog="Example: recallog tail --space village --follow", rich_help_panel=panels.ASK)(
        tail_command
    )


def tail_command(
    space: Annotated[str | None, typer.Option(help="Only this space.")] = None,
    start: Start = None,
    follow_ledger: Annotated[bool, typer.Option("--follow", "-f", help="Wait for new records until Ctrl-C.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Print the records of the ledger in order."""

    async def work() -> None:
        printed = False
        if follow_ledger:
            await terminal.until_it_exists(home)
        with terminal.open_memory(home) as (memory, _):
            async with memory:
                begins = await _begins(memory, start, space)
                async for batch in follow(memory, begins, space, once=not follow_ledger):
                    for entry in entries_of(batch):
                        printed = True
                        if as_json:
                            terminal.print_json(entry_document(entry))
                        else:
                            terminal.print_lines(entry_line(entry))
                if space is not None and not printed:
                    await unknown_names.refuse_unknown(memory, {"space": space})

    (terminal.run_until_stopped if follow_ledger else terminal.run)(work, as_json=as_json)


def entry_document(entry: LedgerEntry) -> dict[str, Any]:
    if entry.event is None:
        return {"position": str(entry.position), "error": entry.problem}
    return {"position": str(entry.position), "event": json.loads(codec.encode(entry.event))}


def entry_line(entry: LedgerEntry) -> str:
    event = entry.event
    if event is None:
        return one_line(f"{entry.position}  (not an event: {entry.problem})")
    return indent_continuation(
        f"{entry.position}  {event.at:%Y-%m-%d %H:%M:%S}  {event.space}  {event.agent}  {event.kind}  {event.text}"
    )


async def begin_in_space(memory: Memory, start: str | None, space: str) -> Position:
    """The position that the user gave, else the position of the 20th newest record of `space`."""
    return await newest_in_space(memory, space, _NEWEST_RECORDS) if start is None else await _read_start(memory, start)


async def _begins(memory: Memory, start: str | None, space: str | None) -> dict[int, int]:
    """The offset to begin at, by partition. A start or a space limits the answer to one partition."""
    if start is not None:
        begin = await _read_start(memory, start)
    elif space is not None:
        begin = await begin_in_space(memory, None, space)
    else:
        return await newest(memory, _NEWEST_RECORDS)
    return {begin.partition: begin.offset}


async def _read_start(memory: Memory, start: str) -> Position:
    try:
        position = Position.parse(start)
    except OutOfRange as error:
        raise InvalidArgument(f"--from: {error}", path="--from", rule="position") from None
    return await check_partition(memory, position)
