"""`worker`: the process that maintains the views and the index of a cluster, and answers its triggers."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Annotated

import typer

from recallog import loading
from recallog_schemas import extras
from recallog_service.cli import panels, terminal
from recallog_service.telemetry import export_spans


def register(app: typer.Typer) -> None:
    app.command("worker", epilog="Example: recallog worker --port 6066", rich_help_panel=panels.SERVE)(worker_command)


def worker_command(
    port: Annotated[
        int | None,
        typer.Option(envvar="RECALLOG_WORKER_PORT", help="Port of /health and /metrics.", show_default="6066"),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(envvar="RECALLOG_WORKER_HOST", help="Address on which they listen.", show_default="127.0.0.1"),
    ] = None,
    only: Annotated[
        str,
        typer.Option(
            metavar="ROLES", help="Only these of views, index and reactors, separated by commas.", show_default="all"
        ),
    ] = "",
    reactors: Annotated[
        list[str] | None, typer.Option(metavar="MODULE:NAME", help="Custom reactors in Python. Repeatable.")
    ] = None,
    projections: terminal.Projections = None,
    log_level: terminal.LogLevel = "info",
) -> None:
    """Maintain the views of a cluster and answer its triggers until SIGTERM. Workers share the partitions.

    Needs RECALLOG_LEDGER and RECALLOG_VIEWS; with RECALLOG_INDEX it maintains
    the index too. A worker may be killed at any moment: the others take over its
    partitions, and nothing is lost, counted or answered twice.

    Triggers are answered as `react` does. With a model in RECALLOG_MODEL, events of
    the agents are sent to its host. MODULE:NAME is a class, a function without
    arguments, an object, or a list of these; all workers need the same projections.
    """
    from recallog_service import logs

    async def build() -> Callable[[], None]:
        with extras.import_extra("cluster"):
            from recallog_service import worker
        roles = [name.strip() for name in only.split(",") if name.strip()]
        loading.reactors(reactors or ())  # reports errors of the settings before the worker starts
        own = terminal.join_names(projections)
        settings = terminal.settings(None, worker_port=port, worker_host=host, projections=own)
        exporting.enter_context(export_spans(settings, "recallog-worker"))
        app = worker.build(settings, only=roles, reactors=lambda: loading.reactors(reactors or ()))
        return lambda: worker.run(app, log_level)

    logs.to_stderr(log_level)  # until the app configures the log
    with ExitStack() as exporting:
        terminal.run(build, as_log=True)()
