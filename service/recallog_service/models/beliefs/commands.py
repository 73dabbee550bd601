"""`watch`: follows the events of one space, the reflections that fall due, and their answers."""

import asyncio
import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from recallog import Event, Memory
from recallog.following.entries import POLL_SECONDS, LedgerEntry
from recallog.models.beliefs.following import ReflectionAnswered, ReflectionDue, SpaceFollower
from recallog_schemas import kinds
from recallog_schemas.views import indent_continuation
from recallog_service.cli import console, panels, terminal, unknown_names
from recallog_service.cli.following import Start, begin_in_space, entry_document, entry_line
from recallog_service.cli.terminal import Home, Json, Space

NAME = "watch"

_PAYLOAD_CHARS_MAX = 200

_STYLES = {
    "agent.thought": "italic yellow",
    "agent.reflected": "magenta",
    "reflection.failed": "red",
    "run.started": "green",
    "world.observed": "green",
    "user.injected": "bold cyan",
    "judge.verdict": "bold blue",
    "verdict.final": "bold blue",
}


def register(app: typer.Typer) -> None:
    app.command(NAME, epilog="Example: recallog watch village", rich_help_panel=panels.ASK)(watch_command)


def watch_command(
    space: Space,
    start: Start = None,
    once: Annotated[bool, typer.Option("--once", help="Print the present records, then exit.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Follow a space live: its events, the reflections that fall due, and their answers.

    An event with an audience shows its recipients. Ctrl-C ends the command.
    With --json each line is a document with one field: "event", "due",
    "answered" or "error" (a record that is not an event).
    """

    async def work() -> None:
        if not once:
            await terminal.until_it_exists(home)
        with terminal.open_memory(home) as (memory, _):
            async with memory:
                await memory.pending(space)  # builds missing views with a progress bar
        async with Memory.open(terminal.settings(home)) as memory:
            await _watch(memory, space, start, once, as_json)

    (terminal.run if once else terminal.run_until_stopped)(work, as_json=as_json)


async def _watch(memory: Memory, space: str, start: str | None, once: bool, as_json: bool) -> None:
    begin = await begin_in_space(memory, start, space)
    follower, first = SpaceFollower(memory, space, begin), True
    while True:
        empty = True
        async for item in follower.step():
            empty = empty and not isinstance(item, LedgerEntry)
            if as_json:
                terminal.print_json(_document(item))
            else:
                _print(item)
        if first and empty and not as_json:
            terminal.note(f"{space} has no events from {begin} on{'' if once else ' yet; waiting'}")
        if once and empty:
            await unknown_names.refuse_unknown(memory, {"space": space})
        if once:
            return
        first = False
        await asyncio.sleep(POLL_SECONDS)


def _document(item: LedgerEntry | ReflectionDue | ReflectionAnswered) -> dict[str, Any]:
    match item:
        case LedgerEntry():
            return entry_document(item)
        case ReflectionDue():
            due = {
                "space": item.space,
                "agent": item.agent,
                "trigger": item.trigger,
                "events": item.events,
                "threshold": item.threshold,
                "since": None if item.since is None else str(item.since),
                "last": None if item.last is None else str(item.last),
            }
            return {"due": due}
        case ReflectionAnswered():
            answered = {
                "space": item.due.space,
                "agent": item.due.agent,
                "trigger": item.due.trigger,
                "kind": item.event.kind,
                "id": item.event.id,
                "position": str(item.position),
            }
            return {"answered": answered}


def _print(item: LedgerEntry | ReflectionDue | ReflectionAnswered) -> None:
    match item:
        case LedgerEntry():
            console.print_styled(*_entry(item))
        case ReflectionDue(agent=agent, events=None):
            terminal.print_lines(f"· {agent}: a reflection was due", "bold red")
        case ReflectionDue():
            since = "so far" if item.last_turn is None else f"since turn {item.last_turn}"
            terminal.print_lines(f"· {item.agent}: a reflection is due, {item.events:,} events {since}", "bold red")
        case ReflectionAnswered():
            outcome = "the reflection failed" if item.event.kind == "reflection.failed" else "has reflected"
            terminal.print_lines(f"· {item.due.agent}: {outcome}", "bold")


def _entry(entry: LedgerEntry) -> Sequence[tuple[str, str]]:
    """The parts of the line of a record, each with its style."""
    event = entry.event
    if event is None:
        return [(entry_line(entry), "dim")]
    to = "" if event.audience is None else f" → {', '.join(event.audience) or 'nobody'}"
    style = _STYLES.get(event.kind, "dim" if kinds.kind_of(event.kind).role == kinds.BOOKKEEPING else "")
    return [
        (f"{entry.position}  turn {event.turn:03d}  ", "dim"),
        (event.agent, "bold"),
        (to, ""),
        (f"  {event.kind}  ", "dim"),
        (indent_continuation(_text(event)), style),
    ]


def _text(event: Event) -> str:
    """The text of an event; without one, its reason or its payload, cut to 200 characters."""
    if event.text or not event.payload:
        return event.text
    shown = str(event.payload.get("reason") or json.dumps(event.payload, ensure_ascii=False))
    return shown if len(shown) <= _PAYLOAD_CHARS_MAX else shown[: _PAYLOAD_CHARS_MAX - 1] + "…"
