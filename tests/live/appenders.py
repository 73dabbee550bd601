"""Threads that publish to a topic without a pause, and remember what was acknowledged."""

import asyncio
import threading
from collections import Counter
from collections.abc import Sequence

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from live.support import wait_until
from recallog import Position, Settings
from recallog.composition import ledger_at
from recallog_schemas import Event, codec
from recallog_schemas.errors import LedgerMoved, StorageUnavailable, UnknownOutcome
from recallog_streams.ledgers.ledger import Ledger
from support.events import event


def opened(url: str) -> Ledger:
    return ledger_at(url, Settings(ledger=url, views="memory://", deadline_seconds=10))


def events_in(url: str) -> dict[Position, Event]:
    """All events of a topic by their position."""

    async def work() -> dict[Position, Event]:
        ledger = opened(url)
        found: dict[Position, Event] = {}
        try:
            for partition, end in enumerate(await ledger.ends()):
                async for batch in ledger.read(partition, 0, end):
                    found |= {Position(partition, offset): codec.decode(data) for offset, data in batch.records}
        finally:
            await ledger.close()
        return found

    return asyncio.run(work())


class Appender(threading.Thread):
    """Appends to a topic until it is stopped or the ledger has moved, and repeats each call until it is
    acknowledged."""

    def __init__(self, url: str, spaces: Sequence[str]) -> None:
        super().__init__(daemon=True)
        self._url = url
        self._spaces = spaces
        self._enough = threading.Event()
        self.acknowledged: dict[Position, Event] = {}
        """In the order in which they were appended."""
        self.failures: Counter[str] = Counter()
        self.moved_to = ""

    def run(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        ledger = opened(self._url)
        try:
            while not self._enough.is_set() and not self.moved_to:
                await self._append_turn(ledger)
                await asyncio.sleep(0.01)
        finally:
            await ledger.close()

    async def _append_turn(self, ledger: Ledger) -> None:
        events = [event(space=space) for space in self._spaces]
        while True:
            try:
                positions = await ledger.append(events)
            except (StorageUnavailable, UnknownOutcome) as error:
                self.failures[type(error).__name__] += 1
                await asyncio.sleep(0.1)
            except LedgerMoved as error:
                self.moved_to = error.ledger
                return
            else:
                self.acknowledged.update(zip(positions, events, strict=True))
                return

    def stop(self) -> None:
        self._enough.set()
        self.join()

    def wait_for(self, more: int) -> None:
        """Wait until `more` events are acknowledged."""
        wanted = len(self.acknowledged) + more
        wait_until(lambda: len(self.acknowledged) >= wanted, f"{more} events are acknowledged")


class ForeignProducer(threading.Thread):
    """A program that knows nothing of Recallog: it sends events to a topic until it is stopped, refused ones too."""

    def __init__(self, bootstrap: str, topic: str, spaces: Sequence[str]) -> None:
        super().__init__(daemon=True)
        self._servers, self._topic, self._spaces = bootstrap, topic, spaces
        self._enough = threading.Event()
        self.acknowledged: list[Event] = []
        self.refused = 0

    def run(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        async with AIOKafkaProducer(bootstrap_servers=self._servers, acks="all", linger_ms=0) as producer:
            await asyncio.gather(*(self._send(producer, space) for space in self._spaces))

    async def _send(self, producer: AIOKafkaProducer, space: str) -> None:
        while not self._enough.is_set():
            sent = event(space=space)
            try:
                await producer.send_and_wait(self._topic, codec.encode(sent), space.encode())
            except MessageSizeTooLargeError:
                self.refused += 1
            except KafkaError:
                pass  # perhaps it is written, and nobody relies on it
            else:
                self.acknowledged.append(sent)
            await asyncio.sleep(0.002)

    @property
    def answers(self) -> int:
        return len(self.acknowledged) + self.refused

    def stop(self) -> None:
        self._enough.set()
        self.join()

    def wait_for_refusals(self, more: int) -> None:
        """Wait until `more` events are refused."""
        wanted = self.refused + more
        wait_until(lambda: self.refused >= wanted, f"{more} events are refused")
