"""The projections of conversations."""

from recallog_projections.models.conversations.projection import Conversations
from recallog_projections.projection import Projection


def projections() -> list[Projection]:
    return [Conversations()]
