"""The built parts of one memory: its ledger, its views, its locks and its index."""

from collections.abc import Sequence
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass, field

from recallog.index.semantic_index import SemanticIndex
from recallog.reading.projection_group import ProjectionGroup
from recallog_projections.views import due
from recallog_schemas import Event, Position, kinds, limits
from recallog_schemas.errors import SettingsError
from recallog_streams.append_guard import AppendGuard
from recallog_streams.databases.database import Lock
from recallog_streams.ledgers.ledger import Ledger, Times


@dataclass(frozen=True, slots=True)
class Components:
    """The built parts of one memory. `recallog.composition.assemble` creates them from a ledger and stores."""

    ledger: Ledger
    views: ProjectionGroup
    """The built-in views."""
    own: Sequence[ProjectionGroup] = ()
    """One group for each projection of the user, each in a separate store. A group is built separately, and a record
    that it cannot apply is a dead letter only of this group."""
    reactors_lock: Lock = nullcontext
    """Held by the process that answers triggers, one at a time."""
    index: SemanticIndex | None = None
    """None if the semantic index is off."""
    log_events: int = limits.LOG_EVENTS_KEPT
    """How many of the newest events each log of the views retains."""

    guard: AppendGuard = field(init=False)
    """Compares the ledger with the views before events are appended."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "guard", AppendGuard([group.builder for group in self.groups()]))

    async def append(self, events: Sequence[Event], appended: Times = None) -> list[Position]:
        """Append events to the ledger; `appended` as in `Ledger.append`.

        Raises `LedgerMismatch` if it has lost records that the views have processed.
        """
        positions = await self.ledger.append_guarded(events, self.guard, appended)
        if not kinds.kinds_that_forget().isdisjoint([event.kind for event in events]):
            from recallog.reading.saved_past import delete_snapshots  # few events forget

            for event, position in zip(events, positions, strict=True):
                if event.kind in kinds.kinds_that_forget():
                    await delete_snapshots(self.groups(), position.partition, event.space)
        return positions

    def require_index(self) -> SemanticIndex:
        """The semantic index, for operations that require it. Raises `SettingsError` if it is off."""
        if self.index is None:
            raise SettingsError(
                "the index is off. Leave RECALLOG_INDEX unset for a memory in a folder, or name a Qdrant server: "
                "http://host:6333"
            )
        return self.index

    def groups(self) -> list[ProjectionGroup]:
        """The built-in views, then the views of the user's projections."""
        return [self.views, *self.own]

    def due_groups(self) -> list[ProjectionGroup]:
        """The groups that make triggers due: the built-in views, and the user's projections that have a method
        `due`."""
        own = [group for group in self.own if any(due.NOW in each.tables for each in group.projections)]
        return [self.views, *own]

    async def close(self) -> None:
        """Close files and connections."""
        async with AsyncExitStack() as closing:  # all of them, even if one fails or the caller is cancelled
            closing.push_async_callback(self.ledger.close)
            for group in self.groups():
                closing.push_async_callback(group.store.close)
            if self.index is not None:
                closing.push_async_callback(self.index.close)
