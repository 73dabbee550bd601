"""One Apache Kafka node, broker and controller in one process (KRaft), configured to start and restart quickly."""

import base64
import secrets
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from deploy.local import ports
from deploy.local.kafka.jars import java, kafka_jars
from deploy.local.server import LocalServer, LocalServerError

HEAP_MB = 512

_LOG4J = Path(__file__).with_name("log4j2.properties")
_FORMAT_SECONDS = 60
_PROBE_SECONDS = 0.5

SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    # Topics are created explicitly, with their settings; an automatic one would hide a mistake.
    "auto.create.topics.enable": "false",
    # One node cannot hold the three copies that the internal topics have by default.
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    # All members of a test's group join at once; waiting for more costs 3 s for each new group.
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.backoff.ms": "200",
    # After kill -9 the controller refuses the restarted broker as a second one with the same id until the old session
    # ends. A restart took 12.9 s with the default of 9 s and takes 3.4 s now, as after a clean stop.
    "broker.session.timeout.ms": "1000",
    "broker.heartbeat.interval.ms": "100",
}
FEW_THREADS = {
    "num.network.threads": "1",
    "num.io.threads": "2",
    "background.threads": "2",
    "num.recovery.threads.per.data.dir": "1",
    "log.cleaner.dedupe.buffer.size": str(8 * 1024 * 1024),
}


class LocalKafka(LocalServer):
    """One broker without replication: for development and tests."""

    name: ClassVar[str] = "Kafka"
    port_names: ClassVar[tuple[str, ...]] = ("server", "controller")
    _controllers: ClassVar[str] = "--standalone"
    """The option of Kafka's storage tool that says who the controllers are."""

    def __init__(
        self,
        folder: Path | str,
        *,
        settings: dict[str, str] | None = None,
        short_lived: bool = False,
        heap_mb: int = HEAP_MB,
        preferred_port: int | None = None,
        dies_with_starter: bool = True,
    ) -> None:
        """
        Args:
            folder: the folder of its data and its log.
            settings: broker settings that override `SETTINGS`, e.g. {"log.retention.ms": "1000"}.
            short_lived: use less CPU time to start and have a lower throughput, for tests.
            heap_mb: the most memory of its heap.
            preferred_port: see `LocalServer`.
            dies_with_starter: see `LocalServer`.
        """
        super().__init__(folder, preferred_port=preferred_port, dies_with_starter=dies_with_starter)
        self._settings = {**SETTINGS, **(FEW_THREADS if short_lived else {}), **(settings or {})}
        self._heap_mb = heap_mb
        self._java_options = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC") if short_lived else ()

    @property
    def bootstrap(self) -> str:
        """Bootstrap servers for clients: 127.0.0.1:port."""
        return self.address

    def _command(self) -> list[str]:
        program = [
            str(java()),
            "-Xms128m",
            f"-Xmx{self._heap_mb}m",
            "-XX:ActiveProcessorCount=2",
            "-Djava.awt.headless=true",
        ]
        program += self._java_options
        program += [f"-Dlog4j2.configurationFile={_LOG4J}", "-cp", f"{kafka_jars()}/*"]
        properties = self.folder / "server.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in self._all_settings().items()))
        self._format_once(program, properties)
        return [*program, "kafka.Kafka", str(properties)]

    def _all_settings(self) -> dict[str, str]:
        broker, controller = self.ports["server"], self.ports["controller"]
        return {
            **self._settings,
            "listeners": f"PLAINTEXT://{ports.HOST}:{broker},CONTROLLER://{ports.HOST}:{controller}",
            "advertised.listeners": f"PLAINTEXT://{ports.HOST}:{broker},CONTROLLER://{ports.HOST}:{controller}",
            "controller.quorum.bootstrap.servers": f"{ports.HOST}:{controller}",
            "log.dirs": str(self.data),
        }

    def _new_cluster_id(self) -> str:
        """The id of the cluster, for a new folder."""
        return base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")

    def _format_once(self, program: list[str], properties: Path) -> None:
        """Format the folder once. The file with the id is written last, so that an interrupted format is repeated."""
        formatted = self.folder / "cluster-id"
        if formatted.exists():
            return
        shutil.rmtree(self.data)
        self.data.mkdir()
        cluster_id = self._new_cluster_id()
        # With "=": one id in 64 begins with "-", which is not an option.
        program = [*program[:1], "-XX:TieredStopAtLevel=1", *program[1:]]  # it runs for one second only
        command = [*program, "kafka.tools.StorageTool", "format", self._controllers, f"--cluster-id={cluster_id}"]
        done = subprocess.run(
            [*command, "-c", str(properties)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_FORMAT_SECONDS,
        )
        if done.returncode != 0:
            raise LocalServerError(f"the storage of Kafka was not formatted:\n{done.stdout}{done.stderr}")
        formatted.write_text(cluster_id)

    @contextmanager
    def _prober(self) -> Iterator[Callable[[], bool]]:
        cluster_id = (self.folder / "cluster-id").read_text()
        # It reconnects quickly, and does not log the connections that are refused until the broker listens.
        client = AdminClient(
            {
                "bootstrap.servers": self.bootstrap,
                "log_level": 0,
                "reconnect.backoff.ms": 50,
                "reconnect.backoff.max.ms": 50,
            }
        )

        def answers() -> bool:
            try:
                cluster = client.list_topics(timeout=_PROBE_SECONDS)
            except KafkaException:
                return False
            return str(cluster.cluster_id) == cluster_id and bool(cluster.brokers)

        yield answers
