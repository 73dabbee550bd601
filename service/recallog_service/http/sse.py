"""Event streams over HTTP (`text/event-stream`): frames, and responses that end with a reason."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from enum import StrEnum

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from recallog_projections.concurrency import cancel_all
from recallog_service import logs

MEDIA_TYPE = "text/event-stream"
HEARTBEAT_SECONDS = 15.0
"""Seconds of silence after which a comment is sent, so that proxies keep the connection open."""
HEARTBEAT = b": heartbeat\n\n"
STALLED_SECONDS = 10.0
"""Seconds that a client may leave the buffer of its connection full before it is dropped."""


class End(StrEnum):
    """Why the server ends a stream."""

    SLOW = "slow"
    """The client was too slow: its backlog exceeded the limit."""
    STOPPING = "stopping"
    """The server stops."""
    UNAUTHORIZED = "unauthorized"
    """The key was revoked or has expired."""
    ERROR = "error"
    """An error occurred."""


def make_frame(data: bytes, *, event: str = "", last_id: str = "") -> bytes:
    """One event of a stream."""
    head = [f"id: {last_id}".encode()] if last_id else []
    if event:
        head.append(f"event: {event}".encode())
    return b"\n".join([*head, *(b"data: " + line for line in data.splitlines() or [b""])]) + b"\n\n"


def begun(start: object) -> bytes:
    """The event `begin`, with the position at which the stream begins: a client that reconnects before its first event
    uses it as `start`."""
    return make_frame(msgspec.json.encode({"start": str(start)}), event="begin")


def make_end(reason: End, **fields: object) -> bytes:
    """The event `end`, which says why the server ends a stream."""
    return make_frame(msgspec.json.encode({"reason": reason, **fields}), event="end")


class ClientStalled(Exception):
    """A client has not read for too long. The connection is aborted without a reason, because its buffer is full."""


class EventStream(Response):
    """A response that lasts until its frames end or the client disconnects.

    Each frame has its own time limit, so that a client that does not read is dropped. Frames are not buffered here: at
    most one waits.
    """

    media_type = MEDIA_TYPE

    def __init__(self, frames: AsyncGenerator[bytes], first: bytes = HEARTBEAT) -> None:
        """`first` is sent at once, so that the client learns that the stream is open."""
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._frames = frames
        self._first = first

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        if scope["method"] == "HEAD":
            await self._frames.aclose()
            await send({"type": "http.response.body"})
            return
        pump = asyncio.create_task(self._pump(send))
        leaving = asyncio.create_task(_until_left(receive))
        try:
            await asyncio.wait({pump, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancel_all(pump, leaving)
        if not pump.cancelled():
            pump.result()

    async def _pump(self, send: Send) -> None:
        async with aclosing(self._frames) as frames:
            await _send_frame(send, self._first)
            async for frame in frames:
                await _send_frame(send, frame)
        await _send_frame(send, b"", more=False)


async def _send_frame(send: Send, frame: bytes, *, more: bool = True) -> None:
    try:
        async with asyncio.timeout(STALLED_SECONDS):
            await send({"type": "http.response.body", "body": frame, "more_body": more})
    except TimeoutError:
        logs.event("a stream was dropped", reason="its client does not read")
        raise ClientStalled from None


async def _until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
