"""The sizing model predicts the bytes of a larger cluster of another shape from runs of small ones."""

import asyncio
from pathlib import Path

import pytest
from benchmarks.cluster.deployments import Cluster
from benchmarks.measure import Setup
from benchmarks.scale import Costs, Run, measure, shapes
from deploy.local import LocalKafka, LocalRedis


def test_bytes_of_an_unseen_size_are_predicted_within_a_fifth(tmp_path: Path) -> None:
    """Times of a processor are compared by the benchmark, beside each other, and by no test."""
    fitted, unseen = shapes(2)

    async def run(cluster: Cluster) -> list[Run]:
        return [await measure(cluster, shape) for shape in (*fitted, unseen)]

    with LocalKafka(tmp_path / "kafka", short_lived=True) as kafka, LocalRedis(tmp_path / "redis") as redis:
        *runs, seen = asyncio.run(run(Cluster(Setup(tmp_path, True, print), kafka, redis)))
    predicted = Costs(runs).predict(seen.shape)
    assert predicted.topic_bytes == pytest.approx(seen.used.topic_bytes, rel=0.2)
    assert predicted.redis_bytes == pytest.approx(seen.used.redis_bytes, rel=0.2)
