"""Triggers answered by agents: how many per second by one and two workers, and how soon at 100 per second.

The reactor follows a rule: it keeps what stood in an agent's working memory when a session ends, with no model. An
answer is two events, the entry and the one that closes the trigger.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from aiokafka import AIOKafkaConsumer, TopicPartition

from benchmarks.cluster import deployments
from benchmarks.cluster.deployments import PARTITIONS, Cluster, Deployment
from benchmarks.cluster.processes import Process, ProcessFailed
from benchmarks.measure import Goal, Measure, percentiles
from recallog import Event, Memory
from recallog_schemas import codec, triggers
from recallog_schemas.models.long_term.triggers import MIGRATION
from recallog_streams.ledgers.kafka.address import KafkaAddress

RATE = 100
SPACES = 200
ROLES = "views,reactors"
_WARM_SECONDS = 3
_PART = 500
_ANSWER_SECONDS_MAX = 300.0
_GOAL_MS = Goal("≤", 1_000)


class Answers:
    """When each trigger was closed, by the clock of this process, as a consumer of the topic sees it."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}
        self._more = asyncio.Event()

    async def follow(self, consumer: AIOKafkaConsumer) -> None:
        async for record in consumer:
            event = codec.decode(record.value)
            if event.kind == triggers.DONE and event.causation_id is not None:
                self.at.setdefault(event.causation_id, time.perf_counter())
                self._more.set()

    async def until(self, count: int) -> None:
        """Wait for `count` answers."""
        async with asyncio.timeout(_ANSWER_SECONDS_MAX):
            while len(self.at) < count:
                self._more.clear()
                await self._more.wait()


async def measure(cluster: Cluster) -> list[Measure]:
    rates: dict[int, tuple[float, float]] = {workers: await _rate(cluster, workers) for workers in (1, 2)}
    latencies, busy = await _latencies(cluster)
    p50, p99 = percentiles(f"reactions: due to answered, at {RATE}/s", latencies)
    return [
        *(Measure(f"reactions: {number} worker{'s'[: number - 1]}", rate, "/s") for number, (rate, _) in rates.items()),
        Measure("reactions: CPU of 1 worker a trigger", 1_000 * rates[1][1], "ms"),
        Measure(f"reactions: CPU of 1 worker a trigger, at {RATE}/s", 1_000 * busy, "ms"),
        p50,
        Measure(p99.name, p99.value, p99.unit, _GOAL_MS),
    ]


def _noted(number: int) -> Event:
    """A note in the working memory of an agent of its own."""
    value = f"LESSON: Oven {number} burns bread after {number} minutes."
    payload = {"namespace": ["working"], "key": "notes", "value": value}
    return Event(space=_space(number), agent=_agent(number), kind="item.put", payload=payload)


def _ended(number: int) -> Event:
    """The end of that agent's session, which makes one trigger due."""
    return Event(space=_space(number), agent=_agent(number), kind="session.ended", session="s-1", payload={})


def _trigger(event: Event) -> str:
    return triggers.caused_by(MIGRATION, event.space, event.agent, "0", event.id).id


def _space(number: int) -> str:
    return f"space-{number % SPACES}"


def _agent(number: int) -> str:
    return f"baker-{number}"


@asynccontextmanager
async def _following(deployment: Deployment) -> AsyncIterator[Answers]:
    address = KafkaAddress.parse(deployment.ledger)
    consumer = AIOKafkaConsumer(enable_auto_commit=False, **address.connection())
    consumer.assign([TopicPartition(address.topic, partition) for partition in range(PARTITIONS)])
    await consumer.start()
    await consumer.seek_to_end()
    answers = Answers()
    following = asyncio.create_task(answers.follow(consumer))
    try:
        yield answers
    finally:
        following.cancel()
        await consumer.stop()


@asynccontextmanager
async def _running(
    cluster: Cluster, workers: int, noted: Sequence[Event]
) -> AsyncIterator[tuple[Memory, Answers, Sequence[Process]]]:
    """Live workers of a new deployment whose agents have notes, with a follower of its answers."""
    deployment = await cluster.deployment("reactions", noted)
    async with AsyncExitStack() as running:
        started = [await running.enter_async_context(cluster.worker(deployment, ROLES)) for _ in range(workers)]
        memory = await running.enter_async_context(Memory.open(deployment.settings))
        answers = await running.enter_async_context(_following(deployment))
        await deployments.live_together(started)
        yield memory, answers, [process for process, _ in started]
        if any(not process.running for process, _ in started):
            raise ProcessFailed("a worker has ended")


async def _rate(cluster: Cluster, workers: int) -> tuple[float, float]:
    """Triggers answered per second, of many that fall due at once, and the CPU seconds of the workers for each."""
    count, warm = cluster.setup.size(10_000, 2_000), 200
    numbers = range(count + warm)
    cluster.setup.report(f"reactions: {count:,} triggers, workers: {workers}")
    async with _running(cluster, workers, [_noted(number) for number in numbers]) as (memory, answers, processes):
        await memory.publish_many([_ended(number) for number in numbers[:warm]])
        await answers.until(warm)
        used = sum(process.cpu_seconds() for process in processes)
        began = time.perf_counter()
        for first in range(warm, count + warm, _PART):
            await memory.publish_many([_ended(number) for number in numbers[first : first + _PART]])
        await answers.until(count + warm)
        used = sum(process.cpu_seconds() for process in processes) - used
        return count / (max(answers.at.values()) - began), used / count


async def _latencies(cluster: Cluster) -> tuple[list[float], float]:
    """Seconds from publishing the event that makes a trigger due to the answer, at a steady rate, with one worker; and
    the CPU seconds of the worker for each."""
    length_seconds = cluster.setup.size(30, 10)
    count, warm = RATE * (length_seconds + _WARM_SECONDS), RATE * _WARM_SECONDS
    cluster.setup.report(f"reactions: {RATE}/s for {length_seconds} s")
    async with _running(cluster, 1, [_noted(number) for number in range(count)]) as (memory, answers, processes):
        due: dict[str, float] = {}
        used = processes[0].cpu_seconds()
        began = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for number in range(count):
                while (early := began + number / RATE - time.perf_counter()) > 0:
                    await asyncio.sleep(early)
                event = _ended(number)
                due[_trigger(event)] = time.perf_counter()
                tasks.create_task(_published(memory, event))
        await answers.until(count)
        used = processes[0].cpu_seconds() - used
    return [answers.at[trigger] - at for trigger, at in list(due.items())[warm:]], used / count


async def _published(memory: Memory, event: Event) -> None:
    await memory.publish(event)
