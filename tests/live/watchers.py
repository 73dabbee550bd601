"""Prometheus and its exporters as local processes, for the test of what they find."""

import json
import shutil
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import yaml
from deploy.local import LocalServer, NotInstalled

DEPLOY = Path(__file__).parents[2] / "deploy"


class Watcher(LocalServer):
    """A program of Debian's package of the same name."""

    program: ClassVar[str]
    healthy: ClassVar[str] = "/metrics"

    def options(self) -> list[str]:
        """Its arguments, apart from the address on which it listens."""
        return []

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def _command(self) -> list[str]:
        if (found := shutil.which(self.program)) is None:
            raise NotInstalled(f"{self.program} is missing: install the package of this name (Debian, Ubuntu)")
        return [found, f"--web.listen-address={self.address}", *self.options()]

    @contextmanager
    def _prober(self) -> Iterator[Callable[[], bool]]:
        def answers() -> bool:
            with suppress(OSError), urllib.request.urlopen(self.url + self.healthy, timeout=1):
                return True
            return False

        yield answers


class NodeExporter(Watcher):
    name = "the node exporter"
    program = "prometheus-node-exporter"


class BlackboxExporter(Watcher):
    name = "the blackbox exporter"
    program = "prometheus-blackbox-exporter"

    def options(self) -> list[str]:
        return [f"--config.file={DEPLOY / 'prometheus' / 'blackbox.yml'}"]


class RedisExporter(Watcher):
    name = "the Redis exporter"
    program = "prometheus-redis-exporter"

    def __init__(self, folder: Path, redis: str, *login: str) -> None:
        """`login`: options for a user and the file of passwords."""
        super().__init__(folder)
        self._redis, self._login = redis, login

    def options(self) -> list[str]:
        return [f"--redis.addr={self._redis}", *self._login]


class Prometheus(Watcher):
    """Prometheus with the configuration and the rules of `deploy/prometheus`, and the targets of a test."""

    name = "Prometheus"
    program = "prometheus"
    healthy = "/-/ready"

    def __init__(self, folder: Path, targets: Mapping[str, str], blackbox: str, key: str) -> None:
        """`targets`: the target of each job. `key` is a key of the server."""
        super().__init__(folder)
        self._targets = targets
        self._blackbox = blackbox
        self._key = key

    def options(self) -> list[str]:
        configuration = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
        configuration["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
        for job in configuration["scrape_configs"]:
            job.pop("dns_sd_configs", None)
            job["static_configs"] = [{"targets": [self._targets[job["job_name"]]]}]
            for relabelled in job.get("relabel_configs", ()):
                if relabelled["target_label"] == "__address__":
                    relabelled["replacement"] = self._blackbox
            if "authorization" in job:
                job["authorization"] = {"credentials_file": str(self.folder / "key")}
        (self.folder / "key").write_text(self._key)
        (self.folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))
        shutil.copy(DEPLOY / "prometheus" / "alerts.yml", self.folder)
        return [f"--config.file={self.folder / 'prometheus.yml'}", f"--storage.tsdb.path={self.data}"]

    def ask(self, path: str, **parameters: str) -> Any:
        """What its API answers."""
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{query}", timeout=10) as answer:
            return json.load(answer)["data"]
