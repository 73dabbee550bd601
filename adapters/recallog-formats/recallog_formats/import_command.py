"""`import`: takes over the store of another memory."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from recallog import InvalidArgument
from recallog.scrubbing import describe_counts
from recallog_formats.importing import ImportOptions, ImportResult, Remark, StoreImport
from recallog_formats.stores.store import Destination, StoreFormat
from recallog_projections import plugins
from recallog_schemas import codec
from recallog_schemas.kinds.trust import SourceClass
from recallog_service.cli import terminal
from recallog_service.cli.terminal import Home, Json

GROUP = "recallog.imports"
"""The group of entry points. Each names the `StoreFormat` of a system."""
_PLACES_SHOWN = 5


def register(app: typer.Typer) -> None:
    example = "Example: recallog import tramontane memory.db --space office --agent gerald"
    app.command("import", epilog=example)(import_command)


def import_command(
    system: Annotated[
        str | None, typer.Argument(help="The system, such as tramontane or mem0; --systems lists all.")
    ] = None,
    path: Annotated[Path | None, typer.Argument(help="Its database, file or folder, which is only read.")] = None,
    space: Annotated[
        str | None, typer.Option(help="The space that gets the rows; needed unless the rows name users or runs.")
    ] = None,
    agent: Annotated[str, typer.Option(help="The agent of rows that name none.")] = "assistant",
    trust: Annotated[
        SourceClass,
        typer.Option(help="Source class of the rows; agent: your own memory, which may fill blocks and documents too."),
    ] = "import",
    tiers: Annotated[
        bool, typer.Option("--tiers/--no-tiers", help="Keep the tiers of entries, by which they age.")
    ] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and check the store, and write nothing.")] = False,
    systems: Annotated[
        bool, typer.Option("--systems", help="List the systems, what is kept of each and what is left out.")
    ] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Take over the store of another memory.

    Rows become entries and events with their ids and times. A second import
    adds nothing, and updates the entries whose rows have changed. Rows that
    were deleted there stay here, and what was changed here stays unless its
    row has changed too. The report names each row that is not taken over.

    By default all rows have the source class import: they are memories, from
    which no facts and no beliefs are made. Blocks of working memory, documents
    and pins need --trust agent, because they direct an agent.

    The exit code is 0 if all rows were taken over or left out for a reason, 1
    if a row was refused, 2 if there is no such store, and 3 if the ledger
    cannot be written.
    """
    try:
        known = _find_systems()
        if systems:
            _list_systems(list(known.values()), as_json)
            return
        if system is None or path is None:
            raise InvalidArgument("name a system and its store; --systems lists the systems", path="SYSTEM")
        store = _find_store(known, system, space, path)
        into = Destination(space and codec.checked_name(space), codec.checked_name(agent, "agent"))
    except InvalidArgument as error:
        terminal.fail(error, as_json=as_json)
    options = ImportOptions(trust, tiers, dry_run)

    async def work() -> tuple[ImportResult, str | None]:
        with terminal.open_memory(home, missing="empty" if dry_run else "create") as (memory, _):
            async with memory:
                with terminal.bar(f"importing {path}", "rows") as advance:
                    result = await StoreImport(memory, store, options).run(path, into, advance)
                return result, await terminal.start_index(memory) if result.added and not dry_run else None

    result, indexing = terminal.run(work, as_json=as_json)
    if as_json:
        terminal.print_json({"system": store.name, "dry_run": dry_run, **asdict(result)})
    else:
        _print_result(result, options)
    if indexing is not None:
        terminal.note(indexing)
    raise typer.Exit(1 if result.problems else 0)


def _find_systems() -> dict[str, StoreFormat]:
    return {each.name: each for each in plugins.load_all(GROUP)}


def _find_store(known: dict[str, StoreFormat], system: str, space: str | None, path: Path) -> StoreFormat:
    if system not in known:
        raise InvalidArgument(
            f"{system!r} is not a system that can be imported; known are {', '.join(known)}", path="SYSTEM"
        )
    if not path.exists():
        raise InvalidArgument(f"there is no {path}; {system} is imported from {known[system].about}", path="PATH")
    if space is None and not known[system].names_spaces:
        raise InvalidArgument(f"rows of {system} name no space; give one with --space NAME", path="--space")
    return known[system]


def _list_systems(stores: Sequence[StoreFormat], as_json: bool) -> None:
    fields = ("name", "about", "keeps", "leaves_out")
    if as_json:
        terminal.print_json({"systems": [{field: getattr(each, field) for field in fields} for each in stores]})
        return
    for each in stores:
        terminal.print_lines(f"{each.name}: {each.about}\n  keeps {each.keeps}\n  leaves out {each.leaves_out}")


def _print_result(result: ImportResult, options: ImportOptions) -> None:
    for problem in result.problems:
        terminal.note(f"refused {problem.place}: {problem.why}", "red")
    refused = f", {len(result.problems):,} refused" if result.problems else ""
    begin = "Would be: at most " if options.dry_run else "Total: "
    terminal.print_lines(
        f"{begin}{result.added:,} added, {result.changed:,} changed, {result.unchanged:,} already present{refused}"
    )
    for title, remarks in (("Left out", result.left_out), ("Weakened", result.weakened)):
        _print_remarks(title, remarks)
    if result.scrubbed:
        terminal.print_lines(f"Replaced {describe_counts(result.scrubbed)}")
    if result.classes:
        counts = ", ".join(f"{count:,} {name}" for name, count in sorted(result.classes.items()))
        advice = "no facts and no beliefs are made from imports; for your own memory, --trust agent"
        terminal.print_lines(f"Sources: {counts}{'' if options.is_trusted else f' ({advice})'}")
    if result.tiered:
        terminal.note(f"{result.tiered:,} entries have tiers and age from their times; with --no-tiers they do not age")


def _print_remarks(title: str, remarks: Sequence[Remark]) -> None:
    """Print the remarks by their reason, each with its first places."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    counts: Counter[str] = Counter()
    for each in remarks:
        places[each.why].append(each.place)
        counts[each.why] += each.count
    for why, found in places.items():
        more = f" and {len(found) - _PLACES_SHOWN:,} more, which --json lists" if len(found) > _PLACES_SHOWN else ""
        terminal.print_lines(f"{title}: {counts[why]:,} ({', '.join(found[:_PLACES_SHOWN])}{more}): {why}")
