"""The queries: one handler each, from a read session to a view.

Each module is imported when it is first used, as `queries.<module>`: a query for recent events does not import
the modules that score, recall or verify.
"""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from recallog.queries import consensus as consensus
    from recallog.queries import context as context
    from recallog.queries import conversation as conversation
    from recallog.queries import dead_letters as dead_letters
    from recallog.queries import due as due
    from recallog.queries import event_lookup as event_lookup
    from recallog.queries import explain as explain
    from recallog.queries import items as items
    from recallog.queries import long_term as long_term
    from recallog.queries import previews as previews
    from recallog.queries import rebuilds as rebuilds
    from recallog.queries import reflections as reflections
    from recallog.queries import salient as salient
    from recallog.queries import spaces as spaces
    from recallog.queries import status as status
    from recallog.queries import stream as stream
    from recallog.queries import tiers as tiers
    from recallog.queries import timeline as timeline
    from recallog.queries import verification as verification
    from recallog.queries import working as working
    from recallog.queries import workspace as workspace
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {},
        submodules=[
            "consensus",
            "context",
            "conversation",
            "dead_letters",
            "due",
            "event_lookup",
            "explain",
            "items",
            "long_term",
            "previews",
            "rebuilds",
            "reflections",
            "salient",
            "spaces",
            "status",
            "stream",
            "tiers",
            "timeline",
            "verification",
            "working",
            "workspace",
        ],
    )
