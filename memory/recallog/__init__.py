"""Recallog: event-sourced memory for AI agents.

An agent's memory is not a separate store. It is a set of views computed from one durable ledger.
"""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from recallog.admin import Admin as Admin
    from recallog.errors import *
    from recallog.memory import Memory as Memory
    from recallog.model import MODELS as MODELS
    from recallog.model import Model as Model
    from recallog.models import *
    from recallog.reading.time_travel import AsOf as AsOf
    from recallog.remote import Remote as Remote
    from recallog.retrieval.formatting import format_context as format_context
    from recallog.retrieval.fusing import fuse as fuse
    from recallog.settings import Settings as Settings
    from recallog.version import __version__ as __version__
    from recallog.wrapping import wrap as wrap
    from recallog_schemas.event import Event as Event
    from recallog_schemas.event import Position as Position
    from recallog_schemas.views import *
    from recallog_streams.ledgers.ledger import Batch as Batch
    from recallog_streams.progress import Progress as Progress
else:
    __getattr__, __dir__ = lazy_exports(__name__)
