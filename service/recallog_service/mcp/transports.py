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
"""Time limit in seconds of a request over HTTP, including its body."""


async def serve_stdio(memory: Memory, grant: Grant, space: str, agent: str) -> None:
    """Serve one client on standard input and output, until the client closes them or ends."""
    holder = Holder(Guarded(memory, grant), space, agent)
    server = server_of(type(memory), lambda context: holder)
    # The SDK's own reader keeps waiting for a line after a termination signal.
    received = cast("AsyncFile[str]", standard_input.lines())
    try:
        async with stdio_server(received) as (receiving, sending):
            await server.run(receiving, sending, server.create_initialization_options())
    except* BrokenPipeError:
        pass  # the client has ended


class HttpTransport:
    """An ASGI application for one path of another application, which enters `lifespan` and puts the caller of each
    request into its scope (`CALLER`).

    The outer application checks `Host` and `Origin`. Requests are stateless: any process can answer them, and no
    session outlives a key. The key determines the space and the agent; if it allows several, the URL does:
    `/mcp?space=acme/shop&agent=baker`.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._sessions = StreamableHTTPSessionManager(
            server_of(type(memory), self._holder), json_response=True, stateless=True
        )

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """A context to enter once before the first request, and to exit after the last one."""
        return self._sessions.run()

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer a request. Raises `UnknownOutcome` if that takes too long."""
        if scope["method"] != "POST":  # the transport is stateless: it has no stream to open and no session to end
            raise HTTPException(405, headers={"Allow": "POST"})
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._sessions.handle_request(scope, receive, send)
        except TimeoutError:
            raise UnknownOutcome(f"no answer within {ANSWER_SECONDS:g} seconds: the write may have happened") from None

    def _holder(self, context: ServerRequestContext[Any, Any]) -> Holder:
        request = cast("Request", context.request)
        caller: Caller = request.scope[CALLER]
        named, grant = request.query_params, caller.grant
        fixed_agent = grant.agent if grant.is_of_one_agent else None
        return Holder(
            Guarded(self._memory, grant), named.get("space", grant.only_space), named.get("agent", fixed_agent)
        )
