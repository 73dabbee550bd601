"""What the checker looks at: the topic, the history and the rows of the views, each read by itself."""

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

Place = tuple[str, str, str]

_READ_SECONDS_MAX = 60
_CHUNK = 1_000


class Said(NamedTuple):
    """One record of the topic."""

    offset: int
    key: bytes | None
    value: bytes


@dataclass(frozen=True)
class Dump:
    """All rows of one partition's active generation."""

    processed: int
    """The last offset."""
    rows: Mapping[str, dict[Place, bytes]]
    """By table."""
    logs: Mapping[str, dict[Place, bytes]]
    """By log; the third part of a place is the entry's ordinal."""


@dataclass
class Evidence:
    """Everything that was acknowledged, everything that was written, and what the views made of it."""

    acknowledged: list[Acknowledged] = field(default_factory=list)
    topic: dict[int, list[Said]] = field(default_factory=dict)
    dumps: dict[int, Dump] = field(default_factory=dict)


def read_history(paths: Iterable[Path]) -> list[Acknowledged]:
    return [acknowledged for path in paths for acknowledged in history.acknowledged(path)]


def read_topic(bootstrap: str, topic: str, partitions: int) -> dict[int, list[Said]]:
    """The whole topic, by a client that is not the product's. Raises `TimeoutError`."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "chaos-checker", "enable.auto.commit": False, "log_level": 0}
    )
    found: dict[int, list[Said]] = {partition: [] for partition in range(partitions)}
    try:
        bounds = {
            partition: consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=_READ_SECONDS_MAX)
            for partition in found
        }
        consumer.assign([TopicPartition(topic, partition, start) for partition, (start, _) in bounds.items()])
        left = {partition: end - start for partition, (start, end) in bounds.items()}
        while sum(left.values()) > 0:
            # Never more than there are: it would wait for them.
            messages: list[Message] = consumer.consume(min(sum(left.values()), _CHUNK), timeout=_READ_SECONDS_MAX)
            if not messages:
                raise TimeoutError(f"{topic} cannot be read to its end, there should be {left} more by partition")
            for message in messages:
                partition, said = _said(message)
                found[partition].append(said)
                left[partition] = bounds[partition][1] - said.offset - 1
        return found
    finally:
        consumer.close()


def _said(message: Message) -> tuple[int, Said]:
    partition, offset = message.partition(), message.offset()
    if partition is None or offset is None or message.error() is not None:
        raise OSError(f"the topic cannot be read: {message.error()}")
    return partition, Said(offset, _bytes(message.key()), _bytes(message.value()) or b"")


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


async def dump(store: Store, generation: Generation) -> Dump:
    """Every row and every log entry of `generation`, which nobody writes meanwhile."""
    found: tuple[dict[str, dict[Place, bytes]], dict[str, dict[Place, bytes]]] = ({}, {})
    processed = set()
    for name, is_log in _tables().items():
        after, last = None, False
        places = found[is_log][name] = {}
        while not last:
            chunk = await store.scan(generation, name, after=after, limit=_CHUNK)
            processed.add(chunk.checkpoint.offset)
            places.update((item.row_key, item.data) for item in chunk.items)
            after, last = (chunk.items[-1].row_key if chunk.items else after), chunk.last
    (offset,) = processed  # more than one: somebody still writes, and the evidence is worth nothing
    return Dump(offset, *found)


def _tables() -> dict[str, bool]:
    """The names of all tables, and whether each is a log."""
    projector = Projector(MemoryLedger(unique_ids=False), MemoryStore(), builtin.projections())
    return {table.name: isinstance(table, Log) for table in projector.fold.tables}


async def as_store(dump: Dump) -> tuple[MemoryStore, Generation]:
    """The rows of `dump` as partition 0 of a store in memory, for checks that ask as readers do."""
    store, generation = MemoryStore(), Generation("dump", 0, "", 0)
    await store.create(generation)
    rows = {(table, *place): data for table, rows in dump.rows.items() for place, data in rows.items()}
    logs: dict[tuple[str, str, str], list[bytes]] = {}
    for log, entries in dump.logs.items():
        for space, owner, ordinal in sorted(entries):
            logs.setdefault((log, space, owner), []).append(entries[space, owner, ordinal])
    keep = {log: sum(map(len, logs.values())) for log in dump.logs}
    new = Checkpoint(dump.processed, dump.processed, b"")
    await store.commit(generation, Checkpoint(), new, Changes(rows, logs, keep))
    return store, generation
