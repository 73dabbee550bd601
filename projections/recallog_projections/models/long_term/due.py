"""Work that entries make due: migrations when a session ends, the rest of the cascade of an erasure, and the search for
near-duplicates."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from recallog_projections.models.long_term import linking, migration, tables
from recallog_projections.models.long_term.kinds import changed_ids
from recallog_projections.models.long_term.texts import NEVER_DEDUPLICATED, text_key
from recallog_projections.rows import Rows
from recallog_projections.tables import RowKey
from recallog_projections.views import settings
from recallog_projections.views.due import Due
from recallog_schemas import Event, Record
from recallog_schemas.models.long_term.triggers import DEDUPLICATION, MIGRATION, RETRACTION

_ERASED = "memory.erased"


class Migrations:
    """When a session ends, its agents keep marked texts of their working memory as entries.

    The trigger has these texts, each with its path in working memory. Texts that an agent has ever had
    as an entry are left out: they would be refused.
    """

    name: ClassVar[str] = "migrations"
    version: ClassVar[int] = 1
    kinds = frozenset({"session.ended"})
    tables = ()

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        """Keeps no rows."""

    def due(self, rows: Rows, record: Record) -> Iterable[Due]:
        event = record.event
        for agent in _leaving(event):
            texts = [
                (path, text)
                for path, text in migration.texts_in(rows, event.space, agent, event.session)
                if rows.get(tables.KEPT, *_kept_key(event.space, agent, text)[1:]) is None
            ]
            for number, part in enumerate(migration.parts_of(texts)):
                yield Due(MIGRATION, agent, str(number), texts=tuple(part))


def _leaving(event: Event) -> Iterable[str]:
    """The agents whose session the event ends: its own agent, and its audience."""
    return dict.fromkeys((event.agent, *(event.audience or ())))


def _kept_key(space: str, agent: str, text: str) -> RowKey:
    """The row that says whether the agent has, or once had, an entry with this text."""
    return RowKey(tables.KEPT.name, space, agent, text_key(text))


class Retractions:
    """The view of entries retracts the dependents of an erased entry, one level per event. If these have dependents of
    their own, a trigger is due for each: its entries are the ones to retract."""

    name: ClassVar[str] = "retractions"
    version: ClassVar[int] = 1
    kinds = frozenset({_ERASED, "memory.retracted"})
    tables = ()

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        """Keeps no rows."""

    def due(self, rows: Rows, record: Record) -> Iterable[Due]:
        event, ended = record.event, {row.id for row in linking.ended_now(rows)}
        for lost in _find_retracted(rows, record):
            if lost not in ended:  # it was lost before, and its dependents were made due then
                continue
            dependents = rows.get(tables.SOURCES, event.space, "", lost)
            if dependents is not None:
                yield Due(RETRACTION, event.agent, entries=dependents.ids, cause=lost)


def _find_retracted(rows: Rows, record: Record) -> list[str]:
    """The ids of the entries that are retracted because a source is erased, among those that the event names."""
    found: list[str] = []
    for id_ in changed_ids(record.event):
        ref = rows.get(tables.IDS, record.event.space, "", id_)
        if ref is None:
            continue
        if record.event.kind == _ERASED:
            found += ref.retracted
        elif ref.status == tables.RETRACTED and ref.of is not None:
            found.append(id_)
    return found


class Deduplications:
    """If the agent's settings say so, a new text is due for comparison with its other texts. The entry of the trigger
    has the new text."""

    name: ClassVar[str] = "deduplications"
    version: ClassVar[int] = 1
    kinds = frozenset({"memory.retained", "memory.updated"})
    tables = ()
    ends_runs = ()

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        """Keeps no rows."""

    def due(self, rows: Rows, record: Record) -> Iterable[Due]:
        event = record.event
        configured = rows.get(settings.AGENTS, event.space, event.agent)
        quality = (configured.quality if configured is not None else None) or {}
        is_compared = event.payload.get("text") is not None and event.payload.get("type") not in NEVER_DEDUPLICATED
        if is_compared and quality.get("deduplicate") is True:
            yield Due(DEDUPLICATION, event.agent, entries=(event.payload.get("entry", event.id),))
