"""`publish`: writes one event to the ledger."""

import json
import sys
from typing import Annotated, Any

import typer

from recallog_schemas import codec
from recallog_schemas.errors import InvalidEvent
from recallog_schemas.views import one_line
from recallog_service.cli import panels, terminal
from recallog_service.cli.terminal import Home, Json


def register(app: typer.Typer) -> None:
    panel, epilog = (
        panels.START,
        'Example: recallog publish village baker agent.spoke "The miller owes me nine sacks." --turn 3',
    )
    app.command("publish", epilog=epilog, rich_help_panel=panel)(publish_command)


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
                terminal.print_lines(f"valid, nothing written: {event.kind} by {event.agent} in {event.space}")
            return
        with terminal.open_memory(home, missing="create") as (memory, _):
            async with memory:
                position = await memory.publish(event)
        if as_json:
            terminal.print_json({"position": str(position), "id": event.id})
        else:
            terminal.print_lines(f"{position} {one_line(event.id)}")

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
