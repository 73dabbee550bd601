"""The queries: one handler each, from a read session to a view.

Each module is imported when it is first used, as `queries.<module>`: a query for recent events does not import
the modules that score, recall or verify.
"""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from recallog.queries import activity as activity
    from recallog.queries import dead_letters as dead_letters
    from recallog.queries import difference as difference
    from recallog.queries import due as due
    from recallog.queries import event_lookup as event_lookup
    from recallog.queries import history as history
    from recallog.queries import lineage as lineage
    from recallog.queries import previews as previews
    from recallog.queries import rebuilds as rebuilds
    from recallog.queries import salient as salient
    from recallog.queries import scene as scene
    from recallog.queries import spaces as spaces
    from recallog.queries import status as status
    from recallog.queries import timeline as timeline
    from recallog.queries import verification as verification
else:
    __getattr__, __dir__ = lazy_exports(__name__)
