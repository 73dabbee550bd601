"""The process that serves the indexes of a user's folders.

Folders share the interpreter, the models and the bound on kept points. Each has its own token, ledger, keys, views,
engine and log, and the settings of the program that asked for it. It is closed when it is not used. An error ends the
serving of one folder; a crash of native code ends the process, and is counted in the folder whose engine was called.
"""

import asyncio
import gc
import logging
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

import msgspec

from recallog import layout
from recallog.index import messages
from recallog.index_service.connection import Connection
from recallog.index_service.crashes import CrashReports
from recallog.index_service.service import Service
from recallog.json_lines import JsonLines
from recallog.settings import Settings
from recallog_projections import private_files
from recallog_projections.concurrency import cancel_all
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_schemas.errors import RecallogError
from recallog_streams.stop_signal import StopSignal

GARBAGE_OBJECTS = 50_000
"""New objects after which garbage is collected. A query makes about 10,000; with Python's default of 700, the collector
took 6 % of the samples of a profile."""
WAITING_THREADS = 64
"""Threads that wait for engines, models and files. With Python's default, a few folders that are indexed would occupy
all of them, and queries of other folders would wait."""
FIRST_SECONDS = 30.0
"""How long a new process waits for its first folder."""
_ALIVE_SECONDS = 0.5

_log = logging.getLogger("recallog.index")
_serving: ContextVar[Path | None] = ContextVar("serving", default=None)
"""The folder for which the present task works."""


class IndexHost:
    """Serves folders at a socket, until none is served any more."""

    def __init__(self, listener: socket.socket, reports: CrashReports) -> None:
        self._listener = listener
        self._path = Path(listener.getsockname())
        self._inode = self._path.stat().st_ino
        self._reports = reports
        self._homes: dict[Path, StopSignal] = {}
        """The folders that are served, with signals that are set when they are not any more."""
        self._services: dict[str, Service] = {}
        """The services by their tokens."""
        self._requests = 0
        """The requests to serve a folder that are not answered."""
        self._ending = StopSignal()

    async def run(self) -> None:
        """Serve the folders of programs that ask for it."""
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(WAITING_THREADS))
        server = await asyncio.start_unix_server(self._answer, sock=self._listener, limit=messages.BUFFER_BYTES)
        give_up = loop.time() + FIRST_SECONDS
        while not self._ending:
            self._reports.show_alive()
            await self._ending.pause(_ALIVE_SECONDS)
            if not self._is_found():
                for service in [*self._services.values()]:
                    service.stop()
            if not self._requests and loop.time() > give_up:
                break
        self._leave()
        server.close()

    def _is_found(self) -> bool:
        """Whether programs that connect find this process. Not if its socket was deleted, or replaced by another."""
        try:
            return self._path.stat().st_ino == self._inode
        except OSError:
            return False

    def _leave(self) -> None:
        """Let the next program start another process."""
        if self._is_found():
            self._path.unlink()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Execute the call of one connection. A program whose request is not answered asks again."""
        async with Connection(reader, writer) as connection:
            shaken = await connection.receive_handshake()
            service = self._services.get(shaken.token)
            if shaken.version != messages.Handshake("").version:
                if service is not None:
                    service.stop()
                return
            call = await connection.receive_call()
            if isinstance(call, messages.Serve):
                if self._is_found():
                    await self._answer_request(call, connection)
            elif service is not None:
                _serving.set(service.home)
                await service.execute(call, connection)

    async def _answer_request(self, call: messages.Serve, connection: Connection) -> None:
        self._requests += 1
        try:
            ending = await self._serve(call, connection)
            if not self._homes:
                self._leave()
            connection.send(ending)
            await connection.drain()
        finally:
            self._requests -= 1
            if not self._requests:  # so that each program learns how the serving of its folder has ended
                self._ending.set()

    async def _serve(self, call: messages.Serve, connection: Connection) -> messages.Frame:
        """Serve a folder. Returns how that has ended."""
        try:
            settings = messages.decode_settings(call.settings)
            elsewhere = False
            if (served := self._homes.get(settings.home)) is not None:
                connection.send(messages.StillWorking())
                await served.unless(connection.wait_closed())
            else:
                ended = self._homes[settings.home] = StopSignal()
                _serving.set(settings.home)
                try:
                    with private_files.hold_lock(settings.home / layout.INDEX_LOCK), _write_log(settings.home):
                        connection.send(messages.StillWorking())
                        await self._serve_folder(settings, Path(call.working_folder), connection)
                except private_files.LockHeld:
                    elsewhere = True
                finally:
                    del self._homes[settings.home]
                    ended.set()
        except Exception as error:  # noqa: BLE001 - the program gets the error, and other folders are served
            if not isinstance(error, RecallogError):
                _log.exception("a folder cannot be served")
            return messages.failure(error)
        return messages.Result(msgspec.json.encode(messages.Ending(elsewhere, is_last=not self._homes)))

    async def _serve_folder(self, settings: Settings, working_folder: Path, connection: Connection) -> None:
        stopping = StopSignal()
        ended = asyncio.create_task(connection.wait_closed())
        if not settings.index_idle_seconds:
            ended.add_done_callback(lambda _: stopping.set())
        with self._reports.of_folder(settings.home) as calling:
            engine = EdgeEngine(settings.home / layout.INDEX_ENGINE, calling)
            service = Service(settings, stopping, engine, working_folder, str(self._path))
            self._services[service.token] = service
            try:
                await service.run()
            finally:
                del self._services[service.token]
                await cancel_all(ended)


@contextmanager
def _write_log(home: Path) -> Iterator[None]:
    """Write what is logged for a folder to its log. The folder is also served if its log cannot be written."""
    handler: logging.Handler = logging.NullHandler()
    with suppress(OSError):
        handler = logging.FileHandler(home / layout.INDEX_LOG)
    handler.setFormatter(JsonLines())
    handler.addFilter(lambda record: _serving.get() == home)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()


def serve(listener: socket.socket) -> None:
    """Serve folders at `listener`."""
    gc.set_threshold(GARBAGE_OBJECTS)
    for handler in logging.getLogger().handlers:
        handler.addFilter(lambda record: _serving.get() is None)
    reports = CrashReports()
    reports.enable()
    asyncio.run(IndexHost(listener, reports).run())
