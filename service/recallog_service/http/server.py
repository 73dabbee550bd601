"""The server process of the HTTP door: uvicorn, which ends event streams before it waits for connections."""

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
from recallog_schemas.errors import SettingsError, StorageUnavailable
from recallog_service import logs
from recallog_service.access import Access
from recallog_service.http.app import Application, Mounted, Pages
from recallog_service.http.naming import LOOPBACK
from recallog_service.http.transport import ABORT, WAITS
from recallog_streams.concurrency import cancel_all
from recallog_streams.tracing import Tracing

CONNECTIONS_MAX = 2_000
"""More are answered 503 at once."""
KEYS_SECONDS = 1.0
"""How often a server that waits for the store of its keys tries to read them."""
SHUTDOWN_SECONDS = 10
"""How long requests may take to end when the server is told to stop."""


IDLE_SECONDS = 10.0
"""After one to two times as long a connection is ended that has no request to answer and takes nothing of an answer."""


class ClientConnection(H11Protocol):
    """A connection that the application can end at once, and that ends if its client does nothing useful.

    Without the latter, clients without a key could hold all connections for ever: with no request at all, with one
    that comes byte by byte, with a body that nobody waits for, or with an answer that they do not read.
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
        """Look again and again whether the connection has moved on; `before` is how it was."""
        is_idle = self.cycle is None or self.cycle.response_complete
        now = (self.cycle, self.transport.get_write_buffer_size()) if is_idle else None
        if now is not None and now == before:
            self.transport.abort()
        else:
            self._look = self.loop.call_later(IDLE_SECONDS, self._watch, now)


class Server(uvicorn.Server):
    """A server of one application. SIGTERM and Ctrl-C end it: streams at once, requests within some seconds."""

    def __init__(self, app: Application, host: str, port: int) -> None:
        """Port 0 is any free one; `port` says which, once the server has started."""
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
        """Called with the URL of the server once it can be reached."""
        self.is_interrupted = False
        """Whether Ctrl-C has ended it."""

    @property
    def port(self) -> int:
        """The port on which the server listens."""
        number: int = self.servers[0].sockets[0].getsockname()[1]
        return number

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say where."""
        await super().startup(sockets)
        if self.started:
            host = f"[{self.config.host}]" if ":" in self.config.host else self.config.host
            self.announce(f"http://{host}:{self.port}/")

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End gracefully; a second Ctrl-C does not wait.

        uvicorn would raise the signal again, which ends the process before the memory is closed.
        """
        is_ctrl_c = sig == signal.SIGINT
        self.force_exit = self.should_exit and is_ctrl_c
        self.should_exit, self.is_interrupted = True, self.is_interrupted or is_ctrl_c

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End streams, which would never end by themselves, then wait for requests."""
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

    If the store of the keys cannot be reached, the server waits for it: until then it answers its probes alone.

    Raises `SettingsError`, also when the block ends, where callers need no key and others than programs of this machine
    could be callers.
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
    """The names under which the server answers; all, if it is empty. Raises `StorageUnavailable`."""
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
    """Let the server answer as soon as its keys can be read. What is wrong then ends it."""
    while True:
        try:
            app.admit(await _hosts(access, host))
        except StorageUnavailable:
            await asyncio.sleep(KEYS_SECONDS)
        except Exception:
            server.should_exit = True
            raise
        else:
            logs.event("the keys can be read: the server answers")
            return


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
