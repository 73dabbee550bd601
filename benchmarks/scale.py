"""`python -m benchmarks.scale`: what a cluster of a given size needs, from costs that are fitted to measured runs.

Runs of different shapes are measured on a real Kafka and a real Redis, and a cost for each event, byte and agent is
fitted to them. The fit then predicts a larger run of another shape, which is measured too and shown beside the
prediction. The last table applies the fit to clusters of 10^6 to 10^10 events.
"""

import asyncio
import json
import math
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from deploy.local import LocalKafka, LocalRedis
from redis.asyncio import Redis
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.cluster import processes, sampling
from benchmarks.cluster.deployments import Cluster
from benchmarks.measure import Setup
from benchmarks.workload import WORDS
from recallog import Event
from recallog_schemas import limits

BUILD = Path(__file__).parents[1] / "build"
_BEGAN = datetime(2026, 3, 1, 8, tzinfo=UTC)
_USE = 0.6
"""How busy a core, or how full a memory, may be at the peak: the rest is for rebuilds, failovers and growth."""
_REPLICATION = 3
_BROKERS = 3
_BROKER_CORES = 2
_HOURS_OF_MONTH = 730
_GIB = 1024**3


@dataclass(frozen=True, slots=True)
class Shape:
    """Events of agents: the same number for each agent, on average, and texts of one length."""

    events: int
    spaces: int
    agents: int
    """In each space."""
    text_bytes: int

    @property
    def logs(self) -> int:
        """The number of logs of agents."""
        return self.spaces * self.agents

    @property
    def kept(self) -> int:
        """How many events the logs of all agents keep."""
        return self.logs * min(limits.LOG_EVENTS_KEPT, self.events // self.logs)

    def make_events(self, seed: int = 0) -> Iterator[Event]:
        rng = random.Random(seed)
        for number in range(self.events):
            words = " ".join(rng.choices(WORDS, k=1 + self.text_bytes // 4))
            yield Event(
                space=f"space-{rng.randrange(self.spaces)}",
                agent=f"agent-{rng.randrange(self.agents)}",
                kind="agent.spoke",
                turn=number,
                at=_BEGAN + timedelta(seconds=number),
                payload={"text": words[: self.text_bytes]},
            )


class Used(NamedTuple):
    """What a run of a shape takes."""

    topic_bytes: float
    """On the disk of a broker, without replicas."""
    redis_bytes: float
    worker_seconds: float
    """CPU of the worker that folds all events."""
    redis_seconds: float
    """CPU of Redis meanwhile."""


class Run(NamedTuple):
    shape: Shape
    used: Used


FEATURES: Mapping[str, Sequence[str]] = {
    "topic_bytes": ("events", "bytes of text"),
    "redis_bytes": ("events", "kept events", "kept bytes of text", "logs"),
    "worker_seconds": ("events", "bytes of text"),
    "redis_seconds": ("events", "bytes of text"),
}
"""By what is used: what it is in proportion to."""


def _values(shape: Shape, features: Sequence[str]) -> list[float]:
    known = {
        "events": shape.events,
        "bytes of text": shape.events * shape.text_bytes,
        "kept events": shape.kept,
        "kept bytes of text": shape.kept * shape.text_bytes,
        "logs": shape.logs,
    }
    return [float(known[feature]) for feature in features]


class Costs:
    """The costs by what is used and by feature, fitted by least squares of relative errors."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.of: dict[str, dict[str, float]] = {}
        for used, features in FEATURES.items():
            measured = np.array([getattr(run.used, used) for run in runs], dtype=float)
            matrix = np.array([_values(run.shape, features) for run in runs]) / measured[:, None]
            found = _solve_without_negatives(matrix, np.ones(len(runs)))
            self.of[used] = dict(zip(features, map(float, found), strict=True))

    def predict(self, shape: Shape) -> Used:
        def total(used: str) -> float:
            costs = self.of[used]
            return sum(cost * value for cost, value in zip(costs.values(), _values(shape, [*costs]), strict=True))

        return Used(*map(total, Used._fields))


def _solve_without_negatives(matrix: "np.ndarray[tuple[int, int], np.dtype[np.float64]]", right: object) -> list[float]:
    """Least squares with no negative cost: one that would be negative is left out, and counts as 0."""
    columns = [*range(matrix.shape[1])]
    while True:
        scale = np.abs(matrix[:, columns]).max(axis=0)
        found = np.linalg.lstsq(matrix[:, columns] / scale, np.asarray(right), rcond=None)[0] / scale
        if (found >= 0).all() or len(columns) == 1:
            costs = dict(zip(columns, found, strict=True))
            return [max(0.0, float(costs.get(column, 0.0))) for column in range(matrix.shape[1])]
        columns.pop(int(found.argmin()))


class Prices(NamedTuple):
    """In one currency. The defaults are round figures for comparing sizes, not a quotation."""

    core_hour: float = 0.04
    memory_gib_month: float = 4.0
    disk_gib_month: float = 0.1


class Plan(NamedTuple):
    """What a cluster needs."""

    events: float
    peak: float
    """Events per second."""
    partitions: int
    workers: int
    redis_servers: int
    redis_gib: float
    disk_gib: float
    """With replicas."""
    rebuild_hours: float
    month: float
    """The price of a month."""


def plan(costs: Costs, shape: Shape, days: float, peak_factor: float, redis_gib: float, prices: Prices) -> Plan:
    """A plan for the events of `shape`, published over `days`, with a peak of `peak_factor` times the average."""
    used = costs.predict(shape)
    peak = peak_factor * shape.events / (days * 86_400)
    worker_seconds, redis_seconds = used.worker_seconds / shape.events, used.redis_seconds / shape.events
    workers = max(2, math.ceil(peak * worker_seconds / _USE))
    # A rebuild writes new views beside the old ones.
    memory = 2 * used.redis_bytes / _GIB
    servers = max(math.ceil(memory / (_USE * redis_gib)), math.ceil(peak * redis_seconds / _USE), 1)
    partitions = 2 ** math.ceil(math.log2(max(32, 4 * workers, 4 * servers)))
    disk = _REPLICATION * used.topic_bytes / _USE / _GIB
    rebuild = shape.events * max(worker_seconds / workers, redis_seconds / servers) / 3_600
    cores = workers + servers + _BROKERS * _BROKER_CORES
    month = (
        cores * prices.core_hour * _HOURS_OF_MONTH
        + servers * redis_gib * prices.memory_gib_month
        + disk * prices.disk_gib_month
    )
    return Plan(shape.events, peak, partitions, workers, servers, memory / 2, disk, rebuild, month)


async def measure(cluster: Cluster, shape: Shape) -> Run:
    """One run: the events are published, and a worker builds the views from offset zero."""
    cluster.setup.report(f"{shape.events:,} events of {shape.logs:,} agents, {shape.text_bytes} bytes of text")
    deployment = await cluster.deployment("scale", shape.make_events())
    async with deployment.opened() as components, Redis.from_url(deployment.views) as client:
        empty = (await client.info("memory"))["used_memory"]
        before = processes.cpu_seconds(cluster.redis.pid)
        async with cluster.worker(deployment) as (worker, _):
            samples = await sampling.sample_until(components, shape.events, [worker])
        redis_seconds = processes.cpu_seconds(cluster.redis.pid) - before
        used = (await client.info("memory"))["used_memory"] - empty
        topic_bytes = await components.ledger.size_bytes()
    worker_seconds = shape.events / samples.per_used_second()
    return Run(shape, Used(topic_bytes, used, worker_seconds, redis_seconds))


def shapes(scale: int) -> tuple[Sequence[Shape], Shape]:
    """The shapes to fit, of some 4,000 times `scale` events each, and a larger one to predict."""
    events = 4_000 * scale
    fitted = [
        Shape(events, 40, 5, 120),
        Shape(2 * events, 40, 5, 120),
        Shape(events, 40, 5, 900),
        Shape(2 * events, 400, 5, 300),
        Shape(2 * events, 2, 1, 400),
        Shape(3 * events, 1, 2, 120),
    ]
    return fitted, Shape(5 * events, 100, 4, 250)


def main(
    quick: Annotated[bool, typer.Option("--quick", help="Use fewer events. The figures are rough.")] = False,
    text_bytes: Annotated[int, typer.Option(min=1, help="Bytes of text of an event in the plans.")] = 300,
    events_of_agent: Annotated[int, typer.Option(min=1, help="Events of an agent in the plans.")] = 10_000,
    days: Annotated[float, typer.Option(min=1, help="Over how many days the events are published.")] = 365,
    peak_factor: Annotated[float, typer.Option(min=1, help="The peak, in multiples of the average rate.")] = 10,
    redis_gib: Annotated[float, typer.Option(min=0.1, help="The memory of one Redis server, in GiB.")] = 64,
    core_hour: Annotated[float, typer.Option(help="The price of a core for an hour.")] = Prices().core_hour,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Measure a cluster's costs, predict a run of another size, and plan clusters of 10^6 to 10^10 events.

    Starts and stops its own Kafka and Redis. Writes build/scale.json.

    Example: python -m benchmarks.scale --text-bytes 500 --days 30
    """
    progress = Console(stderr=True, highlight=False, style="dim")
    BUILD.mkdir(exist_ok=True)
    fitted, unseen = shapes(4 if quick else 20)
    with tempfile.TemporaryDirectory(prefix="scale-", dir=BUILD) as folder:
        progress.print("starting Kafka and Redis")
        with LocalKafka(Path(folder) / "kafka") as kafka, LocalRedis(Path(folder) / "redis") as redis:
            cluster = Cluster(Setup(Path(folder), quick, progress.print), kafka, redis)
            # The first run warms the broker up, and does not count.
            runs = asyncio.run(_measure_all(cluster, [fitted[0], *fitted, unseen]))[1:]
    costs, seen = Costs(runs[:-1]), runs[-1]
    plans = []
    for exponent in range(6, 11):
        events = 10**exponent
        logs = max(1, events // events_of_agent)
        shape = Shape(events, max(1, logs // 10), min(10, logs), text_bytes)
        plans.append(plan(costs, shape, days, peak_factor, redis_gib, Prices(core_hour)))
    document = {
        "costs": costs.of,
        "runs": [{**asdict(run.shape), **run.used._asdict()} for run in runs],
        "predicted": costs.predict(unseen)._asdict(),
        "measured": seen.used._asdict(),
        "plans": [each._asdict() for each in plans],
    }
    text = json.dumps(document, indent=1) + "\n"
    (BUILD / "scale.json").write_text(text, encoding="utf-8")
    if as_json:
        print(text, end="")
        return
    _show(Console(), costs, seen, plans)


async def _measure_all(cluster: Cluster, wanted: Sequence[Shape]) -> list[Run]:
    return [await measure(cluster, shape) for shape in wanted]


def _show(console: Console, costs: Costs, seen: Run, plans: Sequence[Plan]) -> None:
    _print(
        console,
        "costs",
        ("used", "cost", "of each of the"),
        [
            (used, f"{1e6 * cost:,.3g} µs" if used.endswith("seconds") else f"{cost:,.3g} bytes", feature)
            for used, found in costs.of.items()
            for feature, cost in found.items()
        ],
    )
    expected = costs.predict(seen.shape)
    _print(
        console,
        "a run that was not fitted",
        ("used", "predicted", "measured", "÷"),
        [
            (used, f"{one:,.2f}", f"{other:,.2f}", f"{one / other:.2f}")
            for used, one, other in zip(Used._fields, expected, seen.used, strict=True)
        ],
    )
    _print(
        console,
        "plans",
        ("events", "peak/s", "partitions", "workers", "Redis", "views GiB", "disk GiB", "rebuild h", "month"),
        [
            (
                f"1e{math.log10(each.events):.0f}",
                f"{each.peak:,.0f}",
                *map(str, (each.partitions, each.workers, each.redis_servers)),
                *(f"{value:,.1f}" for value in (each.redis_gib, each.disk_gib, each.rebuild_hours)),
                f"{each.month:,.0f}",
            )
            for each in plans
        ],
    )


def _print(console: Console, title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = Table(*headings, title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for row in rows:
        table.add_row(*(each.replace("_", " ") for each in row))
    console.print(table)


if __name__ == "__main__":
    typer.run(main)
