"""The memory model of tiers: how fast entries age, and the plans that move and archive them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recallog.model import Model
from recallog.models.tiers.operations import Tiers

if TYPE_CHECKING:
    from recallog.access import MemoryAccess
    from recallog.reactors.reactor import Reactor


def _reactors(access: "MemoryAccess") -> "Sequence[Reactor]":
    from recallog.models.tiers.reactor import ConsolidationReactor, SummaryReactor

    return [SummaryReactor(access), ConsolidationReactor(access)]


MODEL = Model(name="tiers", after=("long_term",), operations=Tiers, reactors=_reactors)
