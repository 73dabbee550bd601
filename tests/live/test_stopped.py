"""Redis or Kafka stopped (SIGSTOP) under readers and publishers: answers or named errors in seconds, nothing lost.

A stopped server accepts connections, and does not answer.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from deploy.local import LocalKafka, LocalRedis

from live.conftest import NewKafka, NewRedis
from live.support import Cluster
from recallog import Event, Memory, Settings
from recallog_projections.breaker import OPEN_SECONDS
from recallog_schemas.errors import RecallogError, StorageUnavailable, UnknownOutcome
from recallog_schemas.limits import DEADLINE_SECONDS
from support.events import event
from support.silent_server import silent_server

ANSWER_SECONDS_MAX = 5.0
STOPPED_SECONDS = 6.0
RECOVERY_SECONDS = 60.0


@dataclass
class Asked:
    """What a reader got: how long each question took, and the errors."""

    seconds: list[float] = field(default_factory=list)
    answered: int = 0
    errors: list[RecallogError] = field(default_factory=list)

    async def once(self, question: Callable[[], Awaitable[Any]]) -> bool:
        """Ask once; whether it was answered."""
        began = time.monotonic()
        try:
            await question()
        except RecallogError as error:
            self.errors.append(error)
            return False
        finally:
            self.seconds.append(time.monotonic() - began)
        self.answered += 1
        return True


@dataclass
class Stoppable:
    """A cluster with a live worker, and one space of it with twenty events."""

    kafka: LocalKafka
    redis: LocalRedis
    cluster: Cluster
    space: str

    @property
    def settings(self) -> Settings:
        """For readers with the default deadline, and publishers whose appends give up after 3 s."""
        ledger = f"{self.cluster.settings.ledger}&timeout_seconds=3"
        return self.cluster.settings.model_copy(update={"ledger": ledger, "deadline_seconds": DEADLINE_SECONDS})

    def events(self, first: int, end: int) -> list[Event]:
        return [event(space=self.space, turn=turn) for turn in range(first, end)]

    def turns(self, memory: Memory) -> Callable[[], Awaitable[list[int]]]:
        """The question whose right answer is the turns of all events so far."""

        async def ask() -> list[int]:
            view = await memory.episodic(self.space, "baker", window=500)
            return [each.event.turn for each in view.memories]

        return ask


@pytest.fixture(scope="module")
def running(
    own_kafka: NewKafka, own_redis: NewRedis, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[LocalKafka, LocalRedis, Cluster]]:
    kafka, redis = own_kafka(), own_redis()
    with Cluster(kafka.bootstrap, "recallog.stopped", redis.url, tmp_path_factory.mktemp("stopped")) as cluster:
        cluster.live_worker()
        yield kafka, redis, cluster


_numbers = count(1)


@pytest.fixture
def stoppable(running: tuple[LocalKafka, LocalRedis, Cluster]) -> Stoppable:
    stoppable = Stoppable(*running, space=f"village-{next(_numbers)}")
    stoppable.cluster.publish(stoppable.events(0, 20))
    return stoppable


@asynccontextmanager
async def asking(question: Callable[[], Awaitable[Any]]) -> AsyncIterator[Asked]:
    """Ask over and over while the block runs."""
    asked, stop = Asked(), asyncio.Event()

    async def ask() -> None:
        while not stop.is_set():
            await asked.once(question)
            await asyncio.sleep(0.05)

    task = asyncio.create_task(ask())
    try:
        yield asked
    finally:
        stop.set()
        await task


async def until_answered(question: Callable[[], Awaitable[Any]]) -> None:
    """Wait until the question is answered again."""
    began = time.monotonic()
    asked = Asked()
    while not await asked.once(question):
        assert time.monotonic() - began < RECOVERY_SECONDS, asked.errors[-1]
        await asyncio.sleep(0.05)


async def published(memory: Memory, events: list[Event]) -> list[RecallogError]:
    """Publish each event until it is acknowledged; the errors on the way."""
    errors: list[RecallogError] = []
    for each in events:
        while True:
            try:
                await memory.publish(each)
                break
            except (UnknownOutcome, StorageUnavailable) as error:
                errors.append(error)
                await asyncio.sleep(0.1)
    return errors


def test_a_stopped_redis_costs_a_question_two_seconds_and_publishing_nothing(stoppable: Stoppable) -> None:
    async def scenario() -> None:
        async with Memory.open(stoppable.settings) as memory:
            question = stoppable.turns(memory)
            assert await question() == list(range(20))
            async with asking(question) as asked:
                stoppable.redis.pause()
                try:
                    until = time.monotonic() + STOPPED_SECONDS
                    assert await published(memory, stoppable.events(20, 60)) == []
                    await asyncio.sleep(until - time.monotonic())
                finally:
                    stoppable.redis.resume()
                await until_answered(question)
            assert max(asked.seconds) < ANSWER_SECONDS_MAX
            # After the first, those between two attempts fail at once.
            assert len(asked.errors) > 10
            assert sum(seconds > 0.5 for seconds in asked.seconds) <= 2 + STOPPED_SECONDS / OPEN_SECONDS
            for error in asked.errors:
                assert isinstance(error, StorageUnavailable)
                assert error.retryable
                assert f"the Redis at {stoppable.redis.address} " in str(error)
            await memory.catch_up()
            assert await question() == list(range(60))

    asyncio.run(scenario())


def test_a_stopped_kafka_costs_questions_nothing_and_an_append_its_limit(stoppable: Stoppable) -> None:
    async def scenario() -> None:
        async with Memory.open(stoppable.settings) as memory:
            question = stoppable.turns(memory)
            assert await question() == list(range(20))
            async with (
                asking(question) as asked,
                asking(memory.spaces) as about_spaces,
                asking(memory.admin.status) as about_the_ledger,
            ):
                stoppable.kafka.pause()
                try:
                    publishing = asyncio.create_task(published(memory, stoppable.events(20, 30)))
                    until = time.monotonic() + STOPPED_SECONDS
                    while time.monotonic() < until or (asked.answered <= 50 and not asked.errors):
                        await asyncio.sleep(0.05)
                finally:
                    stoppable.kafka.resume()
                errors = await publishing
                await until_answered(memory.admin.status)
            assert asked.errors == []  # the views are in Redis
            assert about_spaces.errors == []
            assert max(asked.seconds) < ANSWER_SECONDS_MAX
            assert max(about_the_ledger.seconds) < ANSWER_SECONDS_MAX
            assert {type(error) for error in about_the_ledger.errors} == {StorageUnavailable}
            assert all(stoppable.kafka.bootstrap in str(error) for error in [*about_the_ledger.errors, *errors])
            assert errors
            await memory.catch_up()
            assert await question() == list(range(30))  # each once, although appends were repeated

    asyncio.run(scenario())


def test_a_memory_that_is_opened_while_a_service_is_stopped_says_so_and_closes(stoppable: Stoppable) -> None:
    async def scenario(address: str) -> None:
        memory = Memory.open(stoppable.settings)
        asked, question = Asked(), stoppable.turns(memory)
        for _ in range(3):
            await asked.once(question)
        assert max(asked.seconds) < ANSWER_SECONDS_MAX
        assert [type(error) for error in asked.errors] == [StorageUnavailable] * 3
        assert all(address in str(error) for error in asked.errors)
        began = time.monotonic()
        await memory.close()
        assert time.monotonic() - began < ANSWER_SECONDS_MAX

    kafka, redis = stoppable.kafka, stoppable.redis
    for server, address in ((kafka, kafka.bootstrap), (redis, redis.address)):
        server.pause()
        try:
            asyncio.run(scenario(address))
        finally:
            server.resume()


def test_a_memory_closes_in_seconds_while_its_services_are_stopped(stoppable: Stoppable) -> None:
    async def scenario() -> None:
        memory = Memory.open(stoppable.settings)
        await memory.publish_many(stoppable.events(20, 21))
        await stoppable.turns(memory)()
        stoppable.kafka.pause()
        stoppable.redis.pause()
        try:
            appending = asyncio.create_task(memory.publish_many(stoppable.events(21, 22)))
            await asyncio.sleep(0.5)
            began = time.monotonic()
            await memory.close()
            assert time.monotonic() - began < ANSWER_SECONDS_MAX
            with pytest.raises(RecallogError):
                await appending
        finally:
            stoppable.redis.resume()
            stoppable.kafka.resume()

    asyncio.run(scenario())


def test_one_server_of_several_that_does_not_answer_costs_no_answer(stoppable: Stoppable) -> None:
    async def scenario(settings: Settings) -> None:
        for _ in range(4):  # aiokafka tries the servers in random order
            async with Memory.open(settings) as memory:
                asked = Asked()
                assert await asked.once(stoppable.turns(memory)), asked.errors
                assert max(asked.seconds) < ANSWER_SECONDS_MAX

    with silent_server("silent") as port:
        ledger = str(stoppable.settings.ledger).replace("kafka://", f"kafka://127.0.0.1:{port},")
        asyncio.run(scenario(stoppable.settings.model_copy(update={"ledger": ledger})))


def test_the_deadline_is_a_setting(stoppable: Stoppable) -> None:
    async def scenario(settings: Settings) -> float:
        async with Memory.open(settings) as memory:
            question, asked = stoppable.turns(memory), Asked()
            await question()
            stoppable.redis.pause()
            try:
                assert not await asked.once(question)
            finally:
                stoppable.redis.resume()
        return asked.seconds[0]

    seconds = asyncio.run(scenario(stoppable.settings.model_copy(update={"deadline_seconds": 0.5})))
    assert seconds < DEADLINE_SECONDS
