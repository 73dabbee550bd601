"""The projections of conversations."""

from recallog_projections.models.conversations.projection import Conversations

PROJECTIONS = (Conversations,)
