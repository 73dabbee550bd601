"""The projections of beliefs."""

from recallog_projections.models.beliefs.beliefs import Beliefs
from recallog_projections.models.beliefs.reflection import Reflection
from recallog_projections.projection import Projection


def projections() -> list[Projection]:
    return [Reflection(), Beliefs()]
