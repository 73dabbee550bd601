"""Facts: entries drawn from what agents said, and the entities that link entries."""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_submodules

if TYPE_CHECKING:
    from recallog.models.facts import commands as commands
else:
    __getattr__ = lazy_submodules(__name__)
