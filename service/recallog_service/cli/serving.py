"""`serve`: the server of a memory for programs in any language, over HTTP. `console`: its pages, in a browser."""

import os
import socket
import sys
import webbrowser
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Annotated, Any

import typer

from recallog import Memory
from recallog_schemas import extras
from recallog_schemas.errors import StorageUnavailable
from recallog_service.cli import panels, terminal

DEFAULT_PORT = 8765
LOOPBACK = "127.0.0.1"


def register(app: typer.Typer) -> None:
    app.command("serve", epilog="Example: recallog serve --port 8765", rich_help_panel=panels.SERVE)(serve)
    app.command("console", epilog="Example: recallog console --home ./memory", rich_help_panel=panels.SERVE)(console)


def serve(
    host: Annotated[
        str, typer.Option(envvar="RECALLOG_SERVER_HOST", help="Address to listen on; without keys, a loopback address.")
    ] = LOOPBACK,
    port: Annotated[
        int, typer.Option(envvar="RECALLOG_SERVER_PORT", min=0, max=65535, help="Port to listen on; 0: any free one.")
    ] = DEFAULT_PORT,
    react: Annotated[
        bool, typer.Option("--react", help="Also answer due triggers, as `recallog react` does. Only for a folder.")
    ] = False,
    log_level: terminal.LogLevel = "info",
    projections: terminal.Projections = None,
    home: terminal.Home = None,
    index: terminal.Index = None,
) -> None:
    """Serve a memory over HTTP until SIGTERM: all operations, event streams, the console, and MCP if it is installed.

    The console is at /. /openapi.json and /asyncapi.json describe the routes, /healthz
    and /readyz report the health of the server, and /metrics has figures for
    Prometheus. Without keys every client that reaches the port may do everything, so
    the server then listens on the loopback interface only; `recallog keys create`
    makes keys. For clients on other machines, use a proxy that terminates TLS.
    """
    from recallog_service import logs

    logs.to_stderr(log_level)
    options = {"home": home, "index": index, "projections": terminal.join_names(projections)}
    _run(options, host, port, lambda url: logs.event(f"the console: {url}"), react=react, as_log=True)


def console(
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port to listen on.", show_default=f"{DEFAULT_PORT}, else any free one"),
    ] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Print the address without opening a browser.")] = False,
    projections: terminal.Projections = None,
    home: terminal.Home = None,
    index: terminal.Index = None,
) -> None:
    """Open the console of a memory in a browser: what agents remember, why, and what needs attention.

    The command runs the server of `recallog serve` for this machine only, until
    Ctrl-C. If the memory has keys, the console asks for one.
    """
    from recallog_service import logs

    logs.to_stderr("error")

    def announce(url: str) -> None:
        terminal.print_lines(f"The console is at {url}", "bold")
        sys.stdout.flush()  # a program may wait for the address
        terminal.note("Ctrl-C ends it")
        if not no_open and _has_display():
            webbrowser.open(url)

    options = {"home": home, "index": index, "projections": terminal.join_names(projections)}
    _run(options, LOOPBACK, _free_port() if port is None else port, announce)


def _run(
    options: Mapping[str, Any],
    host: str,
    port: int,
    announce: Callable[[str], None],
    *,
    react: bool = False,
    as_log: bool = False,
) -> None:
    """Serve the memory until the process is stopped. Calls `announce` with the URL once the server accepts
    connections."""
    from recallog_service.telemetry import export_spans

    async def is_interrupted() -> bool:
        with extras.import_extra("server"):
            from recallog_service.access import Access
            from recallog_service.console.app import endpoints
            from recallog_service.http import mounting
            from recallog_service.http.server import server_of
        settings = terminal.settings(**options)
        access = Access.of(settings)
        with export_spans(settings, "recallog-server"):
            async with Memory.open(settings, reactors=react) as memory:
                mounted, tracing = mounting.list_mounted(memory), settings.tracing()
                async with server_of(memory, access, host, port, mounted, endpoints, tracing) as server:
                    server.announce = announce
                    with suppress(SystemExit):  # uvicorn raises this if it cannot listen; its log says why
                        await server.serve()
                    if not server.started:
                        message = f"the server cannot listen on {host}:{port}; choose another --host or --port"
                        raise StorageUnavailable(message)
                    return server.is_interrupted

    if terminal.run(is_interrupted, as_log=as_log):
        raise typer.Exit(130)


def _free_port() -> int:
    """The default port, or 0 (any free port) if another program uses it."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, DEFAULT_PORT))
        except OSError:
            return 0
    return DEFAULT_PORT


def _has_display() -> bool:
    """Whether a graphical display is available. Without one, a text browser would take over the terminal."""
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
