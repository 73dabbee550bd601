"""A server that does not answer costs the deadline once; the calls after that fail at once, and closing is quick.

Each client of a server that a question waits for is called on a port where nobody answers in various ways.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from statistics import median
from typing import Any, get_args

import pytest

from recallog.index.questions import EmbeddedQuestions
from recallog_embedding_endpoint.embedder import EndpointEmbedder
from recallog_projections.index.engines.server import ServerEngine
from recallog_projections.stores.redis import RedisStore
from recallog_projections.stores.redis_server import breaker_of
from recallog_schemas.errors import (
    EmbedderUnavailable,
    IndexUnavailable,
    RecallogError,
    StorageError,
    StorageUnavailable,
)
from recallog_streams.ledgers.kafka.address import KafkaAddress
from recallog_streams.ledgers.kafka.ledger import KafkaLedger
from recallog_streams.locks.redis import RedisLock
from support.silent_server import Fault, silent_server

DEADLINE_SECONDS = 0.5
OVERHEAD_SECONDS = 15.0
"""Of a machine that does not run this process for some seconds. Less than the clients' own limits."""


@dataclass
class Client:
    """A client of the server at 127.0.0.1:`port`."""

    call: Callable[[], Awaitable[Any]]
    close: Callable[[], Awaitable[None]]


async def nothing() -> None:
    pass


def redis_store(port: int) -> Client:
    url = f"redis://127.0.0.1:{port}/0"
    store = RedisStore(url, breaker=breaker_of(url, DEADLINE_SECONDS))
    return Client(lambda: store.read(0), store.close)


def redis_lock(port: int) -> Client:
    url = f"redis://127.0.0.1:{port}/0"
    lock = RedisLock(url, "lock", 10.0, breaker_of(url, DEADLINE_SECONDS))

    async def held() -> None:
        async with lock():
            pass

    return Client(held, nothing)


def kafka_ledger(port: int) -> Client:
    address = KafkaAddress.parse(f"kafka://127.0.0.1:{port}/events")
    ledger = KafkaLedger(address, deadline_seconds=DEADLINE_SECONDS)
    return Client(ledger.ends, ledger.close)


def qdrant(port: int) -> Client:
    engine = ServerEngine(f"http://127.0.0.1:{port}", deadline_seconds=DEADLINE_SECONDS)
    return Client(lambda: engine.count("memories"), engine.close)


def embedder(port: int) -> Client:
    endpoint = EndpointEmbedder(f"http://127.0.0.1:{port}", "small", question_seconds=DEADLINE_SECONDS)
    questions = EmbeddedQuestions(DEADLINE_SECONDS)

    async def close() -> None:
        endpoint.close()

    return Client(lambda: questions.embedding(endpoint, "who owes the miller?"), close)


CLIENTS: dict[str, tuple[Callable[[int], Client], type[RecallogError], bytes]] = {
    "the store in Redis": (redis_store, StorageUnavailable, b"$100\r\nha"),
    "a lock in Redis": (redis_lock, StorageUnavailable, b"$100\r\nha"),
    "the ledger on Kafka": (kafka_ledger, StorageUnavailable, b"\x00\x00\x10\x00\x00"),
    "a Qdrant server": (qdrant, IndexUnavailable, b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"),
    "the endpoint of an embedder": (
        embedder,
        EmbedderUnavailable,
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
    ),
}


async def refusal(call: Callable[[], Awaitable[Any]], kind: type[RecallogError], port: int) -> float:
    """How long `call` takes until it raises `kind`, retryable and with the address."""
    began = time.monotonic()
    with pytest.raises(kind, match=rf"127\.0\.0\.1:{port}") as raised:
        await call()
    assert raised.value.retryable
    return time.monotonic() - began


@pytest.mark.parametrize("fault", get_args(Fault))
@pytest.mark.parametrize("name", CLIENTS)
def test_a_server_that_does_not_answer_costs_the_deadline_once(name: str, fault: Fault) -> None:
    new_client, kind, half = CLIENTS[name]

    async def scenario(port: int) -> None:
        client = new_client(port)
        assert await refusal(client.call, kind, port) < DEADLINE_SECONDS + OVERHEAD_SECONDS
        took = [await refusal(client.call, kind, port) for _ in range(20)]
        assert median(took) < DEADLINE_SECONDS / 2  # on a busy machine one of them may be the next attempt
        began = time.monotonic()
        await client.close()
        assert time.monotonic() - began < DEADLINE_SECONDS + OVERHEAD_SECONDS

    with silent_server(fault, half) as port:
        asyncio.run(scenario(port))


@pytest.mark.parametrize("name", CLIENTS)
def test_calls_that_wait_together_end_together(name: str) -> None:
    new_client, kind, _ = CLIENTS[name]

    async def scenario(port: int) -> None:
        client = new_client(port)
        calls = (refusal(client.call, kind, port) for _ in range(60))
        assert max(await asyncio.gather(*calls)) < DEADLINE_SECONDS + OVERHEAD_SECONDS
        await client.close()

    with silent_server("silent") as port:
        asyncio.run(scenario(port))


def test_a_refusal_is_named_also_if_another_server_of_the_cluster_is_down() -> None:
    async def ask(servers: str) -> None:
        ledger = KafkaLedger(KafkaAddress.parse(f"kafka://{servers}/t?security_protocol=SSL"))
        with pytest.raises(StorageError, match="no TLS") as raised:
            await ledger.ends()
        assert not raised.value.retryable
        await ledger.close()

    with silent_server("half an answer", b"HTTP/1.1 400\r\n\r\n") as plain, silent_server("refuses") as down:
        for _ in range(10):  # aiokafka tries the servers in random order
            asyncio.run(ask(f"127.0.0.1:{plain},127.0.0.1:{down}"))
