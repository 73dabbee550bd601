"""The projections of items."""

from recallog_projections.models.items.projection import Items
from recallog_projections.projection import Projection


def projections() -> list[Projection]:
    return [Items()]
