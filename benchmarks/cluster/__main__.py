"""`python -m benchmarks.cluster`: start Kafka and Redis, measure everything, print a table, write JSON."""

import asyncio
import logging
import signal
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from deploy.local import LocalKafka, LocalRedis, LocalServerError
from rich.console import Console

from benchmarks import report
from benchmarks.cluster import breakdown, drain, episodic, latency, live, outage, reactions, rebuild, resident, size
from benchmarks.cluster.deployments import Cluster
from benchmarks.cluster.processes import ProcessFailed
from benchmarks.cluster.sampling import TooFewSamples
from benchmarks.measure import Measure, Setup
from recallog_schemas.errors import RecallogError

SUBJECTS: Mapping[str, Callable[[Cluster], Awaitable[list[Measure]]]] = {
    "drain": drain.measure,
    "live": live.measure,
    "breakdown": breakdown.measure,
    "rebuild": rebuild.measure,
    "size": size.measure,
    "episodic": episodic.measure,
    "latency": latency.measure,
    "reactions": reactions.measure,
    "resident": resident.measure,
    "outage": outage.measure,
}
SUBJECT_SECONDS_MAX = 1_800.0
BUILD = Path(__file__).parents[2] / "build"


def main(
    only: Annotated[str, typer.Option(metavar="NAME", help="Only subjects whose name contains NAME.")] = "",
    quick: Annotated[bool, typer.Option("--quick", help="Use fewer events. The figures are rough.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Measure a cluster: drain, live, breakdown, rebuild, size, episodic, latency, reactions, resident, outage.

    Starts and stops its own Kafka and Redis. Prints a table and writes build/bench-cluster.json. Works in a temporary
    folder, which it removes.

    Example: python -m benchmarks.cluster --only rebuild --quick
    """
    chosen = {name: run for name, run in SUBJECTS.items() if only in name}
    if not chosen:
        raise typer.BadParameter(f"no subject's name contains {only!r}; choose from {', '.join(SUBJECTS)}")
    signal.signal(signal.SIGTERM, _interrupt)
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # the benchmark of an outage stops the broker
    progress = Console(stderr=True, highlight=False, style="dim")
    BUILD.mkdir(exist_ok=True)
    # Not under /tmp, which may be in memory, where fsync costs nothing.
    with tempfile.TemporaryDirectory(prefix="bench-cluster-", dir=BUILD) as folder:
        progress.print("starting Kafka and Redis")
        with LocalKafka(Path(folder) / "kafka") as kafka, LocalRedis(Path(folder) / "redis") as redis:
            cluster = Cluster(Setup(Path(folder), quick, progress.print), kafka, redis)
            measures, failed = asyncio.run(_measured(cluster, chosen, progress))
    if as_json:
        print(report.document(measures), end="")
    else:
        report.show(Console(), measures)
    report.write(BUILD / "bench-cluster.json", measures)
    progress.print(f"written to {BUILD / 'bench-cluster.json'}")
    if failed:
        raise typer.Exit(1)


async def _measured(
    cluster: Cluster, chosen: Mapping[str, Callable[[Cluster], Awaitable[list[Measure]]]], progress: Console
) -> tuple[Sequence[Measure], Sequence[str]]:
    """The measures, and the subjects that failed. A failure does not stop the subjects after it."""
    measures: list[Measure] = []
    failed: list[str] = []
    for name, run in chosen.items():
        began = time.perf_counter()
        try:
            async with asyncio.timeout(SUBJECT_SECONDS_MAX):
                measures += await run(cluster)
        except (ProcessFailed, TooFewSamples, TimeoutError, RecallogError, LocalServerError) as error:
            failed.append(name)
            progress.print(f"{name} failed: {type(error).__name__}: {error}", style="red", markup=False)
        progress.print(f"{name}: {time.perf_counter() - began:.0f} s")
    return measures, failed


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    typer.run(main)
