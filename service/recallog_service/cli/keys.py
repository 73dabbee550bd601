"""`keys`: makes, lists and revokes the keys of programs that use a memory over HTTP or MCP."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from pydantic import ValidationError

from recallog_schemas.errors import InvalidArgument
from recallog_schemas.validation import first_problem
from recallog_service.access import keys, stores
from recallog_service.access.grants import ANY, Grant, Verb
from recallog_service.access.keys import KeyStore
from recallog_service.cli import panels, terminal
from recallog_service.cli.terminal import Home, Json

Result = TypeVar("Result")

_group = typer.Typer(help="Make, list and revoke the keys of programs.", no_args_is_help=True)
_DEFAULT_VERBS = [Verb.READ, Verb.PUBLISH, Verb.FORGET]


def register(app: typer.Typer) -> None:
    app.add_typer(_group, name="keys", rich_help_panel=panels.SERVE)


@_group.command("create", epilog="Example: recallog keys create shop-bot --space 'acme/*' --agent baker")
def create_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the key is for, as free text.")],
    space: Annotated[
        list[str],
        typer.Option(help="A space, 'acme/*' for every space under acme/, or '*' for all spaces. Repeatable."),
    ],
    agent: Annotated[str, typer.Option(help="The agent that the holder acts as, or '*' for any agent.")],
    verb: Annotated[
        list[Verb] | None,
        typer.Option(help="What the holder may do. Repeatable.", show_default="read, publish and forget"),
    ] = None,
    days: Annotated[
        int | None, typer.Option(min=1, max=36_500, help="Days until it expires.", show_default="never")
    ] = (None),
    calls_per_minute: Annotated[
        int | None, typer.Option(min=1, help="Calls that the holder may make per minute.", show_default="no limit")
    ] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Create a key and print it. The key is shown only once: only its hash is stored.

    The holder sees what the agent may see in these spaces, and publishes as this
    agent. With --agent '*' it may act as any agent, and query spaces as a whole.
    The verb tail shows events that are private to agents; operate is for
    operators. The first key turns off unauthenticated access.
    """
    expires = None if days is None else datetime.now(UTC) + timedelta(days=days)

    async def create_key(store: KeyStore) -> tuple[str, keys.Key]:
        grant = _grant(space, agent, verb or _DEFAULT_VERBS)
        text, key = keys.make(name, grant, expires=expires, calls_per_minute=calls_per_minute)
        await store.put(key)
        return text, key

    if not name.strip():
        terminal.fail(
            InvalidArgument("name: should say what the key is for", path="name", rule="blank"), as_json=as_json
        )
    text, key = _run(create_key, home, as_json)
    if as_json:
        terminal.print_json({"key": text, **_show_key(key)})
    else:
        terminal.print_exactly(text)
        terminal.note(f"{key.format()}\nthe key is shown this once")


@_group.command("list", epilog="Example: recallog keys list --json")
def list_command(home: Home = None, as_json: Json = False) -> None:
    """List all keys with what they allow, including revoked keys, oldest first."""

    async def list_stored(store: KeyStore) -> list[keys.Key]:
        return list(await store.all())

    found = _run(list_stored, home, as_json)
    if as_json:
        terminal.print_json({"items": [_show_key(key) for key in found]})
    else:
        _print(found)


@_group.command("revoke", epilog="Example: recallog keys revoke 5d41402abc4b2a76")
def revoke_command(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The id of the key, as `recallog keys list` shows it.")],
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Revoke a key. Running servers refuse it from then on."""

    async def revoke_key(store: KeyStore) -> keys.Key:
        return await store.revoke(id_)

    key = _run(revoke_key, home, as_json)
    if as_json:
        terminal.print_json(_show_key(key))
    else:
        terminal.print_lines(key.format())


def _print(found: Sequence[keys.Key]) -> None:
    if not found:
        terminal.print_lines("(nothing)")
        terminal.note("without keys recallog serve listens on this machine only; make one: recallog keys create")
        return
    from recallog_service.cli import console

    columns = ("id", "name", "spaces", "agent", "verbs", "calls per minute", "state")
    console.print_table(columns, [key.cells() for key in found])


def _run(work: Callable[[KeyStore], Awaitable[Result]], home: Path | None, as_json: bool) -> Result:
    async def whole() -> Result:
        store = stores.store_of(terminal.settings(home))
        try:
            return await work(store)
        finally:
            await store.close()

    return terminal.run(whole, as_json=as_json)


def _grant(spaces: list[str], agent: str, verbs: list[Verb]) -> Grant:
    try:
        return Grant(spaces=tuple(spaces), agent=agent, verbs=frozenset(verbs))
    except ValidationError as error:
        problem = first_problem(error)
        option = "--agent" if problem.path.startswith("agent") else "--space"
        others = f"{'' if option == '--agent' else 'a name that ends in /*, '}or '{ANY}'"
        message = f"{option}: {problem.message}; give a name, {others}"
        raise InvalidArgument(message, path=option, rule=problem.rule) from None


def _show_key(key: keys.Key) -> dict[str, object]:
    """The key without its hash."""
    return key.model_dump(mode="json", exclude={"sha256"}, exclude_none=True)
