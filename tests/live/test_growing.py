"""A ledger is copied to a topic with more partitions while producers publish, and the producers are sent there."""

import asyncio
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import MessageSizeTooLargeError

from live.conftest import NewRedis
from live.servers import recallog
from live.support import PARTITIONS, SECONDS, Cluster, Worker, wait_until
from live.test_topic_settings import alter
from recallog import Memory
from recallog.composition import ledger_at
from recallog_schemas import Event, codec
from recallog_schemas.errors import LedgerMoved, StorageUnavailable, UnknownOutcome
from recallog_streams.ledgers.ledger import Ledger
from support.cli import Result
from support.events import event

SPACES = [f"space-{number}" for number in range(24)]
MORE = 20
"""Partitions of the new topic, which is not a multiple of `PARTITIONS`."""


@dataclass
class Move:
    """A topic with a live worker, and a new topic with more partitions, whose views another worker builds."""

    source: Cluster
    target: Cluster

    def copier(self, *options: str) -> Worker:
        """`recallog copy` as a process."""
        return self.source.worker(["-m", "recallog_service", *self.command, *options])

    def switch(self) -> Result:
        return recallog(self.source, *self.command, "--switch")

    @property
    def command(self) -> tuple[str, ...]:
        return ("copy", str(self.source.settings.ledger), str(self.target.settings.ledger))


@pytest.fixture
def move(kafka: str, topic: str, own_redis: NewRedis, tmp_path: Path) -> Iterator[Move]:
    with (
        Cluster(kafka, topic, own_redis().url, tmp_path) as source,
        Cluster(kafka, f"{topic}.more", own_redis().url, tmp_path, partitions=MORE) as target,
    ):
        yield Move(source, target)


class Publisher(threading.Thread):
    """Publishes turns until the ledger has moved. Repeats each call until it is acknowledged."""

    def __init__(self, cluster: Cluster, spaces: Sequence[str]) -> None:
        super().__init__(daemon=True)
        self._cluster = cluster
        self._spaces = spaces
        self.turn = 0
        self.acknowledged: defaultdict[str, list[str]] = defaultdict(list)
        """Ids of events by space, in their order."""
        self.moved_to = ""
        self.left: list[Event] = []
        """The events that were refused."""

    def run(self) -> None:
        self._cluster.ask(self._publish)

    async def _publish(self, memory: Memory) -> None:
        while not self.moved_to:
            events = [event(space=space, turn=self.turn) for space in self._spaces]
            try:
                await self._acknowledge(memory, events)
            except LedgerMoved as error:
                self.moved_to, self.left = error.ledger, events
            self.turn += 1
            await asyncio.sleep(0.01)

    async def _acknowledge(self, memory: Memory, events: Sequence[Event]) -> None:
        while True:
            try:
                await memory.publish_many(events)
            except (StorageUnavailable, UnknownOutcome):
                await asyncio.sleep(0.02)
            else:
                for each in events:
                    self.acknowledged[each.space].append(each.id)
                return


def ids_in(cluster: Cluster) -> dict[str, list[str]]:
    """The ids of all records of a topic by space, in their order."""

    async def work() -> dict[str, list[str]]:
        ledger = ledger_at(str(cluster.settings.ledger), cluster.settings)
        found: defaultdict[str, list[str]] = defaultdict(list)
        try:
            for partition, end in enumerate(await ledger.ends()):
                async for batch in ledger.read(partition, 0, end):
                    for _, data in batch.records:
                        each = codec.decode(data)
                        found[each.space].append(each.id)
        finally:
            await ledger.close()
        return found

    return asyncio.run(work())


def records_of(cluster: Cluster) -> int:
    return sum(cluster.ask(lambda memory: memory.admin.ledger_ends()))


async def with_ledgers(move: Move, work: Callable[[Ledger, Ledger], Awaitable[None]]) -> None:
    source, target = (ledger_at(str(each.settings.ledger), each.settings) for each in (move.source, move.target))
    try:
        await work(source, target)
    finally:
        await source.close()
        await target.close()


def test_a_ledger_moves_to_more_partitions_while_producers_publish(move: Move) -> None:
    source, target = move.source, move.target
    source.publish_only([event(space=space, turn=turn) for turn in range(100) for space in SPACES])
    expected = ids_in(source)
    folded = target.worker()
    publishers = [Publisher(source, SPACES[0::2]), Publisher(source, SPACES[1::2])]
    for each in publishers:
        each.start()
    killed = move.copier("--follow")
    wait_until(lambda: records_of(target) > 100, "the copy is in progress")
    killed.kill()
    switched = move.switch()
    assert switched.code == 0, switched.err
    assert "the source refuses events and names the target" in switched.out
    for each in publishers:
        each.join(SECONDS)
        assert each.moved_to == target.topic
        target.publish_only(each.left)
        for one in each.left:
            each.acknowledged[one.space].append(one.id)
        for space, ids in each.acknowledged.items():
            expected[space] += ids
    copied = ids_in(target)
    # An event that was refused in part of its call may be in the target before it is sent again.
    assert {space: [*dict.fromkeys(ids)] for space, ids in copied.items()} == expected
    folded.wait_until_live(MORE)
    target.assert_views_are_the_fold(sum(map(len, copied.values())))


def test_a_copy_that_is_killed_continues_in_the_same_target(move: Move, tmp_path: Path) -> None:
    """Without --follow, to a topic and to a folder."""
    source, folder = move.source, tmp_path / "backup"
    source.publish_only([event(space=space, turn=turn) for turn in range(400) for space in SPACES])
    killed = move.copier()
    wait_until(lambda: records_of(move.target) > 100, "the copy is in progress")
    killed.kill()
    copied = recallog(source, *move.command)
    assert copied.code == 0, copied.err
    assert f"copied {400 * len(SPACES):,} of {400 * len(SPACES):,} records" in copied.out
    expected = ids_in(source)
    assert {space: [*dict.fromkeys(ids)] for space, ids in ids_in(move.target).items()} == expected
    before = records_of(move.target)
    assert recallog(source, *move.command).code == 0
    assert records_of(move.target) == before

    command = ("copy", str(source.settings.ledger), str(folder))
    killed = source.worker(["-m", "recallog_service", *command])
    wait_until((folder / "ledger.db").exists, "the copy is in progress")
    killed.kill()
    assert recallog(source, *command).code == 0
    with closing(sqlite3.connect(folder / "ledger.db")) as file:
        assert file.execute("SELECT COUNT(*) FROM events").fetchone() == (400 * len(SPACES),)


def test_a_retired_topic_is_read_as_before_and_takes_events_of_nobody(move: Move) -> None:
    source = move.source
    worker = source.live_worker()
    source.publish([event(space=space, turn=turn) for turn in range(10) for space in SPACES])
    assert move.switch().code == 0
    error = source.refusal(lambda memory: memory.publish(event(space=SPACES[0])))
    assert isinstance(error, LedgerMoved)
    assert error.ledger == move.target.topic
    assert f"were moved to the topic {move.target.topic}" in str(error)
    asyncio.run(refuse_foreign(source, codec.encode(event(space=SPACES[0]))))
    worker.wait_until_live()
    assert worker.terminate() == 0
    source.live_worker()

    async def look(memory: Memory) -> None:
        assert (await memory.admin.verify()).ok
        status = await memory.admin.status()
        assert sum(row.lag or 0 for row in status.partitions) == 0
        assert not (await memory.admin.dead_letters()).items
        assert {view.space: view.events for view in await memory.spaces()} == dict.fromkeys(SPACES, 10)

    source.ask(look)
    assert "the topic is retired" in recallog(source, "status").out


async def refuse_foreign(cluster: Cluster, value: bytes) -> None:
    """A producer that knows nothing of Recallog is refused by the broker, in each partition."""
    async with AIOKafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
        for partition in range(PARTITIONS):
            with pytest.raises(MessageSizeTooLargeError):
                await producer.send_and_wait(cluster.topic, value, SPACES[0].encode(), partition)


def test_producers_wait_until_the_last_events_are_copied(move: Move) -> None:
    async def work(source: Ledger, target: Ledger) -> None:
        await target.open()
        await source.append([event(id="first")])
        ends = await source.retire()
        assert ends == await source.ends()
        with pytest.raises(StorageUnavailable, match="being moved to another topic"):
            await source.append([event(id="second")])
        assert await source.retire() != ends  # again, as after an interruption
        await source.name_successor(target)
        with pytest.raises(LedgerMoved, match="were moved to the topic"):
            await source.append([event(id="second")])
        await source.retire()  # again, as a second switch does
        with pytest.raises(LedgerMoved, match="were moved to the topic"):
            await source.append([event(id="second")])
        await source.name_successor(target)
        with pytest.raises(LedgerMoved, match="were moved to the topic"):
            await source.check_successor(source)  # in favour of another topic
        with pytest.raises(LedgerMoved, match="were moved to the topic"):
            await source.name_successor(source)

    asyncio.run(with_ledgers(move, work))


def test_a_switch_can_be_taken_back_until_it_has_ended(move: Move) -> None:
    async def work(source: Ledger, target: Ledger) -> None:
        await source.append([event(id="first")])
        await source.retire()

    asyncio.run(with_ledgers(move, work))
    alter(move.source.bootstrap, move.source.topic, max_message_bytes="1048588")
    move.source.publish_only([event(id="second")])
    assert [id_ for ids in ids_in(move.source).values() for id_ in ids] == ["first", "second"]
    assert move.switch().code == 0
    assert ids_in(move.target) == ids_in(move.source)


def test_a_target_that_producers_use_already_is_refused(move: Move) -> None:
    move.source.publish_only([event(space=SPACES[0])])
    move.target.publish_only([event(space=SPACES[1], id="too soon")])
    refused = move.switch()
    assert refused.code == 3
    assert f"it has events of space '{SPACES[1]}', and the source has none" in refused.err
    move.source.publish_only([event(space=SPACES[0])])  # the source is not retired
