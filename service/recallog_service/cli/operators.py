"""Commands of operators: `export`, `status`, `verify`, `rebuild` and `reindex`."""

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from recallog import Memory
from recallog_schemas import codec, limits
from recallog_schemas.errors import InvalidEvent
from recallog_schemas.views import RebuildPlan, RebuildReport, SpaceDetail, Status, VerifyReport
from recallog_service.cli import console, terminal
from recallog_service.cli.terminal import Home, Json

_SHOWN_MAX = 10
"""Agents that `status` lists; with --json it lists more."""


def register(app: typer.Typer) -> None:
    app.command("export", epilog="Example: recallog export --output backup.jsonl")(export_command)
    app.command("status", epilog="Example: recallog status --space village")(status_command)
    app.command("verify", epilog="Example: recallog verify --json")(verify_command)
    app.command("rebuild", epilog="Example: recallog rebuild")(rebuild_command)
    app.command("reindex", epilog="Example: recallog reindex --model sentence-transformers")(reindex_command)


def export_command(
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write; default: stdout.")] = None,
    space: Annotated[str | None, typer.Option(help="Only this space.")] = None,
    home: Home = None,
) -> None:
    """Write the ledger as JSON Lines, from which `recallog ingest` restores it."""

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
                                console.err.print(f"left out {batch.partition}:{offset}: {error}", markup=False)
                        advance(batch.next, (await memory.ledger_ends())[batch.partition])
            target.flush()
        finally:
            if output is not None:
                target.close()
        return refused

    refused = terminal.run(work)
    raise typer.Exit(1 if refused else 0)


def status_command(
    space: Annotated[
        str | None, typer.Option(help="Show the agents, sessions and kinds of this space instead.")
    ] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Show the size and progress of the views, dead letters, and due reflections."""

    async def question(memory: Memory) -> Status | SpaceDetail:
        return await memory.space(space) if space else await memory.status()

    answer = terminal.ask(question, home, as_json=as_json)
    if as_json:
        terminal.print_json(answer)
    elif isinstance(answer, SpaceDetail):
        _print_space(answer)
    else:
        _print_status(answer)


def _print_space(detail: SpaceDetail) -> None:
    if detail.space is None:
        console.out.print("the space has no events")
        return
    space = detail.space
    console.out.print(f"{space.space}: {space.events:,} events, from {space.first} to {space.last}")
    for title, rows in (("agents", detail.agents), ("sessions", detail.sessions), ("kinds", detail.kinds)):
        console.out.print()
        console.print_table(
            (title, "events", "first", "last"), [(row.name, f"{row.events:,}", row.first, row.last) for row in rows]
        )


def _print_status(status: Status) -> None:
    console.out.print(
        f"{status.records:,} records, {status.spaces:,} spaces, {status.agents:,} agents, {status.sessions:,} sessions"
    )
    index = f", index {status.index_bytes / 1e6:,.1f} MB" if status.index_bytes else ""
    console.out.print(f"ledger {status.ledger_bytes / 1e6:,.1f} MB, views {status.views_bytes / 1e6:,.1f} MB{index}\n")
    console.print_table(
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
    _print_pending(status)
    _print_unreflected(status)
    if any(row.lag for row in status.partitions):
        folded_by = "workers" if status.ledger.startswith("kafka:") else "the next query"
        terminal.note(f"the lag is processed by {folded_by}")
    if any(row.dead_letters for row in status.partitions):
        terminal.note("list the dead letters: recallog dead-letters list")


def _print_pending(status: Status) -> None:
    if not status.pending:
        return
    one = status.pending_total == 1
    console.out.print(f"\n{status.pending_total:,} {'reflection is' if one else 'reflections are'} due: recallog react")
    shown = status.pending[:_SHOWN_MAX]
    console.print_table(
        ("space", "agent", "events"), [(due.space, due.agent, f"{due.events:,} of {due.threshold:,}") for due in shown]
    )
    _print_more(status.pending_total - len(shown))


def _print_unreflected(status: Status) -> None:
    if not status.unreflected:
        return
    one = status.unreflected_total == 1
    console.out.print(
        f"\n{status.unreflected_total:,} {'agent' if one else 'agents'} past turn {limits.UNREFLECTED_TURNS} without "
        "reflection: they do not remember events that have left their window"
    )
    shown = status.unreflected[:_SHOWN_MAX]
    console.print_table(("space", "agent", "turn"), [(agent.space, agent.agent, f"{agent.turn:,}") for agent in shown])
    _print_more(status.unreflected_total - len(shown))
    terminal.note(f"set a threshold: {set_threshold(shown[0].space, shown[0].agent)}")


def _print_more(count: int) -> None:
    if count > 0:
        console.out.print(f"and {count:,} more: recallog status --json")


def set_threshold(space: str, agent: str) -> str:
    """The command that lets reflections of `agent` fall due."""
    return f"recallog publish {space} {agent} agent.configured --payload '{{\"reflection_threshold\": 20}}'"


def verify_command(home: Home = None, as_json: Json = False) -> None:
    """Fold the ledger again and compare every row of every view with the result."""

    async def work() -> VerifyReport:
        with terminal.opened(home) as (memory, _), terminal.bar("folding") as advance:
            async with memory:
                return await memory.verify(advance)

    report = terminal.run(work, as_json=as_json)
    if as_json:
        terminal.print_json(report)
    else:
        print_verified(report)
    raise typer.Exit(0 if report.clean else 1)


def print_verified(report: VerifyReport) -> None:
    """Print the digest, or the first row that differs in each table."""
    for table in report.tables:
        if table.difference is not None:
            console.out.print(f"[bold red]differs[/] {table.difference.address()}")
            found, expected = _around_the_difference(table.difference.found, table.difference.expected)
            terminal.print_lines(f"  view  {found}\n  fold  {expected}")
    rows = sum(table.rows for table in report.tables)
    if report.clean:
        console.out.print(f"[green]clean[/] {report.records:,} records, {rows:,} rows, digest {report.digest[:16]}")
    else:
        console.out.print("The ledger is the source of truth. Build the views again: recallog rebuild")


def _around_the_difference(found: str | None, expected: str | None, width: int = 100) -> tuple[str, str]:
    """Both rows, cut to the part where they begin to differ."""
    if found is None or expected is None:
        return found or "(no such row)", expected or "(no such row)"
    same = next((n for n, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b), 0)
    start = max(0, same - width // 2)
    lead = "…" if start else ""
    return lead + found[start : start + width], lead + expected[start : start + width]


class Rebuilt(StrEnum):
    """What can be rebuilt."""

    VIEWS = "views"
    INDEX = "index"


def rebuild_command(
    what: Annotated[Rebuilt, typer.Argument(help="The views or the semantic index.")] = Rebuilt.VIEWS,
    accept: Annotated[bool, typer.Option("--accept", help="Cut over even if there are new dead letters.")] = False,
    abort: Annotated[bool, typer.Option("--abort", help="Cancel the running rebuild.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan without rebuilding.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Rebuild the views or the index from offset zero beside the live ones, then cut over.

    It can be interrupted and run again. A rebuild of the index reuses the vectors of
    unchanged texts. On a cluster several processes may run it at once and share the
    partitions.
    """

    async def work() -> None:
        with terminal.opened(home) as (memory, _), terminal.bar("rebuilding") as advance:
            async with memory:
                if dry_run:
                    _print_plan(await memory.plan_rebuild(what), as_json=as_json)
                    return
                if abort:
                    _print_aborted(await memory.abort_rebuild(what), as_json=as_json)
                    return
                reports = await memory.rebuild(advance, what=what, accept=accept)
        _print_rebuilt(reports, as_json=as_json)

    terminal.run(work, as_json=as_json)


def reindex_command(
    model: Annotated[
        str | None,
        typer.Option(help="minilm, sentence-transformers[:FOLDER], onnx:FOLDER or http(s)://host/v1#model."),
    ] = None,
    abort: Annotated[bool, typer.Option("--abort", help="Cancel the running change of the model.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Rebuild the semantic index with another model while the old one answers.

    It can be interrupted and run again.
    """
    if (model is None) is not abort:
        raise typer.BadParameter("give either --model or --abort")

    async def work() -> None:
        with terminal.opened(home) as (memory, _), terminal.bar("reindexing") as advance:
            async with memory:
                if model is None:
                    _print_aborted(await memory.abort_rebuild(Rebuilt.INDEX), as_json=as_json)
                    return
                reports = await memory.reindex(model, advance)
        _print_rebuilt(reports, as_json=as_json)

    terminal.run(work, as_json=as_json)


def _print_aborted(aborted: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        terminal.print_json({"aborted": aborted})
    else:
        console.out.print(f"cancelled: {', '.join(aborted)}" if aborted else "no rebuild is running")


def _print_rebuilt(reports: Sequence[RebuildReport], *, as_json: bool) -> None:
    if as_json:
        terminal.print_json(reports)
        return
    for report in reports:
        joined = ", joined one under way" if report.joined else ""
        rate = report.records / report.seconds if report.seconds else 0
        console.out.print(
            f"rebuilt {report.records:,} records in {report.seconds:.1f} s ({rate:,.0f}/s{joined}): "
            f"{report.replaced or 'nothing'} → {report.generation}"
        )


def _print_plan(plans: Sequence[RebuildPlan], *, as_json: bool) -> None:
    if as_json:
        terminal.print_json(plans)
        return
    console.print_table(
        ("views", "partition", "records", "replaces", "joins"),
        [
            (plan.views, plan.partition, f"{plan.records:,}", plan.replaces or "nothing", plan.joins or "-")
            for plan in plans
        ],
    )
    terminal.note("dry run: nothing was changed")
