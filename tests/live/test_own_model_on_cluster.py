"""The memory model of the guide on a cluster: workers with the package maintain its views and its documents."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from live.conftest import NewRedis
from live.support import REPOSITORY, SECONDS, Cluster
from support import own_package

PROGRAM = """
import asyncio, json
from recallog import Event, Memory

async def main():
    found = {}
    async with Memory.open() as memory:
        reminders = memory.reminders

        async def recalled(agent="baker"):
            view = await memory.recall("village", agent, "Was the miller paid?", types=["reminder"], wait_index=True)
            return [[hit.text, hit.source] for hit in view.hits]

        found["set"] = (await reminders.set("village", "baker", "Pay the miller.")).texts
        found["prompt"] = (await memory.context("village", "baker")).text
        found["recalled"] = await recalled()
        found["of another"] = await recalled("miller")
        for what in ("views", "index"):
            await memory.admin.rebuild(what)
        found["rebuilt"] = (await reminders.list("village", "baker")).texts
        found["recalled again"] = await recalled()
        found["differences"] = [each.table for each in (await memory.admin.verify()).tables if each.difference]
        end = await memory.publish(Event(space="village", agent="baker", kind="session.ended", payload={}))
        found["after"] = (await reminders.list("village", "baker", after=end)).texts
        while not (thoughts := (await memory.timeline("village", "baker", kinds=["agent.thought"])).items):
            await asyncio.sleep(0.1)
        found["answered"] = thoughts[-1].text
    print(json.dumps(found))

asyncio.run(asyncio.wait_for(main(), 120))
"""


@pytest.fixture
def cluster(kafka: str, topic: str, own_redis: NewRedis, tmp_path: Path) -> Iterator[Cluster]:
    python = own_package.installed(tmp_path)
    with Cluster(kafka, topic, own_redis().url, tmp_path, python=python) as cluster:
        yield cluster


def test_a_worker_with_the_package_serves_all_its_parts(cluster: Cluster, tmp_path: Path) -> None:
    settings = {"RECALLOG_INDEX": f"shared://{tmp_path / 'engine'}"}
    cluster.worker(only="views,index,reactors", **settings)
    environment = {
        **os.environ,
        **settings,
        "RECALLOG_LEDGER": str(cluster.settings.ledger),
        "RECALLOG_VIEWS": str(cluster.settings.views),
        "RECALLOG_AFTER_WAIT_SECONDS": str(2 * SECONDS),
        "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'tests'}",
    }
    found = json.loads(own_package.output_of(cluster.python, environment, PROGRAM))
    assert found["set"] == found["rebuilt"] == ["Pay the miller."]
    assert "REMINDERS\nPay the miller." in found["prompt"]
    assert found["recalled"] == found["recalled again"] == [["Pay the miller.", "index"]]
    assert found["of another"] == []
    assert found["differences"] == []
    assert found["after"] == []
    assert found["answered"] == "My reminders are done."
