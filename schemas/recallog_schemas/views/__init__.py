"""The views that consumers and operators read, one module per subject. Each names the checkpoint of its data.

Those of a memory model are in its own package.
"""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from recallog_schemas.models import *
    from recallog_schemas.views.activity import *
    from recallog_schemas.views.base import ComputedAt as ComputedAt
    from recallog_schemas.views.base import EventLine as EventLine
    from recallog_schemas.views.base import ListView as ListView
    from recallog_schemas.views.base import OfAgent as OfAgent
    from recallog_schemas.views.base import OfSpace as OfSpace
    from recallog_schemas.views.base import Remembered as Remembered
    from recallog_schemas.views.base import Standing as Standing
    from recallog_schemas.views.base import View as View
    from recallog_schemas.views.base import are_dated as are_dated
    from recallog_schemas.views.base import continued as continued
    from recallog_schemas.views.base import counted as counted
    from recallog_schemas.views.base import indented as indented
    from recallog_schemas.views.base import one_line as one_line
    from recallog_schemas.views.base import shown_date as shown_date
    from recallog_schemas.views.dead_letters import *
    from recallog_schemas.views.difference import *
    from recallog_schemas.views.episodic import *
    from recallog_schemas.views.erasures import *
    from recallog_schemas.views.kinds import *
    from recallog_schemas.views.lineage import *
    from recallog_schemas.views.maintenance import *
    from recallog_schemas.views.previews import *
    from recallog_schemas.views.publishing import *
    from recallog_schemas.views.reactions import *
    from recallog_schemas.views.recall import *
    from recallog_schemas.views.salience import *
    from recallog_schemas.views.scanning import *
    from recallog_schemas.views.scene import *
    from recallog_schemas.views.settings import *
    from recallog_schemas.views.spaces import *
    from recallog_schemas.views.status import *
    from recallog_schemas.views.verification import *
else:
    __getattr__, __dir__ = lazy_exports(__name__)
