"""The lines of standard input, for a process that has to end while it waits for the next one."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncGenerator
from threading import Thread

_READ_BYTES = 65_536

_ESCAPES = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<half>\\u[dD][89a-fA-F]..)|\\.")
"""The escapes of a JSON text: pairs of surrogates, halves of pairs, and others."""


async def lines() -> AsyncGenerator[str]:
    """The lines, each with its end, until standard input is closed. Invalid UTF-8 becomes U+FFFD.

    A thread reads them. No thread that waits in a read can be interrupted, so this one does not keep the process alive,
    and it holds no lock of a file object, which Python could not take at its end.
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
    """A line as text. Clients send halves of surrogate pairs where they have cut a text; the SDK's parser drops such a
    message without an answer."""
    return _ESCAPES.sub(lambda found: r"\ufffd" if found["half"] else found[0], line.decode(errors="replace"))
