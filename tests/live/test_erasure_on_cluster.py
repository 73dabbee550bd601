"""An erasure on a cluster with a worker: nothing of a person is in Redis, its files, or the segments of the topic."""

import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import redis
from deploy.local import LocalKafka, LocalRedis

from live.conftest import NewKafka, NewRedis
from live.support import Cluster, wait_until
from recallog import Event, Memory
from recallog.scanning.files import scan_files
from recallog.scanning.forms import forms_of
from recallog_schemas import codec
from recallog_schemas.views import ScanReport
from support.marked_memory import (
    AGENT,
    MARKERS,
    OTHER_WORD,
    PERSON,
    SPACE,
    VIEWS,
    WORDS,
    said_by_others,
    said_by_person,
)

pytestmark = pytest.mark.models("all")

_IN_VIEWS = [name for name, marker in MARKERS.items() if VIEWS in marker.stores and "compaction" not in name]
"""Those of what is published here: no conversation is compacted."""


class Servers:
    """A Kafka and a Redis of this module alone, whose files can be read."""

    def __init__(self, kafka: LocalKafka, redis_server: LocalRedis, folder: Path) -> None:
        self.kafka, self.redis = kafka, redis_server
        self.cluster = Cluster(kafka.bootstrap, "erasures", redis_server.url, folder)

    def found_in_files(self, words: Sequence[str]) -> set[str]:
        """The words that are in the files of both servers."""
        forms = forms_of(words)
        places = [*scan_files([str(self.kafka.data), str(self.redis.data)], forms)]
        assert len(places) > 5
        return {words[each.marker - 1] for place in places for each in place.found}

    def rewrite_append_only_file(self) -> None:
        with redis.Redis.from_url(self.redis.url) as client:
            client.bgrewriteaof()
            wait_until(lambda: not client.info("persistence")["aof_rewrite_in_progress"], "the file is rewritten")


@pytest.fixture(scope="module")
def servers(own_kafka: NewKafka, own_redis: NewRedis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    found = Servers(own_kafka(), own_redis(), tmp_path_factory.mktemp("erasing"))
    with found.cluster as cluster:
        cluster.live_worker()
        cluster.publish([*said_by_others(), *said_by_person()])
        yield found


def scanned(cluster: Cluster) -> ScanReport:
    return cluster.ask(lambda memory: memory.admin.scan([*WORDS.values(), OTHER_WORD]))


def words_in(report: ScanReport, place: str = "") -> set[str]:
    words = [*WORDS.values(), OTHER_WORD]
    return {words[each.marker - 1] for one in report.found if place in one.place for each in one.found}


def test_nothing_is_left_in_redis_in_its_files_and_in_the_segments_of_the_topic(servers: Servers) -> None:
    cluster, words = servers.cluster, [WORDS[name] for name in _IN_VIEWS]
    before = scanned(cluster)
    assert words_in(before, "{recallog") >= {*words, OTHER_WORD}
    assert not words_in(before, "the record")
    assert not {OTHER_WORD, *words} & _in_topic(servers)
    digests = [each.format() for each in cluster.ask(lambda memory: memory.admin.digest()).items]

    erased = cluster.ask(lambda memory: memory.erase(SPACE, subject=PERSON))
    assert erased.erased >= len(said_by_person()) - 1

    servers.rewrite_append_only_file()
    after = cluster.ask(lambda memory: memory.admin.scan([*WORDS.values(), OTHER_WORD], digests=digests))
    assert words_in(after) == {OTHER_WORD}
    assert all(each.matches for each in after.digests)
    assert servers.found_in_files([*WORDS.values()]) == set()
    assert cluster.ask(lambda memory: memory.erase(SPACE, subject=PERSON)).erased == 0
    cluster.assert_views_are_the_fold(len(said_by_others()) + len(said_by_person()) + 1)


def _in_topic(servers: Servers) -> set[str]:
    words = [*WORDS.values(), OTHER_WORD]
    places = scan_files([str(servers.kafka.data)], forms_of(words))
    return {words[each.marker - 1] for place in places for each in place.found}


def test_workers_and_erasers_that_are_killed_leave_the_same(servers: Servers) -> None:
    cluster, chance = servers.cluster, random.Random(7)
    people = [f"person-{number}" for number in range(4)]
    words = {person: f"zqkilled{number}secret" for number, person in enumerate(people)}
    events = [
        Event(space=SPACE, agent=AGENT, kind="agent.spoke", subject=person, payload={"text": f"{word} number {number}"})
        for person, word in words.items()
        for number in range(20)
    ]
    cluster.publish(events)
    worker = cluster.workers[0]
    for person in people[:3]:
        eraser = cluster.worker(["-c", _ERASE, person])
        time.sleep(chance.uniform(0.5, 3))
        eraser.kill()
        worker.kill()
        worker = cluster.live_worker()
    for person in people[:3]:
        cluster.ask(lambda memory, subject=person: memory.erase(SPACE, subject=subject))

    async def read(memory: Memory) -> list[Event]:
        return [codec.decode(data) async for batch in memory.admin.records() for _, data in batch.records]

    found = cluster.ask(read)
    assert {each.subject for each in found if each.is_erased} >= {*people[:3]}
    assert all(each.is_erased == (each.subject in people[:3]) for each in found if each.subject in people)
    servers.rewrite_append_only_file()
    report = cluster.ask(lambda memory: memory.admin.scan([*words.values()]))
    assert {people[each.marker - 1] for one in report.found for each in one.found} == {people[3]}


_ERASE = f"""
import asyncio, os, sys
from recallog import Memory

async def main(person):
    async with Memory.open() as memory:
        await memory.erase({SPACE!r}, subject=person)

asyncio.run(main(sys.argv[1]))
"""
