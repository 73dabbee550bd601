"""Items: values under a namespace and a key, which change as events do."""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from recallog.models.items import commands as commands
    from recallog.models.items import queries as queries
else:
    __getattr__, __dir__ = lazy_exports(__name__)
