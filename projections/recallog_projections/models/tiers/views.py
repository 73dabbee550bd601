"""The projections of tiers."""

from recallog_projections.models.tiers.due import SummariesDue
from recallog_projections.models.tiers.projection import TiersProjection

PROJECTIONS = (TiersProjection, SummariesDue)
