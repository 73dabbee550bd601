"""`export`: writes the ledger as JSON Lines."""

import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Annotated

import typer

from recallog import Memory, Position
from recallog_projections.patience import patient
from recallog_schemas import codec, rules
from recallog_schemas.errors import InvalidEvent, StorageCorrupt
from recallog_service.cli import panels, terminal, unknown_names
from recallog_service.cli.terminal import Home
from recallog_service.formats.jsonl import with_time
from recallog_streams.ledgers.ledger import Batch
from recallog_streams.placement import misplacement


def register(app: typer.Typer) -> None:
    app.command("export", epilog="Example: recallog export --output backup.jsonl", rich_help_panel=panels.OPERATE)(
        export_command
    )


def export_command(
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write; default: stdout.")] = None,
    space: Annotated[str | None, typer.Option(help="Only this space.")] = None,
    keep_going: Annotated[bool, typer.Option("--keep-going", help="Leave out and list damaged records.")] = False,
    home: Home = None,
) -> None:
    """Write the ledger as JSON Lines, from which `recallog ingest` restores it.

    A file or a pipe gets the events byte by byte. On a terminal, hidden characters are escaped.
    """

    exported = refused = 0

    def left_out(what: str, reason: str) -> None:
        nonlocal refused
        refused += 1
        terminal.note(f"left out {what}: {reason}", "")

    async def work() -> None:
        nonlocal exported
        try:
            target = output.open("wb") if output is not None else None if sys.stdout.isatty() else sys.stdout.buffer
        except OSError as error:
            raise typer.BadParameter(f"cannot write {output}: {error.strerror}") from None
        try:
            with patient(), terminal.bar("exporting") as advance, terminal.open_memory(home) as (memory, _):
                async with memory:
                    async for batch in _records(memory, space, left_out if keep_going else None):
                        for number, (offset, data) in enumerate(batch.records):
                            try:
                                event = codec.decode(data)
                                wrong = await _misplacement(memory, batch, number, event.space)
                                # The copy is judged by the rule of the original, even if the original states no rule.
                                line = with_time(codec.encode(rules.with_own_rule(event)), batch.time_of(number))
                            except InvalidEvent as error:
                                wrong = str(error)
                            if wrong is None:
                                if target is None:
                                    terminal.print_json_text(line.decode())
                                else:
                                    target.write(line + b"\n")
                                exported += 1
                            else:
                                left_out(f"{batch.partition}:{offset}", wrong)
                        advance(batch.next, (await memory.admin.ledger_ends())[batch.partition])
                    if space is not None and not exported and not refused:
                        await unknown_names.refuse_unknown(memory, {"space": space})
            if target is not None:
                target.flush()
        finally:
            if target is not None and output is not None:
                target.close()

    terminal.run(work)
    if refused and output is not None:
        terminal.note(
            f"{exported:,} events were written; restore them in a new folder: recallog ingest {output} --home …"
        )
    raise typer.Exit(1 if refused else 0)


async def _misplacement(memory: Memory, batch: Batch, number: int, space: str) -> str | None:
    """Why a record with valid bytes is a dead letter; an ingest of the export would put it into the right place."""
    if batch.keys is None:
        return None
    expected = await memory.admin.partition_of(space)
    wrong = misplacement(batch.partition, batch.keys[number], space, expected)
    return None if wrong is None else f"{wrong.reason}: {wrong.detail}"


async def _records(
    memory: Memory, space: str | None, left_out: Callable[[str, str], None] | None
) -> AsyncIterator[Batch]:
    """All records of the ledger. Damaged records are passed to `left_out`; without it they raise."""
    start: Position | None = None
    while True:
        try:
            async for batch in memory.admin.records(start, space):
                yield batch
        except StorageCorrupt as error:
            if left_out is None or error.until is None:
                raise
            first = Position.parse(error.position)
            last = Position(first.partition, error.until - 1)
            left_out(str(first) if last == first else f"{first} to {last}", error.finding)
            start = Position(first.partition, error.until)
        else:
            return
