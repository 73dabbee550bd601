"""The views that Recallog keeps."""

from collections.abc import Sequence

from recallog_projections.projection import Projection
from recallog_projections.views.activity import Activity
from recallog_projections.views.beliefs import Beliefs
from recallog_projections.views.episodic import Episodic
from recallog_projections.views.reflection import Reflection
from recallog_projections.views.salience import Salience
from recallog_projections.views.scene import Scene
from recallog_projections.views.settings import SettingsProjection
from recallog_schemas import limits

_BUILTIN = Episodic | Salience | Reflection | Beliefs | Scene | Activity | SettingsProjection


def projections(log_events: int = limits.LOG_EVENTS_KEPT) -> list[Projection]:
    """All built-in projections in the order in which they are folded; logs of events keep the newest `log_events`.

    Reflection comes after episodic, whose logs it measures. Settings come last, so that all others judge a record by
    the settings before it.
    """
    return [Episodic(log_events), Salience(), Reflection(), Beliefs(), Scene(), Activity(), SettingsProjection()]


def all_builtin(projections: Sequence[Projection]) -> bool:
    """Whether all of them are built in: their rows need no check as they are written."""
    return all(isinstance(projection, _BUILTIN) for projection in projections)


def with_settings(projection: Projection) -> list[Projection]:
    """A projection of a user's own with what it may read: the settings, by which visibility is judged."""
    return [projection, SettingsProjection()]
