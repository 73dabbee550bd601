"""The composition of the HTTP door: an ASGI application over a memory, with all its routes."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as Endpoint
from starlette.types import ASGIApp, Receive, Scope, Send

from recallog import Memory
from recallog.queries.status import NotReady
from recallog_schemas.errors import RecallogError, StorageUnavailable
from recallog_service.access import CALLER, Access, Verb
from recallog_service.http import derived, documents, metrics, requests
from recallog_service.http.disclosure import Disclosure
from recallog_service.http.door import Door, Limits
from recallog_service.http.events import EventRoutes
from recallog_service.http.jobs import Jobs
from recallog_service.http.naming import Names
from recallog_service.http.routing import Routes
from recallog_service.http.tailing import Tails
from recallog_service.http.transport import WAITS, Transport
from recallog_streams.tracing import Tracing

READY_SECONDS = 2.0
"""Seconds that `/readyz` waits for the ledger and the views."""

Pages = Callable[[Door, Jobs], Sequence[Endpoint]]
"""Makes the endpoints of pages for people."""


@dataclass(frozen=True)
class Mounted:
    """Another application in the same process, such as MCP, at one path. The scope of its requests has the caller, a
    `Caller`, under the name `CALLER`."""

    path: str
    app: ASGIApp
    lifespan: Callable[[], AbstractAsyncContextManager[Any]] | None = field(default=None)
    """Its lifespan context, if it needs to be started and stopped."""


class Application:
    """The HTTP door of one memory: an ASGI application.

    `close` ends streams and jobs, but leaves the memory open. A server calls it before it waits for its connections.
    """

    def __init__(
        self,
        memory: Memory,
        access: Access,
        *,
        limits: Limits | None = None,
        hosts: Collection[str] | None = (),
        mounted: Collection[Mounted] = (),
        pages: Pages | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        """`hosts` are the names under which the server answers; empty: any name; None: not known yet (see `admit`).
        `pages` makes the endpoints of a console. With `tracing`, spans join the traces of clients."""
        self._door = Door(memory, access, limits or Limits())
        self._tails = Tails(memory)
        self._jobs = Jobs(self._door)
        self._metrics = metrics.ServerMetrics()
        self._mounted = mounted
        routes = Routes(
            [
                *EventRoutes(self._door, self._tails).endpoints(),
                *derived.endpoints(self._door, self._jobs),
                *self._jobs.endpoints(),
                *Disclosure(self._door).endpoints(),
                Endpoint("/healthz", _alive, methods=["GET"]),
                Endpoint("/readyz", self._ready, methods=["GET"]),
                Endpoint("/metrics", self._expose, methods=["GET"]),
                Endpoint("/openapi.json", _shows(documents.openapi), methods=["GET"]),
                Endpoint("/asyncapi.json", _shows(documents.asyncapi), methods=["GET"]),
                *(Endpoint(each.path, _Admitted(self._door, each.app)) for each in mounted),
                *(pages(self._door, self._jobs) if pages is not None else ()),
            ],
            redirect_slashes=False,
            lifespan=self._lifespan,
        )
        self._app = Transport(routes, self._metrics, self._door.limits.body_bytes, hosts, tracing)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    def admit(self, hosts: Collection[str]) -> None:
        """Answer requests from now on, under these names. Before, only `/healthz` and `/readyz` are answered."""
        self._app.hosts = hosts

    async def close(self) -> None:
        """End all streams, each with its reason, and cancel the jobs."""
        self._tails.close()
        await self._jobs.close()

    @asynccontextmanager
    async def _lifespan(self, _: object) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            for each in self._mounted:
                if each.lifespan is not None:
                    await stack.enter_async_context(each.lifespan())
            try:
                yield
            finally:
                await self.close()

    async def _ready(self, request: Request) -> Response:
        """200 if the memory can answer all questions. It needs no key and reads little, because probes are frequent."""
        if self._app.hosts is None:
            raise StorageUnavailable(WAITS)
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._door.memory.admin.check_ready()
        except NotReady as error:
            raise StorageUnavailable(str(error)) from None
        except TimeoutError:
            raise StorageUnavailable(f"the memory has not answered within {READY_SECONDS:g} seconds") from None
        except RecallogError as error:
            # The message may name hosts and folders, which unauthenticated clients must not see.
            raise StorageUnavailable(f"the memory cannot answer now: {type(error).__name__}") from None
        return Response(b'{"status":"ready"}', media_type=requests.JSON)

    async def _expose(self, request: Request) -> Response:
        client = await self._door.client(request)
        client.check(Verb.OPERATE)
        content = self._metrics.expose(self._tails.streams, self._tails.dropped, self._jobs.running)
        return Response(content, headers={"Content-Type": metrics.CONTENT_TYPE})


class _Admitted:
    """Authenticates the callers of a mounted application. Browsers reach it only from pages of the server's own origin,
    because its protocol has requests that any page could send."""

    def __init__(self, door: Door, app: ASGIApp) -> None:
        self._door = door
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        Names.of(scope["headers"]).check_same_origin()
        client = await self._door.client(Request(scope))
        await self._app({**scope, CALLER: client.caller}, receive, send)


async def _alive(request: Request) -> Response:
    return Response(b'{"status":"alive"}', media_type=requests.JSON)


def _shows(document: Callable[[], Mapping[str, Any]]) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint that shows a document. The document is built on the first request, in a thread: that takes a second
    or more, and other requests are answered meanwhile."""
    making, made = asyncio.Lock(), list[bytes]()

    async def show(request: Request) -> Response:
        async with making:
            if not made:
                made.append(await asyncio.to_thread(lambda: msgspec.json.encode(document())))
        return derived.add_etag(request, made[0])

    return show
