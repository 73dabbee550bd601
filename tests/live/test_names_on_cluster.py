"""Names that people have, on a real Kafka and a real Redis: keys, partitions, packed keys and Lua scripts."""

import asyncio

import pytest

from live.support import Cluster
from recallog import Memory
from support.events import event
from support.people import COLLIDING, OF_PEOPLE, otherwise

NAMES = [*dict.fromkeys((*OF_PEOPLE, *COLLIDING, "张" * 85))]


@pytest.mark.models("all")
def test_each_name_finds_what_was_published_under_it_and_nothing_else(cluster: Cluster) -> None:
    async def work() -> None:
        async with Memory.open(cluster.settings) as memory:
            said = [event(space=each, agent=each, payload={"text": f"I am {each}"}) for each in NAMES]
            await memory.publish_many(said)
            # Entries for a reader: their keys have names in them, and so has the work that is due in two spaces.
            for each in NAMES:
                await memory.long_term.retain(otherwise(each), each, "Rye rests.", audience=[otherwise(each), "miller"])
            await memory.catch_up()
            assert {each.space for each in (await memory.spaces()).items} == {*NAMES}
            for each in NAMES:
                found = await memory.episodic(otherwise(each), otherwise(each), window=100)
                assert [one.text for one in found.memories] == [f"I am {each}"]
                kept = await memory.long_term.list(each, otherwise(each))
                assert [(entry.owner, entry.text) for entry in kept.entries] == [(each, "Rye rests.")]
            assert (await memory.admin.verify("views")).ok

    asyncio.run(work())
