"""`worker` and `indexer`: the processes that maintain the views and the index of a cluster."""

import asyncio
import logging
import signal
from typing import Annotated

import typer

from recallog import composition
from recallog.index.semantic_index import IndexInProcess
from recallog_schemas.errors import SettingsError
from recallog_service.cli import terminal
from recallog_streams.stop_signal import StopSignal


def register(app: typer.Typer) -> None:
    app.command("worker", epilog="Example: recallog worker --port 6066")(worker_command)
    app.command("indexer", epilog="Example: recallog indexer (with RECALLOG_INDEX=http://127.0.0.1:6333)")(
        indexer_command
    )


def worker_command(
    port: Annotated[
        int | None,
        typer.Option(envvar="RECALLOG_WORKER_PORT", help="Port of /health and /metrics.", show_default="6066"),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(envvar="RECALLOG_WORKER_HOST", help="Address on which they listen.", show_default="127.0.0.1"),
    ] = None,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
) -> None:
    """Maintain the views of a cluster until SIGTERM. Any number of workers share the partitions.

    Needs RECALLOG_LEDGER and RECALLOG_VIEWS. A worker may be killed at any moment:
    the others take over its partitions, and nothing is lost or counted twice.
    """
    try:
        import faust

        from recallog_service.worker import build
    except ModuleNotFoundError as error:
        message = f"{error.name} is not installed. Install it: pip install '.[cluster]' in a clone of Recallog"
        terminal.fail(SettingsError(message))

    async def built() -> faust.App:
        return build(terminal.settings(None, worker_port=port, worker_host=host))

    app = terminal.run(built)
    if log_level.lower() == "debug":
        logging.getLogger("aiokafka").setLevel(logging.DEBUG)
    faust.Worker(app, loglevel=log_level).execute_from_commandline()


def indexer_command() -> None:
    """Maintain the index of a cluster on a Qdrant server until SIGTERM. Any number of indexers share the partitions.

    Needs RECALLOG_LEDGER, RECALLOG_VIEWS and RECALLOG_INDEX. An index in a folder
    needs no indexer. An indexer may be killed at any moment: another one takes over
    and repeats its last batch.
    """

    async def work() -> None:
        stopping, loop = StopSignal(), asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopping.set)
        settings = terminal.settings(None)
        made = composition.compose(settings)
        try:
            if not isinstance(made.index, IndexInProcess) or not (settings.index or "").startswith("http"):
                raise SettingsError(
                    "an indexer maintains an index on a Qdrant server: set RECALLOG_INDEX=http://host:6333. An index "
                    "in a folder is maintained by a process that recall starts"
                )
            logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
            logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs each request
            await made.ledger.open()
            await made.index.indexer.run(stopping)
        finally:
            await made.close()

    terminal.run(work)
