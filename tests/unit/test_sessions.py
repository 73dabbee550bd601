"""The sessions of a space."""

from recallog import Memory
from support.events import event, run

EVENTS = [
    event(id="a-1", session="monday"),
    event(id="b-1", session="tuesday"),
    event(id="a-2", session="monday"),
    event(id="n-1", session=None),
]


def test_the_session_with_the_newest_event_comes_first() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            positions = (await memory.publish_many(EVENTS)).items
            found = await memory.sessions("village")
            assert found.known
            assert [(each.name, each.events, each.first, each.last) for each in found] == [
                ("monday", 2, positions[0], positions[2]),
                ("tuesday", 1, positions[1], positions[1]),
            ]
            assert found.format() == "monday: 2 events, from 0:0 to 0:2\ntuesday: 1 event, from 0:1 to 0:1"

    run(work())


def test_an_unknown_space_has_no_sessions() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            found = await memory.sessions("village")
            assert (found.known, len(found), found.format()) == (False, 0, "(nothing)")

    run(work())
