"""The projections of facts."""

from recallog_projections.models.facts.due import Turns
from recallog_projections.models.facts.projection import Graph
from recallog_projections.projection import Projection


def projections() -> list[Projection]:
    return [Graph(), Turns()]
