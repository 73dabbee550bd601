"""The server process of the HTTP door: uvicorn, extended to end event streams before it waits for connections."""

import asyncio
import signal
import socket
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import asynccontextmanager
from ipaddress import ip_address
from types import FrameType

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from recallog import Memory
from recallog_projections.concurrency import cancel_all
from recallog_schemas.errors import SettingsError, StorageUnavailable
from recallog_service import logs
from recallog_service.access import Access
from recallog_service.http.app import Application, Mounted, Pages
from recallog_service.http.naming import LOOPBACK
from recallog_service.http.transport import ABORT, WAITS
from recallog_streams.tracing import Tracing

CONNECTIONS_MAX = 2_000
"""Maximum number of connections. Further requests are answered with 503 at once."""
KEYS_SECONDS = 1.0
"""Seconds between attempts to read the keys while their store cannot be reached."""
SHUTDOWN_SECONDS = 10
"""Seconds that requests may take to end when the server stops."""


IDLE_SECONDS = 10.0
"""Seconds. A connection without a request to answer that reads nothing of a response is closed after once to twice this
time."""


class ClientConnection(H11Protocol):
    """A connection that the application can abort, and that is closed if its client is idle.

    Otherwise clients without a key could hold all connections forever: by sending no request, by sending one byte by
    byte, by sending a body that nobody reads, or by not reading the response.
    """

    _look: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, ABORT: transport.abort}
        self._watch(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._look.cancel()
        super().connection_lost(exc)

    def _watch(self, before: object) -> None:
        """Check periodically whether the connection has made progress since `before`."""
        is_idle = self.cycle is None or self.cycle.response_complete
        now = (self.cycle, self.transport.get_write_buffer_size()) if is_idle else None
        if now is not None and now == before:
            self.transport.abort()
        else:
            self._look = self.loop.call_later(IDLE_SECONDS, self._watch, now)


class Server(uvicorn.Server):
    """A server of one application. SIGTERM and Ctrl-C stop it: streams at once, requests within seconds."""

    def __init__(self, app: Application, host: str, port: int) -> None:
        """Port 0 means any free port; `port` is the actual one once the server has started."""
        super().__init__(
            uvicorn.Config(
                app,
                http=ClientConnection,
                host=host,
                port=port,
                access_log=False,
                proxy_headers=False,
                log_config=None,
                lifespan="on",
                limit_concurrency=CONNECTIONS_MAX,
                server_header=False,
                timeout_graceful_shutdown=SHUTDOWN_SECONDS,
                ws="none",
            )
        )
        self._application = app
        self.announce: Callable[[str], None] = lambda url: None
        """Called with the URL of the server once it accepts connections."""
        self.is_interrupted = False
        """Whether Ctrl-C has ended it."""

    @property
    def port(self) -> int:
        """The port on which the server listens."""
        number: int = self.servers[0].sockets[0].getsockname()[1]
        return number

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and announce the URL."""
        await super().startup(sockets)
        if self.started:
            host = f"[{self.config.host}]" if ":" in self.config.host else self.config.host
            self.announce(f"http://{host}:{self.port}/")

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End gracefully; a second Ctrl-C does not wait.

        uvicorn would raise the signal again, which would end the process before the memory is closed.
        """
        is_ctrl_c = sig == signal.SIGINT
        self.force_exit = self.should_exit and is_ctrl_c
        self.should_exit, self.is_interrupted = True, self.is_interrupted or is_ctrl_c

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, which do not end by themselves, then wait for requests."""
        await self._application.close()
        await super().shutdown(sockets)


@asynccontextmanager
async def server_of(
    memory: Memory,
    access: Access,
    host: str,
    port: int,
    mounted: Collection[Mounted] = (),
    pages: Pages | None = None,
    tracing: Tracing | None = None,
) -> AsyncGenerator[Server]:
    """A server of a memory; run it with `serve`.

    If the store of the keys cannot be reached, the server waits for it, and meanwhile answers only its probes.

    Raises `SettingsError`, also at the end of the block, if callers need no key and clients on other machines could
    reach the server.
    """
    try:
        try:
            hosts = await _hosts(access, host)
        except StorageUnavailable as error:
            logs.event(f"{WAITS}: {error}")
            hosts = None
        app = Application(memory, access, hosts=hosts, mounted=mounted, pages=pages, tracing=tracing)
        server = Server(app, host, port)
        waiting = None if hosts is not None else asyncio.create_task(_wait_for_keys(access, host, app, server))
        try:
            yield server
            if waiting is not None and waiting.done():
                waiting.result()
        finally:
            if waiting is not None:
                await cancel_all(waiting)
    finally:
        await access.close()


async def _hosts(access: Access, host: str) -> Collection[str]:
    """The names under which the server answers; empty: any name. Raises `StorageUnavailable`."""
    is_open = await access.is_open()
    if is_open and not is_loopback(host):
        raise SettingsError(
            f"without keys the server listens on this machine only, not on {host}; make a key first: "
            "recallog keys create NAME --space SPACE --agent AGENT"
        )
    if is_open:
        logs.event("no keys: every program on this machine may do everything, until recallog keys create makes one")
    return LOOPBACK if is_open else ()


async def _wait_for_keys(access: Access, host: str, app: Application, server: Server) -> None:
    """Let the server answer once its keys can be read. Any other error stops it."""
    while True:
        try:
            app.admit(await _hosts(access, host))
        except StorageUnavailable:
            await asyncio.sleep(KEYS_SECONDS)
        except Exception:
            server.should_exit = True
            raise
        else:
            logs.event("the keys can be read now; the server answers requests")
            return


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
