"""The connection to the cluster for all requests but appends: the producer has its own."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeVar

from aiokafka.errors import (
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    NodeNotReadyError,
    RequestTimedOutError,
    StaleMetadata,
)

from recallog_projections.breaker import Breaker
from recallog_schemas import limits
from recallog_schemas.errors import StorageError, StorageUnavailable
from recallog_streams.ledgers.kafka.address import KafkaAddress
from recallog_streams.ledgers.kafka.aiokafka_internals import Client, try_connecting
from recallog_streams.ledgers.kafka.failures import named

Result = TypeVar("Result")

RETRY_WAIT_SECONDS: Final = 0.1
_NO_ANSWER: Final = (
    OSError,
    KafkaConnectionError,
    KafkaTimeoutError,
    NodeNotReadyError,
    RequestTimedOutError,  # aiokafka's own, if a broker does not answer
    StaleMetadata,
)
"""Errors that are no answers of the cluster."""


class Connection:
    """Connects at the first request. Repeats a request after a temporary error until its time limit."""

    def __init__(self, address: KafkaAddress, deadline_seconds: float = limits.DEADLINE_SECONDS) -> None:
        """Raises `SettingsError` if the certificates of `address` cannot be read."""
        self.address = address
        self.deadline_seconds = min(deadline_seconds, address.timeout_seconds)
        self.settings = address.connection()
        self._client: Client | None = None
        self._lock = asyncio.Lock()
        self._closed = False
        self._breaker = Breaker(
            lambda reason: StorageUnavailable(f"{address} {reason}. Is the cluster up? Try again"),
            self.deadline_seconds,
            failures=_NO_ANSWER,
            reason_of=_reason_of,
        )

    async def ask(
        self, doing: str, work: Callable[[Client], Awaitable[Result]], *, patience_seconds: float | None = None
    ) -> Result:
        """The result of `work`, one request or a few. `doing` describes it in errors.

        It is repeated after a temporary error, such as a partition without a leader, and ends after `patience_seconds`
        (default: `deadline_seconds`).

        Raises `StorageUnavailable` if the cluster does not answer in time, at once if it is known not to answer, and
        `StorageError` if it refuses.
        """
        now = asyncio.get_running_loop().time
        patience = self.deadline_seconds if patience_seconds is None else patience_seconds
        give_up = now() + patience - RETRY_WAIT_SECONDS
        try:
            async with self._breaker.attempt(patience):
                client = await self._connected()
                while True:
                    try:
                        return await work(client)
                    except KafkaError as error:
                        if not error.retriable or now() > give_up:
                            raise
                    self.check_open()
                    client.refresh_metadata()
                    await asyncio.sleep(RETRY_WAIT_SECONDS)
        except (KafkaError, NotImplementedError) as error:
            raise named(error, self.address, doing) from error

    def check_open(self) -> None:
        """Raise `StorageError` if the ledger was closed."""
        if self._closed:
            raise StorageError(f"the memory is closed, and so is the ledger {self.address}; open it again")

    async def _connected(self) -> Client:
        async with self._lock:
            self.check_open()
            if self._client is None:
                client = Client(self.settings | {"request_timeout_ms": self._request_ms()})
                try:
                    await client.bootstrap()
                except BaseException as error:
                    await client.close()
                    if isinstance(error, KafkaError):
                        raise await self._reason(error) from None
                    raise
                self._client = client
            return self._client

    def _request_ms(self) -> int:
        """The limit of one request: a little less than the deadline, or half of that if another server can be tried."""
        return max(1, round(900 * self.deadline_seconds / min(2, len(self.address.servers))))

    async def _reason(self, error: KafkaError) -> Exception:
        """Why no server accepts the connection: aiokafka only logs whether it was a password or a certificate."""
        settings = {name: value for name, value in self.settings.items() if name != "bootstrap_servers"}
        reason: Exception = error
        for server in self.address.servers:
            host, _, port = server.rpartition(":")
            try:
                await try_connecting(host.strip("[]"), int(port), settings)
            except (OSError, TimeoutError, KafkaError) as found:
                reason = found
                refused = named(found, self.address, "connecting")
                if not isinstance(refused, StorageUnavailable):
                    return refused
        return reason

    async def close(self) -> None:
        """Close all connections; requests in progress fail. Takes at most `deadline_seconds`."""
        self._closed = True
        with suppress(TimeoutError):
            async with asyncio.timeout(self.deadline_seconds), self._lock:
                client, self._client = self._client, None
                if client is not None:
                    await client.close()


def _reason_of(error: Exception) -> str:
    if isinstance(error, RequestTimedOutError | TimeoutError):
        return "does not answer"
    if isinstance(error, NodeNotReadyError | StaleMetadata):  # their texts say no more
        return "cannot be reached"
    return f"cannot be reached ({str(error) or type(error).__name__})"
