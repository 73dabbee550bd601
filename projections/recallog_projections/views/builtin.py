"""The built-in projections, in the order of folding."""

from collections.abc import Collection, Sequence
from functools import cache
from typing import cast

from recallog_projections.projection import Projection
from recallog_projections.views.activity import ActivityProjection
from recallog_projections.views.clock import ClockProjection
from recallog_projections.views.due import DueProjection, NamesDue
from recallog_projections.views.episodic import Episodic
from recallog_projections.views.outline import OutlineProjection
from recallog_projections.views.salience import Salience
from recallog_projections.views.scene import Scene
from recallog_projections.views.settings import SettingsProjection
from recallog_schemas import limits, models, triggers


def projections(log_events: int = limits.LOG_EVENTS_KEPT) -> list[Projection]:
    """All built-in projections: those that every model reads, then those of the models, each after those that it is
    built on. Logs of events retain the newest `log_events`."""
    found: list[Projection] = [
        Episodic(log_events),
        Salience(),
        Scene(),
        ActivityProjection(),
        OutlineProjection(),
        ClockProjection(),
    ]
    parts = models.import_parts("recallog_projections", "views")
    return _compose([*found, *(make() for views in parts for make in views.PROJECTIONS)])


def with_settings(projection: Projection) -> list[Projection]:
    """A user's projection together with what it makes due, if it has a method `due`, and with the settings, which it
    may read to determine visibility."""
    return _compose([projection], reserved=triggers.built_in())


def all_builtin(projections: Sequence[Projection]) -> bool:
    """Whether all of them are built in. Their rows are not checked when they are written."""
    others = {type(projection) for projection in projections} - _built_in_types()
    if others:
        from recallog_projections.views.time_blocks import TimeBlocks  # only folds of the past have it

        others.discard(TimeBlocks)
    return not others


def _compose(projections: Sequence[Projection], reserved: Collection[str] = ()) -> list[Projection]:
    """`projections` with their due work, if one of them has a method `due`, and with the settings. These come last, so
    that the others apply those before the record."""
    with_due = [cast(NamesDue, each) for each in projections if callable(getattr(each, "due", None))]
    due = [DueProjection(with_due, reserved)] if with_due else []
    return [*projections, *due, SettingsProjection()]


@cache
def _built_in_types() -> frozenset[type]:
    return frozenset(type(each) for each in projections())
