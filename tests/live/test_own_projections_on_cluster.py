"""Projections of a user's own on a cluster: workers maintain them, and operators see them."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from live.conftest import NewRedis
from live.servers import Server
from live.support import PARTITIONS, SECONDS, Cluster, wait_until
from support.cli import Result, spawn
from support.events import event
from support.own_words import Words

OWN = {"RECALLOG_PROJECTIONS": "support.own_words:Words"}


@pytest.fixture
def cluster(kafka: str, topic: str, own_redis: NewRedis, tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(kafka, topic, own_redis().url, tmp_path) as cluster:
        yield cluster


def test_workers_servers_and_operators_see_the_projections_of_the_setting(cluster: Cluster) -> None:
    worker = cluster.worker(**OWN)
    worker.wait_until_live(2 * PARTITIONS)
    cluster.publish([event(space=f"space-{number}", payload={"text": "a bad word"}) for number in range(24)])

    def done(*command: str) -> Result:
        settings = {"RECALLOG_LEDGER": str(cluster.settings.ledger), "RECALLOG_VIEWS": str(cluster.settings.views)}
        path = ":".join(str(Path(__file__).parents[depth]) for depth in (1, 2))
        result = spawn(*command, "--json", cwd=cluster.folder, PYTHONPATH=path, **settings, **OWN)
        assert result.code == 0, result.err
        return result

    def lag() -> int:
        return sum(row["lag"] for row in done("status").json["partitions"])

    wait_until(lambda: lag() == 0, "all views have processed everything")
    rows = done("status").json["partitions"]
    assert {row["views"]: row["dead_letters"] for row in rows if row["dead_letters"]}.keys() == {Words.name}
    letters = done("dead-letters", "list").json["items"]
    assert [letter["views"] for letter in letters] == [Words.name] * 24
    assert {check["views"] for check in done("verify").json["tables"]} == {"built-in", Words.name}
    assert {report["views"] for report in done("rebuild").json["items"]} == {"built-in", Words.name}

    metrics = worker.metrics()
    for name in ("built-in", Words.name):
        folded = [
            value
            for series, value in metrics.items()
            if 'recallog_events_total{partition="' in series and f'views="{name}"' in series
        ]
        assert sum(folded) >= 24
    assert (
        sum(
            value
            for series, value in metrics.items()
            if series.startswith("recallog_dead_letters") and f'views="{Words.name}"' in series
        )
        == 24
    )

    server = Server(cluster, "--projections", "support.own_words:Words")
    wait_until(lambda: httpx.get(f"{server.url}/readyz", timeout=SECONDS).status_code == 200, "the server is ready")
    status = httpx.get(f"{server.url}/v1/status", timeout=SECONDS).json()
    assert {row["views"] for row in status["partitions"]} == {"built-in", Words.name}
