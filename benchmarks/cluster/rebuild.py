"""A rebuild beside the live views, by one process and by two, against the raw drain of the same topic."""

from contextlib import AsyncExitStack
from statistics import median

from benchmarks.cluster import following, processes
from benchmarks.cluster.drain import drained
from benchmarks.cluster.live import caught_up
from benchmarks.cluster.places import Cluster, Place
from benchmarks.measure import Goal, Measure, interleaved, ratio

_RATIO = Goal("≥", 0.2)


async def measure(cluster: Cluster) -> list[Measure]:
    place = await cluster.filled()
    cluster.setup.say("rebuild: a worker builds the views that are to be replaced")
    await caught_up(cluster, place)
    rates = await interleaved(
        cluster.setup,
        "rebuild: raw drain, one process, two",
        {
            "drain": lambda: drained(place),
            "one": lambda: _rebuilt(cluster, place, 1),
            "two": lambda: _rebuilt(cluster, place, 2),
        },
    )
    return [
        Measure("rebuild: raw drain", median(rates["drain"]), "events/s"),
        Measure("rebuild: one process", median(rates["one"]), "events/s"),
        Measure("rebuild: two processes", median(rates["two"]), "events/s"),
        Measure("rebuild: one process ÷ raw drain", ratio(rates["one"], rates["drain"]), ""),
        Measure("rebuild: two processes ÷ raw drain", ratio(rates["two"], rates["drain"]), "", _RATIO),
        Measure("rebuild: two processes ÷ one", ratio(rates["two"], rates["one"]), ""),
    ]


async def _rebuilt(cluster: Cluster, place: Place, count: int) -> float:
    """Events per second of `count` processes that rebuild together, once they have started."""
    async with place.opened() as parts, AsyncExitStack() as stack:
        before = await following.active_ids(parts)
        rebuilders = [
            await stack.enter_async_context(
                processes.running(
                    "recallog_service", "rebuild", "--json", log=cluster.log("rebuild"), settings=place.environment
                )
            )
            for _ in range(count)
        ]
        samples = await following.follow(parts, place.records, rebuilders, before=before)
        for rebuilder in rebuilders:
            await rebuilder.ended(following.FOLD_SECONDS_MAX)
    return samples.rate()
