"""One worker process that folds into Redis: catching up with a backlog, and while a publisher runs."""

import asyncio
import json
import time
from statistics import median
from typing import NamedTuple

from benchmarks.cluster import deployments, empty_agent, processes, sampling
from benchmarks.cluster.deployments import Cluster, Deployment
from benchmarks.cluster.sampling import Sample, Samples, TooFewSamples
from benchmarks.measure import Goal, Measure, ratio
from recallog_streams.ledgers.kafka.address import KafkaAddress

_RATE = Goal("≥", 20_000)
_RATIO = Goal("≥", 2.0)
_AGENT_SECONDS = 10.0
"""How long the empty agent is measured after its first event."""
_OUTPUT_SECONDS_MAX = 60.0


class _WhilePublishing(NamedTuple):
    """Rates while a publisher and the worker run at the same time, in events per second."""

    published: float
    while_published: float
    afterwards: float
    """The rate of the worker after the publisher has ended."""


async def measure(cluster: Cluster) -> list[Measure]:
    deployment = await cluster.filled()
    setup = cluster.setup
    folded: list[Samples] = []
    empty: list[Samples] = []
    while_publishing: list[_WhilePublishing] = []
    for repetition in range(setup.size(3, 1)):
        setup.report(f"live: an empty Faust agent, repetition {repetition + 1}")
        empty.append(await _empty_agent(cluster, deployment))
        setup.report(f"live: one worker behind {deployment.records:,} events, repetition {repetition + 1}")
        folded.append(await caught_up(cluster, deployment))
    for repetition in range(setup.size(3, 1)):
        setup.report(f"live: one worker and a publisher, repetition {repetition + 1}")
        while_publishing.append(await _while_publishing(cluster))
    return [
        *_compared("by wall-clock time", [one.rate() for one in folded], [one.rate() for one in empty], "events/s"),
        *_compared(
            "by CPU time",
            [one.per_used_second() for one in folded],
            [one.per_used_second() for one in empty],
            "events/CPU s",
        ),
        Measure("live: publisher, with the worker", median(one.published for one in while_publishing), "events/s"),
        Measure(
            "live: worker, with the publisher", median(one.while_published for one in while_publishing), "events/s"
        ),
        Measure(
            "live: worker, after the publisher", median(one.afterwards for one in while_publishing), "events/s", _RATE
        ),
    ]


def _compared(what: str, folded: list[float], empty: list[float], unit: str) -> list[Measure]:
    return [
        Measure(f"live: worker, backlog, {what}", median(folded), unit, _RATE),
        Measure(f"live: empty Faust agent, {what}", median(empty), unit),
        Measure(f"live: worker ÷ empty Faust agent, {what}", ratio(folded, empty), "", _RATIO),
    ]


async def caught_up(cluster: Cluster, deployment: Deployment) -> Samples:
    """Samples of a worker that builds the views of `deployment` from offset zero."""
    await deployment.delete_views()
    async with deployment.opened() as components, cluster.worker(deployment) as (worker, _):
        return await sampling.sample_until(components, deployment.records, [worker])


async def _while_publishing(cluster: Cluster) -> _WhilePublishing:
    count = cluster.setup.size(240_000, 60_000)
    deployment = await cluster.deployment("while-publishing")
    async with (
        deployment.opened() as components,
        cluster.publisher(deployment, count, seed=7) as publisher,
        cluster.worker(deployment) as (worker, health),
    ):
        await deployments.live(worker, health)
        sampled = asyncio.create_task(sampling.sample_until(components, count, [worker]))
        publisher.go()
        published_seconds = json.loads(await publisher.line(sampling.FOLD_SECONDS_MAX))
        ended = time.perf_counter()
        samples = await sampled
    return _WhilePublishing(count / published_seconds, samples.rate(last=ended), _afterwards(samples, ended))


def _afterwards(samples: Samples, ended: float) -> float:
    try:
        return samples.rate(first=ended)
    except TooFewSamples:  # the worker kept up, and no records were left
        return samples.rate()


async def _empty_agent(cluster: Cluster, deployment: Deployment) -> Samples:
    """Samples of an empty Faust agent that counts the topic of `deployment`, for at most 10 seconds."""
    samples = Samples()
    async with processes.running(
        "benchmarks.cluster.empty_agent",
        *(",".join(KafkaAddress.parse(deployment.ledger).servers), deployment.topic),
        log=cluster.log("empty-agent"),
        settings={},
    ) as agent:
        while not samples.taken or (
            samples.taken[-1].processed < deployment.records
            and samples.taken[-1].at < samples.taken[0].at + _AGENT_SECONDS
        ):
            line = await agent.line(_OUTPUT_SECONDS_MAX)
            if line.startswith(empty_agent.PREFIX):  # Faust prints other lines too
                at, count = json.loads(line.removeprefix(empty_agent.PREFIX))
                if count or samples.taken:
                    samples.taken.append(Sample(at, count, agent.cpu_seconds()))
    return samples
