"""A client that is cancelled or closed while it connects leaves no connection open."""

import asyncio
import gc
import threading
import warnings
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import RequestTimedOutError
from aiokafka.protocol.metadata import MetadataRequest

from recallog.remote.connection import ServerConnection
from recallog_projections.concurrency import cancel_all
from recallog_projections.stores.redis_server import RedisServer, breaker_of
from recallog_schemas.errors import StorageError
from recallog_streams.ledgers.kafka.address import KafkaAddress
from recallog_streams.ledgers.kafka.aiokafka_internals import make_client, stop_consumer
from recallog_streams.ledgers.kafka.connection import KafkaConnection
from recallog_streams.ledgers.kafka.doorbells import TriggerTopic
from recallog_streams.ledgers.kafka.group import ConsumerGroupSource
from recallog_streams.ledgers.kafka.ledger import KafkaLedger
from support.kafka_stand_in import BROKER, COORDINATOR, METADATA, TOPIC, VERSIONS, KafkaStandIn, kafka_stand_in
from support.redis_stand_in import redis_stand_in
from support.waiting import WAIT_SECONDS, until

TURNS = 40
"""Turns of the event loop in which a client connects to a broker that answers at once."""

Client = tuple[Callable[[], Awaitable[object]], Callable[[], Awaitable[None]]]
"""A call, and what closes the client."""


@contextmanager
def nothing_left_open() -> Iterator[None]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield
        gc.collect()
    assert [str(each.message) for each in found] == []


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaStandIn]:
    with kafka_stand_in() as found:
        yield found


def of_reader(address: KafkaAddress) -> Client:
    ledger = KafkaLedger(address)
    return ledger.ends, ledger.close


def of_producer(address: KafkaAddress) -> Client:
    connection = KafkaConnection(address)

    async def start() -> None:
        producer = await connection.start_producer()
        await producer.stop()

    return start, connection.close


def of_triggers(address: KafkaAddress) -> Client:
    triggers = TriggerTopic(address, lambda: asyncio.sleep(0, 1))
    return triggers.create, triggers.close


def of_group(address: KafkaAddress) -> Client:
    source = ConsumerGroupSource(address, "group")
    return source.start, source.stop


CLIENTS = {"reader": of_reader, "producer": of_producer, "triggers": of_triggers, "group": of_group}


@pytest.mark.parametrize("is_closed_first", [False, True], ids=["cancelled", "closed"])
@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_that_ends_while_it_connects_leaves_no_connection_open(
    broker: KafkaStandIn, name: str, is_closed_first: bool
) -> None:
    address = KafkaAddress.parse(f"kafka://127.0.0.1:{broker.port}/{TOPIC}")

    async def end_after(turns: int) -> None:
        call, close = CLIENTS[name](address)
        calls = [asyncio.ensure_future(call()) for _ in range(1 if name == "group" else 2)]  # a source starts once
        for _ in range(turns):
            await asyncio.sleep(0)
        if is_closed_first:
            await close()
        await cancel_all(*calls)
        await close()

    with nothing_left_open():
        for silent in ((), (METADATA,), (VERSIONS,)):
            broker.silent = silent
            for turns in range(0, TURNS, 8 if silent else 1):
                asyncio.run(end_after(turns))


def test_a_client_closes_although_a_broker_has_not_read_its_last_request() -> None:
    """It has no answer, so that aiokafka has begun to close the connection, and waits until the broker reads."""
    large = MetadataRequest(["t" * 30_000] * 500)  # more than the buffers of the system take

    async def work(broker: KafkaStandIn) -> None:
        settings = KafkaAddress.parse(f"kafka://127.0.0.1:{broker.port}/{TOPIC}").connection()
        client = make_client(AIOKafkaClient, settings | {"request_timeout_ms": 500})
        await client.bootstrap()
        assert await client.ready(BROKER)
        broker.unread = (METADATA,)
        with pytest.raises(RequestTimedOutError):
            await client.send(BROKER, large)
        async with asyncio.timeout(WAIT_SECONDS):
            await client.close()

    with nothing_left_open(), kafka_stand_in() as broker:
        asyncio.run(work(broker))


def test_a_consumer_whose_group_does_not_answer_leaves_no_task() -> None:
    async def work(broker: KafkaStandIn) -> None:
        async def is_asked() -> bool:
            return COORDINATOR in broker.asked

        settings = KafkaAddress.parse(f"kafka://127.0.0.1:{broker.port}/{TOPIC}").connection()
        consumer = make_client(AIOKafkaConsumer, settings, group_id="group", enable_auto_commit=False)
        consumer.subscribe([TOPIC])
        starting = asyncio.create_task(consumer.start())
        await until(is_asked, "the consumer looks for its group")
        await cancel_all(starting)
        await stop_consumer(consumer, 0.01)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with nothing_left_open(), kafka_stand_in() as broker:
        broker.known[COORDINATOR], broker.unread = 0, (COORDINATOR,)
        asyncio.run(work(broker))


def test_a_client_of_redis_that_is_closed_while_it_connects_does_not_make_redis_unavailable_to_others() -> None:
    async def work() -> None:
        async with redis_stand_in() as url:
            breaker = breaker_of(url)
            closing, other = RedisServer(url, breaker), RedisServer(url, breaker)
            calling = asyncio.create_task(closing.exchange([("PING",)]))
            await asyncio.sleep(0)
            await closing.close()
            with pytest.raises(StorageError, match="closed; open it again") as raised:
                await calling
            assert not raised.value.retryable  # also a patient call ends
            await other.command("PING")
            await other.close()

    with nothing_left_open():
        asyncio.run(work())


class Answering(BaseHTTPRequestHandler):
    """Answers every request, and keeps the connection open."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Print nothing."""


@pytest.fixture
def server_url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        serving.join()


def test_a_connection_to_a_server_that_is_closed_while_it_is_made_is_not_left_open(server_url: str) -> None:
    async def end_after(turns: int) -> None:
        server = ServerConnection(server_url, None, 20.0, None)
        request = server._client.build_request("GET", "/")
        calls = [asyncio.create_task(server._send(request, read_only=True)) for _ in range(2)]
        for _ in range(turns):
            await asyncio.sleep(0)
        await server.close()
        await asyncio.wait(calls)

    with nothing_left_open():
        for turns in range(TURNS):
            asyncio.run(end_after(turns))
