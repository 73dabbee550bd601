"""The cluster under measurement, and deployments in it: a topic and the Redis that stores its views."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from deploy.local import LocalKafka, LocalRedis
from deploy.local.ports import HOST, free_port
from redis.asyncio import Redis

from benchmarks.cluster import events, processes
from benchmarks.cluster.processes import Process
from benchmarks.measure import Setup
from recallog import Event, Settings
from recallog.components import Components
from recallog.composition import compose
from recallog_streams.ledgers.kafka.address import KafkaAddress
from recallog_streams.ledgers.kafka.ledger import KafkaLedger

PARTITIONS = 8
READY_SECONDS = 120.0
DEADLINE_SECONDS = 30.0
"""How long a question waits for a server that a measurement keeps busy."""
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Deployment:
    """A topic, and the store of its views."""

    ledger: str
    views: str
    records: int
    """How many records were appended at creation."""

    @property
    def settings(self) -> Settings:
        return Settings(ledger=self.ledger, views=self.views, deadline_seconds=DEADLINE_SECONDS)

    @property
    def environment(self) -> Mapping[str, str]:
        return {"RECALLOG_LEDGER": self.ledger, "RECALLOG_VIEWS": self.views}

    @property
    def topic(self) -> str:
        return KafkaAddress.parse(self.ledger).topic

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Components]:
        """The ledger and the views, opened in this process."""
        made = compose(self.settings)
        try:
            await made.ledger.open()
            yield made
        finally:
            await made.close()

    async def delete_views(self) -> None:
        """Empty the Redis, and wait until it has freed its memory."""
        async with Redis.from_url(self.views) as client:
            await client.execute_command("FLUSHALL", "SYNC")  # type: ignore[no-untyped-call]


class Cluster:
    """The servers, and the deployments that subjects share."""

    def __init__(self, setup: Setup, kafka: LocalKafka, redis: LocalRedis) -> None:
        self.setup = setup
        self.kafka = kafka
        self.redis = redis
        self._numbers = itertools.count()
        self._filled: Deployment | None = None

    async def deployment(self, what: str, made: Iterable[Event] = ()) -> Deployment:
        """A new topic that holds the events `made`, and a Redis without views."""
        topic = f"{what}-{next(self._numbers)}"
        ledger_url = f"kafka://{self.kafka.bootstrap}/{topic}?partitions={PARTITIONS}&replication=1"
        ledger = KafkaLedger(KafkaAddress.parse(ledger_url), deadline_seconds=DEADLINE_SECONDS)
        try:
            await ledger.open()
            await events.publish(ledger, iter(made))
            records = sum(await ledger.ends())
        finally:
            await ledger.close()
        deployment = Deployment(ledger_url, self.redis.url, records)
        await deployment.delete_views()
        return deployment

    async def filled(self) -> Deployment:
        """The deployment that draining, folding and rebuilding share: at least 200,000 events in 200 spaces."""
        if self._filled is None:
            count = self.setup.size(400_000, 200_000)
            self.setup.report(f"appending {count:,} events of {events.SPACES_IN_ALL} spaces")
            self._filled = await self.deployment("filled", events.regions(count))
        return self._filled

    def log(self, name: str) -> Path:
        """A new file for the output of a process."""
        return self.setup.folder / f"{name}-{next(self._numbers)}.log"

    @asynccontextmanager
    async def worker(self, deployment: Deployment, roles: str = "views") -> AsyncIterator[tuple[Process, str]]:
        """A worker process that has just started, and the URL of its health."""
        port = free_port()
        arguments = ("worker", "--only", roles, "--port", str(port), "--host", HOST, "--log-level", "warning")
        async with processes.running(
            "recallog_service", *arguments, log=self.log("worker"), settings=deployment.environment
        ) as process:
            yield process, f"http://{HOST}:{port}/health"

    @asynccontextmanager
    async def publisher(self, deployment: Deployment, count: int, seed: int) -> AsyncIterator[Process]:
        """A process that has prepared `count` events, and publishes them after `go`."""
        async with processes.running(
            "benchmarks.cluster.events",
            *(deployment.ledger, str(count), str(seed)),
            log=self.log("publisher"),
            settings=deployment.environment,
        ) as process:
            if await process.line(READY_SECONDS) != "ready":
                raise process.failed("is not ready")
            yield process


async def live(process: Process, health: str) -> None:
    """Wait until all partitions of a worker are live."""
    await live_together([(process, health)])


async def live_together(workers: Sequence[tuple[Process, str]]) -> None:
    """Wait until all partitions are live in healthy workers, each with the URL of its health."""
    deadline = time.monotonic() + READY_SECONDS
    async with httpx.AsyncClient() as client:
        while time.monotonic() < deadline and all(process.running for process, _ in workers):
            try:
                answers = [(await client.get(health)).json() for _, health in workers]
            except (httpx.HTTPError, ValueError):
                answers = []
            states = [one["state"] for answer in answers for one in answer["partitions"]]
            shared = all(answer["healthy"] and answer["partitions"] for answer in answers)
            if shared and states == ["live"] * PARTITIONS:
                return
            await asyncio.sleep(_POLL_SECONDS)
    raise workers[0][0].failed(f"is not live after {READY_SECONDS:g} s")
