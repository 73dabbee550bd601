"""Recallog: event-sourced memory for AI agents.

An agent's memory is not a separate store. It is a set of views computed from one durable ledger.
"""

from typing import TYPE_CHECKING

from recallog import errors
from recallog_schemas import views
from recallog_schemas.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from recallog.admin import Admin as Admin
    from recallog.consensus import Consensus as Consensus
    from recallog.conversation import Conversation as Conversation
    from recallog.conversations.compaction import Compacted as Compacted
    from recallog.conversations.compaction import compact as compact
    from recallog.errors import *  # noqa: F403 - every error is public
    from recallog.items import Items as Items
    from recallog.long_term import LongTerm as LongTerm
    from recallog.memory import Memory as Memory
    from recallog.reading.time_travel import AsOf as AsOf
    from recallog.remote import Remote as Remote
    from recallog.retrieval.formatting import format_context as format_context
    from recallog.retrieval.fusing import fuse as fuse
    from recallog.settings import Settings as Settings
    from recallog.stream import Stream as Stream
    from recallog.tiers import Tiers as Tiers
    from recallog.version import __version__ as __version__
    from recallog.working import Working as Working
    from recallog.workspace import Workspace as Workspace
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
            "recallog.consensus": ["Consensus"],
            "recallog.conversation": ["Conversation"],
            "recallog.conversations.compaction": ["Compacted", "compact"],
            "recallog.errors": errors.__all__,
            "recallog.items": ["Items"],
            "recallog.long_term": ["LongTerm"],
            "recallog.memory": ["Memory"],
            "recallog.reading.time_travel": ["AsOf"],
            "recallog.remote": ["Remote"],
            "recallog.retrieval.formatting": ["format_context"],
            "recallog.retrieval.fusing": ["fuse"],
            "recallog.settings": ["Settings"],
            "recallog.stream": ["Stream"],
            "recallog.tiers": ["Tiers"],
            "recallog.version": ["__version__"],
            "recallog.working": ["Working"],
            "recallog.workspace": ["Workspace"],
            "recallog_schemas.event": ["Event", "Position"],
            "recallog_schemas.views": views.__all__,
            "recallog_streams.ledgers.ledger": ["Batch"],
            "recallog_streams.progress": ["Progress"],
        },
    )
