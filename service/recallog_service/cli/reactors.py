"""Commands about what agents owe: whether a reflection is due, and answering those that are."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Annotated, Any

import typer
from rich.text import Text

from recallog import Memory, Settings
from recallog.following.entries import entries_of, follow
from recallog.reactors.reactor import POLL_SECONDS, RETRY_SECONDS
from recallog_schemas.errors import LockTimeout, RecallogError
from recallog_schemas.views import Reaction, ReflectionView, lines
from recallog_service.cli import terminal
from recallog_service.cli.consumers import print_based_on
from recallog_service.cli.operators import switch_on
from recallog_service.cli.terminal import At, Home, Json, Space, harmless

_FAILED = "reflection.failed"


def register(app: typer.Typer) -> None:
    app.command("reflection", epilog="Example: recallog reflection village widow")(reflection_command)
    app.command("react", epilog="Example: recallog react village --follow")(react_command)


def reflection_command(
    space: Space,
    agent: Annotated[str, typer.Argument(help="Who may owe one.")],
    as_of: At = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Whether an agent owes a reflection, since when, and on what."""
    view = terminal.ask(
        lambda memory: memory.reflection(space, agent, as_of=terminal.as_of(as_of)), home, as_json=as_json
    )
    if as_json:
        terminal.print_json(view)
    else:
        _print_owed(view)


def _print_owed(view: ReflectionView) -> None:
    since_last = "so far" if view.last is None else f"since the last one at {view.last}"
    if view.threshold is None:
        terminal.print_lines(f"never due: {view.agent} has no threshold; {view.events:,} events {since_last}")
        terminal.note(f"switch it on: {switch_on(view.space, view.agent)}")
        return
    count = f"{view.events:,} of {view.threshold:,} events {since_last}"
    if not view.due:
        terminal.print_lines(f"not due: {count}")
        return
    since = "longer than the views keep" if view.since is None else f"since {view.since}"
    terminal.print_lines(f"due {since}: {count}", "bold")
    terminal.print_lines(lines(view.on))
    if view.events > len(view.on):
        terminal.note(f"the newest {len(view.on):,} of these events are shown")
    terminal.note(f"answer it: recallog react {view.space}")


def react_command(
    space: Annotated[str | None, typer.Argument(help="Only this space; default: all.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what falls due, until Ctrl-C.")] = False,
    reflector: Annotated[
        str | None,
        typer.Option(
            envvar="RECALLOG_REFLECTOR",
            metavar="NAME_OR_URL",
            help="extractive: quotes the events, offline. A URL: the model behind it is asked, over the network.",
            show_default="extractive",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(envvar="RECALLOG_REFLECTOR_MODEL", help="The model to ask, where it is a URL.")
    ] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Answer the reflections that are due, each once, with what the agent comes to believe.

    With a URL as the reflector, texts leave this machine: what the agents saw,
    private thoughts too, is sent to that host (one that speaks OpenAI's chat
    completions). Its API key comes from RECALLOG_REFLECTOR_API_KEY alone.

    Ends with 1 where a reflection failed (that is recorded, and the agents go on),
    with 3 where the reflector's settings are wrong or another process is reacting.
    With --follow it goes on after failures.
    """

    async def ready() -> Settings:
        """The settings, once all views are built, with a bar."""
        with terminal.opened(home) as (memory, _):
            async with memory:
                await memory.pending(space)
        return terminal.settings(home, reflector=reflector, reflector_model=model)

    async def work() -> list[Reaction]:
        async with Memory.open(await ready()) as memory:
            with terminal.bar("reflecting", "reflections") as advance:
                return await memory.react(space, advance)

    async def go_on() -> None:
        await _go_on(await ready(), space, as_json)

    if follow:
        terminal.run_until_stopped(go_on, as_json=as_json)
        return
    reactions = terminal.run(work, as_json=as_json)
    if as_json:
        terminal.print_json(reactions)
    elif not reactions:
        terminal.out.print("no reflection is due")
    for reaction in [] if as_json else reactions:
        _print_reaction(reaction)
    raise typer.Exit(1 if any(reaction.kind == _FAILED for reaction in reactions) else 0)


async def _go_on(settings: Settings, space: str | None, as_json: bool) -> None:
    """Answer what falls due, and show the answers that the ledger holds, until cancelled or in an error for good."""
    async with Memory.open(settings) as memory:
        begins = dict(enumerate(await memory.ledger_ends()))
        where = "all spaces" if space is None else space
        asked = "offline" if settings.reflector == "extractive" else f"by asking {settings.reflector_model}"
        terminal.note(f"answering what falls due in {where}, {asked}; Ctrl-C ends it")
        await _first_of(_show_answers(memory, begins, space, as_json), memory.keep_reacting(space, _ReportErrors()))


async def _first_of(*works: Coroutine[Any, Any, None]) -> None:
    """Do all of them until the first one ends, and with it the others."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _ReportErrors:
    """Prints a temporary error once and returns the seconds to wait; raises any other error."""

    def __init__(self) -> None:
        self._reported = ""

    def __call__(self, error: RecallogError) -> float:
        if not error.retryable:
            raise error
        reason = "another process is reacting" if isinstance(error, LockTimeout) else str(error)
        if reason != self._reported:
            terminal.note(f"{reason}; going on as soon as it passes")
            self._reported = reason
        return POLL_SECONDS if isinstance(error, LockTimeout) else RETRY_SECONDS


async def _show_answers(memory: Memory, begins: Mapping[int, int], space: str | None, as_json: bool) -> None:
    async for batch in follow(memory, begins, space):
        for entry in entries_of(batch):
            reaction = Reaction.of(entry.event, entry.position) if entry.event is not None else None
            if reaction is not None and as_json:
                terminal.print_json_line(reaction.model_dump(mode="json"))
            elif reaction is not None:
                _print_reaction(reaction)


def _print_reaction(reaction: Reaction) -> None:
    line = Text()
    line.append(f"{reaction.position}  {reaction.space}  ", "dim")
    line.append(reaction.agent, "bold")
    line.append(f"  {reaction.kind}  ", "dim")
    line.append(harmless(reaction.text), "red" if reaction.kind == _FAILED else "magenta")
    terminal.out.print(line)
    print_based_on(reaction.based_on)
