"""Tiers: a plan over 100,000 entries of one agent, and retrieving from them through the index service of a folder.

The service embeds the questions with the real model. The entries are embedded by `AveragedEmbedder`.
"""

import asyncio
import random
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import quantiles

from benchmarks.conversations import ASKER, talk
from benchmarks.indexes import AveragedEmbedder, indexing
from benchmarks.measure import Goal, Measure, Setup, without_garbage_collection
from benchmarks.workload import batches
from recallog import Event, Memory, Settings
from recallog.models.tiers.queries import Strategy
from recallog_projections.index.embedders.onnx import OnnxEmbedder
from recallog_schemas.errors import InvariantViolation
from recallog_streams import generations

_SPACE = "village-0"
_T0 = datetime(2026, 3, 1, tzinfo=UTC)
_APPENDED_AT_ONCE = 1_000
_TIERS = ("fast", "medium", "slow", "glacial")
_MOST = dict.fromkeys(_TIERS, 1_000_000)
"""No tier has too many entries, so that they stay for the questions."""
_PLAN, _RETRIEVE = Goal("≤", 2.0), Goal("≤", 40.0)


async def measure(setup: Setup) -> list[Measure]:
    count, folder = setup.size(100_000, 10_000), setup.folder / "tiers"
    setup.report(f"tiers: publishing {count:,} entries")
    texts = [spoken.text for spoken in talk(count)]
    asked = [" ".join(text.split()[:8]) for text in texts[:: len(texts) // setup.size(300, 100)]]
    async with Memory.open(Settings(home=folder, index="off")) as memory:
        settings = {"max": _MOST, "promotion_access": 1_000}
        await memory.publish(_event("agent.configured", _T0, tiers=settings))
        for batch in batches(_entries(texts), _APPENDED_AT_ONCE):
            await memory.publish_many(batch)
        setup.report("tiers: building the views")
        await memory.catch_up()
        measures = await _planned(setup, memory, count)
    setup.report("tiers: indexing")
    averaged = await asyncio.to_thread(AveragedEmbedder, OnnxEmbedder())
    async with indexing(folder, averaged) as index:
        await generations.current((await index.views()).builder, 0, None)
    return measures + await _asked(setup, folder, asked, f"{count:,} entries")


async def _planned(setup: Setup, memory: Memory, count: int) -> list[Measure]:
    """A plan that moves nothing, then one that demotes every entry outside of GLACIAL."""
    measures = []
    for name, now, goal in (
        ("that moves nothing", _T0, _PLAN),
        ("that moves 3 of 4, and is written and seen", _T0 + timedelta(days=2), None),
    ):
        setup.report(f"tiers: a plan {name}")
        with without_garbage_collection():
            began = time.perf_counter()
            made = await memory.tiers.consolidate(_SPACE, ASKER, now=now)
            seconds = time.perf_counter() - began
        if made.demoted != (0 if now == _T0 else count - count // 4) or made.archived:
            raise InvariantViolation(f"the plan {name} has moved {made.demoted:,} entries")
        measures.append(Measure(f"tiers: a plan over {count:,} entries {name}", seconds, "s", goal))
    return measures


async def _asked(setup: Setup, folder: Path, asked: Sequence[str], what: str) -> list[Measure]:
    measures: list[Measure] = []
    async with Memory.open(Settings(home=folder, index="embedded", index_idle_seconds=0)) as memory:
        for question in asked[: len(asked) // 10]:  # starts the service, loads its model and reads files
            await memory.tiers.retrieve(_SPACE, ASKER, question)
        await memory.catch_up_index()
        strategies: Sequence[Strategy] = ("weighted", "fast_first")
        for strategy in strategies:
            setup.report(f"tiers: {len(asked):,} questions, {strategy}")
            taken = []
            with without_garbage_collection():
                for question in asked:
                    began = time.perf_counter()
                    found = await memory.tiers.retrieve(_SPACE, ASKER, question, strategy=strategy)
                    taken.append(time.perf_counter() - began)
                    if found.relevance_by != "semantic":
                        raise InvariantViolation("the index did not answer")
            cuts = quantiles(taken, n=100)
            measures += [
                Measure(f"tiers: retrieve from {what}, {strategy}: p50", cuts[49] * 1e3, "ms"),
                Measure(f"tiers: retrieve from {what}, {strategy}: p95", cuts[94] * 1e3, "ms", _RETRIEVE),
            ]
    return measures


def _entries(texts: Sequence[str]) -> Iterator[Event]:
    rng = random.Random(9)
    for number, text in enumerate(texts):
        payload = {"text": text, "type": "note", "tier": _TIERS[number % 4], "importance": 0.8 + rng.random() / 5}
        yield _event("memory.retained", _T0, **payload)


def _event(kind: str, at: datetime, **payload: object) -> Event:
    return Event(space=_SPACE, agent=ASKER, kind=kind, at=at, payload=payload)
