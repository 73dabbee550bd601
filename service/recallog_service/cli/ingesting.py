"""`ingest`: writes the events and conversations of files to the ledger."""

from collections.abc import Callable
from typing import Annotated

import typer

from recallog import Memory
from recallog_projections.patience import patient
from recallog_schemas.errors import IndexUnavailable, InvalidEvent
from recallog_service.cli import terminal
from recallog_service.cli.terminal import Home, Json
from recallog_service.formats import DEFAULT_START, Options, registry
from recallog_service.ingest import Ingested, IngestedFile, IngestedFiles, Problem, ingest_file
from recallog_service.input_files import InputFile, input_files

_UNRECOGNISED_SHOWN = 5


def register(app: typer.Typer) -> None:
    app.command("ingest", epilog="Example: recallog ingest ~/.claude/projects")(ingest_command)


def ingest_command(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="FILE", help="Files or folders to read, or - for stdin.")
    ] = None,
    format: Annotated[  # noqa: A002
        str | None,
        typer.Option(
            metavar="NAME",
            help="Format of the files; by default it is recognised.",
        ),
    ] = None,
    space: Annotated[
        str | None, typer.Option(help="One space for all conversations; locomo: prefix of spaces.")
    ] = None,
    messages_key: Annotated[
        str | None, typer.Option(help="Field of a chat's messages, for example traj; by default it is found.")
    ] = None,
    start: Annotated[
        str | None, typer.Option(metavar="TIME", help="Time from which missing times count up; default: 2000-01-01.")
    ] = None,
    keep_going: Annotated[bool, typer.Option("--keep-going", help="Skip and list items that are refused.")] = False,
    acknowledge: Annotated[
        bool, typer.Option("--acknowledge", help="Print the position and id of each event once it is durable.")
    ] = False,
    batch: Annotated[
        int, typer.Option(min=1, max=10_000, help="Events per durable write; use 1 for a live pipe.")
    ] = 500,
    no_index: Annotated[
        bool,
        typer.Option("--no-index", help="Do not start to make the index in the background."),
    ] = False,
    formats: Annotated[
        bool, typer.Option("--formats", help="List the formats, what each keeps and what it leaves out.")
    ] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Write the events and conversations of files to the ledger.

    The format of a file is recognised by its content; --formats lists them.
    Of a folder, all files of a known format are read, the oldest first.

    A second run adds nothing, and of a file that has grown it adds what is
    new. By default it stops at the first item that is refused, after writing
    those before it. The index for recall is made by a process that goes on
    after the command has ended.

    The conversations of a file become sessions of one space if --space names
    it, if all of them name the same person (user_id, user, email, ...), or if
    they are those of a project. Otherwise each conversation is a space of its
    own, so that what one customer said is not recalled for another. The
    command says which was chosen and why. A conversation is identified by its
    id, else by the first message of its user.
    """

    if formats:
        _list_formats(as_json)
        return
    if not names:
        raise typer.BadParameter("name a file or a folder, or - for stdin", param_hint="FILE")
    paths = names
    is_one = False

    async def work() -> tuple[list[IngestedFile], list[str], str | None]:
        nonlocal is_one
        files, unrecognised = input_files(paths, None if format is None else registry.named(format))
        options = Options(space, terminal.moment(start, "--start") if start else DEFAULT_START, messages_key)
        is_one = len(files) == 1 and not unrecognised
        results: list[IngestedFile] = []
        with patient(), terminal.opened(home, missing="create") as (memory, _):
            async with memory:
                with terminal.bar(f"ingesting {files[0].name if is_one else f'{len(files):,} files'}") as advance:
                    for file in files:
                        try:
                            result = await ingest_file(
                                memory,
                                file,
                                options,
                                batch=batch,
                                keep_going=keep_going,
                                note=terminal.note if is_one else None,
                                progress=_counting_on(advance, sum(each.added + each.known for each in results)),
                                acknowledged=_print_acknowledged if acknowledge else None,
                            )
                        except InvalidEvent as error:
                            if is_one:
                                raise
                            result = _unreadable(file, error, keep_going)
                        results.append(result)
                        if result.stopped:
                            break
                is_new = any(each.added for each in results)
                return results, unrecognised, await _start_index(memory) if is_new and not no_index else None

    results, unrecognised, indexing = terminal.run(work, as_json=as_json)
    if as_json:
        terminal.print_json(results[0] if is_one else IngestedFiles.of(results, unrecognised))
    elif is_one:
        _report(results[0], "")
    else:
        _report_all(IngestedFiles.of(results, unrecognised))
    if indexing is not None:
        terminal.note(indexing)
    raise typer.Exit(1 if any(each.problems for each in results) else 0)


def _list_formats(as_json: bool) -> None:
    fields = ("name", "about", "keeps", "leaves_out")
    found = [{field: getattr(each, field) for field in fields} for each in registry.by_name().values()]
    if as_json:
        terminal.print_json({"formats": found})
        return
    for each in found:
        terminal.print_lines(f"{each['name']}: {each['about']}\n  keeps {each['keeps']}")
        if each["leaves_out"]:
            terminal.print_lines(f"  leaves out {each['leaves_out']}")


def _unreadable(file: InputFile, error: InvalidEvent, keep_going: bool) -> IngestedFile:
    """The result of a file among others that its format cannot read."""
    problem = Problem(number=0, message=str(error))
    return IngestedFile(file=file.name, read_as=file.format.name, problems=(problem,), stopped=not keep_going)


def _counting_on(advance: Callable[[int, int], None], done: int) -> Callable[[int, int], None]:
    """The progress of one file, after `done` events of earlier ones."""
    return lambda count, total: advance(done + count, done + total)


async def _start_index(memory: Memory) -> str | None:
    """Start to index what was written, and say so; None if the index is off, or if a server has it."""
    try:
        started = await memory.start_index()
    except IndexUnavailable as error:
        return f"not indexed yet: {error}"
    return "indexing in the background for recall; recallog status shows how far it is" if started else None


def _print_acknowledged(position: str, id_: str) -> None:
    terminal.print_lines(f"{position} {id_}")


def _report_all(result: IngestedFiles) -> None:
    for each in result.files:
        if each.chosen is not None:
            terminal.note(f"{each.file}: {each.chosen}")
        _report(each, f"{each.file}: ")
    if result.unrecognised:
        shown = ", ".join(result.unrecognised[:_UNRECOGNISED_SHOWN])
        more = len(result.unrecognised) - _UNRECOGNISED_SHOWN
        rest = f" and {more:,} more, which --json lists" if more > 0 else ""
        terminal.note(f"left out, because their format is not recognised: {shown}{rest}")
    terminal.print_lines(f"in all {result.added:,} events added, {result.known:,} known already")


def _report(result: IngestedFile, prefix: str) -> None:
    for problem in result.problems:
        terminal.note(f"{prefix}{problem.message}", "red")
    for cut in result.cut:
        terminal.note(f"{prefix}{cut.message}")
    terminal.print_lines(
        f"{prefix}{result.added:,} events added, {result.known:,} known already, {len(result.problems):,} refused, "
        f"{result.spaces:,} spaces (read as {result.read_as})"
    )
    if result.ahead:
        terminal.note(f"{prefix}{result.ahead:,} of them are dated more than a day ahead; they set no clock")
    if result.other_times:
        terminal.note(_other_times(result))
    if result.left_out:
        counts = ", ".join(f"{count:,} {name}" for name, count in result.left_out.items())
        terminal.print_lines(f"{prefix}left out, because no event holds it: {counts}")
    if result.stopped:
        terminal.note(
            "stopped there; the events before it are in the ledger. Correct it and run the same command again, or "
            "skip refused items with --keep-going",
            "",
        )


def _other_times(result: Ingested) -> str:
    first = result.first_other_times[0]
    events = "1 known event has" if result.other_times == 1 else f"{result.other_times:,} known events have"
    return (
        f"{events} another time in the ledger, which counts; the first is {first.id}: {first.at.isoformat()} in the "
        f"file, {first.at_in_ledger.isoformat()} in the ledger at {first.position}. Was the file exported again with "
        "other times?"
    )
