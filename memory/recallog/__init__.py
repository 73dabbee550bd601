"""Recallog: event-sourced memory for AI agents.

An agent's memory is not a separate store. It is a set of views computed from one durable ledger.
"""

from typing import TYPE_CHECKING

from recallog import errors
from recallog_schemas import views
from recallog_schemas.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from recallog.admin import Admin as Admin
    from recallog.errors import *  # noqa: F403 - every error is public
    from recallog.memory import Memory as Memory
    from recallog.models.consensus.operations import Consensus as Consensus
    from recallog.models.conversations.compaction import Compacted as Compacted
    from recallog.models.conversations.compaction import compact as compact
    from recallog.models.conversations.operations import Conversation as Conversation
    from recallog.models.items.operations import Items as Items
    from recallog.models.long_term.operations import LongTerm as LongTerm
    from recallog.models.stream.operations import Stream as Stream
    from recallog.models.tiers.operations import Tiers as Tiers
    from recallog.models.working.operations import Working as Working
    from recallog.models.workspace.operations import Workspace as Workspace
    from recallog.reading.time_travel import AsOf as AsOf
    from recallog.remote import Remote as Remote
    from recallog.retrieval.formatting import format_context as format_context
    from recallog.retrieval.fusing import fuse as fuse
    from recallog.settings import Settings as Settings
    from recallog.version import __version__ as __version__
    from recallog_schemas.event import Event as Event
    from recallog_schemas.event import Position as Position
    from recallog_schemas.views import *  # noqa: F403 - every view is public
    from recallog_streams.ledgers.ledger import Batch as Batch
    from recallog_streams.progress import Progress as Progress
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "recallog.admin": ["Admin"],
            "recallog.models.consensus.operations": ["Consensus"],
            "recallog.models.conversations.operations": ["Conversation"],
            "recallog.models.conversations.compaction": ["Compacted", "compact"],
            "recallog.errors": errors.__all__,
            "recallog.models.items.operations": ["Items"],
            "recallog.models.long_term.operations": ["LongTerm"],
            "recallog.memory": ["Memory"],
            "recallog.reading.time_travel": ["AsOf"],
            "recallog.remote": ["Remote"],
            "recallog.retrieval.formatting": ["format_context"],
            "recallog.retrieval.fusing": ["fuse"],
            "recallog.settings": ["Settings"],
            "recallog.models.stream.operations": ["Stream"],
            "recallog.models.tiers.operations": ["Tiers"],
            "recallog.version": ["__version__"],
            "recallog.models.working.operations": ["Working"],
            "recallog.models.workspace.operations": ["Workspace"],
            "recallog_schemas.event": ["Event", "Position"],
            "recallog_schemas.views": views.__all__,
            "recallog_streams.ledgers.ledger": ["Batch"],
            "recallog_streams.progress": ["Progress"],
        },
    )
