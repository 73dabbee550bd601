"""The memory models, one package each. CONTRIBUTING.md has the map.

The names of what they bring are here for type checkers and for the packages that export them.
"""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from recallog.models.beliefs.operations import Beliefs
    from recallog.models.beliefs.reflector import Evidence as Evidence
    from recallog.models.beliefs.reflector import ReflectionAnswer as ReflectionAnswer
    from recallog.models.beliefs.reflector import ReflectionRequest as ReflectionRequest
    from recallog.models.beliefs.reflector import Reflector as Reflector
    from recallog.models.consensus.operations import Consensus as Consensus
    from recallog.models.conversations.compaction import Compacted as Compacted
    from recallog.models.conversations.compaction import compact as compact
    from recallog.models.conversations.operations import Conversation as Conversation
    from recallog.models.conversations.summarizer import Summarizer as Summarizer
    from recallog.models.facts.extractor import ExtractionRequest as ExtractionRequest
    from recallog.models.facts.extractor import Fact as Fact
    from recallog.models.facts.extractor import FactExtractor as FactExtractor
    from recallog.models.facts.extractor import Utterance as Utterance
    from recallog.models.facts.operations import LongTerm as LongTerm
    from recallog.models.facts.synthesizer import Synthesizer as Synthesizer
    from recallog.models.items.operations import Items as Items
    from recallog.models.prompt.operations import Prompts
    from recallog.models.stream.operations import Stream as Stream
    from recallog.models.tiers.operations import Tiers as Tiers
    from recallog.models.working.operations import Working as Working
    from recallog.models.workspace.operations import Workspace as Workspace
    from recallog.operations.operation import Facade

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
    __getattr__, __dir__ = lazy_exports(__name__)
