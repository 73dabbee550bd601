"""The doors of entries, items and working memory on Kafka and Redis answer as those of an embedded memory."""

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from live.support import Cluster
from recallog import Event, Memory, Settings
from recallog_schemas.errors import Conflict, RecallogError, Refused
from support.events import event

A = ("village", "baker")
RYE = "LESSON: Rye dough rests for one hour."


@pytest.mark.models("prompt")
def test_the_doors_answer_as_those_of_an_embedded_memory(cluster: Cluster, tmp_path: Path) -> None:
    # Counts of what is read would be written at some moment during the rebuild.
    shared = cluster.settings.model_copy(update={"count_accesses": False})
    folder = Settings(home=tmp_path / "embedded", count_accesses=False)

    async def work() -> None:
        async with Memory.open(shared) as on_cluster, Memory.open(folder) as embedded:
            told = [await tell(memory) for memory in (on_cluster, embedded)]
            assert told[0] == told[1]
            before = [await state(memory) for memory in (on_cluster, embedded)]
            assert before[0] == before[1]
            ends = await on_cluster.admin.ledger_ends()
            await on_cluster.admin.rebuild()
            await on_cluster.catch_up()
            assert await on_cluster.admin.ledger_ends() == ends
            assert await state(on_cluster) == before[0]
            assert (await on_cluster.admin.verify()).ok
            assert list(await on_cluster.admin.dead_letters()) == []

    asyncio.run(work())


async def refusal(call: Awaitable[Any]) -> tuple[type[RecallogError], str]:
    """The error with which a door refuses a change."""
    with pytest.raises(Refused) as caught:
        await call
    return type(caught.value), caught.value.reason


async def tell(memory: Memory) -> list[Any]:
    """Changes of all sorts, and what their doors answer."""
    entries, items, working = memory.long_term, memory.items, memory.working
    await memory.publish(event("memory.metered", payload={"units": 20}, id="grant"))
    kept = [
        await entries.retain(*A, RYE, type="lesson", entry_id="rye"),
        await entries.retain(*A, f" {RYE}\n", type="lesson"),
        *[await entries.retain(*A, f"Pin {n}.", priority="pinned", entry_id=f"pin-{n}") for n in range(5)],
        await entries.retain(*A, "Made from rye.", based_on=["rye"], entry_id="made"),
        await entries.retain(*A, "Likes rye.", subject="alice", entry_id="alice"),
    ]
    found: list[Any] = [(each.id, each.outcome, each.reason) for each in kept]
    found.append(await refusal(entries.retain(*A, "Pin 6.", priority="pinned")))
    await memory.publish_many(raw())
    found.append(await refusal(entries.update("village", "miller", "rye", text="Mine.")))
    changes = [
        await entries.update(*A, "rye", text="Rye dough rests for two hours."),
        await entries.transfer(*A, "miller", ["pin-4"]),
        await entries.retract(*A, "pin-3", reason="wrong"),
        await entries.forget(*A, ["rye"], reason="asked to"),
        await entries.forget(*A, ["rye"]),
        await entries.forget(*A, subject="alice"),
    ]
    found += [(each.changed, each.ids, dict(each.refused)) for each in changes]
    await items.put(*A, "notes", "miller", "owes nine sacks")
    await items.put(*A, "notes", "miller", {"sacks": 9}, base=1)
    found.append(await refusal(items.put(*A, "notes", "miller", "late", base=1)))
    assert found[-1] == (Conflict, "conflict")
    await items.append(*A, "notes", "diary", "Monday. ")
    await items.move(*A, "notes", "diary", "log")
    await working.set(*A, "Goals", "Close 3 deals\nLESSON: Ask first.")
    await working.set(*A, "notes", [RYE, "NOTE: Count the sacks."], session="s-1")
    found.append((await working.write_document(*A, '{"Goals": "LESSON: Ask first."}')).written)
    await memory.publish(event("session.ended", session="s-1", payload={}, id="end"))
    found.append([(each.kind, each.text) for each in await memory.react()])
    found.append((await working.drain(*A, "s-1", "notes")).values)
    return found


def raw() -> list[Event]:
    """Events as producers without a door write them; some come twice."""
    pinned = event("memory.retained", payload={"text": "Raw.", "priority": "pinned"}, id="raw")
    stolen = event("memory.erased", agent="miller", payload={"entries": ["rye"]}, id="stolen")
    return [pinned, pinned, stolen, stolen]


async def state(memory: Memory) -> list[Any]:
    """What the doors read at the end, in terms that are the same in every memory."""
    entries, working = memory.long_term, memory.working
    listed = [await entries.list(*A), await entries.list("village", "miller"), await entries.list(*A, order="priority")]
    stats = await entries.stats(*A)
    return [
        *[
            [(each.id, each.text, each.type, each.priority, each.version) for each in sorted_by_id(page.entries)]
            for page in listed
        ],
        (stats.balance, stats.spent, dict(stats.types), stats.pinned, stats.working_block_count),
        [(each.operation, each.id, each.reason) for each in (await entries.audit(*A)).changes],
        [(each.id, each.actor, each.reason) for each in (await entries.erasures(*A)).erasures],
        (await entries.get(*A, "rye")).entry,
        [(each.path, each.value, each.version) for each in (await memory.items.list(*A, newest_first=True)).items],
        (await working.render(*A)).text,
        [(each.label, each.content) for each in (await working.scratchpad(*A, "s-1")).blocks],
        [hit.event.id for hit in (await memory.recall(*A, "rye dough", channels=["keyword"])).hits],
        (await memory.context(*A, query="How many sacks?")).text,
    ]


def sorted_by_id(entries: Any) -> list[Any]:
    return sorted(entries, key=lambda entry: entry.id)
