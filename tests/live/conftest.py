"""Kafka and Redis of the live tests: from the environment, else from Docker, else as local processes.

Nothing starts before a selected test asks for it, and nothing runs after the session. Without any of the three, the
live tests are skipped, and the summary says so; with CI=true they fail.
"""

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import NoReturn, Protocol, TypeVar

import pytest
from deploy.local import LocalKafka, LocalRedis, LocalServer, NotInstalled
from deploy.local.kafka.jars import kafka_version
from deploy.local.ports import free_port
from deploy.local.redis import Fsync

from live.brokers import Brokers
from live.support import Cluster
from support import notices

KAFKA_IMAGE = f"apache/kafka:{kafka_version()}"
REDIS_IMAGE = "redis:7.4-alpine"

_CONTAINER_SECONDS = 120

Server = TypeVar("Server", bound=LocalServer)


class NewKafka(Protocol):
    """Starts a new Kafka in a new folder; the arguments are those of `LocalKafka`."""

    def __call__(self, *, settings: dict[str, str] | None = None) -> LocalKafka: ...


class NewRedis(Protocol):
    """Starts a new Redis in a new folder; the arguments are those of `LocalRedis`."""

    def __call__(
        self, *, fsync: Fsync = "always", snapshots: bool = False, settings: dict[str, str] | None = None
    ) -> LocalRedis: ...


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[str]:
    """Bootstrap servers of a real Kafka, shared by the session: use unique topics and groups, and never kill it."""
    if given := os.environ.get("RECALLOG_TEST_KAFKA"):
        yield given
    elif docker_answers():
        with _kafka_container() as bootstrap:
            yield bootstrap
    else:
        server = started_server(LocalKafka(tmp_path_factory.mktemp("kafka"), short_lived=True), request.config)
        yield server.bootstrap
        server.stop()


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[str]:
    """URL of a real Redis, shared by the session: use unique key prefixes, and never flush or kill it."""
    if given := os.environ.get("RECALLOG_TEST_REDIS"):
        yield given
    elif docker_answers():
        with _redis_container() as url:
            yield url
    else:
        server = started_server(LocalRedis(tmp_path_factory.mktemp("redis")), request.config)
        yield server.url
        server.stop()


@pytest.fixture(scope="module")
def own_kafka(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[NewKafka]:
    """Starts Kafkas that a test may kill: local processes, each in a new folder, stopped after the module."""

    with ExitStack() as running:

        def start(*, settings: dict[str, str] | None = None) -> LocalKafka:
            folder = tmp_path_factory.mktemp("own-kafka")
            server = started_server(LocalKafka(folder, settings=settings, short_lived=True), request.config)
            running.callback(server.kill)  # its data is discarded, so a clean stop is not needed
            return server

        yield start


@pytest.fixture(scope="module")
def own_redis(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[NewRedis]:
    """Starts Redis servers that a test may kill: local processes, each in a new folder, stopped after the module."""

    with ExitStack() as running:

        def start(
            *, fsync: Fsync = "always", snapshots: bool = False, settings: dict[str, str] | None = None
        ) -> LocalRedis:
            folder = tmp_path_factory.mktemp("own-redis")
            server = started_server(
                LocalRedis(folder, fsync=fsync, snapshots=snapshots, settings=settings), request.config
            )
            running.callback(server.kill)
            return server

        yield start


@pytest.fixture(scope="module")
def cluster(kafka: str, own_redis: NewRedis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with a live worker, for the tests of one module. A module may put events in it, or replace it."""
    folder = tmp_path_factory.mktemp("cluster")
    with Cluster(kafka, f"recallog.{os.getpid()}-{folder.name}", own_redis().url, folder) as cluster:
        cluster.live_worker()
        yield cluster


_numbers = count(1)


@pytest.fixture
def brokers(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Brokers]:
    """Three brokers of their own."""
    brokers = Brokers(tmp_path)
    try:
        started_server(brokers.first, request.config)
        brokers.start()
        yield brokers
    finally:
        brokers.kill()


@pytest.fixture
def topic() -> str:
    """The name of a topic that no other test, and no earlier session on the same Kafka, has used."""
    return f"recallog.test.{os.getpid()}-{next(_numbers)}-{os.urandom(3).hex()}"


@cache
def docker_answers() -> bool:
    """Whether a Docker engine can run containers; a client alone cannot."""
    # In a separate process: docker-py leaves a socket open if there is no answer, and warnings are errors here.
    ask = "import docker; docker.from_env(timeout=5).ping()"
    return subprocess.run([sys.executable, "-c", ask], capture_output=True, check=False).returncode == 0


@contextmanager
def _kafka_container() -> Iterator[str]:
    with warnings.catch_warnings(action="ignore"):
        from testcontainers.core.container import DockerContainer
        from testcontainers.core.wait_strategies import LogMessageWaitStrategy

    # The same port inside and outside, since the broker's advertised address must be known before it starts.
    port = free_port()
    container = DockerContainer(KAFKA_IMAGE).with_bind_ports(port, port)
    host = container.get_container_host_ip()
    settings = {
        "NODE_ID": "1",
        "PROCESS_ROLES": "broker,controller",
        "LISTENERS": f"PLAINTEXT://0.0.0.0:{port},CONTROLLER://127.0.0.1:9093",
        "ADVERTISED_LISTENERS": f"PLAINTEXT://{host}:{port}",
        "CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "CONTROLLER_QUORUM_VOTERS": "1@127.0.0.1:9093",
        "LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "AUTO_CREATE_TOPICS_ENABLE": "false",
        "OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
        "TRANSACTION_STATE_LOG_MIN_ISR": "1",
        "GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
    }
    for name, value in settings.items():
        container.with_env(f"KAFKA_{name}", value)
    started = LogMessageWaitStrategy("Kafka Server started").with_startup_timeout(_CONTAINER_SECONDS)
    with container.waiting_for(started):
        yield f"{host}:{port}"


@contextmanager
def _redis_container() -> Iterator[str]:
    with warnings.catch_warnings(action="ignore"):
        from testcontainers.core.container import DockerContainer
        from testcontainers.core.wait_strategies import LogMessageWaitStrategy

    container = DockerContainer(REDIS_IMAGE).with_exposed_ports(6379)
    container.with_command("redis-server --appendonly yes --maxmemory-policy noeviction")
    ready = LogMessageWaitStrategy("Ready to accept connections").with_startup_timeout(_CONTAINER_SECONDS)
    with container.waiting_for(ready):
        yield f"redis://{container.get_container_host_ip()}:{container.get_exposed_port(6379)}/0"


def started_server(server: Server, config: pytest.Config) -> Server:
    """Start a server. If a program is missing, the test is skipped, and with CI=true it fails."""
    missing = ""
    try:
        server.start()
    except NotInstalled as error:
        missing = str(error)
    if missing:
        _cannot_run(server.name, missing, config)
    return server


def _cannot_run(name: str, why: str, config: pytest.Config) -> NoReturn:
    if os.environ.get("CI", "").lower() in {"1", "true"}:
        pytest.fail(f"CI=true, and the live tests have no {name}: {why}", pytrace=False)
    notices.add(config, "the live tests did NOT run", f"no {name}: {why}")
    pytest.skip(f"no {name}: {why}")
