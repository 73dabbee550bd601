"""The command that keeps the views of a cluster."""

import logging
from typing import Annotated

import typer

from recallog_schemas.errors import SettingsError
from recallog_service.cli import terminal


def register(app: typer.Typer) -> None:
    app.command("worker", epilog="Example: recallog worker --port 6066")(worker_command)


def worker_command(
    port: Annotated[
        int | None, typer.Option(envvar="RECALLOG_WORKER_PORT", help="Of /health and /metrics.", show_default="6066")
    ] = None,
    host: Annotated[
        str | None, typer.Option(envvar="RECALLOG_WORKER_HOST", help="Where they listen.", show_default="127.0.0.1")
    ] = None,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
) -> None:
    """Keep the views of a cluster up to date, until SIGTERM. Any number of workers share the partitions.

    Needs RECALLOG_LEDGER and RECALLOG_VIEWS. A worker may be killed at any moment: the others take over, and nothing
    is lost or counted twice.
    """
    try:
        import faust

        from recallog_service.worker import build
    except ModuleNotFoundError as error:
        terminal.fail(SettingsError(f"{error.name} is not installed. Install it: pip install 'recallog[cluster]'"))

    async def built() -> faust.App:
        return build(terminal.settings(None, worker_port=port, worker_host=host))

    app = terminal.run(built)
    if log_level.lower() == "debug":
        logging.getLogger("aiokafka").setLevel(logging.DEBUG)
    faust.Worker(app, loglevel=log_level).execute_from_commandline()
