"""The memory model of beliefs: reflections fall due, and are answered with beliefs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recallog.model import Model
from recallog.models.beliefs.operations import Reflections

if TYPE_CHECKING:
    from recallog.access import MemoryAccess
    from recallog.queries.difference import Inventory
    from recallog.reactors.reactor import Reactor


def _reactors(access: "MemoryAccess") -> "Sequence[Reactor]":
    from recallog.models.beliefs.askers import REFLECTOR
    from recallog.models.beliefs.reactor import ReflectionReactor
    from recallog.reactors.misconfigured import unless_misconfigured

    return [unless_misconfigured(ReflectionReactor.kinds, lambda: ReflectionReactor(access, access.asker(REFLECTOR)))]


def _inventory() -> "Inventory":
    from recallog.models.beliefs.inventory import BeliefsInventory

    return BeliefsInventory()


MODEL = Model(name="beliefs", operations=Reflections, reactors=_reactors, inventory=_inventory)
