"""The views that Recallog keeps."""

from collections.abc import Sequence

from recallog_projections.activity import Activity
from recallog_projections.beliefs import Beliefs
from recallog_projections.episodic import Episodic
from recallog_projections.projection import Projection
from recallog_projections.reflection import Reflection
from recallog_projections.salience import Salience
from recallog_projections.scene import Scene
from recallog_projections.settings import Settings
from recallog_schemas import limits

_OURS = Episodic | Salience | Reflection | Beliefs | Scene | Activity | Settings


def projections(log_events: int = limits.LOG_EVENTS_KEPT) -> list[Projection]:
    """All built-in projections in the order in which they are folded; logs of events keep the newest `log_events`.

    Reflection comes after episodic, whose logs it measures. Settings come last, so that all others judge a record by
    the settings before it.
    """
    return [Episodic(log_events), Salience(), Reflection(), Beliefs(), Scene(), Activity(), Settings()]


def are_ours(projections: Sequence[Projection]) -> bool:
    """Whether all of them are built in: their rows need no check as they are written."""
    return all(isinstance(projection, _OURS) for projection in projections)


def alone(projection: Projection) -> list[Projection]:
    """A projection of a user's own with what it may read: the settings, by which visibility is judged."""
    return [projection, Settings()]
