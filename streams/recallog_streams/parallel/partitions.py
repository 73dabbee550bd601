"""Workers that work on whole partitions: each reads the ledger and writes the store itself."""

import asyncio
import pickle
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from recallog_projections.concurrency import cancel_all
from recallog_projections.projection import Projection
from recallog_streams.parallel.messages import Advanced, BeginCalls, CallFailed, Returned, WorkerCall
from recallog_streams.parallel.processes import WorkerProcess, WorkersUnusable, pickle_function, start
from recallog_streams.progress import Progress
from recallog_streams.projector import Projector

Result = TypeVar("Result")


class WorkerParts(NamedTuple):
    """What a worker works with."""

    projector: Projector
    projections: Sequence[Projection]


Open = Callable[[], AbstractAsyncContextManager[WorkerParts]]
"""Opens ledger and store in another process. It can be pickled."""
Work = Callable[[WorkerParts, Progress], Awaitable[Result]]


class PartitionWorkers:
    """Processes that execute calls; each executes several at a time."""

    def __init__(self, workers: "Sequence[_Worker]") -> None:
        self._workers = workers

    async def call(self, work: Work[Result], progress: Progress | None) -> Result:
        """The result of `work` in the process with the fewest calls. Raises `WorkersUnusable`, also for errors."""
        running = [each for each in self._workers if each.lost is None]
        if not running:
            raise WorkersUnusable("all worker processes have ended")
        worker = min(running, key=lambda each: len(each.calls))
        result: Result = await worker.call(pickle_function(work), progress)
        return result


@asynccontextmanager
async def open_workers(count: int, open_: Open, code: str) -> AsyncIterator[PartitionWorkers]:
    """Workers in `count` processes, which fold with `code`; they end with the block. Raises `WorkersUnusable`."""
    async with start(count, BeginCalls(sys.path, pickle_function(open_)), code) as processes:
        workers = [_Worker(process) for process in processes]
        listening = [asyncio.create_task(each.listen()) for each in workers]
        try:
            yield PartitionWorkers(workers)
        finally:
            await cancel_all(*listening)


@dataclass(slots=True)
class _Call:
    answer: "asyncio.Future[Any]"
    progress: Progress | None


class _Worker:
    """One process, and the calls that it executes."""

    def __init__(self, process: WorkerProcess) -> None:
        self._process = process
        self._number = 0
        self.calls: dict[int, _Call] = {}
        self.lost: WorkersUnusable | None = None

    async def call(self, work: bytes, progress: Progress | None) -> Any:
        self._number += 1
        number, answer = self._number, asyncio.get_running_loop().create_future()
        self.calls[number] = _Call(answer, progress)
        try:
            await self._process.send(WorkerCall(number, work))
            return await answer
        finally:
            self.calls.pop(number, None)

    async def listen(self) -> None:
        """Give each answer to its call, until the process ends."""
        try:
            while True:
                self._answer(await self._process.receive())
        except WorkersUnusable as error:
            self.lost = error
            for call in self.calls.values():
                if not call.answer.done():
                    call.answer.set_exception(error)

    def _answer(self, message: object) -> None:
        if not isinstance(message, Advanced | Returned | CallFailed):
            raise WorkersUnusable("an unexpected answer")
        call = self.calls.get(message.number)
        if call is None or call.answer.done():
            return
        try:
            if isinstance(message, Returned):
                call.answer.set_result(pickle.loads(message.result))
            elif isinstance(message, CallFailed):
                call.answer.set_exception(WorkersUnusable(message.reason))
            elif call.progress is not None:
                call.progress(message.done, message.total)
        except Exception as error:  # noqa: BLE001 - of a callback: the call raises it
            call.answer.set_exception(error)
