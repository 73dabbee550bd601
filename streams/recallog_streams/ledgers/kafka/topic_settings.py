"""What the settings of a topic do to its events: which of them lose history, refuse events, or protect them less."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from recallog_schemas import limits
from recallog_streams.ledgers.kafka.address import KafkaAddress
from recallog_streams.ledgers.ledger import StorageFault

RECORD_OVERHEAD_BYTES: Final = 16 * 1024  # key, headers and the batch around an event of the largest size
RETIRED_BYTES: Final = 128
"""`max.message.bytes` of a topic that is retired. The smallest event takes 150 bytes in a batch of its own. A marker of
`retirement` takes less, and so does Kafka's marker at the end of a transaction."""
MESSAGE_BYTES: Final = 1024 * 1024 + 12  # Kafka's own default, whatever this cluster's is


class Effect(Enum):
    """loses: acknowledged events can be deleted. Such a topic is not opened, and nothing more is written to it.
    refuses: events cannot be written. Such a topic is not opened.
    weakens: acknowledged events are protected less than the address requires, or old ones are gone.
    single: the topic has fewer copies than the address requires, which only more brokers can change.
    retired: its events are copied to another topic. It can be read, and brokers refuse further events.
    """

    LOSES = "loses"
    REFUSES = "refuses"
    WEAKENS = "weakens"
    SINGLE = "single"
    RETIRED = "retired"


@dataclass(frozen=True)
class TopicFault:
    """One thing that is wrong with a topic."""

    effect: Effect
    what: str
    """A setting with its value, or a fact: the predicate of "the topic"."""
    consequence: str
    remedy: str

    def describe(self) -> StorageFault:
        """The fault as the ledger reports it."""
        severe = self.effect not in (Effect.SINGLE, Effect.RETIRED)
        return StorageFault(f"the topic {self.what}: {self.consequence}", self.remedy, severe)


def faults_of(
    address: KafkaAddress, settings: Mapping[str, str | None], copies: int, starts: Mapping[int, int], partitions: int
) -> list[TopicFault]:
    """What is wrong with a topic, the worst first.

    `copies` is the number of replicas of the partition that has the fewest, or 0 if the broker that was asked does not
    know the topic yet. `starts` has the first offset of each of the `partitions` with a leader.
    """
    found = [*_losing(address, settings), *_refusing(address, settings, copies)]
    insync = _number(settings, "min.insync.replicas", 1)
    if copies > 1 and insync < address.insync:
        consequence = f"an acknowledged event may be on {insync} of {copies} brokers only, and is lost with them"
        found.append(_of_setting(address, settings, Effect.WEAKENS, "min.insync.replicas", address.insync, consequence))
    if leaderless := [str(partition) for partition in range(partitions) if partition not in starts]:
        found.append(
            TopicFault(
                Effect.WEAKENS,
                f"has no leader for partition {_some(leaderless)}",
                "it can be neither read nor written",
                "Start the brokers that have its replicas",
            )
        )
    if gone := [f"{partition} (begins at {start:,})" for partition, start in starts.items() if start > 0]:
        found.append(
            TopicFault(
                Effect.WEAKENS,
                f"has lost the first records of partition {_some(gone)}",
                "the views cannot be built again from it, and a rebuild fails",
                "Restore the records from a copy in a new topic, and check who deletes them",
            )
        )
    if 0 < copies < address.replication:
        found.append(
            TopicFault(
                Effect.SINGLE,
                f"has a replication factor of {copies}, and the address requires {address.replication}",
                f"events are lost with the disks of {copies} broker{'' if copies == 1 else 's'}",
                f"Add replicas with kafka-reassign-partitions.sh, or write replication={copies} in the address",
            )
        )
    if is_retired(settings):
        remedy = "When `recallog copy --switch` has ended, set RECALLOG_LEDGER to the new topic"
        found.append(TopicFault(Effect.RETIRED, "is retired", "its events are moved to another topic", remedy))
    return found


def is_retired(settings: Mapping[str, str | None]) -> bool:
    """Whether the topic takes no more events, since they are moved to another one."""
    return _number(settings, "max.message.bytes", MESSAGE_BYTES) <= RETIRED_BYTES


def _losing(address: KafkaAddress, settings: Mapping[str, str | None]) -> list[TopicFault]:
    found = []
    policies = (settings.get("cleanup.policy") or "").split(",")
    if "compact" in policies:
        found.append(("cleanup.policy", "delete", "only the newest event of each space would be retained"))
    if "delete" in policies:
        found += [
            (name, "-1", "events would be deleted after some time, and memory with them")
            for name in ("retention.ms", "retention.bytes")
            if settings.get(name, "-1") != "-1"
        ]
    if settings.get("unclean.leader.election.enable") == "true":
        consequence = "after a failure, a broker that lacks acknowledged events could become the leader and delete them"
        found.append(("unclean.leader.election.enable", "false", consequence))
    return [_of_setting(address, settings, Effect.LOSES, *each) for each in found]


def _refusing(address: KafkaAddress, settings: Mapping[str, str | None], copies: int) -> list[TopicFault]:
    found = []
    needed = limits.RECORD_BYTES_MAX + RECORD_OVERHEAD_BYTES
    if not is_retired(settings) and _number(settings, "max.message.bytes", needed) < needed:
        found.append(("max.message.bytes", MESSAGE_BYTES, "large events would be refused"))
    if 0 < copies < _number(settings, "min.insync.replicas", 1):
        consequence = f"nothing can be written, since each partition has {copies} replica{'' if copies == 1 else 's'}"
        found.append(("min.insync.replicas", min(address.insync, copies), consequence))
    return [_of_setting(address, settings, Effect.REFUSES, *each) for each in found]


def _of_setting(
    address: KafkaAddress,
    settings: Mapping[str, str | None],
    effect: Effect,
    name: str,
    needed: str | int,
    consequence: str,
) -> TopicFault:
    remedy = f"Set it with kafka-configs.sh --alter --topic {address.topic} --add-config {name}={needed}"
    return TopicFault(effect, f"has {name}={settings[name]}", consequence, remedy)


def _some(partitions: Sequence[str]) -> str:
    return ", ".join(partitions[: limits.FAULT_PARTITIONS]) + (", …" if partitions[limits.FAULT_PARTITIONS :] else "")


def _number(settings: Mapping[str, str | None], name: str, default: int) -> int:
    return int(settings.get(name) or default)
