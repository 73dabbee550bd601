"""A run: the campaign, the wait for the views, the checker, and `recallog verify`."""

import asyncio
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deploy.local import LocalKafka, LocalRedis

from chaos import evidence, history
from chaos.campaign import Campaign
from chaos.check import Facts, check
from chaos.conductor import TOPIC, Conductor
from chaos.evidence import Dump, Evidence
from chaos.outcome import copy_findings, latency_findings, list_findings, open_memory
from chaos.processes import Failed, Model, json_of
from chaos.rebalances import rebalances
from chaos.report import Report, Show
from recallog import Memory
from recallog_projections.stores.redis import RedisStore
from recallog_schemas.errors import RecallogError
from recallog_schemas.models.beliefs.triggers import REFLECTION

CATCH_UP_SECONDS_MAX = 180.0
_GROUPS = "recallog."
"""The prefix of the names of the workers' consumer groups."""
_FINDING_CHARS_MAX = 400
_SHOWN_MAX = 5


def run(
    campaign: Campaign, folder: Path, kafka: LocalKafka, redis: LocalRedis, show: Show, shim: Path | None = None
) -> Report:
    """Execute the campaign on `kafka` and `redis`, both new and running, and check the result.

    Clocks jump if there is a `shim` (see `clocks`).
    """
    model = Model(folder / "model")
    try:
        model.start()
        return _run(campaign, folder, kafka, redis, model, show, shim)
    finally:
        model.kill()


def _run(
    campaign: Campaign,
    folder: Path,
    kafka: LocalKafka,
    redis: LocalRedis,
    model: Model,
    show: Show,
    shim: Path | None,
) -> Report:
    seconds: dict[str, float] = {}
    findings: list[str] = []
    facts: Facts | None = None
    digests: list[str] = []

    @contextmanager
    def timed(phase: str) -> Iterator[None]:
        show.print_line(f"{phase} …")
        began = time.monotonic()
        try:
            yield
        finally:
            seconds[phase] = time.monotonic() - began

    with Conductor(campaign, folder, kafka, redis, model, show.update, shim) as conductor:
        try:
            with timed("chaos"):
                conductor.run()
            with timed("waiting for the views and for answers"):
                asyncio.run(_caught_up(conductor))
            with timed("checking topic and views"):
                found = _evidence(campaign, folder, kafka, redis)
                facts, wrong = check(found, {space: campaign.events_of(space) for space in campaign.space_names})
                findings += wrong
            with timed("checking the copy"):
                findings += copy_findings(conductor, found.topic)
            with timed("checking lists and promises"):
                findings += asyncio.run(list_findings(conductor, found.topic))
            with timed("recallog verify"):
                digests.append(_verify(folder, conductor.settings, "verify", findings))
            if campaign.thorough:
                with timed("recallog rebuild"):
                    json_of(folder, conductor.settings, "last-rebuild", "rebuild", "--json")
                with timed("recallog verify again"):
                    digests.append(_verify(folder, conductor.settings, "verify-again", findings))
            if len(set(digests)) > 1:
                findings.append(f"a rebuild changed the views: their digest was {digests[0]} and is {digests[1]}")
        except Failed as error:
            findings.append(str(error))
        return Report(
            campaign,
            conductor.counts,
            conductor.monitor.samples,
            conductor.rebuilds,
            conductor.copies,
            conductor.tail.latencies(conductor.faults),
            rebalances(kafka.bootstrap, _GROUPS),
            facts,
            digests,
            conductor.counts.findings + findings + latency_findings(conductor),
            seconds,
            folder,
        )


async def _caught_up(conductor: Conductor) -> None:
    """Wait until every trigger is answered, the views have processed all partitions, and every worker is healthy."""
    deadline = time.monotonic() + CATCH_UP_SECONDS_MAX
    behind: object = "unknown"
    async with open_memory(conductor) as memory:
        while time.monotonic() < deadline:
            try:
                status, unanswered = await memory.admin.status(), await _unanswered(memory)
            except RecallogError as error:  # also while a worker that was killed builds its views again
                behind = error
            else:
                lags = {row.partition: row.lag for row in status.partitions if row.lag or row.generation is None}
                problems = {name: _problems(worker.health()) for name, worker in conductor.workers.items()}
                if not lags and not unanswered and not any(problems.values()):
                    return
                behind = {"lag by partition": lags, "unanswered": unanswered[:_SHOWN_MAX], **problems}
            await asyncio.to_thread(conductor.tick)
    raise Failed(f"after {CATCH_UP_SECONDS_MAX:g} s without chaos the views are behind or triggers open: {behind}")


async def _unanswered(memory: Memory) -> list[str]:
    """The ids of the triggers that are due, except reflections on nothing but reflections, which agents leave."""
    found = []
    for trigger in await memory.pending():
        if trigger.kind == REFLECTION:
            due = await memory.reflection(trigger.space, trigger.agent)
            if not due.due or all(shown.event.kind == "agent.reflected" for shown in due.on):
                continue
        found.append(trigger.trigger)
    return found


def _problems(health: Mapping[str, Any] | None) -> object:
    return "no answer" if health is None else health["problems"]


def _evidence(campaign: Campaign, folder: Path, kafka: LocalKafka, redis: LocalRedis) -> Evidence:
    return Evidence(
        evidence.read_history(history.path_of(folder, name) for name in campaign.producer_names),
        evidence.read_topic(kafka.bootstrap, TOPIC, campaign.partitions),
        asyncio.run(_dumps(redis.url, campaign.partitions)),
    )


async def _dumps(url: str, partitions: int) -> dict[int, Dump]:
    store = RedisStore(url)
    try:
        dumps = {}
        for partition in range(partitions):
            active = (await store.pointer(partition)).active
            if active is None:
                raise Failed(f"partition {partition} has no views")
            dumps[partition] = await evidence.dump(store, active)
        return dumps
    finally:
        await store.close()


def _verify(folder: Path, settings: Mapping[str, str], name: str, findings: list[str]) -> str:
    """The digest of all views. Adds a finding for each table that the command reports as different."""
    report = json_of(folder, settings, name, "verify", "--json", codes=(0, 1))
    findings += [
        f"recallog verify: {found}"[:_FINDING_CHARS_MAX] for found in (*report["ledger"], *report["not_compared"])
    ]
    findings += [
        f"recallog verify: {table['table']} at {table['checkpoint']}: {table['difference']}"[:_FINDING_CHARS_MAX]
        for table in report["tables"]
        if table["difference"] is not None
    ]
    return str(report["digest"])


def new_seed() -> int:
    return int.from_bytes(os.urandom(4), "big")
