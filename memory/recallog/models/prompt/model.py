"""The memory model of prompts: what an agent is, knows and remembers, as text for a model."""

from typing import TYPE_CHECKING

from recallog.model import Model
from recallog.models.prompt.operations import Prompts

if TYPE_CHECKING:
    from recallog.queries.difference import Inventory


def _inventory() -> "Inventory":
    from recallog.models.prompt.inventory import PromptInventory

    return PromptInventory()


MODEL = Model(
    name="prompt",
    after=("beliefs", "conversations", "items", "long_term", "working"),
    operations=Prompts,
    inventory=_inventory,
)
