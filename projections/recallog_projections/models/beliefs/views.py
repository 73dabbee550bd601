"""The projections of beliefs."""

from recallog_projections.models.beliefs.beliefs import Beliefs
from recallog_projections.models.beliefs.reflection import Reflection

PROJECTIONS = (Reflection, Beliefs)
