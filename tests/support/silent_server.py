"""A server that accepts connections and does not answer, like a process that is stopped (SIGSTOP)."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

Fault = Literal["silent", "half an answer", "hangs up", "refuses", "black hole"]


@contextmanager
def silent_server(fault: Fault, half: bytes = b"") -> Iterator[int]:
    """The port of a server with the fault. `half` is what it sends for "half an answer".

    A black hole does not even accept: the kernel's queue of the port is full, so that connecting does not end.
    """
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        if fault == "refuses":
            yield port
            return
        listening.listen(0 if fault == "black hole" else 100)
        if fault == "black hole":
            with _full_queue(port):
                yield port
            return
        if fault == "silent":
            yield port  # the kernel accepts
            return
        ended = threading.Event()
        thread = threading.Thread(target=_answer, args=(listening, half if fault == "half an answer" else None, ended))
        thread.start()
        try:
            yield port
        finally:
            ended.set()
            thread.join()


@contextmanager
def _full_queue(port: int) -> Iterator[None]:
    waiting = [socket.socket() for _ in range(4)]
    try:
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", port))
        yield
    finally:
        for each in waiting:
            each.close()


def _answer(listening: socket.socket, half: bytes | None, ended: threading.Event) -> None:
    """Send `half` to each connection and keep it open; close it if there is nothing to send."""
    listening.settimeout(0.02)
    held: list[socket.socket] = []
    while not ended.is_set():
        try:
            connection, _ = listening.accept()
        except TimeoutError:
            continue
        if half is None:
            connection.close()
        else:
            connection.sendall(half)
            held.append(connection)
    for connection in held:
        connection.close()
