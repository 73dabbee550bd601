"""Moves the leadership of partitions from broker to broker without a pause."""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.api import RequestStruct, Response
from aiokafka.protocol.types import CompactArray, CompactString, Int8, Int16, Int32

from live.support import wait_until
from recallog_streams.ledgers.kafka.aiokafka_internals import _each, _InOneVersion, _schema

_PREFERRED: Final = 0
_TIMEOUT_MS: Final = 10_000
_ANSWERS: Final = 60


class LeaderMover(threading.Thread):
    """Makes one broker after the other the leader of all partitions of some topics.

    The replicas of a partition are named in another order, of which the first one is then elected. The next move waits
    until producers have got `_ANSWERS` more answers, as `answers` counts them.
    """

    def __init__(
        self, bootstrap: str, partitions: Mapping[str, int], brokers: Sequence[int], answers: Callable[[], int]
    ) -> None:
        super().__init__(daemon=True)
        self._answers = answers
        self._servers, self._partitions, self._brokers = bootstrap, partitions, [*brokers]
        self._enough = threading.Event()
        self.moves = 0

    def run(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        client = AIOKafkaClient(bootstrap_servers=self._servers)
        await client.bootstrap()
        try:
            while not self._enough.is_set():
                self._brokers = [*self._brokers[1:], self._brokers[0]]
                await self._move(client)
                self.moves += 1
                wanted = self._answers() + _ANSWERS
                while self._answers() < wanted and not self._enough.is_set():
                    await asyncio.sleep(0.005)
        finally:
            await client.close()

    async def _move(self, client: AIOKafkaClient) -> None:
        order: list[Any] = [
            (topic, [(partition, self._brokers, {}) for partition in range(count)], {})
            for topic, count in self._partitions.items()
        ]
        elected: list[Any] = [(topic, [*range(count)], {}) for topic, count in self._partitions.items()]
        await self._send(client, _ReassignRequest0(_TIMEOUT_MS, order, {}))
        await self._send(client, _ElectRequest2(_PREFERRED, elected, _TIMEOUT_MS, {}))

    async def _send(self, client: AIOKafkaClient, request: RequestStruct) -> None:
        answer: Any = await client.send(client.get_random_node(), _InOneVersion(request))
        assert not answer.error_code, answer

    def stop(self) -> None:
        self._enough.set()
        self.join()

    def wait_for(self, more: int) -> None:
        """Wait until the leadership has moved `more` times."""
        wanted = self.moves + more
        wait_until(lambda: self.moves >= wanted, f"the leadership moves {more} times")


_OUTCOMES = _each(
    name=CompactString(), partitions=_each(partition=Int32, error_code=Int16, error_message=CompactString())
)


class _ReassignResponse0(Response):
    API_KEY = 45
    API_VERSION = 0
    SCHEMA = _schema(
        throttle_ms=Int32,
        error_code=Int16,
        error_message=CompactString(),
        topics=_OUTCOMES,
    )


class _ReassignRequest0(RequestStruct):
    FLEXIBLE_VERSION = True
    API_KEY = 45
    API_VERSION = 0
    RESPONSE_TYPE = _ReassignResponse0
    SCHEMA = _schema(
        timeout_ms=Int32,
        topics=_each(name=CompactString(), partitions=_each(partition=Int32, replicas=CompactArray(Int32))),
    )


class _ElectResponse2(Response):
    API_KEY = 43
    API_VERSION = 2
    SCHEMA = _schema(
        throttle_ms=Int32,
        error_code=Int16,
        topics=_OUTCOMES,
    )


class _ElectRequest2(RequestStruct):
    FLEXIBLE_VERSION = True
    API_KEY = 43
    API_VERSION = 2
    RESPONSE_TYPE = _ElectResponse2
    SCHEMA = _schema(
        election_type=Int8,
        topics=_each(name=CompactString(), partitions=CompactArray(Int32)),
        timeout_ms=Int32,
    )
