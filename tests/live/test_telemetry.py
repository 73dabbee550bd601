"""One trace from a publisher through the record in Kafka to the fold of a worker, which sends its spans somewhere."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from live.conftest import NewRedis
from live.support import Cluster, wait_until
from support.collector import collecting_from_processes
from support.events import event
from support.tracing import collecting, traced

SECRET = "the miller owes me nine sacks"


@pytest.fixture
def cluster(kafka: str, topic: str, own_redis: NewRedis, tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(kafka, topic, own_redis().url, tmp_path) as cluster:
        yield cluster


def test_the_fold_of_a_worker_belongs_to_the_trace_of_the_publisher(cluster: Cluster) -> None:
    published = collecting()
    with collecting_from_processes() as collector:
        given = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "100"}
        worker = cluster.worker(RECALLOG_TELEMETRY="true", **given)
        worker.wait_until_live()
        position = cluster.ask(lambda memory: memory.publish(event(payload={"text": SECRET})), telemetry=True)
        wait_until(lambda: collector.spans, "the span of the fold has come")
        (span,) = published()
        (fold,) = collector.spans
        assert span.context is not None
        assert (fold.name, fold.trace_id.hex(), fold.parent_span_id.hex()) == (
            "fold",
            traced(span),
            f"{span.context.span_id:016x}",
        )
        assert [link.span_id.hex() for link in fold.links] == [f"{span.context.span_id:016x}"]
        found = {each.key: each.value for each in fold.attributes}
        assert found["messaging.destination.partition.id"].string_value == str(position.partition)
        assert found["messaging.batch.message_count"].int_value == 1
        assert collector.services == {"recallog-worker"}
        assert not any(b"miller" in body for body in collector.bodies)
        assert worker.terminate() == 0


def test_a_collector_that_is_away_stops_neither_the_publisher_nor_the_worker(cluster: Cluster) -> None:
    worker = cluster.worker(RECALLOG_TELEMETRY="true", OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1")
    worker.wait_until_live()
    published = cluster.publish([event(turn=turn) for turn in range(20)])
    assert len(published) == 20
    cluster.assert_views_are_the_fold(20)
    assert worker.terminate() == 0
