"""The memory models, one package each. CONTRIBUTING.md has the map."""

from typing import TYPE_CHECKING

# Only for type checkers: they cannot read the list of models.
if TYPE_CHECKING:
    from recallog.models.beliefs.operations import Beliefs, Reflections
    from recallog.models.consensus.operations import Consensus
    from recallog.models.conversations.operations import Conversation
    from recallog.models.facts.operations import LongTerm
    from recallog.models.items.operations import Items
    from recallog.models.prompt.operations import Prompts
    from recallog.models.stream.operations import Stream
    from recallog.models.tiers.operations import Tiers
    from recallog.models.working.operations import Working
    from recallog.models.workspace.operations import Workspace
    from recallog.operations.facade import Facade

    class Parts(Prompts, Reflections, Facade):
        """The facades of the built-in models, as attributes of a memory."""

        beliefs: Beliefs
        consensus: Consensus
        conversation: Conversation
        items: Items
        long_term: LongTerm
        stream: Stream
        tiers: Tiers
        working: Working
        workspace: Workspace
