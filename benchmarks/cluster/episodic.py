"""`episodic`, compared with one round trip to the same Redis, in turn."""

import random
import time
from statistics import median, quantiles

from benchmarks.cluster.deployments import Cluster
from benchmarks.cluster.live import caught_up
from benchmarks.measure import Goal, Measure, without_garbage_collection
from benchmarks.workload import AGENTS_OF_SPACE, SPACES
from recallog import Memory
from recallog_projections.stores.redis_server import RedisServer

_RATIO = Goal("≤", 2.0)
_WARM_QUERIES = 100


async def measure(cluster: Cluster) -> list[Measure]:
    deployment = await cluster.filled()
    cluster.setup.report("episodic: a worker builds the views")
    await caught_up(cluster, deployment)
    queries = cluster.setup.size(4_000, 1_000)
    cluster.setup.report(f"episodic: {queries:,} queries and as many round trips, in turn")
    rng, asked, bare = random.Random(3), [], []
    server = RedisServer(deployment.views)  # the client of the store, without the layers above it
    try:
        async with Memory.open(deployment.settings) as memory:
            with without_garbage_collection():
                for query in range(_WARM_QUERIES + queries):
                    space = f"village-{rng.randrange(SPACES)}-of-{rng.randrange(4)}"
                    agent = f"agent-{rng.randrange(AGENTS_OF_SPACE)}"
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
        Measure("episodic: round trip p50", median(bare) * 1e3, "ms"),
        Measure("episodic: p50 ÷ round trip p50", median(asked) / median(bare), "", _RATIO),
    ]
