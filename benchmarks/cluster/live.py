"""One worker process that folds into Redis: behind what was published while none ran, and beside a publisher."""

import asyncio
import json
import time
from statistics import median
from typing import NamedTuple

from benchmarks.cluster import empty_agent, following, places, processes
from benchmarks.cluster.following import Sample, Samples, TooFewSamples
from benchmarks.cluster.places import Cluster, Place
from benchmarks.measure import Goal, Measure, ratio
from recallog.composition import address_of

_RATE = Goal("≥", 20_000)
_RATIO = Goal("≥", 2.0)
_AGENT_SECONDS = 10.0
"""How long the empty agent is watched once it has begun."""
_SILENCE_SECONDS_MAX = 60.0


class _Beside(NamedTuple):
    """What came of publishing while the worker was live, in events per second."""

    published: float
    while_published: float
    afterwards: float
    """What was left when the publisher had gone."""


async def measure(cluster: Cluster) -> list[Measure]:
    place = await cluster.filled()
    setup = cluster.setup
    folded: list[Samples] = []
    empty: list[Samples] = []
    beside: list[_Beside] = []
    for repetition in range(setup.size(3, 1)):
        setup.say(f"live: an empty Faust agent, repetition {repetition + 1}")
        empty.append(await _empty_agent(cluster, place))
        setup.say(f"live: one worker behind {place.records:,} events, repetition {repetition + 1}")
        folded.append(await caught_up(cluster, place))
    for repetition in range(setup.size(3, 1)):
        setup.say(f"live: one worker beside a publisher, repetition {repetition + 1}")
        beside.append(await _beside(cluster))
    return [
        *_compared("on the clock", [one.rate() for one in folded], [one.rate() for one in empty], "events/s"),
        *_compared(
            "of processor",
            [one.per_used_second() for one in folded],
            [one.per_used_second() for one in empty],
            "events/CPU s",
        ),
        Measure("live: publisher beside the worker", median(one.published for one in beside), "events/s"),
        Measure("live: worker, while published", median(one.while_published for one in beside), "events/s"),
        Measure("live: worker, what was left", median(one.afterwards for one in beside), "events/s", _RATE),
    ]


def _compared(what: str, folded: list[float], empty: list[float], unit: str) -> list[Measure]:
    return [
        Measure(f"live: worker, published before, {what}", median(folded), unit, _RATE),
        Measure(f"live: empty Faust agent, {what}", median(empty), unit),
        Measure(f"live: worker ÷ empty Faust agent, {what}", ratio(folded, empty), "", _RATIO),
    ]


async def caught_up(cluster: Cluster, place: Place) -> Samples:
    """How a worker builds the views of `place` from nothing."""
    await place.forget_views()
    async with place.opened() as parts, cluster.worker(place) as (worker, _):
        return await following.follow(parts, place.records, [worker])


async def _beside(cluster: Cluster) -> _Beside:
    count = cluster.setup.size(240_000, 60_000)
    place = await cluster.place("beside")
    async with (
        place.opened() as parts,
        cluster.publisher(place, count, seed=7) as publisher,
        cluster.worker(place) as (worker, health),
    ):
        await places.live(worker, health)
        following_it = asyncio.create_task(following.follow(parts, count, [worker]))
        publisher.go()
        published_seconds = json.loads(await publisher.line(following.FOLD_SECONDS_MAX))
        ended = time.perf_counter()
        samples = await following_it
    return _Beside(count / published_seconds, samples.rate(last=ended), _afterwards(samples, ended))


def _afterwards(samples: Samples, ended: float) -> float:
    try:
        return samples.rate(first=ended)
    except TooFewSamples:  # the worker kept up: there was nothing left
        return samples.rate()


async def _empty_agent(cluster: Cluster, place: Place) -> Samples:
    """How an empty Faust agent counts the topic of `place`, for at most 10 seconds."""
    samples = Samples()
    async with processes.running(
        "benchmarks.cluster.empty_agent",
        *(",".join(address_of(place.ledger).servers), place.topic),
        log=cluster.log("empty-agent"),
        settings={},
    ) as agent:
        while not samples.taken or (
            samples.taken[-1].processed < place.records and samples.taken[-1].at < samples.taken[0].at + _AGENT_SECONDS
        ):
            said = await agent.line(_SILENCE_SECONDS_MAX)
            if said.startswith(empty_agent.SAYS):  # Faust has things to say there too
                at, count = json.loads(said.removeprefix(empty_agent.SAYS))
                if count or samples.taken:
                    samples.taken.append(Sample(at, count, agent.cpu_seconds()))
    return samples
