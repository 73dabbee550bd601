"""The vocabulary of Recallog: events, kinds of events, the codec, the shapes of views, errors and limits."""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from recallog_schemas.event import Event as Event
    from recallog_schemas.event import Position as Position
    from recallog_schemas.event import Record as Record
else:
    __getattr__, __dir__ = lazy_exports(__name__)
