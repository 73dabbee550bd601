"""The past of one space, saved as snapshots. A query of the past starts at the nearest snapshot, and adds others.

A snapshot belongs to the active generation of the views. Therefore it has the same code and the same keys of sealed
events, and is deleted with the generation. A snapshot with an entry that is erased now is never written.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

from recallog.reading.projection_group import ProjectionGroup
from recallog.reading.read_session import ReadSession
from recallog_projections.notices import warn_once
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.overlay import OverlayStore
from recallog_projections.stores.store import Checkpoint, Generation, Snapshots, Store
from recallog_schemas.errors import Rebuilding, StorageError


@dataclass(slots=True)
class SavedPast:
    """The snapshots of one space in the active generation of some views."""

    views: ProjectionGroup
    snapshots: Snapshots
    generation: Generation
    space: str
    _can_write: bool = field(default=True, init=False)

    @classmethod
    async def of(cls, views: ProjectionGroup, partition: int, space: str) -> Self | None:
        """None if snapshots are off, or if there are no views that this process may continue."""
        snapshots = views.store.snapshots
        if snapshots is None or not views.snapshot_records:
            return None
        try:
            active = (await views.store.pointer(partition)).active if await views.store.exists() else None
            fits = active is not None and await views.builder.fits(active)
        except (StorageError, Rebuilding):
            return None
        return cls(views, snapshots, active, space) if active is not None and fits else None

    async def start_before(self, until: int) -> OverlayStore:
        """A store that continues from the last snapshot with offsets only below `until`, or from an empty one."""
        checkpoint = await self.snapshots.last_before(self.generation, self.space, until)
        if checkpoint is not None:
            snapshot = self.snapshots.open(self.generation, self.space, checkpoint)
            return OverlayStore(snapshot, self.generation, checkpoint)
        empty = MemoryStore()
        await empty.create(self.generation)
        return OverlayStore(empty, self.generation, Checkpoint())

    async def save(self, store: OverlayStore) -> bool:
        """Write a snapshot of `store`, which then continues from the snapshot. Returns False if that is not possible.

        A snapshot does not have records that its generation has not processed.
        """
        new = await store.checkpoint(self.generation)
        if not self._can_write or new is None:
            return False
        try:
            stored = await self.views.store.checkpoint(self.generation)
            if stored is None or new.offset > stored.offset or await self.holds_erased(store):
                return False
            written = await self.snapshots.write(self.generation, self.space, store.start, new, store.changes)
        except StorageError as error:
            warn_once(
                "storage",
                ("snapshots", self.views.store.location),
                f"the past of {self.space!r} cannot be saved, and queries of it fold its records again: {error}",
            )
            written = False
        self._can_write = written
        if written:
            store.rebase(self.snapshots.open(self.generation, self.space, new), new)
        return written

    async def delete_erased(self, past: Store) -> None:
        """Delete the snapshots if the one from which `past` began contains erased content."""
        if isinstance(past, OverlayStore) and past.start.offset >= 0:
            at_start = self.snapshots.open(self.generation, self.space, past.start)
            if await self.holds_erased(OverlayStore(at_start, self.generation, past.start)):
                await self.snapshots.delete(self.generation, self.space)

    async def holds_erased(self, store: OverlayStore) -> bool:
        """Whether a past contains content that is erased now."""
        partition = self.generation.partition
        present = await self.views.access.reading(partition, None, None)
        past = ReadSession(store, partition, self.generation)
        return any([await find(past, present, self.space) for find in self.views.erase])


async def delete_snapshots(groups: Sequence[ProjectionGroup], partition: int, space: str) -> None:
    """Delete the snapshots of a space in all views. If that is not possible now, the next query deletes them."""
    for views in groups:
        with suppress(StorageError, Rebuilding):
            if (saved := await SavedPast.of(views, partition, space)) is not None:
                await saved.snapshots.delete(saved.generation, space)
