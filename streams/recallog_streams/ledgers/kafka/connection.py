"""The connection to the cluster for all requests except appends: the producer has its own."""

import asyncio
from collections.abc import Awaitable, Callable
from ssl import SSLError
from typing import Any, Final, TypeVar

from aiokafka import AIOKafkaProducer
from aiokafka import errors as kafka

from recallog_projections.breaker import Breaker
from recallog_projections.patience import answer_seconds
from recallog_schemas import limits
from recallog_schemas.errors import StorageError, StorageUnavailable
from recallog_streams.ledgers.kafka import client_log
from recallog_streams.ledgers.kafka.address import KafkaAddress
from recallog_streams.ledgers.kafka.aiokafka_internals import KafkaClient, end_without_flushing, make_client
from recallog_streams.ledgers.kafka.failures import name_error

Result = TypeVar("Result")

RETRY_WAIT_SECONDS: Final = 0.1
NO_ANSWER: Final = (
    OSError,
    kafka.KafkaConnectionError,
    kafka.KafkaTimeoutError,
    kafka.NodeNotReadyError,
    kafka.RequestTimedOutError,  # aiokafka's own, if a broker does not answer
    kafka.StaleMetadata,
)
"""Errors that do not come from the cluster."""


class KafkaConnection:
    """Connects at the first request. Repeats a request after a temporary error until its time limit."""

    def __init__(self, address: KafkaAddress, deadline_seconds: float = limits.DEADLINE_SECONDS) -> None:
        """Raises `SettingsError` if the certificates of `address` cannot be read."""
        client_log.limit()
        self.address = address
        self.deadline_seconds = min(deadline_seconds, address.timeout_seconds)
        self.settings = address.connection()
        self._clients: dict[float, KafkaClient] = {}
        """By the time limit of their requests."""
        self._watched: set[str] = set()
        self._lock = asyncio.Lock()
        self._closed = False
        self._breaker = Breaker(
            lambda reason: StorageUnavailable(f"{address} {reason}. Is the cluster up? Try again"),
            self.deadline_seconds,
            failures=NO_ANSWER,
            reason_of=_reason_of,
        )

    async def ask(
        self, doing: str, work: Callable[[KafkaClient], Awaitable[Result]], *, patience_seconds: float | None = None
    ) -> Result:
        """The result of `work`, one request or a few. `doing` describes it in errors.

        It is repeated after a temporary error, such as a partition without a leader, and ends after `patience_seconds`
        (default: `deadline_seconds`, or longer in a patient call).

        Raises `StorageUnavailable` if the cluster does not answer in time, at once if it is known not to answer, and
        `StorageError` if it refuses.
        """
        deadline_seconds = answer_seconds(self.deadline_seconds)
        patience = deadline_seconds if patience_seconds is None else patience_seconds
        try:
            return await self._breaker.call(lambda: self._ask(work, deadline_seconds, patience), patience)
        except (kafka.KafkaError, NotImplementedError) as error:
            raise name_error(error, self.address, doing) from error

    async def _ask(
        self, work: Callable[[KafkaClient], Awaitable[Result]], deadline_seconds: float, patience_seconds: float
    ) -> Result:
        now = asyncio.get_running_loop().time
        give_up = now() + patience_seconds - RETRY_WAIT_SECONDS
        client = await self._connect(deadline_seconds)
        while True:
            try:
                return await work(client)
            except (kafka.KafkaError, OSError) as error:
                if not getattr(error, "retriable", True) or now() > give_up:
                    raise
            self.check_open()
            client.refresh_metadata()
            await asyncio.sleep(RETRY_WAIT_SECONDS)

    async def watch(self, client: KafkaClient, topic: str) -> None:
        """Make `client`, and all later clients, keep track of the leaders of the partitions of `topic`."""
        await client.watch(topic)
        self._watched.add(topic)

    def check_open(self) -> None:
        """Raise `StorageError` if the ledger was closed."""
        if self._closed:
            raise StorageError(f"the memory is closed, and so is the ledger {self.address}; open it again")

    async def _connect(self, deadline_seconds: float) -> KafkaClient:
        async with self._lock:
            self.check_open()
            if deadline_seconds not in self._clients:
                client = KafkaClient(self.settings | {"request_timeout_ms": self._request_ms(deadline_seconds)})
                try:
                    await client.bootstrap()
                    for topic in self._watched:
                        await client.watch(topic)
                    self.check_open()
                except BaseException as error:
                    await client.close()
                    if isinstance(error, SSLError):  # a refusal, unlike any other OSError
                        raise name_error(error, self.address, "connecting") from None
                    raise
                self._clients[deadline_seconds] = client
            return self._clients[deadline_seconds]

    def _request_ms(self, deadline_seconds: float) -> int:
        """The limit of one request: a little less than the deadline, or half of that if another server can be tried."""
        return max(1, round(900 * deadline_seconds / min(2, len(self.address.servers))))

    async def close(self) -> None:
        """Close all connections; requests in progress fail. A client that connects is closed as soon as it has."""
        self._closed = True
        clients, self._clients = [*self._clients.values()], {}
        for client in clients:
            await client.close()

    async def start_producer(self, **options: Any) -> AIOKafkaProducer:
        """A producer that has connected.

        Leaves nothing open if it fails, is cancelled, or if the ledger is closed meanwhile. Raises `KafkaError` or
        `OSError`.
        """
        producer = make_client(AIOKafkaProducer, self.settings, **options)
        try:
            await producer.start()
            self.check_open()
        except BaseException:
            await end_without_flushing(producer)
            raise
        return producer


def _reason_of(error: Exception) -> str:
    if isinstance(error, kafka.RequestTimedOutError | TimeoutError):
        return "does not answer"
    if isinstance(error, kafka.NodeNotReadyError | kafka.StaleMetadata):  # their texts say no more
        return "cannot be reached"
    return f"cannot be reached ({str(error) or type(error).__name__})"
