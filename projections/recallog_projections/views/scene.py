"""Scene view: the newest shared event of each kind, and the newest events of visitors, for prompts.

The scene consists of the newest shared event of each kind in the setting `scene_kinds`. Queries apply that setting:
the newest shared event of every kind is stored. Events of visitors stay in prompts however old they are, and therefore
have logs of their own.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

import msgspec

from recallog_projections.rows import Rows
from recallog_projections.tables import Log, LogName, RowKey, Table
from recallog_projections.views import episodic, settings, visibility
from recallog_projections.views.settings import SpaceSettings
from recallog_schemas import Record, limits

GOAL_KIND = "run.started"
DEFAULT_SCENE_KINDS = ("world.observed", GOAL_KIND)
"""The defaults of the memory model."""


class ShownEvent(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One event: its offset, its bytes in the ledger, and its text."""

    offset: int
    data: bytes
    text: str | None = None
    """The text by the declaration of its kind; None means `Event.text`."""


NEWEST = Table("scene.newest", ShownEvent)
"""By kind: its newest shared event."""
NOTES_AMONG = 500
"""The number of newest shared events among which notes are found."""
OWN_VISITOR = Log("scene.visitor.own", ShownEvent, limits.VISITOR_EVENTS)
SHARED_VISITOR = Log("scene.visitor.shared", ShownEvent, limits.VISITOR_EVENTS)


class Scene:
    """Fold of shared events into the newest of each kind, and of visitors' events into short logs."""

    name: ClassVar[str] = "scene"
    version: ClassVar[int] = 2
    ends_runs: ClassVar[Sequence[str]] = ()
    tables = (NEWEST, OWN_VISITOR, SHARED_VISITOR)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        space = run[0].event.space
        plans = settings.plans(rows, space)
        newest: dict[str, ShownEvent] = {}
        for record in run:
            event = record.event
            plan = plans[event.kind]
            shared = plan.shared and event.audience is None
            if not record.memorable or not (shared or plan.is_visitor):
                continue
            text = plan.kind.text(event.payload) if plan.declares_text and not event.is_erased else None
            shown = ShownEvent(record.offset, record.data, text)
            if shared:
                newest[event.kind] = shown
            if plan.is_visitor and shared:
                rows.append(SHARED_VISITOR, shown, space)
            elif plan.is_visitor:
                for reader in visibility.readers(event):
                    rows.append(OWN_VISITOR, shown, space, reader)
        for kind, shown in newest.items():
            rows.put(NEWEST, shown, space, "", kind)


def scene_kinds(space: SpaceSettings | None) -> Sequence[str]:
    """The kinds whose newest events form the scene of a space with these settings."""
    if space is None or space.scene_kinds is None:
        return DEFAULT_SCENE_KINDS
    return tuple(dict.fromkeys(space.scene_kinds))


def scene_notes(space: SpaceSettings | None) -> Mapping[str, int]:
    """How many of the newest shared events of further kinds are in the scene, by kind."""
    return (space.scene_notes if space is not None else None) or {}


def note_logs(space: SpaceSettings | None, name: str) -> Sequence[tuple[LogName, int]]:
    """The log, with its number of entries, that contains these events of the space `name`."""
    return [(LogName(episodic.SHARED.name, name), NOTES_AMONG)] if scene_notes(space) else ()


def rows(space: str, kinds: Iterable[str]) -> list[RowKey]:
    """The row keys of the settings, and of the newest events of `kinds`."""
    return [RowKey(settings.SPACES.name, space), *(RowKey(NEWEST.name, space, "", kind) for kind in kinds)]


def visitor_logs(space: str, agent: str) -> list[tuple[LogName, int]]:
    """The logs, with numbers of entries, of the newest events of visitors that `agent` may see."""
    return [
        (LogName(OWN_VISITOR.name, space, agent), limits.VISITOR_EVENTS),
        (LogName(SHARED_VISITOR.name, space), limits.VISITOR_EVENTS),
    ]
