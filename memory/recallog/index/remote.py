"""Clients of the index service: the engine and the embedder of a folder, as the processes of the folder use them."""

import asyncio
import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import msgspec

from recallog import layout
from recallog.index import messages
from recallog.settings import Settings
from recallog_projections.index.embedders.embedder import Embedder, Embedding, Passage
from recallog_projections.index.engines.edge import collections_in, disk_bytes
from recallog_projections.index.engines.engine import (
    Engine,
    Filter,
    Hit,
    Point,
    Search,
    StoredPoint,
    closed_error,
)
from recallog_projections.threads import run_in_own_thread, run_last
from recallog_schemas.errors import IndexUnavailable

START_SECONDS = 20.0
"""How long a service may take to start: it is a new process that imports the engine."""
END_SECONDS = 10.0
"""How long a service may take to end before it is killed. Only the batch in progress is lost, and indexed again."""
_POLL_SECONDS = 0.02


class ServiceConnection:
    """A connection to the service of a folder, for one call at a time.

    `call` blocks its thread. `close` may be called from any thread, and does not wait: a call in flight fails at once.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._lock = Lock()
        """Held during a call. The socket is replaced by its holder only."""
        self._socket: socket.socket | None = None
        self._closed = False

    def call(self, call: messages.Call, kind: Any) -> Any:
        """The result of `call`, of type `kind`. Raises the error that the call raised, or `IndexUnavailable`."""
        try:
            with self._lock:
                try:
                    return messages.value_of(self._send_or_reconnect(call) if self._socket else self._send(call), kind)
                except (OSError, msgspec.MsgspecError) as error:
                    self._disconnect()
                    raise IndexUnavailable(
                        f"the index of {self._home} is not being served ({error}); the next query starts it"
                    ) from error
        finally:
            if self._closed:  # by another thread, which found the lock held
                self.close()

    def _send_or_reconnect(self, call: messages.Call) -> bytes:
        """The response to `call`, on a new connection if the old one is broken: the service may have been restarted.

        Every call is idempotent, so it may be sent twice.
        """
        try:
            return self._send(call)
        except OSError:
            self._disconnect()
            return self._send(call)

    def _send(self, call: messages.Call) -> bytes:
        if self._socket is None:
            address = msgspec.json.decode((self._home / layout.INDEX_ADDRESS).read_bytes(), type=messages.Address)
            self._socket = socket.create_connection(("127.0.0.1", address.port), timeout=60)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._closed:
                raise ConnectionError("the connection is closed")
            self._exchange(messages.encode(messages.Handshake(address.token)))
        return self._exchange(messages.encode(call))

    def _exchange(self, data: bytes) -> bytes:
        if self._socket is None:
            raise ConnectionError("not connected")
        self._socket.sendall(len(data).to_bytes(messages.LENGTH_BYTES, "big") + data)
        length = int.from_bytes(self._received(messages.LENGTH_BYTES), "big")
        return self._received(length)

    def _received(self, length: int) -> bytes:
        parts = bytearray()
        while len(parts) < length:
            part = self._socket.recv(length - len(parts)) if self._socket is not None else b""
            if not part:
                raise ConnectionError("the service closed the connection")
            parts += part
        return bytes(parts)

    def close(self) -> None:
        """End the connection. Later calls raise `IndexUnavailable`."""
        self._closed = True
        connection = self._socket
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for an answer
        if self._lock.acquire(blocking=False):
            try:
                self._disconnect()
            finally:
                self._lock.release()

    def _disconnect(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class RemoteService:
    """The service of a folder: finds it, starts it if there is none, and ends it if this process has started it.

    A service with `index_idle_seconds` is not ended: it outlives this process, and ends when it is idle.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._home = settings.home
        self._process: subprocess.Popen[bytes] | None = None
        self._processes = Lock()
        """Held while the process is started or ended."""
        self._closed = False
        self._connection = ServiceConnection(self._home)

    def exists(self) -> bool:
        """Whether the folder has an index."""
        return (self._home / layout.INDEX_ROWS).exists()

    @property
    def is_up(self) -> bool:
        """Whether a service answers. The address file alone is no proof: a service that was killed leaves it behind."""
        try:
            self._connection.call(messages.Health(), str)
        except IndexUnavailable:
            return False
        return True

    def problem(self) -> str:
        """Why the index does not follow the ledger; "" if it does. Raises `IndexUnavailable`."""
        return str(self._connection.call(messages.Health(), str))

    async def begin(self) -> bool:
        """Start a service if none answers, without waiting for it. Returns whether one answers.

        Raises `IndexUnavailable` if its process cannot be started.
        """
        return await asyncio.to_thread(self._is_up_or_starting)

    async def start(self, wait_seconds: float = START_SECONDS) -> None:
        """Make sure that a service answers. Raises `IndexUnavailable` if none does after `wait_seconds`."""
        give_up = time.monotonic() + wait_seconds
        while not await asyncio.to_thread(self._is_up_or_starting):
            if time.monotonic() > give_up:
                raise IndexUnavailable("the index is starting; try again in a moment")
            await asyncio.sleep(_POLL_SECONDS)

    def _is_up_or_starting(self) -> bool:
        """Whether a service answers; if none does, its process has been started when this returns."""
        if self.is_up:
            return True
        with self._processes:
            if self._closed:
                raise closed_error()
            if self._process is None or self._process.poll() is not None:
                failed = self._process is not None and self._process.returncode != 0
                self._end_process()
                if failed:  # the next query tries again
                    raise IndexUnavailable(f"the index's process ended; see {self._home / layout.INDEX_LOG}")
                try:
                    self._spawn()
                except OSError as error:
                    raise IndexUnavailable(f"the index's process cannot be started: {error}") from error
        return False

    def _spawn(self) -> None:
        (self._home / layout.INDEX).mkdir(parents=True, exist_ok=True)
        with (self._home / layout.INDEX_LOG).open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "recallog.index"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=self._outlives,  # Ctrl-C in the terminal then does not end it
            )
        if self._process.stdin is not None:
            self._process.stdin.write(messages.encode_settings(self._settings))
            self._process.stdin.flush()
            # Otherwise standard input stays open: the service ends when it is closed, also because this process ended.
            if self._outlives:
                self._process.stdin.close()
                # Reaps it if it ends first. The thread ends with this process.
                Thread(target=self._process.wait, name="recallog-index-process", daemon=True).start()

    @property
    def _outlives(self) -> bool:
        """Whether the service outlives the process that starts it."""
        return self._settings.index_idle_seconds is not None

    async def close(self) -> None:
        """Disconnect, and end the process if this one has started it and it does not outlive this one."""
        self._closed = True
        self._connection.close()
        await run_in_own_thread(self._end)

    def _end(self) -> None:
        with self._processes:
            self._end_process()

    def _end_process(self) -> None:
        """End the process that this one has started, and wait for its end."""
        if self._process is None or self._outlives:
            self._process = None
            return
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


class RemoteEngine(Engine):
    """The engine of the service."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._connection = ServiceConnection(home)
        self._closed = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="recallog-engine")

    async def _call(self, call: messages.Call, kind: Any) -> Any:
        if self._closed:
            raise closed_error()
        exchange = self._thread.submit(lambda: self._connection.call(call, kind))
        try:
            return await asyncio.wrap_future(exchange)
        except asyncio.CancelledError:
            if exchange.running():
                # The service may take long to answer. The next calls use a new connection and do not wait for it.
                abandoned, self._connection = self._connection, ServiceConnection(self._home)
                abandoned.close()
            raise

    async def create(self, collection: str, dimension: int) -> None:
        await self._call(messages.Create(collection, dimension), None)

    async def collections(self) -> set[str]:
        return await asyncio.to_thread(collections_in, self._home / layout.INDEX_ENGINE)

    async def drop(self, collection: str) -> None:
        await self._call(messages.Drop(collection), None)

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        await self._call(messages.Upsert(collection, points), None)

    async def search(self, collection: str, searches: Sequence[Search]) -> list[list[Hit]]:
        hits: list[list[Hit]] = await self._call(messages.SearchAll(collection, searches), list[list[Hit]])
        return hits

    async def retrieve(
        self, collection: str, ids: Sequence[str], *, payload: Collection[str] | None = None, vectors: bool = False
    ) -> dict[str, StoredPoint]:
        call = messages.Retrieve(collection, ids, None if payload is None else list(payload), vectors)
        stored: dict[str, StoredPoint] = await self._call(call, dict[str, StoredPoint])
        return stored

    async def scroll(
        self, collection: str, after: str | None, limit: int, *, vectors: bool = False
    ) -> list[StoredPoint]:
        stored: list[StoredPoint] = await self._call(
            messages.Scroll(collection, after, limit, vectors), list[StoredPoint]
        )
        return stored

    async def count(self, collection: str, filter: Filter | None = None) -> int:  # noqa: A002
        return int(await self._call(messages.CountPoints(collection, filter), int))

    async def size_bytes(self) -> int | None:
        return await asyncio.to_thread(disk_bytes, self._home / layout.INDEX_ENGINE)

    async def close(self) -> None:
        self._closed = True
        self._connection.close()
        await run_last(self._thread, lambda: None)


class RemoteEmbedder(Embedder):
    """An embedder of the service."""

    def __init__(self, home: Path, name: str) -> None:
        self._connection = ServiceConnection(home)
        self._name = name
        described = self._connection.call(messages.Model(name), messages.EmbedderInfo)
        self.model = described.model
        self.dimension = described.dimension
        self.token_vectors = described.token_vectors
        self.leaves_machine = described.leaves_machine

    def embed(self, passages: Sequence[Passage]) -> list[Embedding]:
        made: list[Embedding] = self._connection.call(messages.Embed(self._name, passages), list[Embedding])
        return made

    def close(self) -> None:
        self._connection.close()
