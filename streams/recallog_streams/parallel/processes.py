"""Worker processes, and the sockets through which they get their work."""

import asyncio
import pickle
import socket
import subprocess
import sys
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager, closing

from recallog_schemas import kinds
from recallog_streams.parallel import messages
from recallog_streams.parallel.messages import Begin, BeginCalls, FromWorker, Ready, ToWorker, WorkerRefused

_BUFFER_BYTES = 16 * 1024 * 1024


class WorkersUnusable(Exception):
    """Workers cannot, or can no longer, fold these records."""


class WorkerLost(WorkersUnusable):
    """A worker has ended."""


class WorkerProcess:
    """One process, and this end of its socket."""

    def __init__(self, process: "subprocess.Popen[bytes]", reader: StreamReader, writer: StreamWriter) -> None:
        self._process, self._reader, self._writer = process, reader, writer

    @classmethod
    async def start(cls) -> "WorkerProcess":
        ours, theirs = socket.socketpair()
        with theirs, ExitStack() as failed:
            # First, so that a caller that is cancelled meanwhile leaves no process.
            reader, writer = await asyncio.open_connection(sock=ours, limit=_BUFFER_BYTES)
            failed.callback(writer.close)
            # Its standard output is separate: a projection may print to it.
            process = subprocess.Popen(
                [sys.executable, "-m", "recallog_streams.parallel.worker", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=2,
                pass_fds=[theirs.fileno()],
            )
            failed.pop_all()
        return cls(process, reader, writer)

    async def begin(self, begin: Begin | BeginCalls, code: str) -> None:
        """Raises `WorkersUnusable` if it does not fold as this process does."""
        await self.send(begin)
        answer = await self.receive()
        ours = {kind: kinds.definition(kind) for kind in kinds.list_registered()}
        if isinstance(answer, WorkerRefused):
            raise WorkersUnusable(f"other processes cannot make the projections: {answer.reason}")
        if not isinstance(answer, Ready) or (answer.code, answer.kinds) != (code, ours):
            raise WorkersUnusable("other processes do not know the same kinds of events")

    async def send(self, message: ToWorker) -> None:
        """Raises `WorkerLost`."""
        try:
            self._writer.writelines(messages.frame(message))
            await self._writer.drain()
        except ConnectionError as error:
            raise self._make_lost_error() from error

    async def receive(self) -> FromWorker:
        """Raises `WorkerLost`."""
        try:
            return messages.from_worker.decode(await messages.read_frame(self._reader))
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise self._make_lost_error() from error

    def _make_lost_error(self) -> WorkerLost:
        code = self._process.wait()
        return WorkerLost(f"a worker process has ended with exit code {code}")

    def close(self) -> None:
        self._writer.close()
        self._process.kill()  # another process repeats what it has not committed
        self._process.wait()


def pickle_function(function: object) -> bytes:
    """Raises `WorkersUnusable` if other processes cannot get it."""
    try:
        return pickle.dumps(function)
    except Exception as error:  # objects of users may raise anything
        raise WorkersUnusable(f"other processes cannot get the projections: {error}") from error


@asynccontextmanager
async def start(count: int, begin: Begin | BeginCalls, code: str) -> AsyncIterator[Sequence[WorkerProcess]]:
    """`count` processes that have begun; they end with the block. Raises `WorkersUnusable`."""
    with ExitStack() as running:
        try:
            processes = [running.enter_context(closing(await WorkerProcess.start())) for _ in range(count)]
        except OSError as error:
            raise WorkersUnusable(f"other processes cannot be started: {error}") from error
        await asyncio.gather(*(each.begin(begin, code) for each in processes))
        yield processes
