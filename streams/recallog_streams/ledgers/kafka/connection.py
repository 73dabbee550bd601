"""The connection to the cluster for all requests but appends: the producer has its own."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from aiokafka.errors import KafkaError

from recallog_schemas.errors import StorageError, StorageUnavailable
from recallog_streams.ledgers.kafka.address import KafkaAddress
from recallog_streams.ledgers.kafka.aiokafka_internals import Client, try_connecting
from recallog_streams.ledgers.kafka.failures import named

Result = TypeVar("Result")

RETRY_WAIT_SECONDS: Final = 0.1


class Connection:
    """Connects at the first request. Repeats a request after a temporary error until its time limit."""

    def __init__(self, address: KafkaAddress) -> None:
        """Raises `SettingsError` if the certificates of `address` cannot be read."""
        self.address = address
        self.settings = address.connection()
        self._client: Client | None = None
        self._lock = asyncio.Lock()
        self._closed = False

    async def ask(self, doing: str, work: Callable[[Client], Awaitable[Result]]) -> Result:
        """The result of `work`. `doing` describes it in errors. Takes at most the address's `timeout_seconds`.

        Raises `StorageUnavailable` if the cluster does not answer in time, and `StorageError` if it refuses.
        """
        last: Exception | None = None
        try:
            async with asyncio.timeout(self.address.timeout_seconds):
                client = await self._connected()
                while True:
                    try:
                        return await work(client)
                    except KafkaError as error:
                        if not error.retriable:
                            raise
                        last = error
                    self.check_open()
                    client.refresh_metadata()
                    await asyncio.sleep(RETRY_WAIT_SECONDS)
        except TimeoutError:
            raise StorageUnavailable(
                f"{self.address} has not answered for {self.address.timeout_seconds:g} seconds while {doing}"
                f"{f' ({last})' if last else ''}. Is the cluster up? Try again"
            ) from None
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
                client = Client(self.settings)
                try:
                    await client.bootstrap()
                except BaseException as error:
                    await client.close()
                    if isinstance(error, KafkaError):
                        raise await self._reason(error) from None
                    raise
                self._client = client
            return self._client

    async def _reason(self, error: KafkaError) -> StorageError:
        """Why no server accepts the connection: aiokafka only logs whether it was a password or a certificate."""
        settings = {name: value for name, value in self.settings.items() if name != "bootstrap_servers"}
        reason: Exception = error
        for server in self.address.servers:
            host, _, port = server.rpartition(":")
            try:
                await try_connecting(host.strip("[]"), int(port), settings)
            except (OSError, TimeoutError, KafkaError) as found:
                reason = found
                if not isinstance(named(found, "", ""), StorageUnavailable):
                    break
        return named(reason, self.address, "connecting")

    async def close(self) -> None:
        """Close all connections; requests in progress fail."""
        async with self._lock:
            self._closed = True
            client, self._client = self._client, None
        if client is not None:
            await client.close()
