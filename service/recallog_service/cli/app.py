"""All commands under one name."""

import logging

import typer

from recallog_service.cli import (
    activity,
    consumers,
    copying,
    dead_letters,
    evaluating,
    following,
    operators,
    producers,
    reactors,
    recalling,
    schema,
    story,
    watching,
    workers,
)

app = typer.Typer(
    name="recallog",
    help="Event-sourced memory for AI agents: one durable ledger, every memory a rebuildable view of it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

for commands in (
    story,
    producers,
    consumers,
    recalling,
    activity,
    reactors,
    watching,
    following,
    operators,
    copying,
    workers,
):
    commands.register(app)
app.add_typer(dead_letters.app, name="dead-letters")
app.add_typer(evaluating.app, name="eval")
app.add_typer(schema.app, name="schema")


def main() -> None:
    """Entry point of the `recallog` command. Exit codes: 0 done, 1 data or check failed, 2 wrong use, 3 unreachable."""
    # A client's log of each attempt to reconnect says nothing that the error at the end does not.
    logging.getLogger("aiokafka").addHandler(logging.NullHandler())
    app()
