"""Reading the topic without processing it: the upper bound of every fold."""

from statistics import median

from aiokafka import AIOKafkaConsumer, TopicPartition

from benchmarks.cluster.deployments import PARTITIONS, Cluster, Deployment
from benchmarks.measure import Measure, seconds, without_garbage_collection
from recallog_streams.ledgers.kafka.address import KafkaAddress

_POLLED_RECORDS = 10_000


async def measure(cluster: Cluster) -> list[Measure]:
    deployment = await cluster.filled()
    rates = []
    with without_garbage_collection():
        for repetition in range(cluster.setup.repetitions):
            cluster.setup.report(f"drain: {repetition + 1} of {cluster.setup.repetitions}")
            rates.append(await drained(deployment))
    return [Measure("drain: raw aiokafka", median(rates), "events/s")]


async def drained(deployment: Deployment) -> float:
    """Events per second: plain `getmany` over all partitions, nothing decoded."""
    places = [TopicPartition(deployment.topic, partition) for partition in range(PARTITIONS)]
    consumer = AIOKafkaConsumer(
        bootstrap_servers=list(KafkaAddress.parse(deployment.ledger).servers),
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    await consumer.start()
    try:
        consumer.assign(places)
        records = int(sum((await consumer.end_offsets(places)).values()))
        return records / await seconds(_drain(consumer, records))
    finally:
        await consumer.stop()


async def _drain(consumer: AIOKafkaConsumer, records: int) -> None:
    done = 0
    while done < records:
        found = await consumer.getmany(timeout_ms=1_000, max_records=_POLLED_RECORDS)
        done += sum(len(of_partition) for of_partition in found.values())
