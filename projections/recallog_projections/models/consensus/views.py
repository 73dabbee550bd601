"""The projections of consensus."""

from recallog_projections.models.consensus.projection import ConsensusProjection

PROJECTIONS = (ConsensusProjection,)
