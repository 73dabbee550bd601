"""The workers of one generation, as seen by the process that commits."""

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial, reduce
from typing import Any

from recallog_projections.projection import Projection
from recallog_projections.rows import Changes, Fetched
from recallog_projections.stores.store import Store
from recallog_projections.tables import LogName, RowKey, Table
from recallog_streams.fold import Fetch, Fold
from recallog_streams.ledgers.ledger import Batch
from recallog_streams.parallel.messages import (
    Begin,
    Cached,
    Folded,
    Loaded,
    LogAddress,
    RowAddress,
    TooManyChanges,
    WantedRows,
    WorkerPart,
    WorkerRefused,
)
from recallog_streams.parallel.processes import WorkerProcess, WorkersUnusable, pickle_function, start


class BatchTooLarge(Exception):
    """The changes of a batch are too many for one commit."""


class Workers:
    """Processes that fold the records of a generation: all those of a space are folded by the same one."""

    def __init__(self, workers: "Sequence[_Worker]", fold: Fold) -> None:
        self._workers = workers
        self._sums = _Sums({each.name: each for each in fold.tables if isinstance(each, Table) and each.add})
        self._of_space: dict[int, int] = {}
        """The worker of each space."""
        self._loads = [0] * len(workers)
        """How many records each worker got."""

    def forget(self, *, complete: bool) -> None:
        """The workers' rows are not valid; `complete` says that none exists."""
        self._sums.clear()
        for each in self._workers:
            each.cached = Cached.COMPLETE if complete else Cached.NONE

    async def fold(self, batch: Batch, fetch: Fetch) -> Changes:
        """The changes of a batch. `fetch` gets rows as they are before the batch.

        Raises `BatchTooLarge` or `WorkersUnusable`, or what `fetch` raises; `forget` must be called then. All workers
        have folded their parts by then, or wait for rows.
        """
        given = [(index, part) for index, part in enumerate(self._parts(batch)) if part.records]
        results = await asyncio.gather(
            *(self._workers[index].fold(part, partial(self._fetch, fetch, index)) for index, part in given),
            return_exceptions=True,
        )
        rows: dict[RowAddress, bytes | None] = {}
        logs: dict[LogAddress, Sequence[bytes]] = {}
        keep: dict[str, int] = {}
        for (index, _), folded in zip(given, results, strict=True):
            if isinstance(folded, BaseException):
                raise folded
            rows |= folded.rows
            logs |= folded.logs
            keep |= folded.keep
            rows |= {address: self._sums.put(index, address, data) for address, data in folded.sums.items()}
        return Changes(rows, logs, keep)

    def _parts(self, batch: Batch) -> list[Batch]:
        """The records of each worker."""
        if batch.spaces is None:
            raise WorkersUnusable("the ledger does not number its spaces")
        of_space, loads = self._of_space, self._loads
        for space, count in Counter(batch.spaces).most_common():
            worker = of_space.setdefault(space, loads.index(min(loads)))
            loads[worker] += count
        shares: list[list[int]] = [[] for _ in self._workers]
        for number, space in enumerate(batch.spaces):
            shares[of_space[space]].append(number)
        return [batch.only(share) for share in shares]

    async def _fetch(
        self, fetch: Fetch, worker: int, row_keys: Sequence[RowKey], log_names: Sequence[LogName]
    ) -> Fetched:
        rows, totals = await fetch(row_keys, log_names)
        pairs = zip(row_keys, rows, strict=True)
        return [self._sums.part_of(worker, row_key, data) for row_key, data in pairs], totals


@asynccontextmanager
async def start_workers(
    count: int, make: Callable[[], Sequence[Projection]], fold: Fold, *, unique_ids: bool, store: Store
) -> AsyncIterator[Workers]:
    """Workers in `count` processes, which fold as `fold` does; they end with the block. Raises `WorkersUnusable`."""
    begin = Begin(sys.path, pickle_function(make), unique_ids, store.commit_changes_max)
    async with start(count, begin, fold.code) as processes:
        yield Workers([_Worker(process) for process in processes], fold)


class _Sums:
    """The rows that are sums over spaces: each worker has a row of its own, and the sum of all is stored."""

    def __init__(self, tables: Mapping[str, Table[Any]]) -> None:
        self._tables = tables
        self._parts: dict[RowAddress, dict[int, bytes | None]] = {}
        """By address and worker."""

    def clear(self) -> None:
        self._parts.clear()

    def part_of(self, worker: int, row_key: RowKey, stored: bytes | None) -> bytes | None:
        """The row of a worker. The first worker that asks gets the stored one, and the others begin with none."""
        if row_key.table not in self._tables:
            return stored
        return self._parts.setdefault(row_key, {worker: stored}).get(worker)

    def put(self, worker: int, address: RowAddress, data: bytes | None) -> bytes | None:
        """Note the row of a worker. Returns the sum."""
        table = self._tables[address[0]]
        parts = self._parts.setdefault(address, {})
        parts[worker] = data
        rows = [table.decode(part) for part in parts.values() if part is not None]
        return table.encode(reduce(table.add, rows)) if rows and table.add else None


class _Worker:
    """One process, and its known rows before the next batch."""

    def __init__(self, process: WorkerProcess) -> None:
        self._process = process
        self.cached = Cached.NONE

    async def fold(self, part: Batch, fetch: Fetch) -> Folded:
        await self._process.send(WorkerPart(part, self.cached))
        while isinstance(answer := await self._process.receive(), WantedRows):
            rows, totals = await fetch(answer.rows, answer.logs)
            await self._process.send(Loaded(rows, totals))
        if isinstance(answer, TooManyChanges):
            raise BatchTooLarge
        if not isinstance(answer, Folded):
            raise WorkersUnusable(answer.reason if isinstance(answer, WorkerRefused) else "an unexpected answer")
        self.cached = Cached.KEPT
        return answer
