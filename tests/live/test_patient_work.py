"""Long work of operators outlasts what a question does not wait for: a service that is stopped or started again."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from deploy.local import LocalKafka, LocalRedis
from deploy.local.ports import free_port
from deploy.local.server import LocalServer

from live.conftest import NewKafka, NewRedis
from live.support import Cluster
from live.test_operations import SPACES, events_numbered
from recallog import Memory
from recallog_projections.patience import OUTAGE_SECONDS
from recallog_schemas.errors import StorageUnavailable
from recallog_schemas.limits import DEADLINE_SECONDS

EVENTS = 4_000
AWAY_SECONDS = 3 * DEADLINE_SECONDS


@pytest.fixture(scope="module")
def site(
    own_kafka: NewKafka, own_redis: NewRedis, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[LocalKafka, LocalRedis, Cluster]]:
    kafka, redis = own_kafka(), own_redis()
    with Cluster(kafka.bootstrap, "recallog.patient", redis.url, tmp_path_factory.mktemp("patient")) as cluster:
        cluster.live_worker()
        cluster.publish(events_numbered(EVENTS))
        yield kafka, redis, cluster


class Outage:
    """A server goes away when the work reports progress for the first time, and comes back later."""

    def __init__(self, server: LocalServer, *, killed: bool) -> None:
        self._server = server
        self._killed = killed
        self._back: threading.Timer | None = None

    def progress(self, done: int, total: int) -> None:
        if self._back is None:
            self._server.kill() if self._killed else self._server.pause()
            self._back = threading.Timer(AWAY_SECONDS, self._server.start if self._killed else self._server.resume)
            self._back.start()

    def wait_for_its_end(self) -> None:
        assert self._back is not None, "the work has reported no progress"
        self._back.join()


@pytest.mark.parametrize(
    ("work", "which", "killed"),
    [
        *(("rebuild", which, killed) for which in ("kafka", "redis") for killed in (False, True)),
        ("verify", "kafka", True),
        ("verify", "redis", False),
        ("copy", "kafka", False),
    ],
)
def test_long_work_goes_on_after_a_service_was_away(
    site: tuple[LocalKafka, LocalRedis, Cluster], tmp_path: Path, work: str, which: str, killed: bool
) -> None:
    kafka, redis, cluster = site
    outage = Outage(kafka if which == "kafka" else redis, killed=killed)

    async def done(memory: Memory) -> int:
        if work == "rebuild":
            rebuilt = await memory.admin.rebuild(progress=outage.progress)
            return sum(report.records for report in rebuilt)
        if work == "verify":
            report = await memory.admin.verify(progress=outage.progress)
            assert (report.clean, report.not_compared) == (True, ())
            return report.records
        return (await memory.admin.copy(str(tmp_path / "copy"), progress=outage.progress)).copied

    try:
        assert cluster.ask(done, deadline_seconds=DEADLINE_SECONDS) == EVENTS
    finally:
        outage.wait_for_its_end()
    assert len(cluster.ask(lambda memory: memory.spaces())) == len(SPACES)


def test_long_work_whose_services_were_never_there_fails_at_once(
    site: tuple[LocalKafka, LocalRedis, Cluster],
) -> None:
    _, _, cluster = site
    began = time.monotonic()
    refusal = cluster.refusal(lambda memory: memory.admin.verify(), views=f"redis://127.0.0.1:{free_port()}/0")
    assert isinstance(refusal, StorageUnavailable)
    assert time.monotonic() - began < OUTAGE_SECONDS
