"""`spaces` and `agents`: list the spaces of a memory and the agents of a space."""

import typer

from recallog_service.cli import console, terminal
from recallog_service.cli.terminal import Home, Json, Space


def register(app: typer.Typer) -> None:
    app.command("spaces", epilog="Example: recallog spaces --json")(spaces_command)
    app.command("agents", epilog="Example: recallog agents village")(agents_command)


def spaces_command(home: Home = None, as_json: Json = False) -> None:
    """List all spaces with their counts."""
    spaces = terminal.ask(lambda memory: memory.spaces(), home, as_json=as_json)
    if as_json:
        terminal.print_json(spaces)
    else:
        rows = [(s.space, f"{s.events:,}", s.agents, s.sessions, s.first, s.last) for s in spaces]
        console.print_table(("space", "events", "agents", "sessions", "first", "last"), rows)


def agents_command(space: Space, home: Home = None, as_json: Json = False) -> None:
    """List the agents of a space with their counts."""
    agents = terminal.ask(lambda memory: memory.agents(space), home, as_json=as_json)
    if as_json:
        terminal.print_json(agents)
    else:
        rows = [(a.name, f"{a.events:,}", a.first, a.last) for a in agents]
        console.print_table(("agent", "events", "first", "last"), rows)
