"""`react`: answers due triggers, once or as they fall due."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any

import typer

from recallog import Memory, Settings, loading
from recallog.following.entries import entries_of, follow
from recallog.reactors.loop import POLL_SECONDS, RETRY_SECONDS
from recallog.views import ReactionsView
from recallog_projections.concurrency import cancel_all
from recallog_schemas import triggers
from recallog_schemas.errors import LockTimeout, RecallogError
from recallog_schemas.views import PendingTrigger, Reaction, indent_continuation
from recallog_service.cli import console, panels, terminal, unknown_names
from recallog_service.cli.rendering import print_based_on
from recallog_service.cli.terminal import Home, Json


def register(app: typer.Typer) -> None:
    app.command("react", epilog="Example: recallog react village --follow", rich_help_panel=panels.SERVE)(react_command)


def react_command(
    space: Annotated[str | None, typer.Argument(help="Only this space; default: all.")] = None,
    follow_due: Annotated[
        bool, typer.Option("--follow", "-f", help="Also answer what falls due later, until Ctrl-C.")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(
            envvar="RECALLOG_MODEL",
            metavar="URL#NAME",
            help="The chat model that answers, http://host/v1#name; default: rules, offline.",
        ),
    ] = None,
    reactors: Annotated[
        list[str] | None, typer.Option(metavar="MODULE:NAME", help="Custom reactors in Python. Repeatable.")
    ] = None,
    projections: terminal.Projections = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Answer due triggers, each once: reflections, turns, sessions, erasures.

    A due reflection becomes a belief of its agent. At the end of a session, what its
    agent has marked to keep becomes entries, and what was asked for and done becomes
    lines of the agent's documents. At the end of a turn, facts become entries if the
    agent has extract_facts set. An erasure is extended to what was made from the
    erased entries.

    With a model, texts leave this machine: the events of the agents, including
    private thoughts, are sent to that host, which must support OpenAI's chat
    completions. The API key is read from RECALLOG_MODEL_API_KEY. The variables
    RECALLOG_MODEL_REFLECT and RECALLOG_MODEL_EXTRACT name another model for one use,
    or off.

    Custom reactors answer the triggers of their kinds in place of the built-in
    reactors. MODULE:NAME is a class, a function without arguments, an object, or a
    list of these; the module may be in the working directory.

    The exit code is 1 if a reflection failed (the failure is recorded as its
    answer), and 3 if the settings of the model are wrong or another process is
    reacting. With --follow the command continues after failures.
    """

    async def ready() -> Settings:
        """Build the views with a progress bar; return the settings."""
        own = terminal.join_names(projections)
        with terminal.open_memory(home, projections=own) as (memory, _):
            async with memory:
                await memory.pending(space)
        return terminal.settings(home, model=model, projections=own)

    def open_memory(settings: Settings) -> Memory:
        return Memory.open(settings, reactors=loading.reactors(reactors or ()))

    async def work() -> tuple[ReactionsView, Sequence[PendingTrigger]]:
        async with _close_memory(open_memory(await ready())) as memory:
            with terminal.bar("reacting", "triggers") as advance:
                reactions = await memory.react(space, progress=advance)
            if space is not None and not reactions:
                await unknown_names.refuse_unknown(memory, {"space": space})
            return reactions, () if reactions else tuple(await memory.pending(space))

    async def follow_triggers() -> None:
        await terminal.until_it_exists(home)
        settings = await ready()
        async with _close_memory(open_memory(settings)) as memory:
            await _follow(memory, settings, space, as_json)

    if follow_due:
        terminal.run_until_stopped(follow_triggers, as_json=as_json)
        return
    reactions, left = terminal.run(work, as_json=as_json)
    if as_json:
        terminal.print_json(reactions)
    elif not reactions:
        terminal.print_lines("no trigger was answered; due:" if left else "no trigger is due")
        for trigger in left:
            terminal.print_lines(trigger.format())
    for reaction in () if as_json else reactions:
        _print_reaction(reaction)
    raise typer.Exit(0 if reactions.ok else 1)


@asynccontextmanager
async def _close_memory(memory: Memory) -> AsyncIterator[Memory]:
    """A memory without background reactors, because the command itself answers. It is closed at the end."""
    try:
        yield memory
    finally:
        await memory.close()


async def _follow(memory: Memory, settings: Settings, space: str | None, as_json: bool) -> None:
    """Answer what falls due, and print new answers from the ledger, until cancelled or until a permanent error."""
    from recallog.reactors.model_settings import named_model  # imports the HTTP client

    begins = dict(enumerate(await memory.admin.ledger_ends()))
    where = "all spaces" if space is None else space
    url = named_model(settings, "reflect")
    by = "offline" if url is None else f"with {url.partition('#')[2]}"
    terminal.note(f"answering due reflections in {where}, {by}; Ctrl-C ends the command")
    await _until_first_ends(_show_answers(memory, begins, space, as_json), memory.keep_reacting(space, _ReportErrors()))


async def _until_first_ends(*works: Coroutine[Any, Any, None]) -> None:
    """Run all coroutines until the first one ends, then cancel the others."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        await cancel_all(*tasks)


class _ReportErrors:
    """Prints an error that a retry may solve, once, and returns the seconds until the retry. Raises any other error."""

    def __init__(self) -> None:
        self._printed = ""

    def __call__(self, error: RecallogError) -> float:
        if not error.retryable:
            raise error
        problem = "another process is reacting" if isinstance(error, LockTimeout) else str(error)
        if problem != self._printed:
            terminal.note(f"{problem}; retrying")
            self._printed = problem
        return POLL_SECONDS if isinstance(error, LockTimeout) else RETRY_SECONDS


async def _show_answers(memory: Memory, begins: Mapping[int, int], space: str | None, as_json: bool) -> None:
    async for batch in follow(memory, begins, space):
        for entry in entries_of(batch):
            reaction = Reaction.of(entry.event, entry.position) if entry.event is not None else None
            if reaction is not None and as_json:
                terminal.print_json(reaction.model_dump(mode="json"))
            elif reaction is not None:
                _print_reaction(reaction)


def _print_reaction(reaction: Reaction) -> None:
    console.print_styled(
        (f"{reaction.position}  {reaction.space}  ", "dim"),
        (reaction.agent, "bold"),
        (f"  {reaction.kind}  ", "dim"),
        (indent_continuation(reaction.text), "red" if reaction.kind in triggers.all_failures() else "magenta"),
    )
    print_based_on(reaction.based_on)
