"""Two writers that retain the same and different facts at once, on Kafka and Redis: one entry for each fact, no fact is
lost, each answer says what happened to which id, and a folder with the same events has the same rows."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from live.support import Cluster
from recallog import Event, Memory, Settings
from recallog_projections.models.long_term import tables
from recallog_schemas import codec
from recallog_schemas.models.long_term.views import Retained

pytestmark = pytest.mark.models("long_term")

A = ("office", "assistant")
SAME = [
    ("The backup {n} runs every 12 hours.", "backup {n} runs every twelve hours"),
    ("Invoice {n} was paid on 3 March 2026.", "invoice {n} was paid on March 3rd, 2026"),
]
DIFFERENT = [
    ("Deploy {n} succeeded in staging.", "Deploy {n} failed in staging."),
    ("Team {n}: Alice owes Bob 10 dollars.", "Team {n}: Bob owes Alice 10 dollars."),
    ("The user {n} likes sushi.", "The user {n} does not like sushi."),
    ("The server of room {n} is 10.0.0.4.", "The server of room {n} is 10.0.0.5."),
]
ROUNDS = 6


def pairs_of(templates: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(one.format(n=n), other.format(n=n)) for n in range(1, ROUNDS + 1) for one, other in templates]


async def retained_at_once(writers: list[Memory], texts: tuple[str, str]) -> list[Retained]:
    return list(
        await asyncio.gather(*(memory.long_term.retain(*A, text) for memory, text in zip(writers, texts, strict=True)))
    )


async def rows_of(memory: Memory, events: list[Event]) -> dict[str, Any]:
    """By id: the verdict on each event, and how its entry is shown, without places in a ledger."""
    shown = {entry.id: entry async for entry in _listed(memory)}
    found: dict[str, Any] = {}
    for each in events:
        ref = await memory.row(tables.IDS, A[0], "", each.id)
        assert ref is not None
        entry = shown.get(each.id)
        form = None if entry is None else entry.model_dump(exclude={"position"})
        found[each.id] = (ref.owner, ref.status, ref.reason, ref.of, ref.supersedes, form)
    return found


async def _listed(memory: Memory) -> Any:
    cursor = None
    while True:
        page = await memory.long_term.list(*A, cursor=cursor)
        for entry in page.entries:
            yield entry
        if (cursor := page.next) is None:
            return


def test_two_writers_at_once_keep_each_fact_once_and_a_folder_has_the_same_rows(
    cluster: Cluster, tmp_path: Path
) -> None:
    async def work() -> None:
        shared = cluster.settings.model_copy(update={"count_accesses": False})
        async with Memory.open(shared) as one, Memory.open(shared) as other:
            for texts in pairs_of(SAME):
                first, second = await retained_at_once([one, other], texts)
                stored, skipped = (first, second) if first.outcome == "stored" else (second, first)
                assert (stored.outcome, skipped.outcome, skipped.reason) == ("stored", "skipped", "equal")
                assert skipped.id == stored.id
            superseded: list[str] = []
            for texts in pairs_of(DIFFERENT):
                answers = await retained_at_once([one, other], texts)
                assert {each.outcome for each in answers} == {"stored"}
                past = [id_ for each in answers for id_ in each.supersedes]
                assert set(past) <= {each.id for each in answers}
                superseded += past
            assert superseded  # of two values of the same, the later one supersedes
            events = [
                event
                async for batch in one.admin.records()
                for _, data in batch.records
                if (event := codec.decode(data)).kind == "memory.retained"
            ]
            on_cluster = await rows_of(one, events)
            assert (await one.admin.verify()).ok
        async with Memory.open(Settings(home=tmp_path / "folder", count_accesses=False)) as folder:
            await folder.publish_many(events)
            assert await rows_of(folder, events) == on_cluster

    asyncio.run(work())
