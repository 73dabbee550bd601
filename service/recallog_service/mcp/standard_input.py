"""Reads the lines of standard input in a process that must be able to end while it waits for a line."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncGenerator
from threading import Thread

_READ_BYTES = 65_536

_ESCAPES = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<half>\\u[dD][89a-fA-F]..)|\\.")
"""Escape sequences of a JSON text: surrogate pairs, unpaired surrogates, and others."""


async def lines() -> AsyncGenerator[str]:
    """The lines with their line ends, until standard input is closed. Invalid UTF-8 becomes U+FFFD.

    A daemon thread reads them, because a blocking read cannot be interrupted. It does not hold the lock of a file
    object, which Python needs at exit.
    """
    loop, received = asyncio.get_running_loop(), asyncio.Queue[bytes](1)
    descriptor = sys.stdin.fileno()

    def read() -> None:
        while True:
            try:
                data = os.read(descriptor, _READ_BYTES)
                asyncio.run_coroutine_threadsafe(received.put(data), loop).result()
            except (OSError, RuntimeError, asyncio.CancelledError):  # closed, or the loop has ended
                return
            if not data:
                return

    Thread(target=read, name="recallog-stdin", daemon=True).start()
    buffered = b""
    while data := await received.get():
        *whole, buffered = (buffered + data).split(b"\n")
        for line in whole:
            yield _text(line) + "\n"
    if buffered:
        yield _text(buffered)


def _text(line: bytes) -> str:
    """A line as text with unpaired surrogates replaced. Clients send them after cutting a text, and the SDK's parser
    would drop such a message without an answer."""
    return _ESCAPES.sub(lambda found: r"\ufffd" if found["half"] else found[0], line.decode(errors="replace"))
