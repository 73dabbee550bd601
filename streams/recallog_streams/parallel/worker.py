"""A worker: a process that folds the records of its spaces, or that works on whole partitions.

A worker of the first type reads no ledger and writes no store. A worker ends when the process that has started it
closes the socket, or ends.
"""

import asyncio
import logging
import pickle
import signal
import socket
import sys
from collections.abc import Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from recallog_projections.concurrency import cancel_all
from recallog_projections.rows import Changes, Fetched, Rows
from recallog_projections.tables import Log, LogName, RowKey, Table
from recallog_schemas import Record, kinds, limits
from recallog_streams import identity
from recallog_streams.collector import collect_rarely
from recallog_streams.fold import Fold
from recallog_streams.parallel import messages
from recallog_streams.parallel.messages import (
    Advanced,
    Begin,
    BeginCalls,
    Cached,
    CallFailed,
    Folded,
    FromWorker,
    Loaded,
    Pipe,
    Ready,
    Returned,
    TooManyChanges,
    ToWorker,
    WantedRows,
    WorkerCall,
    WorkerPart,
    WorkerRefused,
)
from recallog_streams.parallel.partitions import WorkerParts

Result = TypeVar("Result")


class RowOfOthers(BaseException):
    """A projection reads or writes a row that another worker may write. Not an `Exception`, so that no projection
    catches it by accident."""


class OwnRows(Rows):
    """Rows only of the spaces of one worker."""

    def __init__(self, tables: Iterable[Table[Any] | Log[Any]], *, strict: bool = True, complete: bool = False) -> None:
        super().__init__(tables, strict=strict, complete=complete)
        self.spaces: set[str] = set()

    def total(self, log: Log[Any], space: str, owner: str = "") -> int:
        self._check_own(log, space)
        return super().total(log, space, owner)

    def _want(self, table: Table[Any], address: tuple[str, str, str, str]) -> None:
        self._check_own(table, address[1])
        super()._want(table, address)

    def changes(self) -> Changes:
        changes = super().changes()
        for name, space in {address[:2] for address in (*changes.rows, *changes.logs)}:
            self._check_own(self._tables[name], space)
        return changes

    def _check_own(self, table: Table[Any] | Log[Any], space: str) -> None:
        is_shared = not space and isinstance(table, Table) and (table.apart or table.add is not None)
        if space not in self.spaces and not is_shared:
            raise RowOfOthers(f"{table.name} has rows that several spaces may share")


class _Replaced(Exception):
    """Another message arrived while the worker waited for rows."""

    def __init__(self, message: ToWorker | None) -> None:
        self.message = message


class Worker:
    """Folds parts of batches, and keeps the rows of its spaces in memory."""

    def __init__(self, pipe: Pipe, begin: Begin) -> None:
        self._pipe, self._begin = pipe, begin
        self._fold = Fold(pickle.loads(begin.make)(), unique_ids=begin.unique_ids)
        self._sums = frozenset(each.name for each in self._fold.tables if isinstance(each, Table) and each.add)
        self._rows: OwnRows | None = None
        self._spaces = set[str]()

    def run(self) -> None:
        self._pipe.send(_ready(self._fold))
        message = self._pipe.receive()
        while isinstance(message, WorkerPart):
            message = self._answer(message)

    def _answer(self, part: WorkerPart) -> ToWorker | None:
        """Fold a part and send the result. Returns the next message."""
        answer: FromWorker
        try:
            answer = self._fold_part(part)
        except _Replaced as replaced:
            return replaced.message
        except (Exception, RowOfOthers) as error:  # noqa: BLE001 - the parent folds the batch again, and raises it
            answer = WorkerRefused(f"{type(error).__name__}: {error}")
        self._pipe.send(answer)
        return self._pipe.receive()

    def _fold_part(self, part: WorkerPart) -> Folded | TooManyChanges:
        rows, self._rows = self._rows_before(part), None
        records = self._fold.decode(part.batch)
        self._spaces.update(each.event.space for each in records if isinstance(each, Record))
        rows.spaces = self._spaces
        changes, count = _run(self._fold.process(records, rows, self._fetch, self._begin.changes_max))
        if count < len(records):
            return TooManyChanges()
        self._rows = rows
        sums = {address: changes.rows[address] for address in changes.rows if address[0] in self._sums}
        return Folded(
            {address: data for address, data in changes.rows.items() if address not in sums} if sums else changes.rows,
            sums,
            changes.logs,
            changes.keep,
        )

    def _rows_before(self, part: WorkerPart) -> OwnRows:
        rows = self._rows
        if rows is None or part.cached is not Cached.KEPT:
            return self._fold.new_rows(OwnRows, complete=part.cached is Cached.COMPLETE)
        if len(rows) > limits.CACHED_ROWS_MAX:
            rows.evict(identity.BUCKETS)
        return rows if len(rows) <= limits.CACHED_ROWS_MAX else self._fold.new_rows(OwnRows)

    async def _fetch(self, row_keys: Sequence[RowKey], log_names: Sequence[LogName]) -> Fetched:
        self._pipe.send(WantedRows(row_keys, log_names))
        answer = self._pipe.receive()
        if not isinstance(answer, Loaded):
            raise _Replaced(answer)
        return answer.rows, answer.totals


def _ready(fold: Fold) -> Ready:
    return Ready(fold.code, {kind: kinds.definition(kind) for kind in kinds.list_registered()})


def _run(work: Coroutine[Any, Any, Result]) -> Result:
    """The result of work that waits only for the pipe, which blocks."""
    try:
        work.send(None)
    except StopIteration as done:
        result: Result = done.value
        return result
    raise RuntimeError("a fold has waited for something else than rows")


class _Calls:
    """Works on partitions, on several at a time."""

    def __init__(self, opened: WorkerParts, writer: asyncio.StreamWriter) -> None:
        self._opened, self._writer = opened, writer

    async def run(self, reader: asyncio.StreamReader) -> None:
        """Execute calls until the socket is closed."""
        self._send(_ready(self._opened.projector.fold))
        running = set[asyncio.Task[None]]()
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while isinstance(message := messages.to_worker.decode(await messages.read_frame(reader)), WorkerCall):
                running.add(task := asyncio.create_task(self._answer(message)))
                task.add_done_callback(running.discard)
        await cancel_all(*running)

    async def _answer(self, call: WorkerCall) -> None:
        def report(done: int, total: int) -> None:
            self._send(Advanced(call.number, done, total))

        try:
            self._send(Returned(call.number, pickle.dumps(await pickle.loads(call.work)(self._opened, report))))
        except Exception as error:  # noqa: BLE001 - the parent does the same, and raises it
            self._send(CallFailed(call.number, f"{type(error).__name__}: {error}"))

    def _send(self, message: FromWorker) -> None:
        self._writer.writelines(messages.frame(message))


async def _answer_calls(connection: socket.socket, begin: BeginCalls) -> None:
    reader, writer = await asyncio.open_connection(sock=connection)
    try:
        async with pickle.loads(begin.open)() as opened:
            await _Calls(opened, writer).run(reader)
    except Exception as error:  # noqa: BLE001 - modules of users may raise anything
        writer.writelines(messages.frame(WorkerRefused(f"{type(error).__name__}: {error}")))
        await writer.drain()


def main() -> None:
    """The program of a worker; its argument is the number of the socket's file descriptor."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent ends its workers
    collect_rarely()
    # When the parent has ended, nothing can be sent, and there is nothing to do.
    with suppress(ConnectionError), socket.socket(fileno=int(sys.argv[1])) as connection:
        pipe = Pipe(connection.makefile("rwb"))
        begin = pipe.receive()
        if isinstance(begin, Begin):
            sys.path[:] = begin.path
            _fold_spaces(pipe, begin)
        elif isinstance(begin, BeginCalls):
            sys.path[:] = begin.path
            logging.disable(logging.WARNING)  # the parent warns of the same ledger and store
            asyncio.run(_answer_calls(connection, begin))


def _fold_spaces(pipe: Pipe, begin: Begin) -> None:
    try:
        worker = Worker(pipe, begin)
    except Exception as error:  # noqa: BLE001 - modules of users may raise anything
        pipe.send(WorkerRefused(f"{type(error).__name__}: {error}"))
    else:
        worker.run()


if __name__ == "__main__":
    main()
