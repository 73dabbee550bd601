"""The memory model of the workspace: documents, which are items, and the daily log."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recallog.model import Model
from recallog.models.workspace.operations import Workspace

if TYPE_CHECKING:
    from recallog.access import MemoryAccess
    from recallog.reactors.reactor import Reactor


def _reactors(access: "MemoryAccess") -> "Sequence[Reactor]":
    from recallog.models.workspace.daily import Daily

    return [Daily(access)]


MODEL = Model(name="workspace", after=("items", "conversations", "long_term"), operations=Workspace, reactors=_reactors)
