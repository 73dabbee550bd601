"""All errors of Recallog, which `recallog` exports too; `recallog_schemas.errors` shows them as a tree."""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from recallog_schemas.errors import *
else:
    __getattr__, __dir__ = lazy_exports(__name__)
