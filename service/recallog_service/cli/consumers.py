"""Commands that ask what agents remember."""

from typing import Annotated

import typer

from recallog import Position
from recallog_schemas.views import EpisodicView, TimelinePage, lines
from recallog_service.cli import terminal
from recallog_service.cli.terminal import At, Home, Json

Space = Annotated[str, typer.Argument(help="Space.")]
Agent = Annotated[str, typer.Argument(help="Whose memory.")]


def register(app: typer.Typer) -> None:
    app.command("episodic", epilog="Example: recallog episodic village baker --as-of 0:120")(episodic_command)
    app.command("timeline", epilog="Example: recallog timeline village baker --kind agent.thought --limit 20")(
        timeline_command
    )
    app.command("spaces", epilog="Example: recallog spaces --json")(spaces_command)
    app.command("agents", epilog="Example: recallog agents village")(agents_command)


def episodic_command(
    space: Space,
    agent: Agent,
    window: Annotated[int | None, typer.Option(min=1, help="How many events; default: the agent's, else 8.")] = None,
    as_of: At = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """What an agent remembers of late: its own events, those addressed to it, and what all share."""

    async def work() -> EpisodicView:
        with terminal.opened(home) as (memory, _):
            async with memory:
                return await memory.episodic(space, agent, window=window, as_of=terminal.as_of(as_of))

    view = terminal.run(work, as_json=as_json)
    if as_json:
        terminal.print_json(view)
    else:
        terminal.print_lines(view.format())


def timeline_command(
    space: Space,
    agent: Agent,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Events on the page.")] = 50,
    before: Annotated[str | None, typer.Option(help="Position that a page before this one ended at.")] = None,
    session: Annotated[str | None, typer.Option(help="Only this session.")] = None,
    kind: Annotated[list[str] | None, typer.Option(help="Only this kind; repeatable.")] = None,
    since: Annotated[str | None, typer.Option(help="Only from this time on.")] = None,
    until: Annotated[str | None, typer.Option(help="Only before this time.")] = None,
    as_of: At = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """All that an agent may see, in order, a page at a time from the newest to older ones."""

    async def work() -> TimelinePage:
        with terminal.opened(home) as (memory, _):
            async with memory:
                return await memory.timeline(
                    space,
                    agent,
                    limit=limit,
                    before=Position.parse(before) if before else None,
                    session=session,
                    kinds=kind or None,
                    since=terminal.moment(since) if since else None,
                    until=terminal.moment(until) if until else None,
                    as_of=terminal.as_of(as_of),
                )

    page = terminal.run(work, as_json=as_json)
    if as_json:
        terminal.print_json(page)
        return
    terminal.print_lines(lines(page.items) or "(nothing)")
    if page.older is not None:
        terminal.err.print(f"[dim]older ones: --before {page.older}[/]")
    if page.kept_from is not None:
        terminal.err.print(f"[dim]kept from {page.kept_from} on; what is older is in the ledger: recallog tail[/]")


def spaces_command(home: Home = None, as_json: Json = False) -> None:
    """All spaces with their counts."""

    async def work() -> None:
        with terminal.opened(home) as (memory, _):
            async with memory:
                spaces = await memory.spaces()
        if as_json:
            terminal.print_json(spaces)
        else:
            rows = [(s.space, f"{s.events:,}", s.agents, s.sessions, s.first, s.last) for s in spaces]
            terminal.print_table(("space", "events", "agents", "sessions", "first", "last"), rows)

    terminal.run(work, as_json=as_json)


def agents_command(space: Space, home: Home = None, as_json: Json = False) -> None:
    """Who acted in a space."""

    async def work() -> None:
        with terminal.opened(home) as (memory, _):
            async with memory:
                agents = await memory.agents(space)
        if as_json:
            terminal.print_json(agents)
        else:
            terminal.print_table(
                ("agent", "events", "first", "last"), [(a.name, f"{a.events:,}", a.first, a.last) for a in agents]
            )

    terminal.run(work, as_json=as_json)
