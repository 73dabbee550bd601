"""The worker process: its start, its web server, and its end."""

import json
import subprocess
import sys
from pathlib import Path

from live.conftest import NewRedis
from live.support import PARTITIONS, Cluster, wait_until
from support.events import numbered

CRASHING = """
import sys
from recallog_projections.stores.redis import RedisStore
from recallog_service.cli import main

async def commit(*arguments):
    raise RuntimeError("a defect")

RedisStore.commit = commit
sys.argv = ["recallog", "worker"]
main()
"""
SERIES = {
    "recallog_events_total",
    "recallog_batch_seconds_count",
    "recallog_batch_seconds_bucket",
    "recallog_commits_total",
    "recallog_lag_records",
    "recallog_dead_letters",
    "recallog_partitions",
}


def test_fausts_own_command_starts_it_with_health_and_metrics_and_an_unexpected_error_ends_it(
    kafka: str, topic: str, own_redis: NewRedis, tmp_path: Path
) -> None:
    with Cluster(kafka, topic, own_redis().url, tmp_path) as cluster:
        crashing = cluster.worker(["-c", CRASHING])
        worker = cluster.worker(["-m", "faust", "-A", "recallog_service.worker", "worker"])
        for each in (crashing, worker):
            each.wait_until(lambda health: health["partitions"] and health["healthy"], "it has joined")
        wait_until(lambda: crashing.partitions() and worker.partitions(), "both have partitions")
        cluster.publish_only([each for space in range(24) for each in numbered(2, space=f"space-{space}")])
        assert crashing.process.wait(60) not in (0, None)
        lines = [json.loads(line) for line in crashing.log.read_text().splitlines() if line.startswith("{")]
        assert ("critical", "this worker ends: a defect", "RuntimeError") in {
            (line["level"], line["message"], line.get("error")) for line in lines
        }

        worker.wait_until_live()
        assert worker.health("/readyz") == {"status": 200, "ready": True}
        cluster.assert_views_are_the_fold(48)
        cluster.publish(numbered(5))
        health = worker.health()
        assert health["status"] == 200
        assert set(health) == {"status", "healthy", "roles", "problems", "partitions"}
        assert {frozenset(each) for each in health["partitions"]} == {
            frozenset({"views", "partition", "state", "lag", "why"})
        }
        metrics = worker.metrics()
        assert {name.partition("{")[0] for name in metrics} >= SERIES
        assert metrics['recallog_partitions{state="live",views="built-in"}'] == PARTITIONS
        assert sum(value for name, value in metrics.items() if name.startswith("recallog_events_total")) >= 5
        assert metrics['recallog_commits_total{outcome="applied"}'] > 0
        assert worker.terminate() == 0


def test_a_worker_without_a_cluster_names_the_missing_settings(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "recallog_service", "worker"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "set RECALLOG_LEDGER and RECALLOG_VIEWS" in " ".join(done.stderr.split())


def test_a_worker_is_ready_when_the_views_of_its_partitions_are_live(
    kafka: str, topic: str, own_redis: NewRedis, tmp_path: Path
) -> None:
    redis = own_redis()
    with Cluster(kafka, topic, redis.url, tmp_path) as cluster:
        worker = cluster.live_worker()
        redis.stop()
        worker.wait_until_red("Redis")
        assert worker.health("/readyz") == {"status": 503, "ready": False}
