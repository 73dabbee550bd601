"""The source classes of memories, by the settings of their space."""

from collections.abc import Sequence

from recallog.reading.read_session import Snapshot
from recallog.reading.readings import SpaceReading
from recallog_projections.tables import RowKey
from recallog_projections.views import settings
from recallog_projections.views.trust import SourceClasses
from recallog_schemas.kinds.trust import AGENT
from recallog_schemas.views import RecallHit, Remembered, SourcedEvent


async def read_sources(reading: SpaceReading) -> SourceClasses:
    """The source classes of the space."""
    snapshot = await reading.snapshot([RowKey(settings.SPACES.name, reading.space)])
    return SourceClasses(snapshot.row(settings.SPACES, reading.space))


def make_sourced(sources: SourceClasses, shown: Remembered) -> SourcedEvent:
    """An event with its source class."""
    trust = sources.class_of(shown.event)
    return SourcedEvent.model_construct(position=shown.position, event=shown.event, text=shown.text, trust=trust)


def mark_classes(snapshot: Snapshot, space: str, hits: Sequence[RecallHit]) -> tuple[RecallHit, ...]:
    """`hits`, each with its source class. The snapshot has the settings of the space."""
    sources = SourceClasses(snapshot.row(settings.SPACES, space))
    classes = [sources.class_of(hit.event) for hit in hits]
    return tuple(
        hit if trust == AGENT else hit.model_copy(update={"trust": trust})
        for hit, trust in zip(hits, classes, strict=True)
    )
