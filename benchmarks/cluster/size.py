"""What an event takes in Redis, the identity table apart."""

from redis.asyncio import Redis

from benchmarks.cluster.live import caught_up
from benchmarks.cluster.places import PARTITIONS, Cluster
from benchmarks.measure import Measure
from recallog_projections.stores.redis import RedisStore
from recallog_streams.identity import Identity


async def measure(cluster: Cluster) -> list[Measure]:
    place = await cluster.filled()
    cluster.setup.say(f"size: a worker builds the views of {place.records:,} events")
    await place.forget_views()
    async with Redis.from_url(place.views) as client:
        empty = (await client.info("memory"))["used_memory"]
        await caught_up(cluster, place)
        used = (await client.info("memory"))["used_memory"] - empty
    store = RedisStore(place.views)
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
        Measure("size: views", sum(sizes.values()) / place.records, "B/event"),
        Measure("size: identity", of_identity / place.records, "B/event"),
        Measure("size: the server's used_memory", used / place.records, "B/event"),
        *(Measure(f"size: {table}", sizes[table] / place.records, "B/event") for table in largest),
    ]
