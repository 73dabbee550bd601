"""Records of other producers: invalid ones are dead letters with a reason, holes are skipped, the fold continues."""

import asyncio
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c
from confluent_kafka import KafkaError, Message, Producer

from live.conftest import NewRedis
from live.support import PARTITIONS, SECONDS, Cluster, Worker, wait_until
from recallog import Event, Memory, Position
from recallog_schemas import limits
from recallog_schemas.errors import DeadLettered
from recallog_schemas.views import DeadLetter
from recallog_service.formats.item import Item
from recallog_service.ingest import ingest
from recallog_streams.ledgers.kafka.ledger import partition_of
from support.events import MOMENT, event

SPACE = "village"
PARTITION = partition_of(SPACE, PARTITIONS)


@dataclass(frozen=True)
class Written:
    """A record of another program, and the reason of its dead letter (None: it counts, or is a repeat)."""

    value: bytes | None
    reason: str | None = None
    key: bytes | None = SPACE.encode()
    partition: int = PARTITION


def record_of(id_: str, text: str = "Bread!", **changed: Any) -> bytes:
    fields = {"envelope": 1, "id": id_, "space": SPACE, "agent": "baker", "kind": "agent.spoke", "at": MOMENT}
    fields |= {"turn": 1, "payload": {"text": text}, **changed}
    return json.dumps({name: value for name, value in fields.items() if value is not None}).encode()


RECORDS = [
    Written(record_of("first")),
    Written(record_of("future", envelope=99), "future_schema"),
    Written(record_of("newer", schema_version=2), "future_schema"),
    Written(record_of("latin").replace(b"Bread!", b"Br\xfft!"), "unparsable"),
    Written(b"hello", "unparsable"),
    Written(None, "unparsable"),
    Written(b"", "unparsable"),
    Written(record_of("wrong key"), "wrong_key", key=b"another"),
    Written(record_of("no key"), "wrong_key", key=None),
    Written(record_of("elsewhere"), "wrong_partition", partition=(PARTITION + 1) % PARTITIONS),
    Written(record_of("large", "x" * limits.EVENT_BYTES_MAX), "too_large"),
    Written(record_of("largest", "x" * 900_000), "too_large"),
    Written(record_of("first", "Cake!"), "conflict"),
    Written(record_of("first")),  # a repeat
    Written(record_of("first", at="2031-01-01T00:00:00Z")),  # a repeat too: the time is not content
    Written(record_of("no agent", agent=None), "invalid"),
    Written(record_of("last")),
]


@pytest.fixture(scope="module")
def worker(cluster: Cluster) -> Worker:
    return cluster.workers[0]


def write(cluster: Cluster, records: Sequence[Written]) -> list[Position]:
    """Write records without Recallog's client; returns their positions once they are durable."""
    positions: dict[int, Position] = {}
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "message.max.bytes": 1_000_000})
    for number, record in enumerate(records):

        def acknowledged(error: KafkaError | None, message: Message, number: int = number) -> None:
            assert error is None, error
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            positions[number] = Position(partition, offset)

        producer.produce(
            cluster.topic, record.value, key=record.key, partition=record.partition, on_delivery=acknowledged
        )
    assert producer.flush(SECONDS) == 0
    return [positions[number] for number in range(len(records))]


def letters(cluster: Cluster) -> list[DeadLetter]:
    async def work(memory: Memory) -> list[DeadLetter]:
        await memory.catch_up()
        return list(await memory.admin.dead_letters())

    return cluster.ask(work)


def test_invalid_records_are_dead_letters_and_their_space_continues(cluster: Cluster, worker: Worker) -> None:
    positions = write(cluster, RECORDS)
    bad = {at: record.reason for at, record in zip(positions, RECORDS, strict=True) if record.reason is not None}
    found = letters(cluster)
    assert {letter.position: letter.reason for letter in found} == bad

    async def after(memory: Memory) -> None:
        view = await memory.episodic(SPACE, "baker", after=positions[-1])
        assert [each.event.id for each in view.memories] == ["first", "last"]
        for at, reason in bad.items():
            if at.partition == PARTITION:
                with pytest.raises(DeadLettered, match=f"is a dead letter \\({reason}"):
                    await memory.episodic(SPACE, "baker", after=at)
        assert (await memory.admin.dead_letter(positions[7])).content == record_of("wrong key").decode()
        conflict = (await memory.admin.dead_letter(positions[12])).first
        assert conflict is not None
        assert (conflict.position, conflict.differs_in) == (positions[0], "payload.text")
        await memory.admin.rebuild()
        status = await memory.admin.status()
        assert sum(row.dead_letters for row in status.partitions) == len(bad)
        assert [row.partition for row in status.partitions if row.incomplete] == [PARTITION]

    cluster.ask(after)
    assert letters(cluster) == found
    worker.wait_until_live()

    def counted() -> float:
        return sum(value for name, value in worker.metrics().items() if name.startswith("recallog_dead_letters"))

    wait_until(lambda: counted() == len(bad), "the metrics show them")
    cluster.assert_views_are_the_fold(len(RECORDS))


def test_an_ingest_again_adds_nothing_to_the_views_and_reports_other_times(cluster: Cluster, worker: Worker) -> None:
    def items(*times: str) -> list[Item]:
        return [Item(n, event=event(space="archive", id=f"e-{n}", at=at)) for n, at in enumerate(times, 1)]

    async def work(memory: Memory) -> None:
        first = await ingest(memory, items(MOMENT, MOMENT, MOMENT), batch=2)
        assert (first.added, first.known) == (3, 0)
        await memory.catch_up()
        again = await ingest(memory, items(MOMENT, "2031-01-01T00:00:00Z", MOMENT, MOMENT), batch=2)
        assert (again.added, again.known, again.other_times) == (1, 3, 1)
        assert [found.id for found in again.first_other_times] == ["e-2"]
        await memory.catch_up()
        assert [each.event.id for each in (await memory.episodic("archive", "baker")).memories] == [
            f"e-{n}" for n in range(1, 5)
        ]
        assert not [letter for letter in await memory.admin.dead_letters() if letter.space == "archive"]

    cluster.ask(work)


def test_aborted_records_and_transaction_markers_do_not_block_the_fold(cluster: Cluster, worker: Worker) -> None:
    """Aborted records and markers are holes: in the middle, at the very end, and in partitions with nothing else."""

    async def transactions(memory: Memory) -> None:
        producer = AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id=f"{cluster.topic}-foreign")
        await producer.start()
        number = 0

        async def transaction(count: int, *, commit: bool) -> None:
            nonlocal number
            await producer.begin_transaction()
            for _ in range(count):
                number += 1
                # In two partitions, in one of which nothing is ever committed.
                for partition in (PARTITION, (PARTITION + 2) % PARTITIONS)[: 1 if commit else 2]:
                    value = record_of(f"transaction {number}", turn=number)
                    await producer.send_and_wait(cluster.topic, value, key=SPACE.encode(), partition=partition)
            await (producer.commit_transaction() if commit else producer.abort_transaction())

        try:
            for count in (3, 1, 5):
                await transaction(count, commit=True)
                await transaction(count, commit=False)
                await memory.publish(event(space=SPACE, turn=count))
            await transaction(4, commit=True)
            await memory.catch_up()
            await transaction(4, commit=False)
        finally:
            await producer.stop()
        before = (await memory.admin.ledger_ends())[PARTITION]
        await memory.catch_up()  # the last offset is an abort's marker
        view = await memory.timeline(SPACE, "baker", kinds=["agent.spoke"])
        committed = [each.event.id for each in view.items if each.event.id.startswith("transaction")]
        assert committed == [f"transaction {each}" for each in (1, 2, 3, 7, 9, 10, 11, 12, 13, 19, 20, 21, 22)]
        position = await memory.publish(event(space=SPACE, turn=99))
        assert position.offset >= before
        assert (await memory.episodic(SPACE, "baker", after=position)).memories[-1].position == position

    cluster.ask(transactions)
    worker.wait_until_live()
    assert {each["lag"] for each in worker.health()["partitions"]} == {0}
    cluster.ask(no_difference)


async def no_difference(memory: Memory) -> None:
    assert [check for check in (await memory.admin.verify()).tables if check.difference is not None] == []


def test_a_header_name_that_is_not_utf_8_does_not_block_the_fold(
    kafka: str, own_redis: NewRedis, tmp_path: Any
) -> None:
    with Cluster(kafka, f"recallog.{tmp_path.name}", own_redis().url, tmp_path) as cluster:
        worker = cluster.live_worker()
        poison = Event(space=SPACE, agent="baker", kind="agent.spoke", payload={"text": "headers"})
        asyncio.run(send(cluster, batch_with_a_bad_header(poison)))

        async def after(memory: Memory) -> None:
            position = await memory.publish(event(space=SPACE))
            view = await memory.episodic(SPACE, "baker", after=position)
            assert [each.text for each in view.memories] == ["headers", "Bread!"]

        refused = cluster.refusal(after, after_wait_seconds=10)
        assert refused is None
        worker.wait_until_live(seconds=1)


def batch_with_a_bad_header(source: Event) -> bytes:
    """A batch of one record with a header name that is not UTF-8, as a faulty program would write it."""
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1_000_000)
    value = source.model_dump_json(exclude_none=True).encode()
    builder.append(0, 1, source.space.encode(), value, [("NAME", b"value")])
    batch = bytearray(builder.build())
    at = batch.index(b"NAME")
    batch[at : at + 4] = b"\xff\xfe\xfd\xfc"
    batch[17:21] = struct.pack(">I", calc_crc32c(bytes(batch[21:])))
    return bytes(batch)


async def send(cluster: Cluster, batch: bytes) -> None:
    client = AIOKafkaClient(bootstrap_servers=cluster.bootstrap)
    await client.bootstrap()
    try:
        await client.set_topics([cluster.topic])
        request = ProduceRequest(
            transactional_id=None,
            required_acks=-1,
            timeout=10_000,
            topics=[(cluster.topic, [(PARTITION, batch)])],
        )
        response = await client.send(client.get_random_node(), request)
        ((_, ((_, code, *_),)),) = response.topics
        assert code == 0
    finally:
        await client.close()
