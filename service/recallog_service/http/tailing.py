"""Tails of the ledger: one task per partition reads new records, and passes them to all streams that follow a space."""

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import cast

from recallog import Memory
from recallog.following.entries import entry_of
from recallog_schemas import Position, limits
from recallog_schemas.errors import OutOfRange, RecallogError
from recallog_service import logs
from recallog_service.http import sse
from recallog_streams.ledgers.ledger import Batch, parts_of

POLL_SECONDS = 0.03
"""Seconds between two reads of the ledger's ends while it grows: a third of the allowed latency of a delivery."""
IDLE_SECONDS = 0.1
"""Maximum of these seconds, after reads that found nothing new."""
RETRY_SECONDS = 1.0
"""Seconds to wait after an error of the ledger."""
BACKLOG_BYTES_MAX = 4 * 1024 * 1024
"""Backlog allowed per client: sixteen of the largest events. A client that is farther behind is dropped, and reads the
rest from the ledger when it reconnects."""
CHUNK_BYTES = 64 * 1024
"""Bytes that are sent at once."""
PART_BYTES = 512 * 1024
"""Bytes of the ledger that are passed on before streams get time to send them."""
TURN_SECONDS = 0.005
TURNS_MAX = 50
"""Number of turns, of `TURN_SECONDS` each, for which others wait for one stream in a burst. Turns are counted rather
than seconds because in each turn, however busy the server is, a client that reads is sent a chunk."""
WINDOW_RECORDS = 16
"""Records of the first read of a stream that catches up. Later reads are larger while records are small."""
WINDOW_BYTES = 256 * 1024
"""Approximate memory of a stream that catches up; all clients may reconnect at once."""


@dataclass(frozen=True)
class FrameChunk:
    """Consecutive events of one space as (offset, frame), shared by all streams of the space."""

    frames: Sequence[tuple[int, bytes]]

    @cached_property
    def data(self) -> bytes:
        """All frames."""
        return b"".join(frame for _, frame in self.frames)

    def since(self, offset: int) -> bytes:
        """The frames of the events from `offset` on."""
        if self.frames[0][0] >= offset:
            return self.data
        return b"".join(frame for at, frame in self.frames if at >= offset)


class Subscription:
    """The unsent events of one stream, at most `BACKLOG_BYTES_MAX`."""

    def __init__(self, partition: int, space: str) -> None:
        self.partition = partition
        self.space = space
        self.ended: sse.End | None = None
        """Why the subscription has ended; None while more events may come."""
        self._chunks: deque[FrameChunk] = deque()
        self._bytes = 0
        self._changed = asyncio.Event()

    def offer(self, chunk: FrameChunk) -> None:
        """Append a chunk, or end the stream as slow if the backlog would be too large."""
        if self.ended:
            return
        self._bytes += len(chunk.data)
        if self._bytes > BACKLOG_BYTES_MAX and self._chunks:
            self.end(sse.End.SLOW)
            return
        self._chunks.append(chunk)
        self._changed.set()

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self._chunks

    @property
    def is_half_full(self) -> bool:
        """Whether the backlog has reached half of its limit."""
        return self._bytes > BACKLOG_BYTES_MAX // 2

    def skip(self, chunk: FrameChunk) -> int:
        """Drop the chunks after `chunk`, for a stream that reads them from the ledger. Returns the offset of the last
        event."""
        last = self._chunks[-1] if self._chunks else chunk
        self._chunks.clear()
        self._bytes = 0
        return last.frames[-1][0]

    def end(self, reason: sse.End) -> None:
        """Drop the backlog: the client reads it from the ledger when it reconnects."""
        self.ended = reason
        self._chunks.clear()
        self._bytes = 0
        self._changed.set()

    async def next(self) -> FrameChunk | None:
        """The next chunk; None after a silence, and at the end."""
        if not self._chunks and not self.ended:
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(sse.HEARTBEAT_SECONDS):
                    await self._changed.wait()
        if not self._chunks:
            return None
        chunk = self._chunks.popleft()
        self._bytes -= len(chunk.data)
        return chunk


class Tailer:
    """Reads the new records of one partition while at least one stream follows it."""

    def __init__(self, memory: Memory, partition: int) -> None:
        self._memory = memory
        self._partition = partition
        self._subscriptions: dict[str, set[Subscription]] = {}
        self._task: asyncio.Task[None] | None = None
        self._grown = asyncio.Event()
        self.next = 0
        """The offset of the next record to pass on. It is valid while streams follow."""

    @property
    def streams(self) -> int:
        """How many streams follow."""
        return sum(map(len, self._subscriptions.values()))

    def add(self, subscription: Subscription, end: int) -> None:
        """Pass on records from `next` on; if no stream follows the partition yet, from `end`, the end of the ledger."""
        if self._task is None:
            self.next = end
            self._task = asyncio.create_task(self._follow(), name=f"tail of partition {self._partition}")
        self._subscriptions.setdefault(subscription.space, set()).add(subscription)

    def remove(self, subscription: Subscription) -> None:
        """Stop passing records to a stream."""
        found = self._subscriptions.get(subscription.space, set())
        found.discard(subscription)
        if not found:
            self._subscriptions.pop(subscription.space, None)
        if not self._subscriptions and self._task is not None:
            self._task.cancel()
            self._task = None

    def reach(self, end: int) -> bool:
        """Read up to `end`, the current end of the ledger. Returns whether there is anything new."""
        if end > self.next:
            self._grown.set()
        return end > self.next

    def end(self, reason: sse.End) -> None:
        """End all streams."""
        for each in self._following():
            each.end(reason)

    async def _follow(self) -> None:
        while True:
            await self._grown.wait()
            self._grown.clear()
            try:
                await self._read()
            except RecallogError as error:
                logs.event("a tail waits for the ledger", error=type(error).__name__, partition=self._partition)
                await asyncio.sleep(RETRY_SECONDS)
            except Exception:
                self._task = None
                self.end(sse.End.ERROR)
                raise

    async def _read(self) -> None:
        """Pass on new records in parts, so that streams can send between them: all together may exceed the backlog's
        limit."""
        waited = Counter[Subscription]()
        records = self._memory.admin.records(Position(self._partition, self.next))
        async with aclosing(cast("AsyncGenerator[Batch]", records)) as batches:
            is_first = True
            async for batch in batches:
                for part in parts_of(batch, None, PART_BYTES):
                    if not is_first:
                        await self._room(waited)
                    is_first = False
                    self._hand_out(part)
                    self.next = part.next

    async def _room(self, waited: Counter[Subscription]) -> None:
        """Wait until no backlog is half full, but at most `TURNS_MAX` turns for slow streams."""
        await asyncio.sleep(0)
        while held := [each for each in self._following() if each.is_half_full and waited[each] < TURNS_MAX]:
            if any(each.is_empty for each in self._following()):
                waited.update(held)
            await asyncio.sleep(TURN_SECONDS)

    def _following(self) -> Iterator[Subscription]:
        return chain.from_iterable(self._subscriptions.values())

    def _hand_out(self, batch: Batch) -> None:
        by_space = dict[str, list[tuple[int, bytes]]]()
        for offset, data in batch.records:
            event = entry_of(Position(batch.partition, offset), data).event
            if event is not None and event.space in self._subscriptions:
                by_space.setdefault(event.space, []).append((offset, _frame(batch.partition, offset, data)))
        for space, frames in by_space.items():
            for chunk in chunks_of(frames):
                for subscription in self._subscriptions[space]:
                    subscription.offer(chunk)


class Tails:
    """The tails of all partitions of a memory. One task reads the ends of the ledger for all of them."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._tailers: dict[int, Tailer] = {}
        self._watching: asyncio.Task[None] | None = None
        self.is_stopping = False
        self.dropped = 0
        """Number of streams dropped because their clients were slow."""

    @property
    def streams(self) -> int:
        """How many streams follow."""
        return sum(each.streams for each in self._tailers.values())

    def close(self) -> None:
        """End all current and future streams with the reason that the server stops."""
        self.is_stopping = True
        self._end(sse.End.STOPPING)

    async def follow(self, space: str) -> Subscription:
        """Subscribe to the events of a space that are appended from now on, until `leave`."""
        return self._subscribe(space, await self.begin(space, None))

    def leave(self, subscription: Subscription) -> None:
        """End a subscription."""
        self._tailer(subscription.partition).remove(subscription)
        if self.streams == 0 and self._watching is not None:
            self._watching.cancel()
            self._watching = None

    def count(self, subscription: Subscription) -> None:
        """Count a dropped stream whose client got the reason. A client that does not read is counted as stalled."""
        self.dropped += subscription.ended == sse.End.SLOW

    async def begin(self, space: str, start: Position | None) -> Position:
        """The position at which a tail begins: `start`, up to the end of the ledger, or the current end.

        Raises `OutOfRange`.
        """
        partition = await self._memory.admin.partition_of(space)
        end = (await self._memory.admin.ledger_ends())[partition]
        if start is None:
            return Position(partition, end)
        if start.partition != partition:
            raise OutOfRange(f"start: the space is in partition {partition}, not in {start.partition}", path="start")
        if start.offset > end:
            raise OutOfRange(f"start: the ledger ends at {partition}:{end}, before {start}", path="start")
        return start

    async def frames(self, space: str, begin: Position) -> AsyncGenerator[bytes]:
        """The events of a space as frames, from `begin` on and then as they are appended, without gaps or repeats."""
        offset, tailer = begin.offset, self._tailer(begin.partition)
        window, last_beat = WINDOW_RECORDS, time.monotonic()
        while True:
            # What the tailer passed on before this is in the ledger.
            end = (await self._memory.admin.ledger_ends())[begin.partition]
            while offset < end and not self.is_stopping:
                until = min(end, offset + window)
                size, found = 0, list[tuple[int, bytes]]()
                async for batch in self._batches(begin.partition, offset, until, space):
                    size += sum(len(data) for _, data in batch.records)
                    found += [(at, _frame(batch.partition, at, data)) for at, data in events_of(batch, space)]
                for chunk in chunks_of(found):
                    yield chunk.data
                # Many records of other spaces may lie between two events of this space.
                if not found and time.monotonic() - last_beat > sse.HEARTBEAT_SECONDS:
                    yield sse.HEARTBEAT
                    last_beat = time.monotonic()
                offset = until
                window = max(1, window // 2) if size > WINDOW_BYTES else min(2 * window, limits.READ_BATCH_RECORDS)
            if self.is_stopping or tailer.streams == 0 or offset >= tailer.next:
                break
        subscription = self._subscribe(space, Position(begin.partition, offset))
        try:
            while not subscription.ended:
                some = await subscription.next()
                data = sse.HEARTBEAT if some is None else some.since(offset)
                if data and not subscription.ended:
                    yield data
            yield sse.make_end(subscription.ended)
            self.count(subscription)
        finally:
            self.leave(subscription)

    def _subscribe(self, space: str, begin: Position) -> Subscription:
        subscription = Subscription(begin.partition, space)
        if self.is_stopping:
            subscription.end(sse.End.STOPPING)
            return subscription
        self._tailer(begin.partition).add(subscription, begin.offset)
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch(), name="ends of the ledger")
        return subscription

    async def _watch(self) -> None:
        """Pass the ends of the ledger to the tailers of followed partitions."""
        pause_seconds = POLL_SECONDS
        while True:
            try:
                ends = await self._memory.admin.ledger_ends()
                grown = [each.reach(ends[partition]) for partition, each in self._tailers.items() if each.streams]
                pause_seconds = POLL_SECONDS if any(grown) else min(1.5 * pause_seconds, IDLE_SECONDS)
                await asyncio.sleep(pause_seconds)
            except RecallogError as error:
                logs.event("tails wait for the ledger", error=type(error).__name__)
                await asyncio.sleep(RETRY_SECONDS)
            except Exception:
                self._watching = None
                self._end(sse.End.ERROR)
                raise

    def _end(self, reason: sse.End) -> None:
        for each in self._tailers.values():
            each.end(reason)

    async def _batches(self, partition: int, start: int, until: int, space: str) -> AsyncGenerator[Batch]:
        records = self._memory.admin.records(Position(partition, start), space, until=Position(partition, until))
        async with aclosing(cast("AsyncGenerator[Batch]", records)) as batches:
            async for batch in batches:
                yield batch

    def _tailer(self, partition: int) -> Tailer:
        if partition not in self._tailers:
            self._tailers[partition] = Tailer(self._memory, partition)
        return self._tailers[partition]


def chunks_of(frames: Sequence[tuple[int, bytes]]) -> Iterator[FrameChunk]:
    """Frames in chunks of at most `CHUNK_BYTES`, or of one larger frame: the server buffers one chunk per client."""
    some, size = list[tuple[int, bytes]](), 0
    for each in frames:
        if some and size + len(each[1]) > CHUNK_BYTES:
            yield FrameChunk(some)
            some, size = [], 0
        some.append(each)
        size += len(each[1])
    if some:
        yield FrameChunk(some)


def events_of(batch: Batch, space: str) -> Iterator[tuple[int, bytes]]:
    """The events of a space in a batch, as (offset, bytes in the ledger).

    Records that are not events are left out; `dead_letters` shows them.
    """
    for offset, data in batch.records:
        event = entry_of(Position(batch.partition, offset), data).event
        if event is not None and event.space == space:
            yield offset, data


def _frame(partition: int, offset: int, data: bytes) -> bytes:
    """An event as a frame: the id is its position, the data are its bytes in the ledger."""
    return sse.make_frame(data, last_id=str(Position(partition, offset)))
