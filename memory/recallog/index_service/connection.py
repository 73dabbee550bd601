"""One connection of a client to the process that serves indexes."""

import asyncio
import hmac
import logging
from contextlib import suppress
from types import TracebackType
from typing import Self

import msgspec

from recallog.index import messages

HANDSHAKE_SECONDS = 10.0
"""How long a client may take to send its call."""

_log = logging.getLogger("recallog.index")


class OtherVersion(Exception):
    """The client has another version of the code."""


class Connection:
    """One connection. It ends quietly if the client disconnects, or does not use this protocol."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()
        if isinstance(error, EOFError | OSError | msgspec.MsgspecError):
            _log.info("a connection ended early: %r", error)
            return True
        return isinstance(error, asyncio.CancelledError)  # the process ends, and the connection with it

    async def receive_call(self, token: str) -> messages.Call | None:
        """The call of a client; None of one without the token. Raises `OtherVersion`."""
        async with asyncio.timeout(HANDSHAKE_SECONDS):
            shaken = messages.handshake(await self._receive(messages.HANDSHAKE_BYTES_MAX))
            if not hmac.compare_digest(shaken.token.encode(), token.encode()):
                return None
            if shaken.version != messages.Handshake("").version:
                raise OtherVersion
            return await self.receive()

    async def receive(self) -> messages.Call:
        """The call of a client."""
        return messages.call(await self._receive(messages.MESSAGE_BYTES_MAX))

    def send(self, frame: messages.Frame) -> None:
        """Send a frame, without waiting for the client."""
        self._writer.write(messages.frame_message(frame))

    async def end(self) -> None:
        """Wait until the client disconnects: it sends nothing after its call."""
        with suppress(OSError):
            await self._reader.read(1)

    async def drain(self) -> None:
        """Wait until the client has received most of what was sent."""
        await self._writer.drain()

    async def _receive(self, bytes_max: int) -> bytes:
        """The next message. Raises `ConnectionError` if it is longer than `bytes_max`."""
        length = int.from_bytes(await self._reader.readexactly(messages.LENGTH_BYTES), "big")
        if length > bytes_max:
            raise ConnectionError(f"a message of {length:,} bytes; the limit is {bytes_max:,}")
        return await self._reader.readexactly(length)
