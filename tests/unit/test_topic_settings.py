"""What settings of a topic do to its events, and what is wrong with them."""

from collections.abc import Mapping

import pytest

from recallog_streams.ledgers.kafka.address import KafkaAddress
from recallog_streams.ledgers.kafka.topic_settings import RETIRED_BYTES, Effect, faults_of

KEPT = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "min.insync.replicas": "2",
    "unclean.leader.election.enable": "false",
    "max.message.bytes": "1048588",
}
SINGLE = {**KEPT, "min.insync.replicas": "1"}


def found(
    settings: Mapping[str, str | None], copies: int = 3, options: str = "", starts: Mapping[int, int] | None = None
) -> list[tuple[Effect, str]]:
    """The effect of each fault of a topic of two partitions, and what it says."""
    address = KafkaAddress.parse(f"kafka://broker/events{options}")
    faults = faults_of(address, settings, copies, {0: 0, 1: 0} if starts is None else starts, 2)
    return [(fault.effect, f"{fault.what}: {fault.consequence}. {fault.remedy}") for fault in faults]


@pytest.mark.parametrize(
    ("settings", "copies", "options"),
    [
        (KEPT, 3, ""),
        (KEPT, 2, "?replication=2"),
        (SINGLE, 1, "?replication=1"),
        ({}, 1, "?replication=1"),
        (KEPT, 0, ""),  # as a broker says that does not know the new topic yet
    ],
)
def test_a_topic_that_keeps_everything_has_no_fault(
    settings: Mapping[str, str | None], copies: int, options: str
) -> None:
    assert found(settings, copies, options) == []


@pytest.mark.parametrize("size", [RETIRED_BYTES - 1, RETIRED_BYTES])
def test_a_retired_topic_is_whole_and_its_fault_is_a_warning(size: int) -> None:
    address = KafkaAddress.parse("kafka://broker/events")
    (fault,) = faults_of(address, KEPT | {"max.message.bytes": str(size)}, 3, {0: 0, 1: 0}, 2)
    assert fault.effect is Effect.RETIRED
    assert not fault.describe().severe
    assert "its events are moved to another topic" in str(fault.describe())


@pytest.mark.parametrize(
    ("changed", "needed"),
    [
        ({"retention.ms": "60000"}, "retention.ms=-1"),
        ({"retention.bytes": "1000"}, "retention.bytes=-1"),
        ({"cleanup.policy": "compact"}, "cleanup.policy=delete"),
        ({"cleanup.policy": "compact,delete"}, "cleanup.policy=delete"),
        ({"unclean.leader.election.enable": "true"}, "unclean.leader.election.enable=false"),
    ],
)
@pytest.mark.parametrize("copies", [1, 3])
def test_a_setting_that_loses_acknowledged_events_is_named_with_its_remedy(
    changed: Mapping[str, str], needed: str, copies: int
) -> None:
    options = f"?replication={copies}"
    ((effect, text),) = found({**(KEPT if copies > 1 else SINGLE), **changed}, copies, options)
    ((name, value),) = changed.items()
    assert effect is Effect.LOSES
    assert f"has {name}={value}: " in text
    assert text.endswith(f"kafka-configs.sh --alter --topic events --add-config {needed}")


@pytest.mark.parametrize("changed", [{"max.message.bytes": "1000"}, {"min.insync.replicas": "4"}])
def test_a_setting_by_which_events_are_refused_is_named(changed: Mapping[str, str]) -> None:
    ((effect, text),) = found({**KEPT, **changed})
    assert effect is Effect.REFUSES
    assert "has {}={}".format(*next(iter(changed.items()))) in text


def test_an_acknowledgement_by_one_of_several_brokers_is_a_fault_unless_the_address_allows_it() -> None:
    ((effect, text),) = found(SINGLE, 3)
    assert effect is Effect.WEAKENS
    assert "may be on 1 of 3 brokers only" in text
    assert "--add-config min.insync.replicas=2" in text
    assert found(SINGLE, 3, "?min_insync=1") == []


def test_fewer_copies_than_the_address_requires_are_a_warning() -> None:
    ((effect, text),) = found(SINGLE, 1)
    assert effect is Effect.SINGLE
    assert "replication factor of 1, and the address requires 3" in text
    assert "replication=1 in the address" in text


def test_deleted_records_and_partitions_without_a_leader_are_named() -> None:
    (no_leader, deleted) = found(KEPT, starts={1: 1_200})
    assert no_leader == (Effect.WEAKENS, no_leader[1])
    assert "has no leader for partition 0" in no_leader[1]
    assert deleted[0] is Effect.WEAKENS
    assert "partition 1 (begins at 1,200)" in deleted[1]
