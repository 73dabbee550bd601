"""`publish` and `ingest`: write events to the ledger."""

import json
import sys
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from recallog import Memory
from recallog_schemas import codec
from recallog_schemas.errors import IndexUnavailable, InvalidEvent
from recallog_service.cli import console, terminal
from recallog_service.cli.terminal import Home, Json
from recallog_service.formats import chat, jsonl, locomo
from recallog_service.formats.item import DEFAULT_START, Item
from recallog_service.ingest import Ingested, ingest


class Format(StrEnum):
    JSONL = "jsonl"
    CHAT = "chat"
    LOCOMO = "locomo"


def register(app: typer.Typer) -> None:
    app.command(
        "publish",
        epilog='Example: recallog publish village baker agent.spoke "The miller owes me nine sacks." --turn 3',
    )(publish_command)
    app.command("ingest", epilog="Example: recallog ingest chats.json --format chat --space alice")(ingest_command)


def publish_command(
    space: Annotated[str, typer.Argument(help="Space, or - to read one event as JSON from stdin.")],
    agent: Annotated[str | None, typer.Argument(help="Agent that acted.")] = None,
    kind: Annotated[str | None, typer.Argument(help="Kind, for example agent.spoke.")] = None,
    text: Annotated[str | None, typer.Argument(help="Text of the payload.")] = None,
    payload: Annotated[str | None, typer.Option(help="Payload as a JSON object.")] = None,
    turn: Annotated[int, typer.Option(help="Turn of the space.")] = 0,
    session: Annotated[str | None, typer.Option(help="Session inside the space.")] = None,
    at: Annotated[str | None, typer.Option(metavar="TIME", help="Time of the event; default: now.")] = None,
    id: Annotated[str | None, typer.Option(help="Id that makes repeats harmless; default: a UUIDv7.")] = None,  # noqa: A002
    audience: Annotated[list[str] | None, typer.Option(help="Another agent that may see it; repeatable.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Validate the event without writing it.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Write one event to the ledger; print its position once it is durable."""

    async def work() -> None:
        if space == "-":
            if any(value is not None for value in (agent, kind, text, payload, session, at, id, audience)) or turn:
                raise typer.BadParameter("with - the event is read from stdin; only --dry-run may be given with it")
            event = codec.parse(sys.stdin.buffer.read())
        else:
            fields = {
                "space": space, "agent": agent, "kind": kind, "turn": turn, "session": session, "id": id,
                "at": at, "audience": audience or None,
                "payload": _payload(text, payload),
            }  # fmt: skip
            event = codec.make({name: value for name, value in fields.items() if value is not None})
        if dry_run:
            if as_json:
                terminal.print_json({"valid": True, "event": json.loads(codec.encode(event))})
            else:
                console.out.print(f"valid, nothing written: {event.kind} by {event.agent} in {event.space}")
            return
        with terminal.opened(home, missing="create") as (memory, _):
            async with memory:
                position = await memory.publish(event)
        if as_json:
            terminal.print_json({"position": str(position), "id": event.id})
        else:
            console.out.print(f"{position} {event.id}")

    terminal.run(work, as_json=as_json)


def _payload(text: str | None, payload: str | None) -> dict[str, Any]:
    if payload is None:
        return {} if text is None else {"text": text}
    try:
        given = json.loads(payload)
    except ValueError as error:
        raise InvalidEvent(f"--payload is not JSON: {error}", path="payload") from None
    if not isinstance(given, dict):
        raise InvalidEvent("--payload must be a JSON object", path="payload")
    return given if text is None else {**given, "text": text}


def ingest_command(
    file: Annotated[str, typer.Argument(help="File to read, or - for stdin.")],
    format: Annotated[Format, typer.Option(help="Format of the file.")] = Format.JSONL,  # noqa: A002
    space: Annotated[str | None, typer.Option(help="chat: one space for all; locomo: prefix of spaces.")] = None,
    messages_key: Annotated[str, typer.Option(help="Field of a chat's messages, for example traj.")] = "messages",
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
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Write the events or conversations of a file to the ledger.

    A second run adds nothing, so an interrupted run can be repeated. By
    default it stops at the first item that is refused, after writing those
    before it. The index for recall is made by a process that goes on after
    the command has ended.

    With --format chat, the conversations of a file become sessions of one
    space if --space names it, or if all of them name the same person
    (user_id, user, email, ...). Otherwise each conversation is a space of
    its own, so that what one customer said is not recalled for another. The
    command says which was chosen and why. A conversation is identified by
    its id, else by the first message of its user.
    """

    async def work() -> tuple[Ingested, str | None]:
        items = _items(file, format, space, messages_key, start)
        with terminal.bar(f"ingesting {file}") as advance, terminal.opened(home, missing="create") as (memory, _):
            async with memory:
                result = await ingest(
                    memory,
                    items,
                    unit="line" if format is Format.JSONL else "conversation",
                    batch=batch,
                    keep_going=keep_going,
                    progress=advance,
                    acknowledged=_print_acknowledged if acknowledge else None,
                )
                return result, await _start_index(memory) if result.added and not no_index else None

    result, indexing = terminal.run(work, as_json=as_json)
    if as_json:
        terminal.print_json(result)
    else:
        _report(result)
    if indexing is not None:
        terminal.note(indexing)
    raise typer.Exit(1 if result.problems else 0)


async def _start_index(memory: Memory) -> str | None:
    """Start to index what was written, and say so; None if the index is off, or if a server has it."""
    try:
        started = await memory.start_index()
    except IndexUnavailable as error:
        return f"not indexed yet: {error}"
    return "indexing in the background for recall; recallog status shows how far it is" if started else None


def _other_times(result: Ingested) -> str:
    first = result.first_other_times[0]
    events = "1 known event has" if result.other_times == 1 else f"{result.other_times:,} known events have"
    return (
        f"{events} another time in the ledger, which counts; the first is {first.id}: {first.at.isoformat()} in the "
        f"file, {first.at_in_ledger.isoformat()} in the ledger at {first.position}. Was the file exported again with "
        "other times?"
    )


def _print_acknowledged(position: str, id_: str) -> None:
    sys.stdout.write(f"{position} {id_}\n")
    sys.stdout.flush()


def _report(result: Ingested) -> None:
    for problem in result.problems:
        console.err.print(problem.message, markup=False, style="red")
    for cut in result.cut:
        terminal.note(cut.message)
    console.out.print(
        f"{result.added:,} events added, {result.known:,} known already, {len(result.problems):,} refused, "
        f"{result.spaces:,} spaces"
    )
    if result.other_times:
        terminal.note(_other_times(result))
    if result.left_out:
        counts = ", ".join(f"{count:,} {name}" for name, count in result.left_out.items())
        terminal.print_lines(f"left out, because no event holds it: {counts}")
    if result.stopped:
        console.err.print(
            "stopped there; the events before it are in the ledger. Correct it and run the same command again, or "
            "skip refused items with --keep-going"
        )


def _items(file: str, format: Format, space: str | None, key: str, start: str | None) -> Iterable[Item]:  # noqa: A002
    begin = terminal.moment(start, "--start") if start else DEFAULT_START
    if format is Format.JSONL:
        return jsonl.read(_lines(file), start=begin)
    text = b"".join(_lines(file))
    if format is Format.CHAT:
        conversations = chat.read(text, space=space, start=begin, messages_key=key)
        if conversations.conversations:
            terminal.note(conversations.layout.reason)
        return conversations
    return locomo.read(text, space=space)


def _lines(file: str) -> Iterator[bytes]:
    if file == "-":
        yield from sys.stdin.buffer
        return
    try:
        with Path(file).open("rb") as lines:
            yield from lines
    except OSError as error:
        raise typer.BadParameter(f"cannot read {file}: {error.strerror}") from None
