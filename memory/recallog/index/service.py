"""The index service of a folder: `python -m recallog.index`.

The embedded engine holds the interpreter lock during each call, and only one process can open it. It therefore runs in
a process of its own, which follows the ledger and serves engine and embedder to all processes of the folder on a local
port; a file in the folder names the port.

The service ends with the process that started it, which it notices by the end of its standard input. With
`index_idle_seconds` it outlives that process: it ends when it has indexed everything and has answered no query for so
long, or when its folder is gone.
"""

import asyncio
import hmac
import logging
import os
import secrets
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import Any

import msgspec
from filelock import FileLock, Timeout

from recallog import layout
from recallog.index import messages
from recallog.index.indexer import Indexer
from recallog.settings import Settings
from recallog_projections.index.embedders.embedder import Embedder
from recallog_projections.index.embedders.registry import embedder
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_projections.stores.sqlite import SqliteStore
from recallog_streams.ledgers.sqlite import SqliteLedger
from recallog_streams.stop_signal import StopSignal

INDEXING_NICENESS = 10
_IDLE_CHECK_SECONDS = 0.5


class Service:
    """Serves one folder."""

    def __init__(self, settings: Settings) -> None:
        home = settings.home
        self._address = home / layout.INDEX_ADDRESS
        self._token = secrets.token_hex(16)
        self._idle_seconds = settings.index_idle_seconds
        self._calls = 0
        """The calls in progress."""
        self._active_at = time.monotonic()
        """When the last call was answered, or the last batch was indexed."""
        self._engine = EdgeEngine(home / layout.INDEX_ENGINE)
        self._embedding = ThreadPoolExecutor(1, thread_name_prefix="recallog-embedding")
        key = settings.embedder_api_key.get_secret_value() if settings.embedder_api_key else None
        # One model for queries and one for indexing: a query must not wait for a batch of texts.
        self._query_embedder = cache(lambda name: embedder(name, api_key=key))
        self.ledger = SqliteLedger(home / layout.LEDGER, settings.lock_wait_seconds)
        self.rows = SqliteStore(home / layout.INDEX_ROWS, settings.lock_wait_seconds)
        self.indexer = Indexer(
            self.ledger,
            self.rows,
            self._engine,
            lambda name: embedder(name, api_key=key, threads=1),
            settings.embedder,
            settings.index_token_vectors,
        )

    async def run(self, stopping: StopSignal) -> None:
        """Serve, and follow the ledger, until `stopping` is set; with `index_idle_seconds` also until it is idle."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        address = messages.Address(server.sockets[0].getsockname()[1], self._token, os.getpid())
        aside = self._address.with_suffix(".new")
        aside.touch(mode=0o600)
        aside.write_bytes(msgspec.json.encode(address))
        aside.replace(self._address)
        try:
            await asyncio.gather(self.indexer.run(stopping, self._indexed), self._end_when_idle(stopping))
        finally:
            if self._is_in_folder():
                self._address.unlink()
            server.close()
            await self._engine.close()
            await self.rows.close()
            await self.ledger.close()

    async def _end_when_idle(self, stopping: StopSignal) -> None:
        while self._idle_seconds is not None and not stopping:
            await stopping.pause(_IDLE_CHECK_SECONDS)
            is_idle = not self._calls and time.monotonic() - self._active_at > self._idle_seconds
            if not self._is_in_folder() or (is_idle and (self.indexer.at_end or self.indexer.problem)):
                stopping.set()

    def _is_in_folder(self) -> bool:
        """Whether the folder names this process as its service. It does not if it was deleted, or copied over."""
        try:
            return msgspec.json.decode(self._address.read_bytes(), type=messages.Address).pid == os.getpid()
        except (OSError, msgspec.MsgspecError):
            return False

    def _indexed(self, done: int, total: int) -> None:
        self._active_at = time.monotonic()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            authenticated = False
            while True:
                head = await reader.readexactly(messages.LENGTH_BYTES)
                length = int.from_bytes(head, "big")
                if length > (messages.MESSAGE_BYTES_MAX if authenticated else messages.HANDSHAKE_BYTES_MAX):
                    return
                call = messages.decode(await reader.readexactly(length), messages.Call)
                if not authenticated:
                    if not isinstance(call, messages.Handshake) or not hmac.compare_digest(call.token, self._token):
                        return
                    authenticated = True
                data = await self._response(call)
                writer.write(len(data).to_bytes(messages.LENGTH_BYTES, "big") + data)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, msgspec.MsgspecError):
            return  # the client has disconnected, or does not use this protocol
        except asyncio.CancelledError:
            return  # the service ends, and the connection with it
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _response(self, call: messages.Call) -> bytes:
        self._calls += 1
        try:
            return messages.answer(await self._result(call))
        except Exception as error:  # noqa: BLE001 - the caller gets the error, and the service continues
            return messages.failure(error)
        finally:
            self._calls -= 1
            self._active_at = time.monotonic()

    async def _result(self, call: messages.Call) -> Any:
        match call:
            case messages.Embed(name, passages):
                return await self._embed(lambda: self._query_embedder(name).embed(passages))
            case messages.Model(name):
                return await self._embed(lambda: _described(self._query_embedder(name)))
            case messages.SearchAll(collection, searches):
                return await self._engine.search(collection, searches)
            case messages.Retrieve(collection, ids, payload, vectors):
                return await self._engine.retrieve(collection, ids, payload=payload, vectors=vectors)
            case messages.Scroll(collection, after, limit, vectors):
                return await self._engine.scroll(collection, after, limit, vectors=vectors)
            case messages.CountPoints(collection, filter):
                return await self._engine.count(collection, filter)
            case messages.Upsert(collection, points):
                return await self._engine.upsert(collection, points)
            case messages.Create(collection, dimension):
                return await self._engine.create(collection, dimension)
            case messages.Drop(collection):
                return await self._engine.drop(collection)
            case messages.Health():
                return self.indexer.problem
            case messages.Handshake():
                return None

    async def _embed(self, work: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._embedding, work)


def _described(known: Embedder) -> messages.EmbedderInfo:
    return messages.EmbedderInfo(known.model, known.dimension, known.token_vectors, known.leaves_machine)


async def _serve(settings: Settings) -> None:
    stopping, loop = StopSignal(), asyncio.get_running_loop()
    loop.set_default_executor(
        ThreadPoolExecutor(2, thread_name_prefix="recallog-indexing", initializer=_lower_priority)
    )

    def starter_ended() -> None:
        if not os.read(0, 1024):
            loop.remove_reader(0)
            stopping.set()

    if settings.index_idle_seconds is None:
        loop.add_reader(0, starter_ended)
    await Service(settings).run(stopping)


def _lower_priority() -> None:
    """Lower the thread's priority: publishing, folding and queries come first."""
    with suppress(AttributeError, OSError):  # only Linux has priorities of threads
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), INDEXING_NICENESS)


def main() -> None:
    """Serve the folder that standard input names; return at once if another process serves it."""
    settings = messages.decode_settings(_line(0))
    (settings.home / layout.INDEX).mkdir(parents=True, exist_ok=True)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs each request
    try:
        with FileLock(settings.home / layout.INDEX_LOCK, timeout=0):
            asyncio.run(_serve(settings))
    except Timeout:
        return


def _line(descriptor: int) -> bytes:
    """The first line, read without a buffer, so that `starter_ended` sees the end of the input."""
    line = bytearray()
    while not line.endswith(b"\n") and (byte := os.read(descriptor, 1)):
        line += byte
    return bytes(line)
