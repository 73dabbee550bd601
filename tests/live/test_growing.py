"""A ledger is copied to a topic with more partitions while producers publish, and the producers are sent there."""

import asyncio
import threading
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from live.conftest import NewRedis
from live.support import Cluster, Worker, wait_until
from recallog import Memory
from recallog.composition import ledger_at
from recallog_schemas import Event, codec
from recallog_schemas.errors import LedgerMoved, StorageUnavailable, UnknownOutcome
from support.events import event

SPACES = [f"space-{number}" for number in range(24)]
MORE = 20
"""Partitions of the new topic, which is not a multiple of `PARTITIONS`."""


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


def copier(cluster: Cluster, target: Cluster, *options: str) -> Worker:
    program = ["-m", "recallog_service", "copy", str(cluster.settings.ledger), str(target.settings.ledger), *options]
    return cluster.worker(program)


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


def test_a_ledger_moves_to_more_partitions_while_producers_publish(
    kafka: str, topic: str, own_redis: NewRedis, tmp_path: Path
) -> None:
    with (
        Cluster(kafka, topic, own_redis().url, tmp_path) as cluster,
        Cluster(kafka, f"{topic}.more", own_redis().url, tmp_path, partitions=MORE) as target,
    ):
        cluster.publish_only([event(space=space, turn=turn) for turn in range(100) for space in SPACES])
        before = ids_in(cluster)
        publishers = [Publisher(cluster, SPACES[0::2]), Publisher(cluster, SPACES[1::2])]
        for each in publishers:
            each.start()
        killed = copier(cluster, target, "--follow")
        wait_until(lambda: sum(map(len, ids_in(target).values())) > 100, "the copy is in progress")
        killed.kill()
        switched = copier(cluster, target, "--switch", "--json")
        assert switched.process.wait(60) == 0, switched.log.read_text()
        print(switched.log.read_text())
        for each in publishers:
            each.join(60)
            assert each.moved_to == target.topic
        expected = {
            space: ids + [id_ for each in publishers for id_ in each.acknowledged[space]]
            for space, ids in before.items()
        }
        assert ids_in(target) == expected
