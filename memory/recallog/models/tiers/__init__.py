"""Tiers: how fast entries age, and the plans that move and archive them."""

from recallog_schemas.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
