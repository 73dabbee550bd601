"""The memory model of long-term memory: the entries that agents keep on purpose."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recallog.model import Model
from recallog.models.long_term.accesses import AccessCounter
from recallog.models.long_term.operations import Entries

if TYPE_CHECKING:
    from recallog.access import MemoryAccess
    from recallog.queries.difference import Inventory
    from recallog.reactors.reactor import Reactor
    from recallog.reading.read_session import ReadSession
    from recallog_schemas import Event


def _reactors(access: "MemoryAccess") -> "Sequence[Reactor]":
    from recallog.models.long_term.deduplication import Deduplication
    from recallog.models.long_term.migration import Migration
    from recallog.models.long_term.retraction import Retraction

    return [Migration(access), Retraction(), Deduplication(access)]


async def _erase(past: "ReadSession", present: "ReadSession", space: str) -> "Sequence[Event]":
    from recallog.models.long_term import erasures  # few queries read the past, and every command imports this module

    return await erasures.events(past, present, space)


def _inventory() -> "Inventory":
    from recallog.models.long_term.inventory import EntriesInventory

    return EntriesInventory()


MODEL = Model(
    name="long_term",
    after=("items",),
    operations=Entries,
    reactors=_reactors,
    erase=_erase,
    observer=AccessCounter,
    inventory=_inventory,
)
