"""`make cluster`: runs a Kafka and a Redis for development until Ctrl-C."""

import json
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from rich.console import Console

from deploy.local import LocalKafka, LocalRedis, LocalServer, LocalServerError
from deploy.local.kafka.jars import kafka_jars
from deploy.local.ports import KAFKA_PORT, REDIS_PORT

TOPIC = "recallog.events"

_FAILED = 1
_WATCH_SECONDS = 0.5

out = Console(highlight=False, soft_wrap=True, emoji=False)
err = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")


@app.command(epilog="Example: python -m deploy.local --folder /tmp/cluster")
def cluster(
    folder: Annotated[Path, typer.Option(help="Folder of the data of both, used again by the next start.")] = Path(
        ".cluster"
    ),
    partitions: Annotated[int, typer.Option(min=1, max=1024, help="Partitions of a new topic.")] = 8,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Run a real Kafka and a real Redis on this machine until Ctrl-C or SIGTERM; print the settings to export."""
    for stop in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # SIGINT too: it is ignored in a shell's background job
        signal.signal(stop, _interrupt)
    with suppress(KeyboardInterrupt), ExitStack() as running:
        try:
            kafka, redis = _start(folder, running)
            settings = {
                "RECALLOG_LEDGER": f"kafka://{kafka.bootstrap}/{TOPIC}?partitions={partitions}&replication=1",
                "RECALLOG_VIEWS": redis.url,
            }
            if as_json:
                print(json.dumps(_document(settings, kafka, redis)), flush=True)
            else:
                _print(settings, folder, kafka, redis)
            _watch(kafka, redis)
        except (LocalServerError, OSError) as error:
            err.print(f"error: {error}", style="red", markup=False)
            raise typer.Exit(_FAILED) from None


def _start(folder: Path, running: ExitStack) -> tuple[LocalKafka, LocalRedis]:
    """Start both and return when they answer; `running` stops them by their pids."""
    redis = LocalRedis(folder / "redis", preferred_port=REDIS_PORT)
    kafka = LocalKafka(folder / "kafka", preferred_port=KAFKA_PORT)
    with _status("looking for the jars of Kafka") as report:
        kafka_jars(report)
    for server in (redis, kafka):
        with _status(f"starting {server.name}"):
            server.start()
        running.callback(server.stop)
    return kafka, redis


@contextmanager
def _status(what: str) -> Iterator[Any]:
    """Show a spinner with a message; return a function that replaces the message."""
    with err.status(f"{what} …") as status:
        # Without a terminal there is no spinner: print the message, since a fetch may take long.
        yield status.update if err.is_terminal else err.print


def _document(settings: dict[str, str], kafka: LocalKafka, redis: LocalRedis) -> dict[str, Any]:
    return {
        "settings": settings,
        "kafka": {"bootstrap_servers": kafka.bootstrap, "pid": kafka.pid, "log": str(kafka.log)},
        "redis": {"url": redis.url, "pid": redis.pid, "log": str(redis.log)},
    }


def _print(settings: dict[str, str], folder: Path, kafka: LocalKafka, redis: LocalRedis) -> None:
    out.print("Kafka and Redis run. In another terminal:\n")
    for name, value in settings.items():
        out.print(f"  export {name}={shlex.quote(value)}", style="bold", markup=False)
    if (kafka.ports["server"], redis.ports["server"]) != (KAFKA_PORT, REDIS_PORT):
        used = f"port {KAFKA_PORT} or {REDIS_PORT} is in use by another program"
        out.print(f"\n{used}: export these settings, and not those of docs/cluster.md", style="yellow", markup=False)
    out.print("\n  recallog worker                                            # folds events into views", markup=False)
    out.print('  recallog publish village baker agent.spoke "Fresh bread!"  # into Kafka', markup=False)
    out.print("  recallog episodic village baker                            # from Redis", markup=False)
    out.print(f"\nCtrl-C stops both; their data stays in {folder} for the next start.", style="dim", markup=False)
    sys.stdout.flush()


def _watch(*servers: LocalServer) -> None:
    """Never return; raise when a server has ended by itself."""
    while True:
        for server in servers:
            if not server.running:
                raise LocalServerError(f"{server.name} has ended unexpectedly; its log is {server.log}")
        time.sleep(_WATCH_SECONDS)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


app(prog_name="python -m deploy.local")
