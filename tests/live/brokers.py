"""Several brokers as local processes, one of which can lose its disk."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

from confluent_kafka.admin import AdminClient
from deploy.local import LocalKafka, ports

_HEAP_MB = 256
_SETTINGS = {
    # A broker that is back leads its partitions again after a second, not after five minutes.
    "leader.imbalance.check.interval.seconds": "1",
    "leader.imbalance.per.broker.percentage": "0",
}


class Controller(LocalKafka):
    """The first broker, which is the controller too and keeps its disk."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, settings=_SETTINGS, short_lived=True, heap_mb=_HEAP_MB)

    @property
    def controller_address(self) -> str:
        return f"{ports.HOST}:{self.ports['controller']}"

    @property
    def cluster_id(self) -> str:
        return (self.folder / "cluster-id").read_text()


class JoiningBroker(LocalKafka):
    """A further broker of the cluster of `controller`."""

    port_names: ClassVar[tuple[str, ...]] = ("server",)
    _controllers: ClassVar[str] = "--no-initial-controllers"

    def __init__(self, folder: Path, controller: Controller, number: int) -> None:
        settings = _SETTINGS | {"process.roles": "broker", "node.id": str(number)}
        super().__init__(folder, settings=settings, short_lived=True, heap_mb=_HEAP_MB)
        self.number = number
        self._controller = controller

    def lose_disk(self) -> None:
        """Kill it, and delete all its data, as if its disk was replaced."""
        self.kill()
        shutil.rmtree(self.data)
        (self.folder / "cluster-id").unlink()

    def _all_settings(self) -> dict[str, str]:
        listener = f"PLAINTEXT://{self.address}"
        return {
            **self._settings,
            "listeners": listener,
            "advertised.listeners": listener,
            "controller.quorum.bootstrap.servers": self._controller.controller_address,
            "log.dirs": str(self.data),
        }

    def _new_cluster_id(self) -> str:
        return self._controller.cluster_id


class Brokers:
    """Three brokers."""

    def __init__(self, folder: Path) -> None:
        self.first = Controller(folder / "broker-1")
        self.others = [JoiningBroker(folder / f"broker-{number}", self.first, number) for number in (2, 3)]

    def start(self) -> None:
        self.first.start()
        with ThreadPoolExecutor() as starters:
            for started in [starters.submit(broker.start) for broker in self.others]:
                started.result()
        self._client = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in (self.first, *self.others))

    def in_sync(self, topic: str) -> list[set[int]]:
        """By partition: the brokers that have all acknowledged records."""
        found = self._client.list_topics(topic, timeout=10).topics[topic]
        return [set(found.partitions[number].isrs) for number in sorted(found.partitions)]

    def leaders(self, topic: str) -> list[int]:
        """By partition: the broker that answers for it."""
        found = self._client.list_topics(topic, timeout=10).topics[topic]
        return [found.partitions[number].leader for number in sorted(found.partitions)]

    def kill(self) -> None:
        for broker in (*self.others, self.first):
            broker.kill()
