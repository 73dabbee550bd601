"""Upgrades under load: new workers build beside old ones and cut over. No answer mixes both, no trigger is lost."""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from live.conftest import NewRedis
from live.servers import recallog
from live.support import PARTITIONS, SECONDS, Cluster, wait_until
from live.support_upgraded import newer_code
from recallog import Event, Memory, Position
from recallog_schemas import codec, triggers
from recallog_schemas.errors import Rebuilding, ViewsTooNew
from recallog_schemas.views import SpacesView
from support.events import event

SPACES = [f"space-{number}" for number in range(16)]
HISTORY = 150
"""Events of each space before the upgrade."""


class Reader(threading.Thread):
    """Reads all spaces repeatedly with one version of the code, and records wrong answers.

    The counts of a partition are consistent: their sum is the number of records up to its checkpoint, times `times`.
    """

    def __init__(self, cluster: Cluster, times: int) -> None:
        super().__init__(daemon=True)
        self._cluster = cluster
        self._times = times
        self._enough = threading.Event()
        self._processed: Counter[int] = Counter()
        self.answers = 0
        self.refusals: set[type] = set()
        self.wrong: list[object] = []

    def run(self) -> None:
        with newer_code() if self._times == 2 else ExitStack():
            memory = Memory.open(self._cluster.settings)
        asyncio.run(self._read(memory))

    async def _read(self, memory: Memory) -> None:
        async with memory:
            while not self._enough.is_set():
                try:
                    self._judge(await memory.spaces())
                    self.answers += 1
                except (Rebuilding, ViewsTooNew) as error:
                    self.refusals.add(type(error))

    def _judge(self, found: SpacesView) -> None:
        counted: Counter[Position] = Counter()
        for view in found:
            assert view.checkpoint is not None
            counted[view.checkpoint] += view.events
        for at, events in counted.items():
            if events != (at.offset + 1) * self._times or at.offset < self._processed[at.partition]:
                self.wrong.append((at, events))
            self._processed[at.partition] = at.offset
        if len(found) < len(SPACES):
            self.wrong.append(found)

    def stop(self) -> None:
        self._enough.set()
        self.join()


class Producer(threading.Thread):
    spaces = SPACES
    pause_seconds = 0.02

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(daemon=True)
        self._cluster = cluster
        self._enough = threading.Event()
        self.turn = HISTORY

    def run(self) -> None:
        self._cluster.ask(self._publish)

    async def _publish(self, memory: Memory) -> None:
        while not self._enough.is_set():
            await memory.publish_many([each for space in self.spaces for each in self.events(space)])
            self.turn += 1
            await asyncio.sleep(self.pause_seconds)

    def events(self, space: str) -> Sequence[Event]:
        """What happens in a space in one turn."""
        return [event(space=space, turn=self.turn)]

    def stop(self) -> None:
        self._enough.set()
        self.join()


class Sessions(Producer):
    """Each turn of a space is a session with a lesson, which is kept when it ends: one trigger is due."""

    # Few: a busy machine has to answer them, with both versions, faster than they come.
    spaces = SPACES[:4]
    pause_seconds = 0.5

    def events(self, space: str) -> Sequence[Event]:
        note = {"namespace": ["working"], "key": "notes", "value": f"LESSON: Bread burns after {self.turn} minutes."}
        return [
            event("item.put", space=space, turn=self.turn, payload=note),
            event("session.ended", space=space, turn=self.turn, session=f"s-{self.turn}", payload={}),
        ]


@contextmanager
def running(*threads: Reader | Producer) -> Iterator[None]:
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.stop()


def test_new_workers_build_beside_the_old_ones_and_cut_over(
    kafka: str, topic: str, own_redis: NewRedis, tmp_path: Path
) -> None:
    with Cluster(kafka, topic, own_redis().url, tmp_path) as cluster:
        old = cluster.live_worker()
        cluster.publish([event(space=space, turn=turn) for turn in range(HISTORY) for space in SPACES])
        present, newer, producer = Reader(cluster, 1), Reader(cluster, 2), Producer(cluster)
        with running(present, newer, producer):
            wait_until(lambda: present.answers and newer.refusals, "both versions read")
            assert newer.answers == 0
            new = cluster.worker(["-m", "live.support_upgraded"])
            red: list[object] = []

            def given_way() -> bool:
                health = old.health()
                red.extend(health["problems"])
                return {each["state"] for each in health["partitions"]} == {"idle"}

            wait_until(given_way, "the old worker has nothing to do")
            new.wait_until_live()
            after = producer.turn
            wait_until(lambda: producer.turn > after + 20, "more is said after the upgrade")
        assert red == []
        assert len(old.partitions("idle")) == PARTITIONS
        assert present.wrong == []
        assert newer.wrong == []
        assert present.refusals == {ViewsTooNew}
        assert newer.refusals == {Rebuilding}
        assert newer.answers > 0
        with newer_code():
            cluster.assert_views_are_the_fold(producer.turn * len(SPACES))
        assert old.terminate() == 0


def test_new_workers_that_are_killed_leave_the_old_views_and_others_continue_their_build(
    kafka: str, topic: str, own_redis: NewRedis, tmp_path: Path
) -> None:
    with Cluster(kafka, topic, own_redis().url, tmp_path) as cluster:
        old = cluster.live_worker()
        cluster.publish([event(space=space, turn=turn) for turn in range(HISTORY) for space in SPACES])
        present = Reader(cluster, 1)
        with running(present):
            killed = cluster.worker(["-m", "live.support_upgraded"])
            killed.wait_until(lambda health: "building" in str(health["partitions"]), "it builds its views")
            killed.kill()
            answers = present.answers
            wait_until(lambda: present.answers > answers or present.refusals, "readers go on")
        cluster.worker(["-m", "live.support_upgraded"]).wait_until_live(seconds=2 * SECONDS)
        assert present.wrong == []
        wait_until(lambda: old.partitions("idle") == set(range(PARTITIONS)), "the old worker has nothing to do")
        with newer_code():
            cluster.assert_views_are_the_fold(HISTORY * len(SPACES))


def test_the_former_version_is_put_back_by_dropping_the_views_of_the_newer(
    kafka: str, topic: str, own_redis: NewRedis, tmp_path: Path
) -> None:
    with Cluster(kafka, topic, own_redis().url, tmp_path) as cluster:
        old = cluster.live_worker()
        cluster.publish([event(space=space) for space in SPACES])
        newer = cluster.worker(["-m", "live.support_upgraded"])
        newer.wait_until_live()
        assert newer.terminate() == 0
        assert isinstance(cluster.refusal(lambda memory: memory.spaces()), ViewsTooNew)
        done = recallog(cluster, "rebuild", "--drop")
        assert done.code == 0, done.err
        old.wait_until_live()
        cluster.assert_views_are_the_fold(len(SPACES))


@pytest.mark.models("long_term")
def test_triggers_of_an_upgrade_are_answered_once_whichever_version_does_it(
    kafka: str, topic: str, own_redis: NewRedis, tmp_path: Path
) -> None:
    with Cluster(kafka, topic, own_redis().url, tmp_path) as cluster:
        old = cluster.worker(only="views,reactors")
        old.wait_until_live()
        producer, red = Sessions(cluster), list[object]()
        with running(producer):
            wait_until(lambda: producer.turn > HISTORY + 5, "sessions have ended before the upgrade")
            new = cluster.worker(["-m", "live.support_upgraded", "--only", "views,reactors"])

            def given_way() -> bool:
                for worker in (old, new):
                    red.extend(each for each in worker.health().get("problems", ()) if "not started" not in each)
                return old.partitions("idle") == set(range(PARTITIONS))

            new.wait_until(lambda health: given_way(), "the old worker has nothing to do", 3 * SECONDS)
            new.wait_until_live()
            after = producer.turn
            wait_until(lambda: producer.turn > after + 10 and given_way(), "sessions end after the upgrade")
        ended = (producer.turn - HISTORY) * len(producer.spaces)
        with newer_code():

            async def closed(memory: Memory) -> tuple[int, Counter[str]]:
                await memory.catch_up()
                found = Counter[str]()
                async for batch in memory.admin.records():
                    for _, data in batch.records:
                        each = codec.decode(data)
                        if each.kind in triggers.CLOSINGS:
                            found[f"{each.space} {each.id}"] += 1
                return len(await memory.pending()), found

            wait_until(lambda: cluster.ask(closed)[0] == 0, "every trigger is answered")
            assert len(cluster.ask(closed)[1]) == ended
        assert red == []
        assert old.terminate() == new.terminate() == 0
