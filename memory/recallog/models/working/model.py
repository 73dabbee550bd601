"""The memory model of working memory: blocks and scratchpads, which are items."""

from typing import TYPE_CHECKING

from recallog.model import Model
from recallog.models.working.operations import Working

if TYPE_CHECKING:
    from recallog.queries.difference import Inventory


def _inventory() -> "Inventory":
    from recallog.models.working.inventory import BlocksInventory

    return BlocksInventory()


MODEL = Model(name="working", after=("items", "long_term"), operations=Working, inventory=_inventory)
