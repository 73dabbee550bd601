"""The projections of streams."""

from recallog_projections.models.stream.insights import Insights
from recallog_projections.projection import Projection


def projections() -> list[Projection]:
    return [Insights()]
