"""`serve`: the server of a memory for programs in any language, over HTTP."""

from contextlib import suppress
from typing import Annotated, Literal

import typer

from recallog import Memory
from recallog_schemas import extras
from recallog_schemas.errors import StorageUnavailable
from recallog_service.cli import terminal

DEFAULT_PORT = 8765


def register(app: typer.Typer) -> None:
    app.command("serve", epilog="Example: recallog serve --port 8765")(serve)


def serve(
    host: Annotated[
        str, typer.Option(envvar="RECALLOG_SERVER_HOST", help="Address to listen on; without keys a loopback one.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(envvar="RECALLOG_SERVER_PORT", min=0, max=65535, help="Port to listen on; 0: any free one.")
    ] = DEFAULT_PORT,
    react: Annotated[
        bool,
        typer.Option("--react", help="Also answer triggers that fall due, as `recallog react` does. For a folder."),
    ] = False,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], typer.Option(help="The log has lines of this level and above.")
    ] = "info",
    projections: terminal.Projections = None,
    home: terminal.Home = None,
    index: terminal.Index = None,
) -> None:
    """Serve a memory over HTTP until SIGTERM: all operations, event streams, and MCP if it is installed.

    The routes are in /openapi.json and /asyncapi.json, /healthz and /readyz
    say how the server is, and /metrics has figures for Prometheus. Without
    keys everybody who can reach the port may do everything, so the server
    then listens on this machine alone; `recallog keys create` makes keys. Encrypt
    connections from other machines with a proxy in front.
    """
    try:
        from recallog_service import logs
        from recallog_service.access import Access
        from recallog_service.console.app import endpoints
        from recallog_service.http import mounting
        from recallog_service.http.server import server_of
        from recallog_service.telemetry import exported
    except ModuleNotFoundError as error:
        terminal.fail(extras.missing(error, "server"))
    logs.to_stderr(log_level)

    async def is_interrupted() -> bool:
        settings = terminal.settings(home, index=index, projections=terminal.listed(projections))
        access = Access.of(settings)
        with exported(settings, "recallog-server"):
            async with Memory.open(settings, reactors=react) as memory:
                mounted, tracing = mounting.mounted(memory), settings.tracing()
                async with server_of(memory, access, host, port, mounted, endpoints, tracing) as server:
                    with suppress(SystemExit):  # what uvicorn raises if it cannot listen; its log says why
                        await server.serve()
                    if not server.started:
                        message = f"the server cannot listen on {host}:{port}; choose another --host or --port"
                        raise StorageUnavailable(message)
                    return server.is_interrupted

    if terminal.run(is_interrupted):
        raise typer.Exit(130)
