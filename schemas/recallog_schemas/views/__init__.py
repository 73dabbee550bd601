"""The views that consumers and operators read, one module per subject. Each names the checkpoint of its data."""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from recallog_schemas.models.consensus.views import ConsensusFound as ConsensusFound
    from recallog_schemas.models.consensus.views import ConsensusView as ConsensusView
    from recallog_schemas.models.consensus.views import DissentsView as DissentsView
    from recallog_schemas.models.consensus.views import DissentView as DissentView
    from recallog_schemas.models.consensus.views import SimilarConsensus as SimilarConsensus
    from recallog_schemas.models.conversations.views import CompactionView as CompactionView
    from recallog_schemas.models.conversations.views import ConversationView as ConversationView
    from recallog_schemas.models.conversations.views import MessagesAdded as MessagesAdded
    from recallog_schemas.models.conversations.views import MessagesRemoved as MessagesRemoved
    from recallog_schemas.models.items.views import ItemChange as ItemChange
    from recallog_schemas.models.items.views import ItemFound as ItemFound
    from recallog_schemas.models.items.views import ItemsPage as ItemsPage
    from recallog_schemas.models.items.views import ItemView as ItemView
    from recallog_schemas.models.long_term.views import AuditView as AuditView
    from recallog_schemas.models.long_term.views import Comparison as Comparison
    from recallog_schemas.models.long_term.views import Deduplicated as Deduplicated
    from recallog_schemas.models.long_term.views import EntriesChange as EntriesChange
    from recallog_schemas.models.long_term.views import EntriesPage as EntriesPage
    from recallog_schemas.models.long_term.views import EntryAudit as EntryAudit
    from recallog_schemas.models.long_term.views import EntryErasure as EntryErasure
    from recallog_schemas.models.long_term.views import EntryFound as EntryFound
    from recallog_schemas.models.long_term.views import EntryStats as EntryStats
    from recallog_schemas.models.long_term.views import EntryView as EntryView
    from recallog_schemas.models.long_term.views import ErasuresPage as ErasuresPage
    from recallog_schemas.models.long_term.views import ExtractedFacts as ExtractedFacts
    from recallog_schemas.models.long_term.views import Lesson as Lesson
    from recallog_schemas.models.long_term.views import LessonsView as LessonsView
    from recallog_schemas.models.long_term.views import NearDuplicate as NearDuplicate
    from recallog_schemas.models.long_term.views import NearestEntry as NearestEntry
    from recallog_schemas.models.long_term.views import Retained as Retained
    from recallog_schemas.models.long_term.views import Seeded as Seeded
    from recallog_schemas.models.long_term.views import Synthesis as Synthesis
    from recallog_schemas.models.stream.views import InsightsView as InsightsView
    from recallog_schemas.models.stream.views import StreamHit as StreamHit
    from recallog_schemas.models.stream.views import StreamMemory as StreamMemory
    from recallog_schemas.models.stream.views import StreamRecall as StreamRecall
    from recallog_schemas.models.stream.views import StreamSummary as StreamSummary
    from recallog_schemas.models.tiers.views import ArchivedEntry as ArchivedEntry
    from recallog_schemas.models.tiers.views import Consolidation as Consolidation
    from recallog_schemas.models.tiers.views import TierEntry as TierEntry
    from recallog_schemas.models.tiers.views import TierEntryFound as TierEntryFound
    from recallog_schemas.models.tiers.views import TierHit as TierHit
    from recallog_schemas.models.tiers.views import TierHits as TierHits
    from recallog_schemas.models.tiers.views import TierLoad as TierLoad
    from recallog_schemas.models.tiers.views import TierMove as TierMove
    from recallog_schemas.models.tiers.views import TierPressure as TierPressure
    from recallog_schemas.models.tiers.views import TierStats as TierStats
    from recallog_schemas.models.working.views import Block as Block
    from recallog_schemas.models.working.views import BlocksView as BlocksView
    from recallog_schemas.models.working.views import DocumentChange as DocumentChange
    from recallog_schemas.models.working.views import Drained as Drained
    from recallog_schemas.models.working.views import WorkingDocument as WorkingDocument
    from recallog_schemas.models.working.views import WorkingText as WorkingText
    from recallog_schemas.models.workspace.views import FileLeftOut as FileLeftOut
    from recallog_schemas.models.workspace.views import WorkspaceExport as WorkspaceExport
    from recallog_schemas.models.workspace.views import WorkspaceHit as WorkspaceHit
    from recallog_schemas.models.workspace.views import WorkspaceHits as WorkspaceHits
    from recallog_schemas.models.workspace.views import WorkspaceImport as WorkspaceImport
    from recallog_schemas.views.base import ComputedAt as ComputedAt
    from recallog_schemas.views.base import EventLine as EventLine
    from recallog_schemas.views.base import ListView as ListView
    from recallog_schemas.views.base import OfAgent as OfAgent
    from recallog_schemas.views.base import OfSpace as OfSpace
    from recallog_schemas.views.base import Remembered as Remembered
    from recallog_schemas.views.base import View as View
    from recallog_schemas.views.base import are_dated as are_dated
    from recallog_schemas.views.base import continued as continued
    from recallog_schemas.views.base import indented as indented
    from recallog_schemas.views.base import one_line as one_line
    from recallog_schemas.views.base import shown_date as shown_date
    from recallog_schemas.views.context import ContextView as ContextView
    from recallog_schemas.views.dead_letters import DeadLetter as DeadLetter
    from recallog_schemas.views.dead_letters import DeadLetterDetail as DeadLetterDetail
    from recallog_schemas.views.dead_letters import DeadLettersView as DeadLettersView
    from recallog_schemas.views.dead_letters import FirstOfId as FirstOfId
    from recallog_schemas.views.dead_letters import RetryReport as RetryReport
    from recallog_schemas.views.episodic import EpisodicView as EpisodicView
    from recallog_schemas.views.episodic import TimelinePage as TimelinePage
    from recallog_schemas.views.kinds import Catalogue as Catalogue
    from recallog_schemas.views.kinds import KindsView as KindsView
    from recallog_schemas.views.kinds import KindView as KindView
    from recallog_schemas.views.maintenance import AbortReport as AbortReport
    from recallog_schemas.views.maintenance import CopyReport as CopyReport
    from recallog_schemas.views.maintenance import LeftOut as LeftOut
    from recallog_schemas.views.maintenance import RebuildPlan as RebuildPlan
    from recallog_schemas.views.maintenance import RebuildPlans as RebuildPlans
    from recallog_schemas.views.maintenance import RebuildReport as RebuildReport
    from recallog_schemas.views.maintenance import RebuildReports as RebuildReports
    from recallog_schemas.views.previews import AroundView as AroundView
    from recallog_schemas.views.previews import EntriesView as EntriesView
    from recallog_schemas.views.previews import Preview as Preview
    from recallog_schemas.views.previews import SearchHit as SearchHit
    from recallog_schemas.views.previews import SearchPage as SearchPage
    from recallog_schemas.views.publishing import Published as Published
    from recallog_schemas.views.recall import Recalled as Recalled
    from recallog_schemas.views.recall import RecallHit as RecallHit
    from recallog_schemas.views.recall import RecallView as RecallView
    from recallog_schemas.views.reflection import Belief as Belief
    from recallog_schemas.views.reflection import BeliefsView as BeliefsView
    from recallog_schemas.views.reflection import Counted as Counted
    from recallog_schemas.views.reflection import PendingTrigger as PendingTrigger
    from recallog_schemas.views.reflection import PendingView as PendingView
    from recallog_schemas.views.reflection import Reaction as Reaction
    from recallog_schemas.views.reflection import ReactionsView as ReactionsView
    from recallog_schemas.views.reflection import ReflectionView as ReflectionView
    from recallog_schemas.views.reflection import Unreflected as Unreflected
    from recallog_schemas.views.salience import Explanation as Explanation
    from recallog_schemas.views.salience import Salient as Salient
    from recallog_schemas.views.salience import SalientView as SalientView
    from recallog_schemas.views.scene import SceneView as SceneView
    from recallog_schemas.views.settings import AgentSettingsView as AgentSettingsView
    from recallog_schemas.views.spaces import AgentsView as AgentsView
    from recallog_schemas.views.spaces import AgentView as AgentView
    from recallog_schemas.views.spaces import ResumeView as ResumeView
    from recallog_schemas.views.spaces import SessionsView as SessionsView
    from recallog_schemas.views.spaces import SpaceDetail as SpaceDetail
    from recallog_schemas.views.spaces import SpacesView as SpacesView
    from recallog_schemas.views.spaces import SpaceView as SpaceView
    from recallog_schemas.views.status import IndexStatus as IndexStatus
    from recallog_schemas.views.status import LedgerFault as LedgerFault
    from recallog_schemas.views.status import PartitionStatus as PartitionStatus
    from recallog_schemas.views.status import Status as Status
    from recallog_schemas.views.verification import Difference as Difference
    from recallog_schemas.views.verification import DigestCheck as DigestCheck
    from recallog_schemas.views.verification import FileFinding as FileFinding
    from recallog_schemas.views.verification import LedgerDigest as LedgerDigest
    from recallog_schemas.views.verification import LedgerDigests as LedgerDigests
    from recallog_schemas.views.verification import LedgerFinding as LedgerFinding
    from recallog_schemas.views.verification import NotCompared as NotCompared
    from recallog_schemas.views.verification import RepairReport as RepairReport
    from recallog_schemas.views.verification import RowAddress as RowAddress
    from recallog_schemas.views.verification import TableCheck as TableCheck
    from recallog_schemas.views.verification import VerifyReport as VerifyReport
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "recallog_schemas.views.base": [
                "ComputedAt",
                "EventLine",
                "ListView",
                "OfAgent",
                "OfSpace",
                "Remembered",
                "View",
                "are_dated",
                "continued",
                "indented",
                "one_line",
                "shown_date",
            ],
            "recallog_schemas.models.consensus.views": [
                "ConsensusFound",
                "ConsensusView",
                "DissentsView",
                "DissentView",
                "SimilarConsensus",
            ],
            "recallog_schemas.views.context": ["ContextView"],
            "recallog_schemas.models.conversations.views": [
                "CompactionView",
                "ConversationView",
                "MessagesAdded",
                "MessagesRemoved",
            ],
            "recallog_schemas.views.dead_letters": [
                "DeadLetter",
                "DeadLetterDetail",
                "DeadLettersView",
                "FirstOfId",
                "RetryReport",
            ],
            "recallog_schemas.views.episodic": ["EpisodicView", "TimelinePage"],
            "recallog_schemas.models.items.views": ["ItemChange", "ItemFound", "ItemsPage", "ItemView"],
            "recallog_schemas.views.kinds": ["Catalogue", "KindsView", "KindView"],
            "recallog_schemas.models.long_term.views": [
                "AuditView",
                "Comparison",
                "Deduplicated",
                "EntriesChange",
                "EntriesPage",
                "EntryAudit",
                "EntryErasure",
                "EntryFound",
                "EntryStats",
                "EntryView",
                "ErasuresPage",
                "ExtractedFacts",
                "Lesson",
                "LessonsView",
                "NearDuplicate",
                "NearestEntry",
                "Retained",
                "Seeded",
                "Synthesis",
            ],
            "recallog_schemas.views.maintenance": [
                "AbortReport",
                "CopyReport",
                "LeftOut",
                "RebuildPlan",
                "RebuildPlans",
                "RebuildReport",
                "RebuildReports",
            ],
            "recallog_schemas.views.previews": ["AroundView", "EntriesView", "Preview", "SearchHit", "SearchPage"],
            "recallog_schemas.views.publishing": ["Published"],
            "recallog_schemas.views.recall": ["Recalled", "RecallHit", "RecallView"],
            "recallog_schemas.views.reflection": [
                "Belief",
                "BeliefsView",
                "Counted",
                "PendingTrigger",
                "PendingView",
                "Reaction",
                "ReactionsView",
                "ReflectionView",
                "Unreflected",
            ],
            "recallog_schemas.views.salience": ["Explanation", "Salient", "SalientView"],
            "recallog_schemas.views.scene": ["SceneView"],
            "recallog_schemas.views.settings": ["AgentSettingsView"],
            "recallog_schemas.views.spaces": [
                "AgentsView",
                "AgentView",
                "ResumeView",
                "SessionsView",
                "SpaceDetail",
                "SpacesView",
                "SpaceView",
            ],
            "recallog_schemas.views.status": ["IndexStatus", "LedgerFault", "PartitionStatus", "Status"],
            "recallog_schemas.models.stream.views": [
                "InsightsView",
                "StreamHit",
                "StreamMemory",
                "StreamRecall",
                "StreamSummary",
            ],
            "recallog_schemas.models.tiers.views": [
                "ArchivedEntry",
                "Consolidation",
                "TierEntry",
                "TierEntryFound",
                "TierHit",
                "TierHits",
                "TierLoad",
                "TierMove",
                "TierPressure",
                "TierStats",
            ],
            "recallog_schemas.views.verification": [
                "Difference",
                "DigestCheck",
                "FileFinding",
                "LedgerDigest",
                "LedgerDigests",
                "LedgerFinding",
                "NotCompared",
                "RepairReport",
                "RowAddress",
                "TableCheck",
                "VerifyReport",
            ],
            "recallog_schemas.models.working.views": [
                "Block",
                "BlocksView",
                "DocumentChange",
                "Drained",
                "WorkingDocument",
                "WorkingText",
            ],
            "recallog_schemas.models.workspace.views": [
                "FileLeftOut",
                "WorkspaceExport",
                "WorkspaceHit",
                "WorkspaceHits",
                "WorkspaceImport",
            ],
        },
    )
