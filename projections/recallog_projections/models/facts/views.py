"""The projections of facts."""

from recallog_projections.models.facts.due import Turns
from recallog_projections.models.facts.projection import GraphProjection

PROJECTIONS = (GraphProjection, Turns)
