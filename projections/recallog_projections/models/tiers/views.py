"""The projections of tiers."""

from recallog_projections.models.tiers.due import Summaries
from recallog_projections.models.tiers.projection import Tiers
from recallog_projections.projection import Projection


def projections() -> list[Projection]:
    return [*of_index(), Summaries()]


def of_index() -> list[Projection]:
    """Those that the index folds too."""
    return [Tiers()]
