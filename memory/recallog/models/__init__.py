"""The memory models, one package each. CONTRIBUTING.md has the map.

The names that `recallog` exports of them are here, and the names of `recallog.extending` are in `extending`: for type
checkers, which cannot read the list of models, and for programs, which get the names of the listed models.
"""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports
from recallog_schemas.models import BUILT_IN

if TYPE_CHECKING:
    from recallog.models.beliefs.operations import Beliefs
    from recallog.models.consensus.operations import Consensus as Consensus
    from recallog.models.conversations.compaction import Compacted as Compacted
    from recallog.models.conversations.compaction import compact as compact
    from recallog.models.conversations.operations import Conversation as Conversation
    from recallog.models.facts.operations import LongTerm as LongTerm
    from recallog.models.items.operations import Items as Items
    from recallog.models.prompt.operations import Prompts
    from recallog.models.stream.operations import Stream as Stream
    from recallog.models.tiers.operations import Tiers as Tiers
    from recallog.models.working.operations import Working as Working
    from recallog.models.workspace.operations import Workspace as Workspace
    from recallog.operations.facade import Facade

    class Parts(Prompts, Beliefs, Facade):
        """The facades of the built-in models, as attributes of a memory."""

        consensus: Consensus
        conversation: Conversation
        items: Items
        long_term: LongTerm
        stream: Stream
        tiers: Tiers
        working: Working
        workspace: Workspace

else:
    __getattr__, __dir__ = lazy_exports(__name__, [f"{__name__}.{each}" for each in BUILT_IN])
