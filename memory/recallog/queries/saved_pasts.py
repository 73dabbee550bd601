"""The check of saved pasts: each snapshot is compared with a fold of its space from the first record."""

import hashlib
from collections.abc import Sequence

from recallog.components import Components
from recallog.reading.chosen_records import with_blocks
from recallog.reading.read_session import position
from recallog.reading.saved_past import SavedPast
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.overlay import OverlayStore
from recallog_projections.stores.store import Checkpoint, ReadResult
from recallog_projections.tables import LogName, RowKey
from recallog_schemas.errors import Rebuilding, StorageError
from recallog_schemas.views import Difference, NotCompared, TableCheck, VerifyReport
from recallog_streams.progress import Progress
from recallog_streams.projector import Projector


async def verify(components: Components, progress: Progress | None) -> VerifyReport:
    """Compare the snapshots of all views. Snapshots that are deleted meanwhile are left out."""
    ends = await components.ledger.ends()
    checks, missing = list[TableCheck](), list[NotCompared]()
    for views in components.groups():
        for partition in range(len(ends)):
            if (saved := await SavedPast.of(views, partition, "")) is not None:
                for space in await saved.snapshots.spaces(saved.generation):
                    try:
                        checks.append(await _Check(saved, space).compare(progress))
                    except StorageError as error:
                        missing.append(NotCompared(views=views.name, partition=partition, reason=str(error)))
                    except Rebuilding:
                        continue
    return VerifyReport(records=sum(ends), tables=tuple(checks), digest="", not_compared=tuple(missing))


class _Check:
    """The comparison of the snapshots of one space with the fold of all its records."""

    def __init__(self, saved: SavedPast, space: str) -> None:
        self._snapshots, self._generation, self._space = saved.snapshots, saved.generation, space
        self._views, self._projections = saved.views, with_blocks(saved.views.projections)
        self._whole = MemoryStore()
        """The fold up to the last snapshot that was compared."""
        self._items = self._differences = 0
        self._first: Difference | None = None
        self._found, self._expected = hashlib.sha256(), hashlib.sha256()

    async def compare(self, progress: Progress | None) -> TableCheck:
        generation, partition, start = self._generation, self._generation.partition, Checkpoint()
        await self._whole.create(generation)
        folded = OverlayStore(self._whole, generation, start)
        projector = Projector(self._views.builder.ledger, folded, self._projections, space=self._space)
        for snapshot in await self._snapshots.checkpoints(generation, self._space):
            new = await projector.catch_up(generation, snapshot.offset + 1, progress)
            changes = folded.changes
            await self._whole.commit(generation, start, new, changes)
            folded.rebase(self._whole, new)
            start = new
            rows, logs = await self._snapshots.find_changes(generation, self._space, snapshot)
            row_keys = sorted({*rows, *(RowKey(*key) for key in changes.rows)})
            lengths = {LogName(*name): len(added) for name, added in changes.logs.items()}
            tails = [(name, lengths.get(name, 1)) for name in sorted({*logs, *lengths})]
            opened = self._snapshots.open(generation, self._space, snapshot)
            self._compare_items(
                row_keys,
                tails,
                await opened.read(partition, row_keys, tails),
                await self._whole.read(partition, row_keys, tails, generation),
            )
        return TableCheck(
            generation=generation.id,
            checkpoint=position(partition, start.offset),
            views=self._views.name,
            table=f"snapshots of {self._space}",
            rows=self._items,
            digest=self._found.hexdigest(),
            expected_digest=self._expected.hexdigest(),
            difference=self._first,
            differences=self._differences,
        )

    def _compare_items(
        self,
        rows: Sequence[RowKey],
        logs: Sequence[tuple[LogName, int]],
        found: ReadResult,
        expected: ReadResult,
    ) -> None:
        """Note differences between a snapshot and the fold up to it, in the rows and logs that either of them has
        changed."""
        self._items += len(rows) + len(logs)
        names = [*rows, *(name for name, _ in logs)]
        for name, ours, fresh in zip(names, [*found.rows, *found.logs], [*expected.rows, *expected.logs], strict=True):
            self._found.update(repr((name, ours)).encode())
            self._expected.update(repr((name, fresh)).encode())
            if ours != fresh:
                self._differences += 1
                self._first = self._first or Difference(
                    table=name[0],
                    space=name[1],
                    owner=name[2],
                    key=name[3] if isinstance(name, RowKey) else "",
                    found=repr(ours),
                    expected=repr(fresh),
                )
