"""Conversations: messages of sessions with models, compacted when they grow long."""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from recallog.models.conversations import askers as askers
    from recallog.models.conversations import commands as commands
    from recallog.models.conversations import queries as queries
    from recallog_projections.models.conversations.tables import ConversationKey as ConversationKey
else:
    __getattr__, __dir__ = lazy_exports(__name__)
