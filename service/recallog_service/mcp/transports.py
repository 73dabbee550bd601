"""The transports of MCP: standard input and output, and Streamable HTTP within the application of another door."""

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, cast

from mcp.server import ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.exceptions import HTTPException

from recallog import Memory
from recallog_schemas.errors import UnknownOutcome
from recallog_service.access import CALLER, Caller, Grant, Guarded
from recallog_service.mcp import standard_input
from recallog_service.mcp.server import Holder, server_of

if TYPE_CHECKING:
    from anyio import AsyncFile
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

ANSWER_SECONDS = 60.0
"""How long a request over HTTP may take, its body included."""


async def serve_stdio(memory: Memory, grant: Grant, space: str, agent: str) -> None:
    """Serve one client on standard input and output, until it closes them or ends."""
    holder = Holder(Guarded(memory, grant), space, agent)
    server = server_of(type(memory), lambda context: holder)
    # The SDK's own reader waits for a line even after a signal to end.
    received = cast("AsyncFile[str]", standard_input.lines())
    try:
        async with stdio_server(received) as (receiving, sending):
            await server.run(receiving, sending, server.create_initialization_options())
    except* BrokenPipeError:
        pass  # the client has ended


class HttpTransport:
    """An ASGI application for one path of another one, which enters `lifespan`, and puts the caller of each request
    into its scope (`CALLER`).

    The other one checks where requests come from (`Host` and `Origin`). Each request is complete in itself: any process
    can answer it, and no session outlives a key. The key names the space and the agent; where it allows several, the
    address does: `/mcp?space=acme/shop&agent=baker`.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._sessions = StreamableHTTPSessionManager(
            server_of(type(memory), self._holder), json_response=True, stateless=True
        )

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """What has to be entered before the first request, and exited after the last one; once."""
        return self._sessions.run()

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer a request. Raises `UnknownOutcome` if that takes too long."""
        if scope["method"] != "POST":  # there is no stream to open, and no session to end
            raise HTTPException(405, headers={"Allow": "POST"})
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._sessions.handle_request(scope, receive, send)
        except TimeoutError:
            raise UnknownOutcome(f"no answer within {ANSWER_SECONDS:g} seconds: it may be written") from None

    def _holder(self, context: ServerRequestContext[Any, Any]) -> Holder:
        request = cast("Request", context.request)
        caller: Caller = request.scope[CALLER]
        named, grant = request.query_params, caller.grant
        fixed_agent = grant.agent if grant.is_of_one_agent else None
        return Holder(
            Guarded(self._memory, grant), named.get("space", grant.only_space), named.get("agent", fixed_agent)
        )
