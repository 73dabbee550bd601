"""A broker loses its disk while events are published: with replicas nothing that was acknowledged is lost."""

from live.appenders import Appender, events_in
from live.brokers import Brokers
from live.support import wait_until

SPACES = [f"space-{number}" for number in range(12)]
BROKERS = {1, 2, 3}


def test_a_broker_that_loses_its_disk_loses_no_acknowledged_event(brokers: Brokers, topic: str) -> None:
    url = f"kafka://{brokers.bootstrap}/{topic}?partitions=6&replication=3"  # min_insync is 2
    appender, lost = Appender(url, SPACES), brokers.others[0]
    appender.start()
    appender.wait_for(200)
    assert brokers.in_sync(topic) == [BROKERS] * 6
    assert lost.number in brokers.leaders(topic)

    lost.lose_disk()
    appender.wait_for(200)
    wait_until(lambda: brokers.in_sync(topic) == [BROKERS - {lost.number}] * 6, "the others go on without it")
    lost.start()
    wait_until(lambda: brokers.in_sync(topic) == [BROKERS] * 6, "the broker has all records again")
    wait_until(lambda: lost.number in brokers.leaders(topic), "it leads partitions again")
    appender.wait_for(200)

    appender.stop()
    print(f"{len(appender.acknowledged):,} acknowledged; {dict(appender.failures)}")
    found = events_in(url)
    assert all(found[position].id == each.id for position, each in appender.acknowledged.items())
    assert {each.id for each in found.values()} == {each.id for each in appender.acknowledged.values()}
