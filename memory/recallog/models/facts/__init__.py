"""Facts: entries drawn from what agents said, and the entities that link entries."""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from recallog.models.facts import askers as askers
    from recallog.models.facts import commands as commands
    from recallog.models.facts import graph as graph
else:
    __getattr__, __dir__ = lazy_exports(__name__)
