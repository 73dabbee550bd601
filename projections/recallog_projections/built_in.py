"""The views that Recallog keeps."""

from collections.abc import Sequence

from recallog_projections.activity import Activity
from recallog_projections.episodic import Episodic
from recallog_projections.projection import Projection
from recallog_projections.settings import Settings


def projections() -> list[Projection]:
    """All built-in projections in the order in which they are folded.

    Settings come last, so that all others judge a record by the settings before it.
    """
    return [Episodic(), Activity(), Settings()]


def are_ours(projections: Sequence[Projection]) -> bool:
    """Whether all of them are built in: their rows need no check as they are written."""
    return all(isinstance(projection, Episodic | Activity | Settings) for projection in projections)


def alone(projection: Projection) -> list[Projection]:
    """A projection of a user's own with what it may read: the settings, by which visibility is judged."""
    return [projection, Settings()]
