"""Views on several Redis servers: the contract of stores, and faults of one server."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import redis
from deploy.local import LocalRedis

from contract.damage_contract import DamageContract
from live.conftest import NewRedis
from live.support import PARTITIONS, Cluster, wait_until
from live.test_redis_store import ask, clean, damage, new_store
from recallog import Memory
from recallog.reading import view_access
from recallog_projections.plugins import AdapterSettings
from recallog_projections.stores.redis import RedisStore
from recallog_projections.stores.redis_partitioned import PartitionedRedis
from recallog_projections.stores.redis_server import split_servers
from recallog_projections.stores.store import Checkpoint, Generation, Pointer, Store
from recallog_schemas.errors import LedgerMismatch, Rebuilding, SettingsError, StorageUnavailable
from recallog_streams.databases.redis import RedisDatabase
from support.events import event, one_loop, run

SPACES = [f"space-{number}" for number in range(24)]


class PartitionedStores(PartitionedRedis):
    """It shows a test the stores."""

    def __init__(self, stores: list[RedisStore]) -> None:
        super().__init__(stores)
        self.stores = stores


class TestPartitionedRedis(DamageContract):
    @pytest.fixture(autouse=True)
    def _url(self, redis_url: str) -> None:
        self.url = redis_url.rpartition("/")[0]

    def make(self, folder: Path) -> PartitionedStores:
        return PartitionedStores([new_store(f"{self.url}/{number}") for number in range(3)])

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        with one_loop():
            store = self.make(tmp_path)
            yield store
            for each in store.stores:
                run(clean(each))

    def damage(self, store: Store, kind: str) -> None:
        assert isinstance(store, PartitionedStores)
        for each in store.stores if kind == "the manifest" else store.stores[:1]:
            run(damage(each, kind))

    def lose_checkpoint(self, store: Store, generation: Generation) -> None:
        assert isinstance(store, PartitionedStores)
        of = store.stores[generation.partition % 3]
        run(ask(of, "DEL", of._prefix(generation) + "checkpoint"))

    def test_each_partition_is_on_its_server(self, store: Store) -> None:
        assert isinstance(store, PartitionedStores)
        made = [Generation(f"of-{partition}", partition, "code", 0) for partition in range(6)]
        for generation in made:
            run(store.create(generation))
        for number, each in enumerate(store.stores):
            found = [run(each.pointer(partition)) for partition in range(6)]
            assert found == [Pointer(building=g) if g.partition % 3 == number else Pointer() for g in made]

    def test_a_flushed_server_does_not_take_the_manifest_of_another_ledger(self, store: Store) -> None:
        assert isinstance(store, PartitionedStores)
        assert run(store.remember_manifest(b"first")) == b"first"
        run(store.stores[0].clear())
        assert run(store.remember_manifest(b"second")) == b"first"
        assert run(store.stores[0].manifest()) is None
        assert run(store.remember_manifest(b"first")) == b"first"
        assert run(store.remember_manifest(b"second")) == b"first"

    @pytest.mark.parametrize("order", [(0, 2, 1), (0, 1), (1,), (0, 1, 2, 3)])
    def test_servers_in_another_order_or_number_are_refused(self, store: Store, order: tuple[int, ...]) -> None:
        assert isinstance(store, PartitionedStores)
        run(store.remember_manifest(b"this ledger"))
        more = [*store.stores, new_store(f"{self.url}/3")]
        named = [more[number] for number in order]
        alone = len(named) == 1
        with pytest.raises(LedgerMismatch, match=r"holds part \d of 3 .* names it as (part \d of \d|all)"):
            run((named[0] if alone else PartitionedRedis(named)).remember_manifest(b"this ledger"))
        run(store.clear())
        run(more[3].clear())
        assert run(PartitionedRedis(named).remember_manifest(b"this ledger")) == b"this ledger"
        run(clean(more[3]))

    def test_a_server_that_holds_all_views_is_refused_as_a_part(self, store: Store) -> None:
        assert isinstance(store, PartitionedStores)
        run(store.stores[0].remember_manifest(b"this ledger"))
        with pytest.raises(LedgerMismatch, match="holds all of the views"):
            run(store.remember_manifest(b"this ledger"))


@pytest.mark.parametrize(
    ("url", "servers"),
    [
        ("redis://a:1/0", ["redis://a:1/0"]),
        ("redis://me:pw@a:1,b:2/3?x=1,2", ["redis://me:pw@a:1/3?x=1,2", "redis://me:pw@b:2/3?x=1,2"]),
        ("rediss://:p,w@a,b", ["rediss://:p,w@a", "rediss://:p,w@b"]),
        ("redis://[::1]:1,[::2]:1?db=1", ["redis://[::1]:1?db=1", "redis://[::2]:1?db=1"]),
        ("unix:///tmp/a,b", ["unix:///tmp/a,b"]),
    ],
)
def test_a_url_names_servers_with_one_account_and_database(url: str, servers: list[str]) -> None:
    assert split_servers(url) == servers


def test_a_server_that_is_named_twice_is_refused() -> None:
    with pytest.raises(SettingsError, match="twice"):
        RedisDatabase("redis://a:1,b:1,a:1/0", AdapterSettings())


@pytest.fixture
def servers(own_redis: NewRedis) -> list[LocalRedis]:
    return [own_redis() for _ in range(3)]


def url_of(servers: list[LocalRedis]) -> str:
    return f"redis://{','.join(server.address for server in servers)}/0"


def publish(cluster: Cluster, turns: range) -> None:
    cluster.publish([event(space=space, turn=turn) for turn in turns for space in SPACES])


def numbers_of_events(cluster: Cluster) -> dict[str, int | None]:
    """By space: how many events its views have; None: they are unavailable now."""

    async def count(memory: Memory) -> dict[str, int | None]:
        found: dict[str, int | None] = {}
        for space in SPACES:
            try:
                found[space] = len((await memory.episodic(space, "baker", window=1_000)).memories)
            except (Rebuilding, StorageUnavailable):
                found[space] = None
        return found

    return cluster.ask(count)


def checkpoints(cluster: Cluster) -> dict[int, tuple[Generation, Checkpoint]]:
    """By partition: the active generation and what it has processed."""

    async def read() -> dict[int, tuple[Generation, Checkpoint]]:
        store = RedisDatabase(str(cluster.settings.views), AdapterSettings()).store("recallog")
        found = {}
        try:
            for partition in range(PARTITIONS):
                active = (await store.pointer(partition)).active
                if active is not None and (done := await store.checkpoint(active)) is not None:
                    found[partition] = active, done
        finally:
            await store.close()
        return found

    return asyncio.run(read())


def test_faults_of_one_server_concern_its_partitions_only(
    kafka: str, topic: str, servers: list[LocalRedis], tmp_path: Path
) -> None:
    with Cluster(kafka, topic, url_of(servers), tmp_path) as cluster:
        worker = cluster.live_worker()
        publish(cluster, range(10))
        assert numbers_of_events(cluster) == dict.fromkeys(SPACES, 10)
        before = checkpoints(cluster)

        servers[1].kill()
        answers = numbers_of_events(cluster)
        assert {*answers.values()} == {10, None}  # other servers answer
        servers[1].start()
        wait_until(lambda: numbers_of_events(cluster) == dict.fromkeys(SPACES, 10), "the server is used again")

        with closing(redis.Redis.from_url(servers[2].url)) as client:
            client.flushall()
        wait_until(lambda: numbers_of_events(cluster) == dict.fromkeys(SPACES, 10), "its partitions are built again")
        worker.wait_until_live()
        rebuilt = {
            partition for partition, (active, _) in checkpoints(cluster).items() if active != before[partition][0]
        }
        assert rebuilt == {partition for partition in before if partition % 3 == 2}
        cluster.assert_views_are_the_fold(10 * len(SPACES))

        # A failover to a replica that lags: the server has an older copy of its data.
        servers[1].copy_data(tmp_path / "older")
        publish(cluster, range(10, 20))
        servers[1].kill()
        servers[1].restore_data(tmp_path / "older")
        servers[1].start()
        wait_until(lambda: numbers_of_events(cluster) == dict.fromkeys(SPACES, 20), "the older copy is caught up")
        worker.wait_until_live()
        cluster.assert_views_are_the_fold(20 * len(SPACES))


def test_a_reader_with_the_former_servers_is_refused_after_the_views_were_spread_anew(
    kafka: str, topic: str, servers: list[LocalRedis], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_access, "VERIFIED_SECONDS", 0.0)
    with (
        Cluster(kafka, topic, url_of(servers), tmp_path) as cluster,
        Cluster(kafka, topic, url_of(servers[:2]), tmp_path) as fewer,
    ):
        worker = cluster.live_worker()
        publish(cluster, range(10))
        worker.terminate()

        async def ask(memory: Memory) -> None:
            for space in SPACES:
                assert len((await memory.episodic(space, "baker", window=100)).memories) == 10
            async with Memory.open(fewer.settings) as former:
                await former.admin.rebuild(drop=True)
            refused = []
            for space in SPACES:
                with pytest.raises((LedgerMismatch, Rebuilding)) as raised:
                    await memory.episodic(space, "baker")
                refused.append(str(raised.value))
            assert any("holds part" in each for each in refused)

        cluster.ask(ask)


def test_views_are_spread_anew_after_they_were_deleted(
    kafka: str, topic: str, servers: list[LocalRedis], tmp_path: Path
) -> None:
    with Cluster(kafka, topic, url_of(servers[:2]), tmp_path) as cluster:
        worker = cluster.live_worker()
        publish(cluster, range(10))
        worker.terminate()
        with Cluster(kafka, topic, url_of(servers), tmp_path) as wider:
            refused = wider.worker()
            refused.wait_until_red("recallog rebuild --drop")
            wider.ask(lambda memory: memory.admin.rebuild(drop=True))
            refused.wait_until_live()
            assert numbers_of_events(wider) == dict.fromkeys(SPACES, 10)
            wider.assert_views_are_the_fold(10 * len(SPACES))
            used = [sum(partition % 3 == number for partition in checkpoints(wider)) for number in range(3)]
            assert all(used)
