"""The service of one folder's index.

The embedded engine holds the interpreter lock during each call, and only one process can open it. It therefore runs in
a separate process, together with the model, the ledger and the views (`recallog.index_service.host`). The service
follows the ledger, and executes the operations that need the index for all processes of the folder: one message, one
answer. A file in the folder names the socket of the process, and the token of the folder.

The service outlives the program that asked for it: it ends when it has indexed everything and has executed no call for
`index_idle_seconds`, or when its folder is gone. If that setting is 0, it ends with the program that asked for it.
"""

import asyncio
import logging
import os
import secrets
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path

import msgspec

from recallog import layout, model
from recallog.composition import compose, sealing_at
from recallog.index import messages
from recallog.index.indexer import Indexer
from recallog.index.remote import WORKING_SECONDS
from recallog.index.semantic_index import IndexInProcess
from recallog.index_service.connection import Connection
from recallog.memory import Memory
from recallog.operations import pipeline
from recallog.operations.facade import all_operations
from recallog.retrieval.query import RecallQuery
from recallog.scrubbing import Scrubber
from recallog.settings import Settings
from recallog_projections.concurrency import cancel_all
from recallog_projections.index.embedders.own_thread import in_own_thread
from recallog_projections.index.embedders.registry import absolute_name, embedder
from recallog_projections.index.embedders.runtime import release_memory
from recallog_projections.index.engines.engine import Engine
from recallog_projections.stores.sqlite import SqliteStore
from recallog_schemas.errors import IndexDamaged, IndexUnavailable, RecallogError, StorageReplaced
from recallog_streams.ledgers.sqlite import SqliteLedger
from recallog_streams.progress import Progress
from recallog_streams.stop_signal import StopSignal

INDEXING_NICENESS = 10
_IDLE_CHECK_SECONDS = 0.5

_log = logging.getLogger("recallog.index")
_progress: ContextVar[Progress | None] = ContextVar("progress", default=None)
"""Receives the progress of the call that is being executed."""


class Service:
    """Serves one folder."""

    def __init__(
        self, settings: Settings, stopping: StopSignal, engine: Engine, working_folder: Path, socket: str
    ) -> None:
        """Names of models in folders are relative to `working_folder`. `socket` is the path of the process' socket."""
        home = self.home = settings.home
        self._settings = settings
        self._stopping = stopping
        self._address = home / layout.INDEX_ADDRESS
        self.token = secrets.token_hex(16)
        """Names the folder at the socket."""
        self._named = messages.ServiceAddress(socket, self.token, os.getpid(), str(home))
        self._idle_seconds = settings.index_idle_seconds
        self._calls = 0
        """The number of calls in progress."""
        self._active_at = time.monotonic()
        """The time at which the last call was answered, or the last batch was indexed."""
        self._released_at = 0.0
        """The time at which freed memory was last returned to the system."""
        self._operations = {
            name: each for name, each in all_operations(Memory).items() if each.uses_index or each.maintains_index
        }
        self._memories: dict[tuple[int, str, str], Memory] = {}
        """By the number of events that their views retain, and by the settings `scrub` and `seal`."""
        key = settings.embedder_api_key.get_secret_value() if settings.embedder_api_key else None
        self._ledger = SqliteLedger(home / layout.LEDGER, settings.lock_wait_seconds)
        self._ledger.sealing = sealing_at(str(home), settings)
        self._indexer = Indexer(
            self._ledger,
            SqliteStore(home / layout.INDEX_ROWS, settings.lock_wait_seconds),
            engine,
            lambda name: in_own_thread(
                embedder(absolute_name(name, working_folder), api_key=key, threads=1), niceness=INDEXING_NICENESS
            ),
            settings.embedder,
            settings.index_token_vectors,
            # One thread for queries and one for indexing, since a query must not wait for a batch of texts.
            load_for_queries=lambda name: in_own_thread(
                embedder(absolute_name(name, working_folder), api_key=key, deadline_seconds=settings.deadline_seconds)
            ),
            deadline_seconds=settings.deadline_seconds,
            documents=model.documents(),
        )
        self._index = IndexInProcess(lambda: self._indexer)

    async def run(self) -> None:
        """Serve, and follow the ledger, until `stopping` is set or nobody uses the index."""
        async with AsyncExitStack() as closing:
            closing.push_async_callback(self._ledger.close)
            closing.push_async_callback(self._index.close)
            closing.push_async_callback(self._close_memories)
            closing.callback(self.stop)
            aside = self._address.with_suffix(".new")
            aside.touch(mode=0o600)
            aside.write_bytes(msgspec.json.encode(self._named))
            aside.replace(self._address)
            indexer = self._index.indexer  # `self._index` closes the one that it has given out
            await asyncio.gather(indexer.run(self._stopping, self._report_indexed), self._end_when_idle())

    async def _close_memories(self) -> None:
        for memory in self._memories.values():
            await memory.close()

    async def _end_when_idle(self) -> None:
        while not self._stopping:
            await self._stopping.pause(_IDLE_CHECK_SECONDS)
            idle_seconds = time.monotonic() - self._active_at if not self._calls else 0.0
            if idle_seconds > _IDLE_CHECK_SECONDS and self._released_at < self._active_at:
                self._released_at = time.monotonic()
                release_memory()
            is_idle = 0 < self._idle_seconds < idle_seconds
            if not self._is_in_folder() or (is_idle and (self._indexer.at_end or self._indexer.problem)):
                self.stop()

    def stop(self) -> None:
        """End this service after removing it from the folder, so that the next client starts another process."""
        self._leave_folder()
        self._stopping.set()

    def _leave_folder(self) -> None:
        if self._is_in_folder():
            self._address.unlink()

    def _is_in_folder(self) -> bool:
        """Whether the folder names this process as its service. It does not if it was deleted, damaged or
        overwritten."""
        try:
            return messages.address(self._address.read_bytes()) == self._named
        except (OSError, msgspec.MsgspecError):
            return False

    def _report_indexed(self, done: int, total: int) -> None:
        self._active_at = time.monotonic()

    async def execute(self, call: messages.FolderCall, connection: Connection) -> None:
        """Send the answer to `call`. If the client disconnects first, the call is cancelled."""

        def report(done: int, total: int) -> None:
            connection.send(messages.Progressed(done, total))

        executing = asyncio.create_task(self._answer(call, report))
        disconnected = asyncio.create_task(connection.wait_closed())
        self._calls += 1
        try:
            while not executing.done() and not disconnected.done():
                await asyncio.wait(
                    {executing, disconnected}, timeout=WORKING_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                if not executing.done():
                    connection.send(messages.StillWorking())
            if executing.done():
                connection.send(executing.result())
                await connection.drain()
        finally:
            self._calls -= 1
            self._active_at = time.monotonic()
            await cancel_all(executing, disconnected)

    async def _answer(self, call: messages.FolderCall, report: Progress) -> messages.Frame:
        if self._stopping:
            return messages.Gone()
        try:
            if isinstance(call, messages.Health):
                health = await self._index.start()
                if health.problem and call.embedder not in (None, self._settings.embedder):
                    self.stop()
                    return messages.Gone()
                return messages.Result(msgspec.json.encode(health))
            self._check_models(call.models)
            if isinstance(call, messages.Recall):
                return messages.Result(await self._perform_recall(call))
            return messages.Result(await self._perform_operation(call, report))
        except Exception as error:  # noqa: BLE001 - the caller gets the error, and the service continues
            if self._stopping or isinstance(error, StorageReplaced):  # its memories may be closed
                self.stop()
                return messages.Gone()
            if isinstance(error, IndexDamaged):
                self._index.note_damage(0, str(error))  # the ledger of a folder has one partition
            if not isinstance(error, RecallogError):
                _log.exception("%s failed", getattr(call, "operation", type(call).__name__))  # arguments contain words
            return messages.failure(error)

    def _check_models(self, of_client: Sequence[str]) -> None:
        """Raise `IndexUnavailable` if this process lacks a model that takes part in an answer."""
        known = [each.name for each in model.load_installed()]
        if missing := [name for name in of_client if name not in known]:
            raise IndexUnavailable(
                f"the process that serves the index, {os.getpid()}, lacks the memory model {missing[0]}. Install its "
                "package where that process runs, and end the process: the next query starts another one"
            )

    async def _perform_operation(self, call: messages.Perform, report: Progress) -> bytes:
        """The answer to an operation. Raises `IndexUnavailable` if it is a query and the index cannot answer; the
        client then answers it without the index."""
        operation = self._operations.get(call.operation)
        if operation is None:
            raise IndexUnavailable(f"the process that serves the index does not execute {call.operation!r}")
        valid = operation.validate(msgspec.json.decode(call.arguments), strict=False)
        memory = self._memory(call.log_events, call.scrub, call.seal)
        if "space" in valid:
            await self._index.open(await memory.admin.partition_of(valid["space"]))
        _progress.set(report)
        answer = await pipeline.perform(
            pipeline.of_memory(memory, operation, valid, dict.fromkeys(operation.callbacks, report))
        )
        return operation.to_json(answer)

    async def _perform_recall(self, call: messages.Recall) -> bytes:
        """The answer to a recall query. Raises `IndexUnavailable` if the index cannot answer."""
        query = msgspec.json.decode(call.query, type=RecallQuery)
        memory = self._memory(call.log_events)  # before it waits: an ending service closes the memories that it has
        await self._index.open(0)  # the ledger of a folder has one partition
        answer = await memory._recall_for_prompt(query, call.compared, past=call.past)
        return answer.model_dump_json().encode()

    def _memory(self, log_events: int, scrub: str = "", seal: str | None = None) -> Memory:
        key = log_events, scrub, seal or self._settings.seal
        if key not in self._memories:
            # Projections of a user are for the process that calls, since their module may not be found here.
            changed = {"index": "off", "log_events": log_events, "projections": None, "seal": key[2]}
            without_index = self._settings.model_copy(update=changed)
            components = replace(compose(without_index), index=self._index)
            # The process that called counts the entries in the answer.
            memory = Memory(components, progress=_report, count_accesses=False)
            memory._access.scrubber = Scrubber.of(scrub)
            self._memories[key] = memory
        return self._memories[key]


def _report(done: int, total: int) -> None:
    report = _progress.get()
    if report is not None:
        report(done, total)
