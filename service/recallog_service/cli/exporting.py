"""`export`: writes the ledger as JSON Lines."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from recallog_schemas import codec
from recallog_schemas.errors import InvalidEvent
from recallog_service.cli import console, terminal, unknown_names
from recallog_service.cli.terminal import Home


def register(app: typer.Typer) -> None:
    app.command("export", epilog="Example: recallog export --output backup.jsonl")(export_command)


def export_command(
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write; default: stdout.")] = None,
    space: Annotated[str | None, typer.Option(help="Only this space.")] = None,
    home: Home = None,
) -> None:
    """Write the ledger as JSON Lines, from which `recallog ingest` restores it."""

    async def work() -> int:
        exported = refused = 0
        try:
            target = output.open("wb") if output is not None else sys.stdout.buffer
        except OSError as error:
            raise typer.BadParameter(f"cannot write {output}: {error.strerror}") from None
        try:
            with terminal.bar("exporting") as advance, terminal.opened(home) as (memory, _):
                async with memory:
                    async for batch in memory.admin.records(space=space):
                        for offset, data in batch.records:
                            try:
                                target.write(codec.encode(codec.decode(data)) + b"\n")
                                exported += 1
                            except InvalidEvent as error:
                                refused += 1
                                console.err.print(f"left out {batch.partition}:{offset}: {error}", markup=False)
                        advance(batch.next, (await memory.admin.ledger_ends())[batch.partition])
                    if space is not None and not exported and not refused:
                        await unknown_names.refuse_unknown(memory, {"space": space})
            target.flush()
        finally:
            if output is not None:
                target.close()
        return refused

    refused = terminal.run(work)
    raise typer.Exit(1 if refused else 0)
