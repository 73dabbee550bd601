"""Rebuilds and verifications of a topic in several processes: the rows are those of one, whatever is killed."""

import asyncio
import json
import random
from collections.abc import Iterator

import pytest

from live.conftest import NewRedis
from live.support import PARTITIONS, SECONDS, Cluster
from live.test_operations import alter_row, events_numbered, generations, recallog
from recallog.composition import compose
from recallog_schemas.views import VerifyReport
from support.processes import Process, begun, ended, kill_rebuilds

EVENTS = 16_000
KILLS = 3

REBUILD = """
import asyncio, sys
from recallog import Memory, Settings
from recallog_schemas import limits

limits.PARALLEL_RECORDS_MIN = 100

async def main(ledger, views, workers):
    async with Memory.open(Settings(ledger=ledger, views=views, deadline_seconds=30)) as memory:
        print("begins", flush=True)
        await memory.admin.rebuild(workers=int(workers), progress=lambda *done: print(*done, flush=True))
        print("done", flush=True)

asyncio.run(main(*sys.argv[1:]))
"""

VERIFY = """
import asyncio, sys
from recallog import Memory, Settings
from recallog_schemas import limits

limits.PARALLEL_RECORDS_MIN = 100

async def main(ledger, views, workers):
    async with Memory.open(Settings(ledger=ledger, views=views, deadline_seconds=30)) as memory:
        print("begins", flush=True)
        print((await memory.admin.verify(workers=int(workers))).model_dump_json(), flush=True)

asyncio.run(main(*sys.argv[1:]))
"""

Rows = dict[tuple[int, str], list[tuple[tuple[str, str, str], bytes]]]


@pytest.fixture(scope="module")
def cluster(kafka: str, own_redis: NewRedis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with some thousand events, and repeats of some of them, whose views one process has built."""
    folder = tmp_path_factory.mktemp("processes")
    with Cluster(kafka, f"recallog.{folder.name}", own_redis().url, folder) as cluster:
        made = events_numbered(EVENTS - 2_000)
        for first in range(0, len(made), 5_000):
            cluster.publish_only(made[first : first + 5_000])
        cluster.publish_only(made[:2_000])
        program(cluster, REBUILD, 1).communicate(timeout=2 * SECONDS)
        yield cluster


def program(cluster: Cluster, text: str, workers: int) -> Process:
    return begun(text, cluster.settings.ledger, cluster.settings.views, workers)


def all_rows(cluster: Cluster) -> Rows:
    """Every row and log entry of the active generations, by partition and table."""

    async def work() -> Rows:
        components = compose(cluster.settings)
        try:
            store, found = components.views.store, Rows()
            for partition in range(PARTITIONS):
                active = (await store.pointer(partition)).active
                assert active is not None
                for table in components.views.builder.fold.tables:
                    rows = found[partition, table.name] = []
                    last, after = False, None
                    while not last:
                        chunk = await store.scan(active, table.name, after=after, limit=1_000)
                        rows += [(item.row_key, item.data) for item in chunk.items]
                        last, after = chunk.last, rows[-1][0] if rows else None
            return found
        finally:
            await components.close()

    return asyncio.run(work())


def rebuilt(cluster: Cluster, workers: int) -> list[tuple[int, int]]:
    """Rebuild. -> the progress that was reported"""
    process = program(cluster, REBUILD, workers)
    assert process.stdout is not None
    *progress, last = process.stdout.readlines()
    assert (last, ended(process)) == ("done\n", 0)
    return [(int(done), int(total)) for done, total in map(str.split, progress)]


def test_a_rebuild_in_three_processes_has_the_rows_of_one_and_reports_the_progress_of_the_whole(
    cluster: Cluster,
) -> None:
    before, expected = generations(cluster), all_rows(cluster)
    progress = rebuilt(cluster, 3)
    assert all(generation != before[partition] for partition, generation in generations(cluster).items())
    assert all_rows(cluster) == expected
    assert progress == sorted(progress)
    assert progress[-1] == (EVENTS, EVENTS)


def test_a_killed_rebuild_goes_on_with_any_number_of_processes(cluster: Cluster) -> None:
    chance, expected = random.Random(), all_rows(cluster)
    kill_rebuilds(lambda: program(cluster, REBUILD, chance.choice((2, 3))), chance, kills=KILLS, tries=40, lines=15)
    rebuilt(cluster, 2)
    assert all_rows(cluster) == expected
    cluster.assert_views_are_the_fold(EVENTS)


def test_two_rebuilds_in_several_processes_share_the_partitions(cluster: Cluster) -> None:
    before, expected = generations(cluster), all_rows(cluster)
    processes = [program(cluster, REBUILD, 2) for _ in range(2)]
    for process in processes:
        assert process.stdout is not None
        assert "done\n" in process.stdout.readlines()
        assert ended(process) == 0
    assert all(generation != before[partition] for partition, generation in generations(cluster).items())
    assert all_rows(cluster) == expected


def test_a_throttled_rebuild_of_the_command_line_has_the_same_rows(cluster: Cluster) -> None:
    expected = all_rows(cluster)
    code, out, err = recallog(cluster, "rebuild", "--workers", "2", "--throttle", "0.3", "--json")
    assert (code, len(json.loads(out)["items"])) == (0, PARTITIONS), err
    assert all_rows(cluster) == expected


def test_a_verification_in_three_processes_finds_what_that_of_one_finds(cluster: Cluster) -> None:
    def report(workers: int) -> VerifyReport:
        process = program(cluster, VERIFY, workers)
        assert process.stdout is not None
        found = VerifyReport.model_validate_json(process.stdout.read())
        assert ended(process) == 0
        return found

    clean = report(3)
    assert clean.clean
    assert clean == report(1)
    alter_row(cluster, "activity.agents", seal=True)
    damaged = report(3)
    assert not damaged.clean
    assert damaged == report(1)
