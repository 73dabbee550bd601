"""The difference of an agent's memory between two moments.

Each part of a memory has an inventory: the items that the agent knows at one moment, by ids that do not change. The
difference compares the inventories of two moments. The later inventory explains why items have left.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from recallog.queries import timeline
from recallog.reading.read_session import Snapshot
from recallog.reading.readings import AgentReading
from recallog.reading.subject import of_agent, snapshot_of
from recallog_schemas import Position
from recallog_schemas.errors import InvalidArgument
from recallog_schemas.views.difference import KnownChange, MemoryDifference


@dataclass(frozen=True, slots=True)
class KnownItem:
    """One thing that an agent knows at a moment."""

    text: str
    state: str = ""
    """Other properties to compare, in words: its tier, or the item that supersedes it."""
    shown_id: str = ""
    """The id that an answer shows, if the id by which it is compared must not be shown."""


class Inventory(Protocol):
    """The items that an agent knows at a moment, of one part of its memory."""

    section: str
    """The name of the part in a `MemoryDifference`."""

    def take(self, reading: AgentReading) -> Awaitable[Mapping[str, KnownItem]]:
        """All items at the moment that is read, by their ids."""

    def explain_left(self, reading: AgentReading, ids: Collection[str]) -> Awaitable[Mapping[str, str]]:
        """Why items of an earlier moment are no longer known at this moment, by their ids, if the reason is known."""


class WindowInventory:
    """The recent events of the agent."""

    section = "window"

    async def take(self, reading: AgentReading) -> Mapping[str, KnownItem]:
        window = await timeline.window(reading, None)
        return {each.event.id: KnownItem(each.text) for each in window.memories}

    async def explain_left(self, reading: AgentReading, ids: Collection[str]) -> Mapping[str, str]:
        return dict.fromkeys(ids, "older than the window")


@dataclass(frozen=True, slots=True)
class InventoriesTaken:
    """The inventories of one moment."""

    position: Position | None
    """The last position of that moment."""
    items: Mapping[str, Mapping[str, KnownItem]]
    """By section."""


def inventories_of(models: Iterable[Callable[[], Inventory]]) -> Sequence[Inventory]:
    """The inventories of a memory: of its recent events, and of its models."""
    return [WindowInventory(), *(make() for make in models)]


async def take(reading: AgentReading, inventories: Sequence[Inventory]) -> InventoriesTaken:
    """The inventories of the moment that is read."""

    async def read(session: AgentReading) -> InventoriesTaken:
        return await _take(session, await snapshot_of(session), inventories)

    return await reading.steady(read)


async def compare(
    reading: AgentReading, before: InventoriesTaken, inventories: Sequence[Inventory]
) -> MemoryDifference:
    """The difference between an earlier moment and the one that is read."""

    async def read(session: AgentReading) -> MemoryDifference:
        snapshot = await snapshot_of(session)
        if before.position is not None and before.position.offset > snapshot.processed:
            raise InvalidArgument("until is before since: exchange them", path="until")
        after = await _take(session, snapshot, inventories)
        changes: list[KnownChange] = []
        for inventory in inventories:
            old, new = before.items[inventory.section], after.items[inventory.section]
            left = old.keys() - new.keys()
            why = await inventory.explain_left(session, left) if left else {}
            changes += changes_of(inventory.section, old, new, why)
        items = sum(len(old.keys() | after.items[section].keys()) for section, old in before.items.items())
        return MemoryDifference(
            **await of_agent(session, snapshot),
            since_checkpoint=before.position,
            changes=tuple(changes),
            unchanged=items - len(changes),
        )

    return await reading.steady(read)


def changes_of(
    section: str, old: Mapping[str, KnownItem], new: Mapping[str, KnownItem], why: Mapping[str, str]
) -> Iterator[KnownChange]:
    """The changes of one section: items that left, in the former order, then items that entered or changed, in the
    present order."""
    for id_, item in old.items():
        if id_ not in new:
            yield KnownChange(
                section=section,
                id=item.shown_id or id_,
                change="left",
                before=item.text,
                after=None,
                state_before=item.state,
                why=why.get(id_),
            )
    for id_, item in new.items():
        former = old.get(id_)
        if former != item:
            yield KnownChange(
                section=section,
                id=item.shown_id or id_,
                change="entered" if former is None else "changed",
                before=None if former is None else former.text,
                after=item.text,
                state_before="" if former is None else former.state,
                state_after=item.state,
            )


async def _take(session: AgentReading, snapshot: Snapshot, inventories: Sequence[Inventory]) -> InventoriesTaken:
    items = {inventory.section: await inventory.take(session) for inventory in inventories}
    return InventoriesTaken(snapshot.computed_at["checkpoint"], items)
