"""Times that `recallog ingest` invents for events of files that have none: they count up through the year 2000.

Such times only keep events in order, so texts for readers leave them out. The year has room
for 31 million events, one per second.
"""

from datetime import UTC, datetime

INVENTED_FROM = datetime(2000, 1, 1, tzinfo=UTC)
INVENTED_BEFORE = datetime(2001, 1, 1, tzinfo=UTC)


def is_invented(at: datetime) -> bool:
    """Whether `at` is in the span from which ingest takes the times that it invents."""
    return INVENTED_FROM <= at < INVENTED_BEFORE
