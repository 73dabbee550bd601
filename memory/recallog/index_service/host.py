"""The process that serves the indexes of a user's folders: one for each installation of Recallog.

Folders share the interpreter, the model, and nothing that is in them. Each has its own address with a token, its own
ledger, keys, views, engine and log, and is closed when nobody uses it. What goes wrong with one ends its serving alone;
only a crash of native code ends that of all, and is counted against the folder whose files were used.
"""

import asyncio
import functools
import gc
import logging
import os
import secrets
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

import msgspec

from recallog import layout
from recallog.index import messages
from recallog.index.hosting import HostPlace
from recallog.index_service.connection import Connection
from recallog.index_service.crashes import CrashReports
from recallog.index_service.service import Service
from recallog.index_service.starting import LOG_FORMAT
from recallog_projections import private_files
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_schemas.errors import RecallogError
from recallog_streams.concurrency import cancel_all
from recallog_streams.stop_signal import StopSignal

GARBAGE_OBJECTS = 50_000
"""New objects after which garbage is collected. A query makes some 10,000; with Python's own 700 the collector took 6 %
of the samples of a profile."""
WAITING_THREADS = 64
"""Threads that wait for engines, models and files. With Python's few, folders that are being indexed would keep the
questions of others waiting."""
FIRST_SECONDS = 30.0
"""How long a new process waits for its first folder."""
_ALIVE_SECONDS = 0.5

_log = logging.getLogger("recallog.index")
_serving: ContextVar[Path | None] = ContextVar("serving", default=None)
"""The folder for which this task works."""


class Host:
    """Serves folders until none is served any more."""

    def __init__(self, place: HostPlace, reports: CrashReports) -> None:
        self._place = place
        self._reports = reports
        self._token = secrets.token_hex(16)
        self._served: set[Path] = set()
        self._unused = StopSignal()
        """Set when the last folder is closed."""

    async def run(self) -> None:
        """Serve the folders of clients that ask for it."""
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(WAITING_THREADS))
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        messages.write_address(self._place.address, messages.ServiceAddress(port, self._token, os.getpid()))
        first = asyncio.create_task(self._answer_first())
        give_up = asyncio.get_running_loop().time() + FIRST_SECONDS
        while not self._unused:
            self._reports.show_alive()
            await self._unused.pause(_ALIVE_SECONDS)
            if not self._served and asyncio.get_running_loop().time() > give_up:
                break
        server.close()
        await cancel_all(first)

    async def _answer_first(self) -> None:
        """Answer the program that has started this process, by standard input."""
        with suppress(OSError):  # it is no socket
            reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=os.dup(0)))
            async with Connection(reader, writer) as connection:
                await self._answer_request(await connection.receive(), connection)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with Connection(reader, writer) as connection:
            await self._answer_request(await connection.receive_call(self._token), connection)

    async def _answer_request(self, call: messages.Call | None, connection: Connection) -> None:
        if isinstance(call, messages.Serve) and not self._unused:
            connection.send(messages.StillWorking())
            connection.send(await self._serve(call, connection))
            await connection.drain()
            if not self._served:
                self._unused.set()

    async def _serve(self, call: messages.Serve, connection: Connection) -> messages.Frame:
        """How the serving of a folder has ended."""
        try:
            settings = messages.decode_settings(call.settings)
            home = settings.home
            if home in self._served:
                return self._ending()
            self._served.add(home)
            _serving.set(home)
            stopping = StopSignal()
            ended = asyncio.create_task(connection.end())
            if not settings.index_idle_seconds:
                ended.add_done_callback(lambda _: stopping.set())
            try:
                private_files.make_folder(home / layout.INDEX)
                with (
                    private_files.hold_lock(home / layout.INDEX_LOCK),
                    _write_log(home),
                    self._reports.of_folder(home) as calling,
                ):
                    engine = EdgeEngine(home / layout.INDEX_ENGINE, calling)
                    await Service(settings, stopping, engine, Path(call.working_folder)).run()
            finally:
                self._served.discard(home)
                _forget_texts()
                await cancel_all(ended)
        except private_files.LockHeld:
            return self._ending(elsewhere=True)
        except Exception as error:  # noqa: BLE001 - the client gets the error, and other folders are served
            if not isinstance(error, RecallogError):
                _log.exception("a folder cannot be served")
            return messages.failure(error)
        return self._ending()

    def _ending(self, *, elsewhere: bool = False) -> messages.Result:
        if not self._served:
            with suppress(OSError):
                self._place.address.unlink()
        return messages.Result(msgspec.json.encode(messages.Ending(elsewhere, is_last=not self._served)))


@contextmanager
def _write_log(home: Path) -> Iterator[None]:
    """Write what is logged for a folder to its log. The folder is also served if its log cannot be written."""
    try:
        handler: logging.Handler = logging.FileHandler(home / layout.INDEX_LOG)
    except OSError as error:
        _log.warning("the log of the index cannot be written, which then has none: %s", error)
        handler = logging.NullHandler()
    handler.setFormatter(logging.Formatter(LOG_FORMAT))
    handler.addFilter(lambda record: _serving.get() == home)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()


def _forget_texts() -> None:
    """Empty the bounded caches of functions of texts: they may have words of a folder that is not served any more."""
    for each in gc.get_objects():
        if isinstance(each, functools._lru_cache_wrapper) and each.cache_parameters()["maxsize"] is not None:
            each.cache_clear()


def serve(place: HostPlace) -> None:
    """Serve folders from `place`."""
    gc.set_threshold(GARBAGE_OBJECTS)
    for handler in logging.getLogger().handlers:
        handler.addFilter(lambda record: _serving.get() is None)
    asyncio.run(Host(place, CrashReports()).run())
