"""The queries: one handler each, from a read session to a view.

Each module is imported when it is first used, as `queries.<module>`: a query for recent events does not import
the modules that score, recall or verify.
"""

from recallog_schemas.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
