"""`episodic` against one bare round trip to the same Redis, by turns."""

import random
import time
from statistics import median, quantiles

from benchmarks.cluster.live import caught_up
from benchmarks.cluster.places import Cluster
from benchmarks.measure import Goal, Measure, set_aside
from benchmarks.workload import AGENTS_OF_SPACE, SPACES
from recallog import Memory
from recallog_projections.stores.redis_server import RedisServer

_RATIO = Goal("≤", 2.0)
_WARM_QUERIES = 100


async def measure(cluster: Cluster) -> list[Measure]:
    place = await cluster.filled()
    cluster.setup.say("episodic: a worker builds the views")
    await caught_up(cluster, place)
    queries = cluster.setup.size(4_000, 1_000)
    cluster.setup.say(f"episodic: {queries:,} queries and as many bare round trips, by turns")
    dice, asked, bare = random.Random(3), [], []
    server = RedisServer(place.views)  # the client of the store, with nothing above it
    try:
        async with Memory.open(place.settings) as memory:
            with set_aside():
                for query in range(_WARM_QUERIES + queries):
                    space = f"village-{dice.randrange(SPACES)}-of-{dice.randrange(4)}"
                    agent = f"agent-{dice.randrange(AGENTS_OF_SPACE)}"
                    began = time.perf_counter()
                    await memory.episodic(space, agent)
                    answered = time.perf_counter()
                    await server.command("PING")
                    if query >= _WARM_QUERIES:
                        asked.append(answered - began)
                        bare.append(time.perf_counter() - answered)
    finally:
        await server.close()
    return [
        Measure("episodic: p50", median(asked) * 1e3, "ms"),
        Measure("episodic: p99", quantiles(asked, n=100)[98] * 1e3, "ms"),
        Measure("episodic: bare round trip p50", median(bare) * 1e3, "ms"),
        Measure("episodic: p50 ÷ bare round trip p50", median(asked) / median(bare), "", _RATIO),
    ]
