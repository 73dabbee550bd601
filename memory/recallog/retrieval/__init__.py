"""Recall: finding candidates, ranking and reranking them.

Each module is imported when it is first used, as `retrieval.<module>`: only recall needs numpy.
"""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from recallog.retrieval import attempts as attempts
    from recallog.retrieval import by_index as by_index
    from recallog.retrieval import preset_weights as preset_weights
    from recallog.retrieval import query as query
    from recallog.retrieval import recall as recall
    from recallog.retrieval import reranker as reranker
    from recallog.retrieval import sources as sources
else:
    __getattr__, __dir__ = lazy_exports(__name__)
