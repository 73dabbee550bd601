"""The messages between the process that commits and its workers, over a socket: a length, then msgpack."""

import struct
from asyncio import StreamReader
from collections.abc import Mapping, Sequence
from enum import Enum
from io import BufferedRWPair
from typing import TypeAlias

import msgspec

from recallog_projections.tables import LogName, RowKey
from recallog_streams.ledgers.ledger import Batch

RowAddress: TypeAlias = tuple[str, str, str, str]
LogAddress: TypeAlias = tuple[str, str, str]

HEADER = struct.Struct(">Q")


class Begin(msgspec.Struct, tag=True):
    """To a started worker that will fold the records of some spaces."""

    path: Sequence[str]
    """Where it finds modules: `sys.path` of the program that has started it."""
    make: bytes
    """Pickled: the function that makes the projections."""
    unique_ids: bool
    changes_max: int
    """How many changes of one batch it sends."""


class BeginCalls(msgspec.Struct, tag=True):
    """To a started worker that will work on whole partitions."""

    path: Sequence[str]
    open: bytes
    """Pickled: the function that opens the projector, with its projections."""


class Ready(msgspec.Struct, tag=True):
    """From a worker: the code that it folds with. It is compared with that of the process that commits."""

    code: str
    kinds: Mapping[str, str]
    """The registered kinds, and their definitions."""


class Cached(Enum):
    """What is known of the rows before a batch."""

    KEPT = "kept"
    """They are the rows after the previous batch."""
    NONE = "none"
    """No row is known: the worker's rows in memory are not valid."""
    COMPLETE = "complete"
    """No row exists."""


class WorkerPart(msgspec.Struct, tag=True):
    """To a worker: the records of its spaces in a batch. It replaces a part that is not folded yet."""

    batch: Batch
    cached: Cached


class WantedRows(msgspec.Struct, tag=True):
    """From a worker: rows, and totals of logs, that it lacks."""

    rows: Sequence[RowKey]
    logs: Sequence[LogName]


class Loaded(msgspec.Struct, tag=True):
    """To a worker: the rows and totals that it lacked, in the order of its request."""

    rows: Sequence[bytes | None]
    totals: Sequence[int]


class Folded(msgspec.Struct, tag=True):
    """From a worker: the changes of its part."""

    rows: Mapping[RowAddress, bytes | None]
    sums: Mapping[RowAddress, bytes | None]
    """The rows that are sums over spaces, with what this worker has folded."""
    logs: Mapping[LogAddress, Sequence[bytes]]
    keep: Mapping[str, int]


class TooManyChanges(msgspec.Struct, tag=True):
    """From a worker: its part has more than `changes_max` changes. Its rows in memory are not valid."""


class WorkerRefused(msgspec.Struct, tag=True):
    """From a worker: it cannot fold its part, and stops."""

    reason: str


class WorkerCall(msgspec.Struct, tag=True):
    """To a worker: work on a partition."""

    number: int
    work: bytes
    """Pickled: the function that does it."""


class Advanced(msgspec.Struct, tag=True):
    """From a worker: the progress of a call."""

    number: int
    done: int
    total: int


class Returned(msgspec.Struct, tag=True):
    """From a worker: the result of a call, pickled."""

    number: int
    result: bytes


class CallFailed(msgspec.Struct, tag=True):
    """From a worker: a call has raised an error."""

    number: int
    reason: str


ToWorker = Begin | BeginCalls | WorkerPart | Loaded | WorkerCall
FromWorker = Ready | WantedRows | Folded | TooManyChanges | WorkerRefused | Advanced | Returned | CallFailed

_encode = msgspec.msgpack.Encoder().encode
to_worker: "msgspec.msgpack.Decoder[ToWorker]" = msgspec.msgpack.Decoder(ToWorker)
from_worker: "msgspec.msgpack.Decoder[FromWorker]" = msgspec.msgpack.Decoder(FromWorker)


def frame(message: ToWorker | FromWorker) -> tuple[bytes, bytes]:
    """The length and the bytes of a message."""
    data = _encode(message)
    return HEADER.pack(len(data)), data


async def read_frame(reader: StreamReader) -> bytes:
    """The bytes of the next message. Raises `asyncio.IncompleteReadError` or `ConnectionError` at the end."""
    return await reader.readexactly(*HEADER.unpack(await reader.readexactly(HEADER.size)))


class Pipe:
    """The worker's end of the socket."""

    def __init__(self, stream: BufferedRWPair) -> None:
        self._stream = stream

    def send(self, message: FromWorker) -> None:
        self._stream.writelines(frame(message))
        self._stream.flush()

    def receive(self) -> ToWorker | None:
        """The next message; None if the other end is closed, or its process has ended."""
        header = self._stream.read(HEADER.size)
        if len(header) < HEADER.size:
            return None
        size_bytes = HEADER.unpack(header)[0]
        data = self._stream.read(size_bytes)
        return to_worker.decode(data) if len(data) == size_bytes else None
