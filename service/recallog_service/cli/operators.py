"""Commands that look after the ledger and its views."""

import asyncio
import json
import sys
from collections import deque
from pathlib import Path
from typing import Annotated

import typer

from recallog import Event, Memory, Position
from recallog_schemas import codec
from recallog_schemas.errors import InvalidEvent
from recallog_schemas.views import SpaceDetail, Status, VerifyReport
from recallog_service.cli import terminal
from recallog_service.cli.terminal import Home, Json

_FOLLOW_SECONDS = 0.1
_TAIL_RECORDS = 20


def register(app: typer.Typer) -> None:
    app.command("tail", epilog="Example: recallog tail --space village --follow")(tail_command)
    app.command("export", epilog="Example: recallog export --output backup.jsonl")(export_command)
    app.command("status", epilog="Example: recallog status --space village")(status_command)
    app.command("verify", epilog="Example: recallog verify --json")(verify_command)
    app.command("rebuild", epilog="Example: recallog rebuild")(rebuild_command)


def tail_command(
    space: Annotated[str | None, typer.Option(help="Only this space.")] = None,
    start: Annotated[str | None, typer.Option("--from", help="Position to begin at; default: the last 20.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what is appended.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """The ledger's records as they are, in order."""

    async def work() -> None:
        with terminal.opened(home) as (memory, _):
            async with memory:
                begin = Position.parse(start) if start else await _newest(memory, space)
                await _print_records(memory, begin, space, follow, as_json)

    terminal.run(work, as_json=as_json)


async def _newest(memory: Memory, space: str | None) -> Position:
    """Where the last records begin, of one space wherever in the ledger they lie."""
    if space is None:
        (end, *_more) = await memory.ledger_ends()
        return Position(0, max(0, end - _TAIL_RECORDS))
    newest: deque[Position] = deque([Position(0, 0)], maxlen=_TAIL_RECORDS)
    async for batch in memory.records(space=space):
        newest.extend(Position(batch.partition, offset) for offset, _ in batch.records)
    return newest[0]


async def _print_records(memory: Memory, begin: Position, space: str | None, follow: bool, as_json: bool) -> None:
    while True:
        async for batch in memory.records(begin, space):
            for offset, data in batch.records:
                terminal.print_lines(_record_line(Position(batch.partition, offset), data, as_json))
            begin = Position(batch.partition, batch.next)
        if not follow:
            return
        await asyncio.sleep(_FOLLOW_SECONDS)


def _record_line(position: Position, data: bytes, as_json: bool) -> str:
    try:
        event: Event | None = codec.decode(data)
    except InvalidEvent as error:
        event, problem = None, str(error)
    if as_json:
        if event is None:
            return json.dumps({"position": str(position), "error": problem})
        return json.dumps({"position": str(position), "event": json.loads(codec.encode(event))})
    if event is None:
        return f"{position}  (not an event: {problem})"
    return f"{position}  {event.at:%Y-%m-%d %H:%M:%S}  {event.space}  {event.agent}  {event.kind}  {event.text}"


def export_command(
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write; default: stdout.")] = None,
    space: Annotated[str | None, typer.Option(help="Only this space.")] = None,
    home: Home = None,
) -> None:
    """The ledger as JSON Lines, which `recallog ingest` reads back to an equal ledger."""

    async def work() -> int:
        refused = 0
        try:
            target = output.open("wb") if output is not None else sys.stdout.buffer
        except OSError as error:
            raise typer.BadParameter(f"cannot write {output}: {error.strerror}") from None
        try:
            with terminal.bar("exporting") as advance, terminal.opened(home) as (memory, _):
                async with memory:
                    async for batch in memory.records(space=space):
                        for offset, data in batch.records:
                            try:
                                target.write(codec.encode(codec.decode(data)) + b"\n")
                            except InvalidEvent as error:
                                refused += 1
                                terminal.err.print(f"left out {batch.partition}:{offset}: {error}", markup=False)
                        advance(batch.next, (await memory.ledger_ends())[batch.partition])
            target.flush()
        finally:
            if output is not None:
                target.close()
        return refused

    refused = terminal.run(work)
    raise typer.Exit(1 if refused else 0)


def status_command(
    space: Annotated[str | None, typer.Option(help="One space by agents, sessions and kinds.")] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """How far the views are, what they hold, and what could not be applied."""

    async def work() -> Status | SpaceDetail:
        with terminal.opened(home) as (memory, _):
            async with memory:
                return await memory.space(space) if space else await memory.status()

    answer = terminal.run(work, as_json=as_json)
    if as_json:
        terminal.print_json(answer)
    elif isinstance(answer, SpaceDetail):
        _print_space(answer)
    else:
        _print_status(answer)


def _print_space(detail: SpaceDetail) -> None:
    if detail.space is None:
        terminal.out.print("nothing was ever said there")
        return
    space = detail.space
    terminal.out.print(f"{space.space}: {space.events:,} events, from {space.first} to {space.last}")
    for title, rows in (("agents", detail.agents), ("sessions", detail.sessions), ("kinds", detail.kinds)):
        terminal.out.print()
        terminal.print_table(
            (title, "events", "first", "last"), [(row.name, f"{row.events:,}", row.first, row.last) for row in rows]
        )


def _print_status(status: Status) -> None:
    terminal.out.print(
        f"{status.records:,} records, {status.spaces:,} spaces, {status.agents:,} agents, {status.sessions:,} sessions"
    )
    terminal.out.print(f"ledger {status.ledger_bytes / 1e6:,.1f} MB, views {status.views_bytes / 1e6:,.1f} MB\n")
    terminal.print_table(
        ("views", "partition", "end", "checkpoint", "lag", "generation", "building", "dead letters"),
        [
            (
                row.views,
                row.partition,
                f"{row.end:,}",
                f"{row.checkpoint:,}",
                f"{row.lag:,}",
                row.generation or "none yet",
                "-" if row.building is None else f"{row.building} at {row.building_checkpoint}",
                f"{row.dead_letters:,}" + (" (some of a future schema)" if row.incomplete else ""),
            )
            for row in status.partitions
        ],
    )
    if any(row.lag for row in status.partitions):
        terminal.err.print("[dim]the next query folds what is behind[/]")
    if any(row.dead_letters for row in status.partitions):
        terminal.err.print("[dim]what could not be applied: recallog dead-letters list[/]")


def verify_command(home: Home = None, as_json: Json = False) -> None:
    """Fold the ledger afresh and compare every row of every view with it."""

    async def work() -> VerifyReport:
        with terminal.opened(home) as (memory, _), terminal.bar("folding afresh") as advance:
            async with memory:
                return await memory.verify(advance)

    report = terminal.run(work, as_json=as_json)
    if as_json:
        terminal.print_json(report)
    else:
        print_verified(report)
    raise typer.Exit(0 if report.clean else 1)


def print_verified(report: VerifyReport) -> None:
    """The report in words: the digest, or the first row that differs in each table."""
    for table in report.tables:
        if table.difference is not None:
            terminal.out.print(f"[bold red]differs[/] {table.difference.address()}")
            found, expected = _around_the_difference(table.difference.found, table.difference.expected)
            terminal.print_lines(f"  view  {found}\n  fold  {expected}")
    rows = sum(table.rows for table in report.tables)
    if report.clean:
        terminal.out.print(f"[green]clean[/] {report.records:,} records, {rows:,} rows, digest {report.digest[:16]}")
    else:
        terminal.out.print("The ledger is right by definition. Build the views again: recallog rebuild")


def _around_the_difference(found: str | None, expected: str | None, width: int = 100) -> tuple[str, str]:
    """Both rows, cut to where they begin to differ."""
    if found is None or expected is None:
        return found or "(no such row)", expected or "(no such row)"
    same = next((n for n, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b), 0)
    start = max(0, same - width // 2)
    lead = "…" if start else ""
    return lead + found[start : start + width], lead + expected[start : start + width]


def rebuild_command(
    accept: Annotated[bool, typer.Option("--accept", help="Cut over although new dead letters appeared.")] = False,
    abort: Annotated[bool, typer.Option("--abort", help="Give up the rebuild under way.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Fold everything from offset zero beside the live views, then cut over. Safe to kill and to run again."""

    async def work() -> None:
        with terminal.opened(home) as (memory, _), terminal.bar("rebuilding") as advance:
            async with memory:
                if abort:
                    aborted = await memory.abort_rebuild()
                    if as_json:
                        terminal.print_json({"aborted": aborted})
                    else:
                        terminal.out.print(f"given up: {', '.join(aborted)}" if aborted else "no rebuild is under way")
                    return
                reports = await memory.rebuild(advance, accept=accept)
        if as_json:
            terminal.print_json(reports)
            return
        for report in reports:
            joined = ", joined one under way" if report.joined else ""
            rate = report.records / report.seconds if report.seconds else 0
            terminal.out.print(
                f"rebuilt {report.records:,} records in {report.seconds:.1f} s ({rate:,.0f}/s{joined}): "
                f"{report.replaced or 'nothing'} → {report.generation}"
            )

    terminal.run(work, as_json=as_json)
