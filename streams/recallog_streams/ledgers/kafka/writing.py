"""Appends to a topic: idempotent, acknowledged by all replicas in sync, batched.

The events of a call are sent by partition: a few through `send`, where concurrent calls share a batch and one round
trip; many as batches of their own, which takes a third of the time. A call has one batch in flight in each partition,
so that events of a space are never reordered, also if a batch fails.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, KafkaTimeoutError

from recallog_schemas import Event, Position
from recallog_schemas.errors import InvariantViolation, StorageUnavailable, UnknownOutcome
from recallog_streams.ledgers.kafka.aiokafka_internals import end_without_flushing
from recallog_streams.ledgers.kafka.connection import KafkaConnection
from recallog_streams.ledgers.kafka.failures import REFUSED, name_error
from recallog_streams.ledgers.kafka.headers import headers_of

SHARED_EVENTS: Final = 100
"""Up to this many events of one partition are sent through `send`."""
BATCH_BYTES: Final = 512 * 1024
"""The size of a batch before compression."""


class Message(NamedTuple):
    """An event to be sent, with its bytes and its partition."""

    partition: int
    event: Event
    value: bytes
    appended: int
    """The time of the record: when the event was first appended, in milliseconds since 1970."""
    traceparent: str | None = None
    """The header that names the span of its publisher."""


class _Sent:
    """The state of the messages of one call."""

    def __init__(self, count: int) -> None:
        self.positions: list[Position | None] = [None] * count
        self.handed_over = False

    @property
    def known(self) -> int:
        return sum(position is not None for position in self.positions)


class Writer:
    """Owns the producer, and replaces one that has failed: after a lost batch its sequence numbers are invalid."""

    def __init__(self, connection: KafkaConnection) -> None:
        self._connection = connection
        self._address = connection.address
        self._producer: AIOKafkaProducer | None = None
        self._lock = asyncio.Lock()
        self._turns: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._leaving: set[asyncio.Task[None]] = set()

    async def append(self, messages: Sequence[Message], batch_bytes: int, give_up: float) -> list[Position]:
        """The positions of `messages`, once they are durable; it waits until `give_up`, a time of the event loop.

        Raises `StorageUnavailable` or `StorageError` if nothing was written, else `UnknownOutcome`.
        """
        sent = _Sent(len(messages))
        failures: list[Exception] = []
        try:
            async with asyncio.timeout_at(give_up):
                producer = await self._ready(batch_bytes)
                failures = await self._send(producer, messages, sent)
        except TimeoutError as error:
            if not sent.handed_over:
                raise StorageUnavailable(
                    f"{self._address} has not answered for {self._address.timeout_seconds:g} seconds while connecting "
                    "to append; nothing was written. Try again"
                ) from None
            # The producer continues to retry. It is not replaced, since a new one could write before it.
            failures = [error]
        positions = [position for position in sent.positions if position is not None]
        if len(positions) == len(messages):
            return positions
        for failure in failures:
            if not isinstance(failure, KafkaError | TimeoutError):
                raise failure
        # Not a failure: all are written, but the broker no longer knows their positions.
        failures = failures or [KafkaError("their positions are not known")]
        if not sent.known and (not sent.handed_over or all(isinstance(failure, REFUSED) for failure in failures)):
            raise name_error(failures[0], self._address, "appending; nothing was written") from failures[0]
        because = str(failures[0]) or f"no answer for {self._address.timeout_seconds:g} seconds"
        raise UnknownOutcome(
            f"of {len(messages):,} events {sent.known:,} are known to be written to {self._address}, the others may "
            f"be ({because}). Send them again with the same ids, which is safe"
        ) from failures[0]

    async def _send(self, producer: AIOKafkaProducer, messages: Sequence[Message], sent: _Sent) -> list[Exception]:
        """Send the shares of all partitions at once, and return the errors."""
        failures: list[Exception]
        shares: defaultdict[int, list[int]] = defaultdict(list)
        for number, message in enumerate(messages):
            shares[message.partition].append(number)
        work = [
            (self._few if len(share) <= SHARED_EVENTS else self._many)(producer, messages, share, sent)
            for share in shares.values()
        ]
        if len(work) == 1:  # the usual case, which needs no task
            failures = []
            try:
                await work[0]
            except KafkaError as error:
                failures.append(error)
        else:
            answers = await asyncio.gather(*work, return_exceptions=True)
            failures = [answer for answer in answers if isinstance(answer, Exception)]
        if failures and sent.handed_over:
            self._replace(producer)
        return failures

    async def _few(
        self, producer: AIOKafkaProducer, messages: Sequence[Message], share: list[int], sent: _Sent
    ) -> None:
        futures: list[asyncio.Future[Any]] = []
        try:
            for number in share:
                partition, event, value, appended, traceparent = messages[number]
                key, headers = event.space.encode(), headers_of(event, traceparent)
                futures.append(await producer.send(self._address.topic, value, key, partition, appended, headers))
                sent.handed_over = True
            for future in futures:
                await future
        finally:
            for number, future in zip(share, futures, strict=False):
                if future.done() and not future.cancelled() and future.exception() is None:
                    _note(sent, number, messages[number].partition, future.result().offset)
                else:
                    future.cancel()  # otherwise asyncio logs its error as never retrieved

    async def _many(
        self, producer: AIOKafkaProducer, messages: Sequence[Message], share: list[int], sent: _Sent
    ) -> None:
        in_flight: tuple[asyncio.Future[Any], list[int]] | None = None
        done = 0
        while done < len(share):
            batch = producer.create_batch()
            first = done
            while done < len(share):
                _, event, value, appended, traceparent = messages[share[done]]
                # Headers are created here and not before: ten thousand lists at once slow the garbage collector.
                key, headers = event.space.encode(), headers_of(event, traceparent)
                if batch.append(timestamp=appended, key=key, value=value, headers=headers) is None:
                    break
                done += 1
            batch.close()
            if done == first:
                raise InvariantViolation("an event is larger than a batch")
            if in_flight is not None:
                await _note_arrival(*in_flight, messages, sent)
            partition = messages[share[first]].partition
            in_flight = await self._hand_over(producer, batch, partition), share[first:done]
            sent.handed_over = True
        if in_flight is not None:
            await _note_arrival(*in_flight, messages, sent)

    async def _hand_over(self, producer: AIOKafkaProducer, batch: Any, partition: int) -> asyncio.Future[Any]:
        # One at a time: if several tasks wait for one partition, aiokafka (0.14) counts the time several times.
        async with self._turns[partition]:
            while True:
                with suppress(KafkaTimeoutError):  # the time limit of the call applies instead
                    future: asyncio.Future[Any] = await producer.send_batch(
                        batch, self._address.topic, partition=partition
                    )
                    return future

    async def _ready(self, batch_bytes: int) -> AIOKafkaProducer:
        async with self._lock:
            self._connection.check_open()
            if self._producer is None:
                try:
                    producer = await self._connection.start_producer(
                        acks="all",
                        enable_idempotence=True,
                        compression_type="zstd",
                        max_batch_size=min(BATCH_BYTES, batch_bytes),
                    )
                except (KafkaError, OSError) as error:
                    raise name_error(error, self._address, "connecting to append; nothing was written") from error
                self._producer = producer
            return self._producer

    def _replace(self, producer: AIOKafkaProducer) -> None:
        """Let the next call start another producer; this one stops once the outcome of all its batches is known."""
        if self._producer is producer:
            self._producer = None
            leaving = asyncio.create_task(_stop(producer, self._connection.deadline_seconds))
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)

    async def close(self) -> None:
        """Wait up to the deadline for batches in flight, then abandon them. A producer that starts ends when it has."""
        if self._producer is not None:
            self._replace(self._producer)
        if self._leaving:
            await asyncio.wait(self._leaving)


async def _stop(producer: AIOKafkaProducer, seconds: float) -> None:
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await producer.flush()
                await producer.stop()
    finally:
        # Its `stop` would wait without a limit for an unreachable broker. Callers of `append` have their own limit.
        await end_without_flushing(producer)


async def _note_arrival(
    future: asyncio.Future[Any], share: list[int], messages: Sequence[Message], sent: _Sent
) -> None:
    offset = (await future).offset
    for number in share:
        _note(sent, number, messages[number].partition, offset)
        offset += 1


def _note(sent: _Sent, number: int, partition: int, offset: int) -> None:
    if offset >= 0:  # -1: written, but so long ago that the broker no longer knows the offset
        sent.positions[number] = Position(partition, offset)
