"""A ledger on several brokers is switched to another topic while other brokers become the leaders of its partitions.

A broker applies a setting after it has become a leader, if it learns of both at once. With many partitions to lead it
takes longer. So an event could be accepted after the end of a topic, if the end was written before.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from contextlib import aclosing

import pytest

from live.appenders import Appender, ForeignProducer, events_in, opened
from live.brokers import Brokers
from live.leaders import LeaderMover
from live.support import wait_until
from recallog_schemas import Event
from recallog_schemas.errors import StorageUnavailable
from recallog_schemas.views import CopyReport
from recallog_streams.migration import follow

SPACES = [f"space-{number}" for number in range(12)]
FOREIGN = [f"foreign-{number}" for number in range(12)]
PARTITIONS, MORE = 6, 8
OTHERS = 150
"""Partitions of another topic whose leaders move at the same time."""


async def switch(source: str, target: str) -> CopyReport:
    old, new = opened(source), opened(target)
    try:
        async with aclosing(follow(old, new, switch=True)) as reports:
            return [report async for report in reports][-1]
    finally:
        await old.close()
        await new.close()


async def create(*urls: str) -> None:
    for url in urls:
        ledger = opened(url)
        await ledger.open()
        await ledger.close()


def ids_by_space(events: Iterable[Event]) -> dict[str, list[str]]:
    """The ids of each space in their order, each once."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for each in events:
        found[each.space][each.id] = None
    return {space: [*ids] for space, ids in found.items()}


def assert_are_copied_in_order(acknowledged: Iterable[Event], target: str) -> None:
    """The events of each space are in the target in their order, perhaps among others."""
    copied = ids_by_space(events_in(target).values())
    for space, ids in ids_by_space(acknowledged).items():
        wanted = {*ids}
        assert [id_ for id_ in copied[space] if id_ in wanted] == ids


def test_a_switch_loses_no_event_while_leaders_move(brokers: Brokers, topic: str) -> None:
    source, target, others = (
        f"kafka://{brokers.bootstrap}/{topic}{suffix}?partitions={count}&replication=3"
        for suffix, count in (("", PARTITIONS), (".more", MORE), (".others", OTHERS))
    )
    asyncio.run(create(source, target, others))
    appender = Appender(source, SPACES)
    foreign = ForeignProducer(brokers.bootstrap, topic, FOREIGN)
    moved = {topic: PARTITIONS, f"{topic}.others": OTHERS}
    mover = LeaderMover(brokers.bootstrap, moved, [1, 2, 3], lambda: foreign.answers)
    threads = (mover, appender, foreign)
    for each in threads:
        each.start()
    appender.wait_for(100)
    mover.wait_for(2)

    report = asyncio.run(switch(source, target))
    assert report.switched
    mover.wait_for(6)
    foreign.wait_for_refusals(1_000)
    wait_until(lambda: appender.moved_to == f"{topic}.more", "the producer learns of the new topic")
    for stopped in threads:
        stopped.stop()

    print(f"{mover.moves} moves, {len(appender.acknowledged):,} and {len(foreign.acknowledged):,} acknowledged")
    assert_are_copied_in_order([*appender.acknowledged.values(), *foreign.acknowledged], target)


def test_a_topic_is_not_retired_while_a_broker_with_replicas_does_not_answer(brokers: Brokers, topic: str) -> None:
    source, target = (f"kafka://{brokers.bootstrap}/{topic}{n}?replication=3&timeout_seconds=8" for n in ("", "2"))
    asyncio.run(create(source, target))
    appender, lost = Appender(source, SPACES), brokers.others[0]
    appender.start()
    appender.wait_for(50)
    lost.kill()
    wait_until(lambda: all(lost.number not in each for each in brokers.in_sync(topic)), "the others go on")
    with pytest.raises(StorageUnavailable, match=f"broker {lost.number} does not confirm it. Start it"):
        asyncio.run(switch(source, target))
    appender.wait_for(50)
    lost.start()
    assert asyncio.run(switch(source, target)).switched
    wait_until(lambda: appender.moved_to == f"{topic}2", "the producer learns of the new topic")
    appender.stop()
    assert_are_copied_in_order(appender.acknowledged.values(), target)
