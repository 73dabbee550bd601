"""The views that consumers and operators read, one module per subject. Each names the checkpoint of its data.

The views of a memory model are in its own package.
"""

from recallog_schemas.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
