"""Bytes per event in Redis, for the views and for the identity table."""

from redis.asyncio import Redis

from benchmarks.cluster.deployments import PARTITIONS, Cluster
from benchmarks.cluster.live import caught_up
from benchmarks.measure import Measure
from recallog_projections.stores.redis import RedisStore
from recallog_streams.identity import Identity


async def measure(cluster: Cluster) -> list[Measure]:
    deployment = await cluster.filled()
    cluster.setup.report(f"size: a worker builds the views of {deployment.records:,} events")
    await deployment.delete_views()
    async with Redis.from_url(deployment.views) as client:
        empty = (await client.info("memory"))["used_memory"]
        await caught_up(cluster, deployment)
        used = (await client.info("memory"))["used_memory"] - empty
    store = RedisStore(deployment.views)
    sizes: dict[str, int] = {}
    try:
        for partition in range(PARTITIONS):
            for table, taken in (await store.sizes(partition)).items():
                sizes[table] = sizes.get(table, 0) + taken
    finally:
        await store.close()
    of_identity = sum(sizes.pop(table.name, 0) for table in Identity.tables)
    largest = sorted(sizes, key=lambda table: -sizes[table])[:3]
    return [
        Measure("size: views", sum(sizes.values()) / deployment.records, "B/event"),
        Measure("size: identity", of_identity / deployment.records, "B/event"),
        Measure("size: the server's used_memory", used / deployment.records, "B/event"),
        *(Measure(f"size: {table}", sizes[table] / deployment.records, "B/event") for table in largest),
    ]
