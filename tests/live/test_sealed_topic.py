"""Sealed events in a topic: what is stored, what is read, and events of the largest size."""

import secrets

from live.support import DEADLINE_SECONDS
from live.test_kafka_ledger import address
from recallog_schemas import Event, codec, limits, sealing
from recallog_streams.keys.memory import MemoryKeys
from recallog_streams.ledgers.kafka.ledger import KafkaLedger
from recallog_streams.ledgers.ledger import Batch
from recallog_streams.sealing import Sealing
from support.events import event, run


async def read_back(url: str, topic: str, sent: list[Event], *, destroy: bool = False) -> Batch:
    """What is read of events that were appended, with all their keys destroyed or not."""
    ledger = KafkaLedger(address(url, topic), deadline_seconds=DEADLINE_SECONDS)
    ledger.sealing = Sealing(MemoryKeys)
    try:
        position, *_ = await ledger.append(sent)
        (batch,) = [batch async for batch in ledger.read(position.partition, 0, len(sent))]
        if destroy:
            ids = {id_ for _, data in batch.stored for id_ in sealing.key_ids(data)}
            await ledger.sealing.keys.destroy(ids, position.partition)
            (batch,) = [batch async for batch in ledger.read(position.partition, 0, len(sent))]
        return batch
    finally:
        await ledger.close()


def test_a_topic_has_the_sealed_record_and_readers_get_the_event(kafka: str, topic: str) -> None:
    sent = [event(id="e-0"), event(id="e-1", payload={"text": "Ann bakes bread."}, subject="ann")]
    batch = run(read_back(kafka, topic, sent))
    assert [data for _, data in batch.records] == [codec.encode(each) for each in sent]
    assert [sealing.is_sealed(data) for _, data in batch.stored] == [False, True]


def test_an_erased_event_is_read_without_its_payload(kafka: str, topic: str) -> None:
    sent = [event(id="e-0"), event(id="e-1", subject="ann")]
    batch = run(read_back(kafka, topic, sent, destroy=True))
    assert [codec.decode(data).is_erased for _, data in batch.records] == [False, True]


def test_a_sealed_event_of_the_largest_size_is_written(kafka: str, topic: str) -> None:
    room = limits.EVENT_BYTES_MAX - len(codec.encode(event(id="e-0", payload={"text": ""}, subject="ann")))
    sent = event(id="e-0", payload={"text": secrets.token_hex(room // 2)}, subject="ann")
    batch = run(read_back(kafka, topic, [sent]))
    assert batch.records[0][1] == codec.encode(sent)
    assert len(batch.stored[0][1]) <= limits.RECORD_BYTES_MAX
