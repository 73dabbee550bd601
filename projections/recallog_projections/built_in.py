"""The views that Recallog keeps."""

from collections.abc import Sequence

from recallog_projections.activity import Activity
from recallog_projections.episodic import Episodic
from recallog_projections.projection import Projection
from recallog_projections.settings import Settings


def projections(more: Sequence[Projection] = ()) -> list[Projection]:
    """All built-in projections, with `more` of a user's own, in the order in which they are folded.

    Settings come last, so that all others judge a record by the settings before it.
    """
    return [Episodic(), Activity(), *more, Settings()]
