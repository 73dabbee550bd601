"""The commands of the pages on upgrading, backups and growth, run as they are written, on a real cluster."""

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from deploy.local.ports import free_port

from live.conftest import NewRedis
from live.support import SECONDS, Cluster, wait_until
from recallog import Memory
from recallog_schemas.errors import LedgerMoved, Rebuilding
from support.cli import environment_of
from support.events import event
from unit.test_documentation import blocks, with_command

SPACES = [f"space-{number}" for number in range(8)]
TURNS = 20
_BEGIN = "set -euo pipefail\ntrap 'kill -9 $(jobs -p) 2>/dev/null || true' EXIT\n"
_FOLLOWED = """ --follow > followed &
until grep -q copied followed; do sleep 0.1; done
kill $! && wait $!
"""
"""A copy that is ended when it has caught up."""


@pytest.fixture
def cluster(kafka: str, topic: str, own_redis: NewRedis, tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(kafka, topic, own_redis().url, tmp_path) as cluster:
        cluster.live_worker()
        cluster.publish([event(space=space, turn=turn) for turn in range(TURNS) for space in SPACES])
        yield cluster


def run_page(page: str, cluster: Cluster, replaced: Mapping[str, str]) -> str:
    """Run the commands of a page in one shell, in which `replaced` gives addresses other values; their output."""
    script = "".join(blocks(page, "shell"))
    for written, meant in replaced.items():
        assert written in script
        script = script.replace(written, meant)
    settings = {"RECALLOG_LEDGER": str(cluster.settings.ledger), "RECALLOG_VIEWS": str(cluster.settings.views)}
    environment = environment_of(
        COLUMNS="200", PATH=with_command(cluster.folder), RECALLOG_WORKER_PORT=str(free_port()), **settings
    )
    with (cluster.folder / "page.log").open("w+") as output:
        done = subprocess.run(
            ["bash", "-c", _BEGIN + script],
            cwd=cluster.folder,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
            env=environment,
            timeout=3 * SECONDS,
        )
        output.seek(0)
        printed = output.read()
    assert done.returncode == 0, printed
    return printed


def moved(cluster: Cluster, name: str) -> Cluster:
    """The cluster after its ledger was copied to the topic `name`, with its views in another database."""
    views = cluster.redis_url.replace("/0", "/1")
    there = Cluster(cluster.bootstrap, name, views, cluster.folder, partitions=12)
    there.live_worker()
    return there


def addresses(cluster: Cluster, ledger: str, name: str) -> dict[str, str]:
    """The addresses on a page, with those that are meant."""
    return {
        ledger: f"kafka://{cluster.bootstrap}/{name}?partitions=12&replication=1",
        "redis://redis:6379/1": cluster.redis_url.replace("/0", "/1"),
    }


def wait_for_events(cluster: Cluster, expected: Mapping[str, int]) -> None:
    """Wait until the views have `expected` events by space."""

    async def counted(memory: Memory) -> dict[str, int]:
        try:
            return {view.space: view.events for view in await memory.spaces()}
        except Rebuilding:
            return {}

    wait_until(lambda: cluster.ask(counted) == expected, "the views have all events")


WITH_ONE_MORE = dict.fromkeys(SPACES, TURNS) | {"village": 1}


def test_the_commands_of_the_page_on_upgrading(cluster: Cluster) -> None:
    printed = run_page("docs/cluster/upgrading.md", cluster, {})
    assert printed.count(f"clean {TURNS * len(SPACES)} records") == 2
    wait_for_events(cluster, dict.fromkeys(SPACES, TURNS))


def test_the_commands_of_the_page_on_growing_move_a_ledger(cluster: Cluster) -> None:
    name = f"{cluster.topic}.64"
    replaced = addresses(cluster, "kafka://kafka:9092/recallog.64?partitions=64", name)
    replaced |= {"6166": str(free_port()), " --follow\n": _FOLLOWED}
    printed = run_page("docs/cluster/growing.md", cluster, replaced)
    assert f"copied {TURNS * len(SPACES)} of {TURNS * len(SPACES)} records; the source refuses events" in printed
    error = cluster.refusal(lambda memory: memory.publish(event(space=SPACES[0])))
    assert isinstance(error, LedgerMoved)
    assert error.ledger == name
    with moved(cluster, name) as there:
        wait_for_events(there, WITH_ONE_MORE)


def test_the_commands_of_the_page_on_backups_restore_a_ledger(cluster: Cluster) -> None:
    name = f"{cluster.topic}.restored"
    replaced = addresses(cluster, "kafka://kafka:9092/recallog.restored?partitions=32", name)
    run_page("docs/cluster/backup.md", cluster, replaced)
    with moved(cluster, name) as there:
        wait_for_events(there, WITH_ONE_MORE)
