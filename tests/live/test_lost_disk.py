"""A broker loses its disk while events are published: with replicas nothing that was acknowledged is lost."""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from live.brokers import Brokers
from live.conftest import started_server
from live.support import wait_until
from recallog import Position, Settings
from recallog.composition import ledger_at
from recallog_schemas import codec
from recallog_schemas.errors import StorageUnavailable, UnknownOutcome
from recallog_streams.ledgers.ledger import Ledger
from support.events import event

SPACES = [f"space-{number}" for number in range(12)]
BROKERS = {1, 2, 3}


@pytest.fixture
def brokers(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Brokers]:
    brokers = Brokers(tmp_path)
    try:
        started_server(brokers.first, request.config)
        brokers.start()
        yield brokers
    finally:
        brokers.kill()


class Appender(threading.Thread):
    """Appends to a topic until it is stopped, and repeats each call until it is acknowledged."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._url = url
        self._enough = threading.Event()
        self.acknowledged: dict[Position, str] = {}
        """The ids of events by their position."""
        self.failures: Counter[str] = Counter()

    def run(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        ledger = opened(self._url)
        try:
            while not self._enough.is_set():
                await self._append_turn(ledger)
                await asyncio.sleep(0.01)
        finally:
            await ledger.close()

    async def _append_turn(self, ledger: Ledger) -> None:
        events = [event(space=space) for space in SPACES]
        while True:
            try:
                positions = await ledger.append(events)
            except (StorageUnavailable, UnknownOutcome) as error:
                self.failures[type(error).__name__] += 1
                await asyncio.sleep(0.1)
            else:
                self.acknowledged.update(zip(positions, (each.id for each in events), strict=True))
                return

    def stop(self) -> None:
        self._enough.set()
        self.join()

    def wait_for(self, more: int) -> None:
        """Wait until `more` events are acknowledged."""
        wanted = len(self.acknowledged) + more
        wait_until(lambda: len(self.acknowledged) >= wanted, f"{more} events are acknowledged")


def opened(url: str) -> Ledger:
    return ledger_at(url, Settings(ledger=url, views="memory://", deadline_seconds=10))


def records_in(url: str) -> dict[Position, str]:
    """The ids of all events of a topic by their position."""

    async def work() -> dict[Position, str]:
        ledger = opened(url)
        found: dict[Position, str] = {}
        try:
            for partition, end in enumerate(await ledger.ends()):
                async for batch in ledger.read(partition, 0, end):
                    found |= {Position(partition, offset): codec.decode(data).id for offset, data in batch.records}
        finally:
            await ledger.close()
        return found

    return asyncio.run(work())


def test_a_broker_that_loses_its_disk_loses_no_acknowledged_event(brokers: Brokers, topic: str) -> None:
    url = f"kafka://{brokers.bootstrap}/{topic}?partitions=6&replication=3"  # min_insync is 2
    appender, lost = Appender(url), brokers.others[0]
    appender.start()
    appender.wait_for(200)
    assert brokers.in_sync(topic) == [BROKERS] * 6
    assert lost.number in brokers.leaders(topic)

    lost.lose_disk()
    appender.wait_for(200)
    wait_until(lambda: brokers.in_sync(topic) == [BROKERS - {lost.number}] * 6, "the others go on without it")
    lost.start()
    wait_until(lambda: brokers.in_sync(topic) == [BROKERS] * 6, "the broker has all records again")
    wait_until(lambda: lost.number in brokers.leaders(topic), "it leads partitions again")
    appender.wait_for(200)

    appender.stop()
    print(f"{len(appender.acknowledged):,} acknowledged; {dict(appender.failures)}")
    found = records_in(url)
    assert {position: found.get(position) for position in appender.acknowledged} == appender.acknowledged
    assert set(found.values()) == set(appender.acknowledged.values())
