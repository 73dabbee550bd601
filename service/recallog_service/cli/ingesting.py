"""`ingest`: writes the events and conversations of files to the ledger."""

from collections.abc import Callable
from typing import Annotated

import typer

from recallog import Memory
from recallog_projections.patience import patient
from recallog_schemas.errors import InvalidArgument, InvalidInput
from recallog_schemas.kinds.trust import SourceClass
from recallog_service.cli import panels, terminal
from recallog_service.cli.ingest_reports import Report
from recallog_service.cli.terminal import Home, Json
from recallog_service.formats import DEFAULT_START, Format, Options, registry
from recallog_service.ingest import BATCH_EVENTS, IngestedFile, IngestedFiles, ingest_file, unreadable_file
from recallog_service.input_files import InputFile, InputFiles, holds_files, input_files


def register(app: typer.Typer) -> None:
    app.command("ingest", epilog="Example: recallog ingest ~/.claude/projects", rich_help_panel=panels.START)(
        ingest_command
    )


def ingest_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE", help="Files, folders or .zip archives to read, or - for stdin."),
    ] = None,
    format: Annotated[  # noqa: A002
        str | None, typer.Option(metavar="NAME", help="Format of the files; by default it is recognised.")
    ] = None,
    space: Annotated[
        str | None, typer.Option(help="One space for all conversations; locomo: prefix of spaces.")
    ] = None,
    agent: Annotated[
        str | None, typer.Option(help="Name of the assistant in conversations; default: as the format says.")
    ] = None,
    shared: Annotated[
        bool,
        typer.Option("--shared", help="Let all agents of a space see the added events, thoughts and actions included."),
    ] = False,
    subjects: Annotated[
        bool,
        typer.Option("--subjects", help="Make the speaker the subject, which recallog erase --subject NAME erases."),
    ] = False,
    trust: Annotated[
        SourceClass | None,
        typer.Option(
            help="Source class that the events state: import for a file of others, user for one whose authors you "
            "trust; default: import for chats among people, else by kind."
        ),
    ] = None,
    messages_key: Annotated[
        str | None, typer.Option(help="Field of a chat's messages, for example traj; by default it is found.")
    ] = None,
    start: Annotated[
        str | None, typer.Option(metavar="TIME", help="Time from which missing times are counted; default: 2000-01-01.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Continue to read the files as they grow, until Ctrl-C.")
    ] = False,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Skip and list refused items of a single file.")
    ] = False,
    acknowledge: Annotated[
        bool, typer.Option("--acknowledge", help="Print the position and id of each event once it is durable.")
    ] = False,
    batch: Annotated[
        int, typer.Option(min=1, max=10_000, help="Events per durable write; use 1 for a live pipe.")
    ] = BATCH_EVENTS,
    no_index: Annotated[bool, typer.Option("--no-index", help="Do not start indexing in the background.")] = False,
    formats: Annotated[
        bool, typer.Option("--formats", help="List the formats, what each keeps and what it leaves out.")
    ] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Write the events and conversations of files to the ledger.

    The format of a file is recognised by its content; --formats lists them.
    In a folder, all files of a known format are read, oldest first.
    Files that end in .gz are unpacked.

    A second run adds nothing; if a file has grown, it adds the new part. A
    single file is read up to the first refused item. With several files,
    refused items are skipped and listed. An incomplete last line is left for
    the next run. With --follow the command continues to read the files as
    they grow. A background process builds the index for recall; it continues
    after the command has ended.

    The conversations of a file become sessions of one space if --space names
    it, if all of them name the same person (user_id, user, email, ...), or if
    they belong to one project. Otherwise each conversation becomes a separate
    space, so that what one customer said is not recalled for another. The
    command says which was chosen and why. A conversation is identified by its
    id, else by its first user message.

    What users and agents say in a file may become facts and beliefs, as if
    they had said it here; what tools printed may not. Chats among people are
    imports, from which no facts and no beliefs are made. With --trust import
    that holds for any file, and only its memories are taken: no settings, no
    documents and no changes of entries.

    The exit code is 0 if all that was read is in the ledger, 1 if something
    was refused or nothing of a file was kept, 2 if there is no file to read,
    and 3 if the ledger cannot be written.
    """
    if formats:
        _list_formats(as_json)
        return
    if not names:
        raise typer.BadParameter("name a file or a folder, or - for stdin", param_hint="FILE")
    paths = names
    try:
        chosen = None if format is None else registry.find_format(format)
        options = Options(
            space, terminal.moment(start, "--start") if start else DEFAULT_START, messages_key, agent, subjects
        )
    except InvalidInput as error:
        terminal.fail(error, as_json=as_json)
    is_one = len(paths) == 1 and not holds_files(paths[0])
    report = Report(paths)

    async def read(
        memory: Memory,
        file: InputFile,
        progress: Callable[[int, int], None] | None = None,
        seen: set[bytes] | None = None,
    ) -> IngestedFile:
        return await ingest_file(
            memory,
            file,
            options,
            batch=batch,
            keep_going=keep_going or follow or not is_one,
            shared=shared,
            trust=trust,
            seen=seen,
            note=terminal.note if is_one else None,
            progress=progress,
            acknowledged=_print_acknowledged if acknowledge else None,
        )

    async def work() -> tuple[list[IngestedFile], InputFiles, str | None]:
        inputs = _inputs(paths, chosen)
        results = [unreadable_file(name, None, error) for name, error in inputs.refused.items()]
        with patient(), terminal.open_memory(home, missing="create") as (memory, _):
            async with memory:
                with terminal.bar(f"ingesting {report.label(inputs.files)}") as advance:
                    for file in inputs.files:
                        done = sum(each.added + each.known for each in results)
                        try:
                            results.append(await read(memory, file, _counting_on(advance, done)))
                        except InvalidInput as error:
                            if is_one:
                                raise
                            results.append(unreadable_file(file.name, file.format, error))
                is_new = any(each.added for each in results)
                return results, inputs, await terminal.start_index(memory) if is_new and not no_index else None

    async def work_on() -> None:
        from recallog_service.cli.ingest_following import follow_files

        with patient(), terminal.open_memory(home, missing="create") as (memory, _):
            async with memory:
                async for result in follow_files(paths, chosen, memory, read):
                    report.print_news(result, as_json=as_json)
                    if result.added and not no_index:
                        await terminal.start_index(memory)

    if follow:
        terminal.run_until_stopped(work_on, as_json=as_json)
        return
    results, inputs, indexing = terminal.run(work, as_json=as_json)
    if as_json:
        everything = IngestedFiles.of(results, inputs.unrecognised, inputs.blank)
        terminal.print_json(results[0] if is_one else everything)
    elif is_one:
        report.print_one(results[0])
    else:
        report.print_all(results, inputs)
    if indexing is not None:
        terminal.note(indexing)
    raise typer.Exit(1 if any(each.problems or each.kept_nothing for each in results) else 0)


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


def _inputs(names: list[str], chosen: Format | None) -> InputFiles:
    found = input_files(names, chosen)
    if not found.files and not found.refused:
        counts = {"not of a known format": found.unrecognised, "empty": found.blank}
        why = [f"{len(files):,} {'is' if len(files) == 1 else 'are'} {what}" for what, files in counts.items() if files]
        message = f"no file to read in {', '.join(names)}: {' and '.join(why) or 'there are no files'}"
        raise InvalidArgument(message, path="file")
    return found


def _counting_on(advance: Callable[[int, int], None], done: int) -> Callable[[int, int], None]:
    """The progress of one file, after `done` events of earlier ones."""
    return lambda count, total: advance(done + count, done + total)


def _print_acknowledged(position: str, id_: str) -> None:
    terminal.print_lines(f"{position} {id_}")
