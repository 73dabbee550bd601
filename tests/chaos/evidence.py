"""The evidence of a run: the topic, the producers' history and the rows of the views, each read independently."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, Message, TopicPartition

from chaos import history
from chaos.history import Acknowledged
from recallog_projections.rows import Changes
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.store import Checkpoint, Generation, Store
from recallog_projections.tables import Log
from recallog_projections.views import builtin
from recallog_streams.ledgers.memory import MemoryLedger
from recallog_streams.projector import Projector

RowAddress = tuple[str, str, str]

_READ_SECONDS_MAX = 60
_CHUNK = 1_000


class TopicRecord(NamedTuple):
    """One record of the topic."""

    offset: int
    key: bytes | None
    value: bytes


@dataclass(frozen=True)
class Dump:
    """All rows of one partition's active generation."""

    checkpoint: Checkpoint
    rows: Mapping[str, dict[RowAddress, bytes]]
    """By table."""
    logs: Mapping[str, dict[RowAddress, bytes]]
    """By log; the third part of an address is the entry's ordinal."""


@dataclass
class Evidence:
    """All acknowledgements, all records of the topic, and all rows of the views."""

    acknowledged: list[Acknowledged] = field(default_factory=list)
    topic: dict[int, list[TopicRecord]] = field(default_factory=dict)
    dumps: dict[int, Dump] = field(default_factory=dict)


def read_history(paths: Iterable[Path]) -> list[Acknowledged]:
    return [acknowledged for path in paths for acknowledged in history.acknowledged(path)]


def read_topic(bootstrap: str, topic: str, partitions: int) -> dict[int, list[TopicRecord]]:
    """All records of the topic, read by another Kafka client than Recallog's. Raises `TimeoutError`."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "chaos-checker", "enable.auto.commit": False, "log_level": 0}
    )
    found: dict[int, list[TopicRecord]] = {partition: [] for partition in range(partitions)}
    try:
        bounds = {
            partition: consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=_READ_SECONDS_MAX)
            for partition in found
        }
        consumer.assign([TopicPartition(topic, partition, start) for partition, (start, _) in bounds.items()])
        left = {partition: end - start for partition, (start, end) in bounds.items()}
        while sum(left.values()) > 0:
            # Not more than there are, since `consume` would wait for them.
            messages: list[Message] = consumer.consume(min(sum(left.values()), _CHUNK), timeout=_READ_SECONDS_MAX)
            if not messages:
                raise TimeoutError(f"{topic} cannot be read to its end; records left by partition: {left}")
            for message in messages:
                partition, record = _record(message)
                found[partition].append(record)
                left[partition] = max(0, bounds[partition][1] - record.offset - 1)  # the topic may grow
        return found
    finally:
        consumer.close()


def _record(message: Message) -> tuple[int, TopicRecord]:
    partition, offset = message.partition(), message.offset()
    if partition is None or offset is None or message.error() is not None:
        raise OSError(f"the topic cannot be read: {message.error()}")
    return partition, TopicRecord(offset, _bytes(message.key()), _bytes(message.value()) or b"")


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


async def dump(store: Store, generation: Generation) -> Dump:
    """Every row and every log entry of `generation`, which must not change while it is read."""
    found: tuple[dict[str, dict[RowAddress, bytes]], dict[str, dict[RowAddress, bytes]]] = ({}, {})
    checkpoints = set()
    for name, is_log in _tables().items():
        after, last = None, False
        addresses = found[is_log][name] = {}
        while not last:
            chunk = await store.scan(generation, name, after=after, limit=_CHUNK)
            checkpoints.add(chunk.checkpoint)
            addresses.update((item.row_key, item.data) for item in chunk.items)
            after, last = (chunk.items[-1].row_key if chunk.items else after), chunk.last
    (checkpoint,) = checkpoints  # several would mean that it was still being written
    return Dump(checkpoint, *found)


def _tables() -> dict[str, bool]:
    """The names of all tables, and whether each is a log."""
    projector = Projector(MemoryLedger(unique_ids=False), MemoryStore(), builtin.projections())
    return {table.name: isinstance(table, Log) for table in projector.fold.tables}


async def as_store(dump: Dump) -> tuple[MemoryStore, Generation]:
    """The rows of `dump` as partition 0 of a store in memory, for checks that read as queries do."""
    store, generation = MemoryStore(), Generation("dump", 0, "", 0)
    await store.create(generation)
    rows = {(table, *address): data for table, rows in dump.rows.items() for address, data in rows.items()}
    logs: dict[tuple[str, str, str], list[bytes]] = {}
    for log, entries in dump.logs.items():
        for space, owner, ordinal in sorted(entries):
            logs.setdefault((log, space, owner), []).append(entries[space, owner, ordinal])
    keep = {log: sum(map(len, logs.values())) for log in dump.logs}
    await store.commit(generation, Checkpoint(), dump.checkpoint, Changes(rows, logs, keep))
    return store, generation
