"""One connection of a client to the process that serves indexes."""

import asyncio
import logging
from contextlib import suppress
from types import TracebackType
from typing import Self

import msgspec

from recallog.index import messages

HANDSHAKE_SECONDS = 10.0
"""How long a client may take to send its handshake and its call."""

_log = logging.getLogger("recallog.index")


class Connection:
    """One connection. It ends without an error if the client disconnects, or does not use this protocol."""

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

    async def receive_handshake(self) -> messages.Handshake:
        """The first message."""
        async with asyncio.timeout(HANDSHAKE_SECONDS):
            return messages.handshake(await receive_message(self._reader, messages.HANDSHAKE_BYTES_MAX))

    async def receive_call(self) -> messages.Call:
        """The second and last message."""
        async with asyncio.timeout(HANDSHAKE_SECONDS):
            return messages.call(await receive_message(self._reader, messages.MESSAGE_BYTES_MAX))

    def send(self, frame: messages.Frame) -> None:
        """Send a frame, without waiting for the client."""
        self._writer.write(messages.frame_message(frame))

    async def wait_closed(self) -> None:
        """Wait until the client disconnects."""
        with suppress(OSError):
            await self._reader.read(1)

    async def drain(self) -> None:
        """Wait until the client has received most of what was sent."""
        await self._writer.drain()


async def receive_message(reader: asyncio.StreamReader, bytes_max: int) -> bytes:
    """The next message. Raises `ConnectionError` if it is longer than `bytes_max`."""
    length = int.from_bytes(await reader.readexactly(messages.LENGTH_BYTES), "big")
    if length > bytes_max:
        raise ConnectionError(f"a message of {length:,} bytes; the limit is {bytes_max:,}")
    return await reader.readexactly(length)
