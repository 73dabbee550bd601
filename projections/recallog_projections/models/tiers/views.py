"""The projections of tiers."""

from recallog_projections.models.tiers.due import Summaries
from recallog_projections.models.tiers.projection import Tiers

PROJECTIONS = (Tiers, Summaries)
