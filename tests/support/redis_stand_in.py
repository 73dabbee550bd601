"""A Redis that keeps nothing: clients connect to it, check its settings, and get an answer to each command."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress

_INFO = b"maxmemory_policy:noeviction\r\nloading:0\r\naof_enabled:1\r\n"


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with closing(writer), suppress(EOFError, ConnectionError):
        while True:
            words = [await _read_word(reader) for _ in range(await _read_number(reader))]
            writer.write(b"$%d\r\n%b\r\n" % (len(_INFO), _INFO) if words[0] == b"INFO" else b"+OK\r\n")


async def _read_word(reader: asyncio.StreamReader) -> bytes:
    return (await reader.readexactly(await _read_number(reader) + 2))[:-2]


async def _read_number(reader: asyncio.StreamReader) -> int:
    return int((await reader.readuntil(b"\r\n"))[1:])


@asynccontextmanager
async def redis_stand_in() -> AsyncIterator[str]:
    """The URL of a server in this event loop."""
    async with await asyncio.start_server(_serve, "127.0.0.1", 0) as server:
        yield f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}"
