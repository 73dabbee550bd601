"""The projections of consensus."""

from recallog_projections.models.consensus.projection import ConsensusProjection
from recallog_projections.projection import Projection


def projections() -> list[Projection]:
    return [ConsensusProjection()]
