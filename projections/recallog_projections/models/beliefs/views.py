"""The projections of beliefs."""

from recallog_projections.models.beliefs.beliefs import BeliefsProjection
from recallog_projections.models.beliefs.reflection import Reflection

PROJECTIONS = (Reflection, BeliefsProjection)
