"""The ledger on a real Kafka meets the contract of ledgers, also with other writers, holes and crashes."""

import asyncio
import os
import re
import subprocess
import sys
import zlib
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from deploy.local import LocalKafka

from live.conftest import NewKafka
from live.support import DEADLINE_SECONDS, SECONDS
from recallog_schemas import Event, Position, codec, limits
from recallog_schemas.errors import InvariantViolation, LedgerMismatch, OutOfRange, StorageError, StorageUnavailable
from recallog_schemas.errors import UnknownOutcome as Unknown
from recallog_streams.ledgers.kafka import reading, writing
from recallog_streams.ledgers.kafka import topic as topics
from recallog_streams.ledgers.kafka.address import KafkaAddress
from recallog_streams.ledgers.kafka.ledger import KafkaLedger, partition_of
from recallog_streams.ledgers.ledger import Batch
from recallog_testing.contracts.ledger import RepeatedIdsContract
from support.events import event, numbered, run

ROOT = Path(__file__).parents[2]


def address(kafka: str, topic: str, partitions: int = 1, **options: Any) -> KafkaAddress:
    more = "".join(f"&{name}={value}" for name, value in options.items())
    return KafkaAddress.parse(f"kafka://{kafka}/{topic}?replication=1&partitions={partitions}{more}")


@asynccontextmanager
async def opened(at: KafkaAddress) -> AsyncIterator[KafkaLedger]:
    ledger = KafkaLedger(at, deadline_seconds=DEADLINE_SECONDS)
    try:
        await ledger.open()
        yield ledger
    finally:
        await ledger.close()


async def batches(ledger: KafkaLedger, partition: int = 0, start: int = 0, until: int | None = None) -> list[Batch]:
    if until is None:
        until = (await ledger.ends())[partition]
    return [batch async for batch in ledger.read(partition, start, until)]


async def events(ledger: KafkaLedger) -> dict[Position, Event]:
    """All events of the ledger with their positions."""
    return {
        Position(partition, offset): codec.decode(data)
        for partition, end in enumerate(await ledger.ends())
        async for batch in ledger.read(partition, 0, end)
        for offset, data in batch.records
    }


class TestKafkaLedger(RepeatedIdsContract):
    @pytest.fixture(autouse=True)
    def _where(self, kafka: str, topic: str) -> None:
        self._kafka, self._topic, self._made = kafka, topic, 0

    def make(self, folder: Path) -> KafkaLedger:
        self._made += 1
        return KafkaLedger(address(self._kafka, f"{self._topic}-{self._made}"), deadline_seconds=DEADLINE_SECONDS)


# Records on the wire.


def test_a_record_has_its_space_as_key_and_cloudevents_headers(kafka: str, topic: str) -> None:
    async def scenario() -> None:
        sent = event(id="e1", subject="s7")
        async with opened(address(kafka, topic)) as ledger:
            await ledger.append([sent])
        consumer = AIOKafkaConsumer(bootstrap_servers=kafka)
        await consumer.start()
        try:
            consumer.assign([assigned := TopicPartition(topic, 0)])
            consumer.seek(assigned, 0)
            record = await consumer.getone()
        finally:
            await consumer.stop()
        assert (record.key, record.value) == (b"village", codec.encode(sent))
        headers = dict(record.headers)
        assert headers["content-type"] == b"application/json"
        assert (headers["ce_id"], headers["ce_type"], headers["ce_subject"]) == (b"e1", b"agent.spoke", b"s7")

    run(scenario())


def test_partitions_are_known_once_it_is_open(kafka: str, topic: str) -> None:
    async def scenario() -> None:
        ledger = KafkaLedger(address(kafka, topic, 8), deadline_seconds=DEADLINE_SECONDS)
        with pytest.raises(InvariantViolation, match="open"):
            ledger.partition_of("village")
        await ledger.open()
        assert ledger.partition_of("village") == partition_of("village", 8)
        await ledger.close()

    run(scenario())


# Order and positions.


def test_a_large_call_over_many_partitions_returns_each_events_position(kafka: str, topic: str) -> None:
    async def scenario() -> None:
        sent = [event(space=f"space-{n % 50}", turn=n) for n in range(5_000)]
        async with opened(address(kafka, topic, 8)) as ledger:
            positions = await ledger.append(sent)
            found = await events(ledger)
        assert [found[position] for position in positions] == sent
        assert all(
            position.partition == partition_of(one.space, 8) for position, one in zip(positions, sent, strict=True)
        )

    run(scenario())


def test_concurrent_calls_keep_the_order_of_each_space(kafka: str, topic: str) -> None:
    sizes = [1, 3, writing.SHARED_EVENTS + 1, 1, 700, 2]

    async def write(ledger: KafkaLedger, space: str) -> None:
        turn = 0
        for size in sizes:
            await ledger.append(numbered(size, space=space, first=turn))
            turn += size

    async def scenario() -> None:
        async with opened(address(kafka, topic, 2)) as ledger:
            async with asyncio.TaskGroup() as writers:
                for n in range(30):
                    writers.create_task(write(ledger, f"space-{n}"))
            turns = defaultdict(list)
            for each in (await events(ledger)).values():
                turns[each.space].append(each.turn)
        assert set(map(len, turns.values())) == {sum(sizes)}
        assert all(found == sorted(found) for found in turns.values())

    run(scenario())


def test_an_event_of_the_largest_size_that_does_not_compress_is_written(kafka: str, topic: str) -> None:
    async def scenario() -> None:
        large = event(id="i" * 128, payload={"text": Random(0).randbytes(130_000).hex()})
        async with opened(address(kafka, topic)) as ledger:
            await ledger.append([large] * 3)
            assert list((await events(ledger)).values()) == [large] * 3

    run(scenario())


# Holes in the offsets.


def test_aborted_records_and_transaction_markers_are_skipped(kafka: str, topic: str) -> None:
    async def scenario() -> None:
        async with opened(address(kafka, topic)) as ledger:
            await ledger.append(numbered(2))
            producer = AIOKafkaProducer(bootstrap_servers=kafka, transactional_id=topic)
            await producer.start()
            try:
                await producer.begin_transaction()
                for _ in range(3):
                    await producer.send_and_wait(topic, b"never said", b"village", 0)
                assert await ledger.ends() == [2]  # an open transaction hides later records
                await producer.abort_transaction()
                async with producer.transaction():
                    await producer.send_and_wait(topic, b"said", b"city", 0)
            finally:
                await producer.stop()
            while (await ledger.ends())[0] < 8:
                await asyncio.sleep(0.02)
            await ledger.append(numbered(1, first=2))
            found = await batches(ledger)
            assert [offset for batch in found for offset, _ in batch.records] == [0, 1, 6, 8]
            assert [(batch.start, batch.next) for batch in found] == [(0, 9)]
            # Ranges that hold nothing but holes are read through.
            assert [(batch.start, batch.next, len(batch.records)) for batch in await batches(ledger, 0, 3, 5)] == [
                (3, 5, 0)
            ]
            assert [(batch.start, batch.next, len(batch.records)) for batch in await batches(ledger, 0, 7, 8)] == [
                (7, 8, 0)
            ]

    run(scenario())


def test_a_log_that_lost_its_beginning_is_refused(kafka: str, topic: str) -> None:
    async def scenario() -> None:
        async with opened(address(kafka, topic)) as ledger:
            await ledger.append(numbered(10))
            admin = AIOKafkaAdminClient(bootstrap_servers=kafka)
            await admin.start()
            try:
                await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=4)})
            finally:
                await admin.close()
            with pytest.raises(LedgerMismatch, match="begins at offset 4: the records from 2"):
                await batches(ledger, 0, 2)
            with pytest.raises(LedgerMismatch, match="begins at offset 4"):
                await ledger.find("village", "e1")
            assert [offset for batch in await batches(ledger, 0, 4) for offset, _ in batch.records] == list(
                range(4, 10)
            )

    run(scenario())


def test_a_read_after_the_end_reports_a_shorter_log(kafka: str, topic: str) -> None:
    async def scenario() -> None:
        async with opened(address(kafka, topic)) as ledger:
            await ledger.append(numbered(2))
            with pytest.raises(LedgerMismatch, match="ends at offset 2"):
                await batches(ledger, 0, 5, 9)
            with pytest.raises(OutOfRange, match="no partition 1"):
                await batches(ledger, 1, 0, 1)

    run(scenario())


def test_foreign_records_are_read_with_their_keys_and_missing_values_as_empty(kafka: str, topic: str) -> None:
    async def scenario() -> None:
        async with opened(address(kafka, topic)) as ledger:
            producer = AIOKafkaProducer(bootstrap_servers=kafka)
            await producer.start()
            try:
                await producer.send_and_wait(topic, None, b"village", 0)
                await producer.send_and_wait(topic, b"\xff", None, 0)
            finally:
                await producer.stop()
            await ledger.append([sent := event(id="e1")])
            (batch,) = await batches(ledger)
            assert batch.records == [(0, b""), (1, b"\xff"), (2, codec.encode(sent))]
            assert batch.keys == [b"village", None, b"village"]
            assert await ledger.find("village", "e1") == Position(0, 2)

    run(scenario())


# Many readers of one ledger.


def test_concurrent_readers_each_read_all(kafka: str, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "FETCH_BYTES", 4_096)  # many fetches

    async def scenario() -> None:
        async with opened(address(kafka, topic)) as ledger:
            for first in range(0, 6_000, 300):
                await ledger.append(numbered(300, first=first))
            found = await asyncio.gather(*(batches(ledger, 0, start) for start in range(0, 3_000, 300)))
        for start, read in zip(range(0, 3_000, 300), found, strict=True):
            assert [offset for batch in read for offset, _ in batch.records] == list(range(start, 6_000))

    run(scenario())


def test_an_abandoned_read_leaves_nothing_behind(kafka: str, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "FETCH_BYTES", 4_096)
    monkeypatch.setattr(limits, "READ_BATCH_BYTES", 1_000)

    async def scenario() -> None:
        async with opened(address(kafka, topic)) as ledger:
            for first in range(0, 900, 300):
                await ledger.append(numbered(300, first=first))
            for _ in range(3):
                found = ledger.read(0, 0, 900)
                assert (await anext(found)).start == 0
                await found.aclose()  # type: ignore[attr-defined]
            assert not [task for task in asyncio.all_tasks() if "Reader._fetch" in repr(task)]
            assert len((await events(ledger)).values()) == 900

    run(scenario())


# Failures.


def test_a_producer_out_of_step_with_the_broker_is_replaced(kafka: str, topic: str) -> None:
    async def scenario() -> None:
        async with opened(address(kafka, topic)) as ledger:
            await ledger.append(numbered(1))
            producer = ledger._writer._producer
            assert producer is not None
            producer._txn_manager.increment_sequence_number(TopicPartition(topic, 0), 5)
            with pytest.raises(Unknown, match=r"of 1 events 0 are known.*OutOfOrder.*same ids"):
                await ledger.append(numbered(1, first=1))
            assert await ledger.append(numbered(1, first=1)) == [Position(0, 1)]

    run(scenario())


def test_an_address_without_a_broker_is_reported_at_once() -> None:
    async def scenario() -> None:
        ledger = KafkaLedger(address("127.0.0.1:1", "t"))
        for _ in range(2):
            with pytest.raises(StorageUnavailable, match=r"kafka://127\.0\.0\.1:1/t cannot be reached") as raised:
                async with asyncio.timeout(SECONDS):
                    await ledger.append(numbered(1))
            assert raised.value.retryable
        await ledger.close()

    run(scenario())


def test_a_wrong_login_is_a_permanent_error_and_shows_no_password(kafka: str) -> None:
    async def scenario() -> None:
        ledger = KafkaLedger(
            KafkaAddress.parse(f"kafka://user:s3cr3t@{kafka}/t?security_protocol=SASL_PLAINTEXT&timeout_seconds=6")
        )
        with pytest.raises(StorageError, match=r"refused the login.*sasl_mechanism") as raised:
            await ledger.open()
        assert not raised.value.retryable
        assert "s3cr3t" not in str(raised.value)
        await ledger.close()

    run(scenario())


def test_a_closed_ledger_raises_an_error(kafka: str, topic: str) -> None:
    async def scenario() -> None:
        ledger = KafkaLedger(address(kafka, topic), deadline_seconds=DEADLINE_SECONDS)
        await ledger.append(numbered(1))
        await ledger.close()
        await ledger.close()
        for call in (ledger.ends, ledger.manifest, lambda: ledger.append(numbered(1))):
            with pytest.raises(StorageError, match=r"closed.*open it again") as raised:
                await call()
            assert not raised.value.retryable

    run(scenario())


@pytest.fixture(scope="module")
def killable(own_kafka: NewKafka) -> LocalKafka:
    """A Kafka for all tests of the module. A test that kills it starts it again."""
    return own_kafka()


async def keep_on(
    ledger: KafkaLedger, space: str, acknowledged: list[tuple[Position, Event]], stop: asyncio.Event
) -> int:
    """Publish event after event, each until it is acknowledged; returns how often an outcome was unknown."""
    unsure, turn = 0, 0
    while not stop.is_set():
        sent = event(space=space, turn=turn)
        while True:
            try:
                (position,) = await ledger.append([sent])
            except (Unknown, StorageUnavailable) as error:
                unsure += isinstance(error, Unknown)
                continue
            acknowledged.append((position, sent))
            break
        turn += 1
    return unsure


def test_nothing_acknowledged_is_lost_when_the_broker_is_killed_under_writers(killable: LocalKafka, topic: str) -> None:
    async def scenario() -> None:
        acknowledged: list[tuple[Position, Event]] = []
        stop = asyncio.Event()
        async with opened(address(killable.bootstrap, topic, 4)) as ledger, asyncio.TaskGroup() as writers:
            for n in range(20):
                writers.create_task(keep_on(ledger, f"space-{n}", acknowledged, stop))
            while len(acknowledged) < 500:
                await asyncio.sleep(0.02)
            await asyncio.to_thread(killable.kill)
            await asyncio.to_thread(killable.start)
            while len(acknowledged) < 1_000:
                await asyncio.sleep(0.02)
            stop.set()
        async with opened(address(killable.bootstrap, topic, 4)) as ledger:
            found = await events(ledger)
        assert [found.get(position) for position, _ in acknowledged] == [sent for _, sent in acknowledged]
        turns: defaultdict[str, list[int]] = defaultdict(list)
        for each in found.values():
            if each.turn not in turns[each.space]:
                turns[each.space].append(each.turn)
        assert all(first_seen == sorted(first_seen) for first_seen in turns.values())

    run(scenario())


def test_without_the_broker_an_outcome_is_unknown_or_nothing_was_written(
    killable: LocalKafka, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with opened(address(killable.bootstrap, topic, timeout_seconds=1.5)) as ledger:
            await ledger.append(numbered(1))
            with monkeypatch.context() as patched:
                patched.setattr(topics, "CHECK_SECONDS", 3_600.0)  # it does not look for the topic again
                killable.kill()
                with pytest.raises(Unknown, match=r"of 2 events 0 are known to be written.*same ids") as unknown:
                    await ledger.append(unsure := numbered(2, first=1))
            assert unknown.value.retryable
            with pytest.raises(StorageUnavailable, match=r"nothing was written: .* cannot be reached"):
                await ledger.append(numbered(1, first=9))
            # Concurrent callers wait together, not one after the other, which would take 30 s.
            async with asyncio.timeout(20):
                answers = await asyncio.gather(*(ledger.ends() for _ in range(20)), return_exceptions=True)
            assert {type(answer) for answer in answers} == {StorageUnavailable}
            await asyncio.to_thread(killable.start)
            await ledger.append(unsure)
            found = [each.turn for each in (await events(ledger)).values()]
            assert list(dict.fromkeys(found)) == [0, 1, 2]

    run(scenario())


def test_closing_returns_while_the_broker_is_down(
    killable: LocalKafka, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topics, "CHECK_SECONDS", 3_600.0)  # it does not look for the topic again

    async def scenario() -> None:
        async with asyncio.timeout(SECONDS):
            async with opened(address(killable.bootstrap, topic, timeout_seconds=1)) as ledger:
                await ledger.append(numbered(1))
                killable.kill()
                with pytest.raises(Unknown):
                    await ledger.append(numbered(1, first=1))
        await asyncio.to_thread(killable.start)

    run(scenario())


# Producers without this library.


def example_of_the_page() -> str:
    (code,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs/producers.md").read_text(), re.DOTALL | re.MULTILINE)
    return str(code)


def test_records_of_the_documented_example_producer_are_read_as_events(kafka: str, topic: str) -> None:
    async def scenario() -> None:
        async with opened(address(kafka, topic, 8)) as ledger:
            environment = {**os.environ, "KAFKA_SERVERS": kafka, "KAFKA_TOPIC": topic}
            done = await asyncio.to_thread(
                subprocess.run,
                [sys.executable, "-c", example_of_the_page()],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            found = await events(ledger)
            assert [(each.space, each.kind) for each in found.values()] == [("village", "agent.spoke")] * 2
            assert {position.partition for position in found} == {ledger.partition_of("village")}
            assert done.stdout.splitlines() == [f"written at {position}" for position in found]
            (batch,) = await batches(ledger, ledger.partition_of("village"))
            assert batch.keys == [b"village"] * 2
            assert [len(each.records) async for each in ledger.read(batch.partition, 0, 2, space="village")] == [2]

    run(scenario())


def partitions_used(kafka: str, topic: str, spaces: Sequence[str], **settings: str) -> dict[str, int]:
    """Where librdkafka puts the records of each space."""
    from confluent_kafka import Producer

    found: dict[str, int] = {}
    producer = Producer({"bootstrap.servers": kafka, **settings})
    for space in spaces:
        producer.produce(
            topic,
            b"{}",
            space.encode(),
            on_delivery=lambda _, record: found.update({record.key().decode(): record.partition()}),
        )
    assert producer.flush(30) == 0
    return found


def test_librdkafka_finds_our_partitions_only_with_murmur2_random(kafka: str, topic: str) -> None:
    spaces = [f"space-{n}" for n in range(20)]

    async def scenario() -> dict[str, int]:
        async with opened(address(kafka, topic, 8)) as ledger:
            return {space: ledger.partition_of(space) for space in spaces}

    ours = run(scenario())
    assert partitions_used(kafka, topic, spaces, partitioner="murmur2_random") == ours
    theirs = partitions_used(kafka, topic, spaces)
    assert theirs == {space: zlib.crc32(space.encode()) % 8 for space in spaces}
    assert theirs != ours
