"""Recall: finding candidates, ranking and reranking them.

Each module is imported when it is first used, as `retrieval.<module>`: only recall needs numpy.
"""

from recallog_schemas.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
