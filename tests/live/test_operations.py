"""Operations on a cluster: rebuilds shared by several processes, verification under load, copies, `tail`."""

import asyncio
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from zlib import crc32

import pytest
import redis

from live.support import PARTITIONS, Cluster
from recallog import Event, Memory, Position
from recallog_projections.stores.checksums import add_checksum, strip_checksum
from recallog_projections.stores.redis_format import address_of
from recallog_schemas import codec
from support.cli import environment_of
from support.events import event

SPACES = [f"space-{n}" for n in range(40)]
SILENT = SPACES[-1]
"""Where nothing is said while others speak: a row that is written again is right again."""
EVENTS = 10_000


@pytest.fixture(scope="module")
def cluster(cluster: Cluster) -> Cluster:
    """A cluster with some thousand events and a worker."""
    cluster.publish(events_numbered(EVENTS))
    return cluster


def events_numbered(count: int, first: int = 0) -> list[Event]:
    return [
        event(space=SPACES[n % len(SPACES)], agent=f"agent-{n % 7}", turn=n, payload={"text": f"said {n}"}, id=f"e{n}")
        for n in range(first, first + count)
    ]


def start(cluster: Cluster, *arguments: str) -> "subprocess.Popen[str]":
    settings = {"RECALLOG_LEDGER": str(cluster.settings.ledger), "RECALLOG_VIEWS": str(cluster.settings.views)}
    return subprocess.Popen(
        [sys.executable, "-m", "recallog_service", *arguments],
        env=environment_of(**settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def recallog(cluster: Cluster, *arguments: str) -> tuple[int, str, str]:
    """Exit code, output and errors of a command."""
    process = start(cluster, *arguments)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def generations(cluster: Cluster) -> dict[int, str | None]:
    status = cluster.ask(lambda memory: memory.admin.status())
    return {row.partition: row.generation for row in status.partitions}


def test_rebuilds_at_the_same_time_share_the_partitions_and_replace_each_once(cluster: Cluster) -> None:
    before = generations(cluster)
    processes = [start(cluster, "rebuild", "--json") for _ in range(2)]
    ended = [(process, *process.communicate(timeout=120)) for process in processes]
    assert [process.returncode for process, _, _ in ended] == [0, 0], ended
    reports = [json.loads(out)["items"] for _, out, _ in ended]
    after = generations(cluster)
    assert all(after[partition] != before[partition] for partition in range(PARTITIONS))
    done = [(report["partition"], report["generation"]) for each in reports for report in each]
    assert {partition for partition, _ in done} == set(range(PARTITIONS))
    assert set(after.items()) <= set(done)
    cluster.assert_views_are_the_fold(EVENTS)


def test_a_dry_run_of_rebuild_reports_the_plan_and_changes_nothing(cluster: Cluster) -> None:
    before = generations(cluster)
    code, out, _ = recallog(cluster, "rebuild", "--dry-run", "--json")
    plans = json.loads(out)["items"]
    assert code == 0
    assert {plan["partition"]: plan["replaces"] for plan in plans} == before
    assert sum(plan["records"] for plan in plans) == cluster.ask(lambda memory: memory.admin.status()).records
    assert generations(cluster) == before


def is_building(cluster: Cluster) -> bool:
    return any(row.building for row in cluster.ask(lambda memory: memory.admin.status()).partitions)


def test_a_killed_rebuild_is_joined_or_abandoned(cluster: Cluster) -> None:
    """The rebuild pauses after each batch, and is stopped when it is observed: it cannot end before it is killed."""
    process = start(cluster, "rebuild", "--workers", "1", "--throttle", "0.95")
    try:
        while True:
            assert process.poll() is None
            if is_building(cluster):
                process.send_signal(signal.SIGSTOP)
                if is_building(cluster):
                    break
                process.send_signal(signal.SIGCONT)
    finally:
        process.kill()
        process.communicate()
    joined = cluster.ask(lambda memory: memory.admin.rebuild())
    assert any(report.joined for report in joined)
    assert cluster.ask(lambda memory: memory.admin.abort_rebuild()).aborted == ()
    cluster.assert_views_are_the_fold(EVENTS)


def alter_row(cluster: Cluster, table: str, *, seal: bool) -> None:
    """Change a row of the space `SILENT` in Redis; with `seal` its checksum is correct for the changed value."""
    with redis.Redis.from_url(cluster.redis_url) as client:
        for generation in generations(cluster).values():
            for key in client.scan_iter(f"*{generation}:rows:{table}"):
                for field, value in client.hscan_iter(key):
                    if generation and field.startswith(SILENT.encode()):
                        address, mask = address_of(table, field), crc32(generation.encode())
                        row = strip_checksum(value, address, mask)
                        assert row
                        changed = row[:-1] + bytes([row[-1] ^ 1])
                        client.hset(key, field, add_checksum(changed, address, mask) if seal else changed + value[-4:])
                        return
    raise AssertionError(f"no row of {SILENT} in {table}")


def test_verify_finds_a_planted_corruption_and_is_clean_without_it_while_events_come_in(cluster: Cluster) -> None:
    stop = threading.Event()

    async def publish() -> None:
        first = EVENTS
        async with Memory.open(cluster.settings) as memory:
            while not stop.is_set():
                await memory.publish_many([each for each in events_numbered(100, first) if each.space != SILENT])
                first += 100
                await asyncio.sleep(0.1)

    publisher = threading.Thread(target=lambda: asyncio.run(publish()))
    publisher.start()
    try:
        code, out, _ = recallog(cluster, "verify", "--json")
        assert (code, [check["difference"] for check in json.loads(out)["tables"] if check["difference"]]) == (0, [])
        alter_row(cluster, "activity.agents", seal=True)
        alter_row(cluster, "activity.spaces", seal=False)
        code, out, _ = recallog(cluster, "verify", "--json")
        tables = json.loads(out)["tables"]
        differences = [check["difference"] for check in tables if check["difference"] and not check["damaged"]]
        damaged = [(check["table"], row["space"]) for check in tables for row in check["damaged"]]
        assert code == 1
        assert [(difference["table"], difference["space"]) for difference in differences] == [
            ("activity.agents", SILENT)
        ]
        assert damaged == [("activity.spaces", SILENT)]
    finally:
        stop.set()
        publisher.join()
    cluster.ask(lambda memory: memory.admin.rebuild())
    assert recallog(cluster, "verify")[0] == 0
    kept = recallog(cluster, "digest")[1].split()
    assert len(kept) > 1
    code, out, _ = recallog(cluster, "verify", "--json", *(word for line in kept for word in ("--digest", line)))
    assert code == 0
    assert [check["found"] for check in json.loads(out)["digests"]] == [line.rpartition(":")[2] for line in kept]


def test_a_ledger_is_copied_to_a_folder_and_back_to_a_topic(cluster: Cluster, tmp_path: Path) -> None:
    folder, again = tmp_path / "copy", f"{cluster.settings.ledger}".replace(cluster.topic, f"{cluster.topic}.again")
    for source, target in ((str(cluster.settings.ledger), str(folder)), (str(folder), again), (str(folder), again)):
        code, _, err = recallog(cluster, "copy", source, target)
        assert (code, err) == (0, "")

    async def events_of(memory: Memory) -> dict[str, list[str]]:
        """The ids of each space, in order, each once."""
        found: dict[str, list[str]] = {}
        async for batch in memory.admin.records():
            for _, data in batch.records:
                copied = codec.decode(data)
                if copied.id not in found.setdefault(copied.space, []):
                    found[copied.space].append(copied.id)
        return found

    async def embedded() -> dict[str, list[str]]:
        async with Memory.open(folder) as memory:
            assert len(await memory.spaces()) == len(SPACES)
            return await events_of(memory)

    original = cluster.ask(events_of)
    assert asyncio.run(embedded()) == original
    assert cluster.ask(events_of, ledger=again) == original


def test_the_tail_shows_the_newest_records_of_all_partitions(cluster: Cluster) -> None:
    positions = cluster.publish([event(space=space, payload={"text": "the newest"}) for space in SPACES[:20]])
    code, out, _ = recallog(cluster, "tail", "--json")
    shown = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert sorted(Position.parse(each["position"]) for each in shown) == sorted(positions)
    assert len({position.partition for position in positions}) > 1
