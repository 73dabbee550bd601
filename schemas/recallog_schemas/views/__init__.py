"""The views that consumers and operators read, one module per subject. Each names the checkpoint of its data."""

from recallog_schemas.views.base import ComputedAt, Remembered, View, lines, one_line
from recallog_schemas.views.dead_letters import DeadLetter, DeadLetterDetail
from recallog_schemas.views.episodic import EpisodicView, TimelinePage
from recallog_schemas.views.kinds import Catalogue, KindsView, KindView
from recallog_schemas.views.maintenance import CopyReport, RebuildPlan, RebuildReport
from recallog_schemas.views.previews import AroundView, EntriesView, Preview, SearchHit, SearchPage
from recallog_schemas.views.recall import Recalled, RecallHit, RecallView
from recallog_schemas.views.reflection import (
    Belief,
    BeliefsView,
    Counted,
    PendingTrigger,
    Reaction,
    ReflectionView,
    Unreflected,
)
from recallog_schemas.views.salience import Explanation, Salient, SalientView
from recallog_schemas.views.scene import SceneView
from recallog_schemas.views.settings import AgentSettingsView
from recallog_schemas.views.spaces import AgentView, SpaceDetail, SpaceView
from recallog_schemas.views.status import PartitionStatus, Status
from recallog_schemas.views.verification import Difference, TableCheck, VerifyReport

__all__ = [
    "AgentSettingsView",
    "AgentView",
    "AroundView",
    "Belief",
    "BeliefsView",
    "Catalogue",
    "ComputedAt",
    "CopyReport",
    "Counted",
    "DeadLetter",
    "DeadLetterDetail",
    "Difference",
    "EntriesView",
    "EpisodicView",
    "Explanation",
    "KindView",
    "KindsView",
    "PartitionStatus",
    "PendingTrigger",
    "Preview",
    "Reaction",
    "RebuildPlan",
    "RebuildReport",
    "RecallHit",
    "RecallView",
    "Recalled",
    "ReflectionView",
    "Remembered",
    "Salient",
    "SalientView",
    "SceneView",
    "SearchHit",
    "SearchPage",
    "SpaceDetail",
    "SpaceView",
    "Status",
    "TableCheck",
    "TimelinePage",
    "Unreflected",
    "VerifyReport",
    "View",
    "lines",
    "one_line",
]
