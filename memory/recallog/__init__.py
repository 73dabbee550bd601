"""Recallog: event-sourced memory for AI agents.

An agent's memory is not a separate store. It is a set of views computed from one durable ledger.
"""

from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from recallog.memory import Memory as Memory
    from recallog.queries.context import Context as Context
    from recallog.reading.time_travel import AsOf as AsOf
    from recallog.settings import Settings as Settings
    from recallog_schemas.errors import RecallogError as RecallogError
    from recallog_schemas.event import Event as Event
    from recallog_schemas.event import Position as Position
    from recallog_schemas.views.base import Remembered as Remembered
    from recallog_schemas.views.dead_letters import DeadLetter as DeadLetter
    from recallog_schemas.views.dead_letters import DeadLetterDetail as DeadLetterDetail
    from recallog_schemas.views.episodic import EpisodicView as EpisodicView
    from recallog_schemas.views.episodic import TimelinePage as TimelinePage
    from recallog_schemas.views.kinds import KindsView as KindsView
    from recallog_schemas.views.kinds import KindView as KindView
    from recallog_schemas.views.maintenance import RebuildPlan as RebuildPlan
    from recallog_schemas.views.maintenance import RebuildReport as RebuildReport
    from recallog_schemas.views.previews import AroundView as AroundView
    from recallog_schemas.views.previews import EntriesView as EntriesView
    from recallog_schemas.views.previews import Preview as Preview
    from recallog_schemas.views.previews import SearchHit as SearchHit
    from recallog_schemas.views.previews import SearchPage as SearchPage
    from recallog_schemas.views.recall import RecallHit as RecallHit
    from recallog_schemas.views.recall import RecallView as RecallView
    from recallog_schemas.views.reflection import Belief as Belief
    from recallog_schemas.views.reflection import BeliefsView as BeliefsView
    from recallog_schemas.views.reflection import Counted as Counted
    from recallog_schemas.views.reflection import PendingTrigger as PendingTrigger
    from recallog_schemas.views.reflection import Reaction as Reaction
    from recallog_schemas.views.reflection import ReflectionView as ReflectionView
    from recallog_schemas.views.reflection import Unreflected as Unreflected
    from recallog_schemas.views.salience import Explanation as Explanation
    from recallog_schemas.views.salience import Salient as Salient
    from recallog_schemas.views.salience import SalientView as SalientView
    from recallog_schemas.views.scene import SceneView as SceneView
    from recallog_schemas.views.settings import AgentSettingsView as AgentSettingsView
    from recallog_schemas.views.spaces import AgentView as AgentView
    from recallog_schemas.views.spaces import SpaceDetail as SpaceDetail
    from recallog_schemas.views.spaces import SpaceView as SpaceView
    from recallog_schemas.views.status import PartitionStatus as PartitionStatus
    from recallog_schemas.views.status import Status as Status
    from recallog_schemas.views.verification import Difference as Difference
    from recallog_schemas.views.verification import TableCheck as TableCheck
    from recallog_schemas.views.verification import VerifyReport as VerifyReport
    from recallog_streams.ledgers.ledger import Batch as Batch
    from recallog_streams.projector import Progress as Progress
else:
    __getattr__, __dir__, __all__ = lazy_exports(
        __name__,
        {
            "recallog.memory": ["Memory"],
            "recallog.queries.context": ["Context"],
            "recallog.reading.time_travel": ["AsOf"],
            "recallog.settings": ["Settings"],
            "recallog_schemas.errors": ["RecallogError"],
            "recallog_schemas.event": ["Event", "Position"],
            "recallog_schemas.views.base": ["Remembered"],
            "recallog_schemas.views.dead_letters": ["DeadLetter", "DeadLetterDetail"],
            "recallog_schemas.views.episodic": ["EpisodicView", "TimelinePage"],
            "recallog_schemas.views.kinds": ["KindsView", "KindView"],
            "recallog_schemas.views.maintenance": ["RebuildPlan", "RebuildReport"],
            "recallog_schemas.views.previews": ["AroundView", "EntriesView", "Preview", "SearchHit", "SearchPage"],
            "recallog_schemas.views.recall": ["RecallHit", "RecallView"],
            "recallog_schemas.views.reflection": [
                "Belief",
                "BeliefsView",
                "Counted",
                "PendingTrigger",
                "Reaction",
                "ReflectionView",
                "Unreflected",
            ],
            "recallog_schemas.views.salience": ["Explanation", "Salient", "SalientView"],
            "recallog_schemas.views.scene": ["SceneView"],
            "recallog_schemas.views.settings": ["AgentSettingsView"],
            "recallog_schemas.views.spaces": ["AgentView", "SpaceDetail", "SpaceView"],
            "recallog_schemas.views.status": ["PartitionStatus", "Status"],
            "recallog_schemas.views.verification": ["Difference", "TableCheck", "VerifyReport"],
            "recallog_streams.ledgers.ledger": ["Batch"],
            "recallog_streams.projector": ["Progress"],
        },
    )
