"""The query router: finds the views that a query reads, live or past, and repeats the query after a cutover."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NoReturn, TypeVar

from recallog.reading.projection_group import ProjectionGroup
from recallog.reading.read_session import FirstRead, ReadSession
from recallog.reading.time_travel import AsOf, check_size, fold_onto
from recallog_projections.concurrency import gather_limited
from recallog_projections.stores.store import Generation, ReadResult
from recallog_projections.tables import LogName, RowKey
from recallog_projections.views import activity
from recallog_schemas import Position
from recallog_schemas.errors import (
    DeadLettered,
    Rebuilding,
    RecallogError,
    StorageCorrupt,
    StorageForeign,
    StorageUnavailable,
    UnknownOutcome,
)
from recallog_streams import dead_letters, positions
from recallog_streams.dead_letters import DeadLetterRow
from recallog_streams.ledgers.ledger import Ledger
from recallog_streams.progress import Progress

if TYPE_CHECKING:
    from recallog.reading.pasts import Pasts
    from recallog.reading.saved_past import SavedPast

Result = TypeVar("Result")

VIEWS_UNUSABLE = (StorageUnavailable, StorageCorrupt, StorageForeign, UnknownOutcome)
"""Errors of views that cannot be read or brought up to date, while the ledger can still be read."""

_READ_TRIES = 5
"""How often a query runs if its views are replaced or lost meanwhile."""


class QueryRouter:
    """Runs queries. A query is a function of one `ReadSession`, the same for live and past views."""

    def __init__(self, ledger: Ledger, views: ProjectionGroup, progress: Progress | None) -> None:
        """`views` are the built-in ones, on which queries run by default."""
        self._ledger = ledger
        self._views = views
        self._progress = progress

    @cached_property
    def _pasts(self) -> "Pasts":
        from recallog.reading.pasts import Pasts  # few programs read the past

        return Pasts(self._ledger)

    async def of_space(
        self,
        space: str,
        query: Callable[[ReadSession], Awaitable[Result]],
        after: Position | None = None,
        as_of: AsOf | None = None,
        views: ProjectionGroup | None = None,
    ) -> Result:
        """The result on `views` (default: the built-in ones), once they have processed `after`, or as of the past."""
        await self._ledger.open()
        partition = self._ledger.partition_of(space)
        if as_of is not None:
            return await self._of_past(space, query, as_of, views or self._views)
        if after is not None and (after.partition != partition or after.offset < 0):
            positions.check_position(await self._ledger.ends(), after.partition, after.offset, "after")
            positions.check_same_partition(space, partition, after.partition, "after")

        async def check_space(reading: ReadSession) -> Result:
            if after is not None:
                reading.source = self._checking(reading, after)
            return await query(reading)

        return await self.of_partition(partition, check_space, views, after, space)

    async def past_at(self, space: str, as_of: AsOf | None, offset: int) -> ReadSession:
        """The built-in views right after the record at an offset. Content that was erased since is included.

        If `as_of` is a time, events that happened later are not remembered.
        """
        remember_until = None if isinstance(as_of, Position) else as_of
        return await self._pasts.below(self._views, space, offset + 1, remember_until, self._progress)

    async def of_partition(
        self,
        partition: int,
        query: Callable[[ReadSession], Awaitable[Result]],
        views: ProjectionGroup | None = None,
        after: Position | None = None,
        space: str | None = None,
    ) -> Result:
        """The result on the active generation. The query is repeated if a cutover has replaced the generation
        meanwhile, or if another process has advanced the views from which a fold in memory began.

        If the views cannot be read or brought up to date, it is the result of a fold in memory, and only of `space` if
        the query is about one space.
        """
        views = views or self._views
        cause: RecallogError | None = None
        end, seen, tries_left = None, None, _READ_TRIES
        while True:
            try:
                if cause is None:
                    return await query(await views.access.reading(partition, after, self._progress, end))
                return await query(await views.access.in_memory(partition, space, cause, self._progress))
            except Rebuilding as error:
                if space is not None:  # pasts of older events may begin from deleted snapshots
                    self._pasts.drop(space)
                seen, before = await views.access.progress_of_others(partition), seen
                if not _has_advanced(before, seen):
                    tries_left -= 1
                if not tries_left:
                    raise await views.access.unavailable(partition, error) from error
                # Other processes may have brought the views up to date, so they are read again. They need not have more
                # records than the ledger has now, so each commit of others that disturbs this query leaves fewer
                # commits that can disturb it.
                cause = None
                if end is None and seen is not None:
                    end = (await self._ledger.ends())[partition]
            except VIEWS_UNUSABLE as error:
                if cause is not None:
                    raise
                cause = error

    async def of_all(
        self,
        query: Callable[[ReadSession], Awaitable[list[Result]]],
        *,
        only: int | None = None,
        views: ProjectionGroup | None = None,
    ) -> list[Result]:
        """The results of all partitions, in their order, or of the partition `only`; several are read at once.

        Raises `OutOfRange` if there is no such partition.
        """
        partitions: Sequence[int] = range(await self._ledger.partitions())
        if only is not None:
            positions.check_partition(len(partitions), only, "partition")
            partitions = [only]
        answers = await gather_limited(lambda partition: self.of_partition(partition, query, views), partitions)
        return [item for answer in answers for item in answer]

    def _checking(self, reading: ReadSession, after: Position) -> FirstRead:
        """The first read of a session. It also checks that `after` is a record that the views have applied.

        A separate call would take as long as the read.
        """
        unchecked = ReadSession(reading.store, reading.partition, reading.source)
        letter = RowKey(dead_letters.TABLE.name, "", "", dead_letters.key_of(after.offset))

        async def first_read(rows: Sequence[RowKey], logs: Sequence[tuple[LogName, int]]) -> ReadResult:
            found = await unchecked.read([letter, *rows], logs)
            if found.checkpoint.offset < after.offset:
                positions.check_position(await self._ledger.ends(), after.partition, after.offset, "after")
            data, *found_rows = found.rows
            if data is not None:
                _refuse_dead_letter(dead_letters.TABLE.decode(data), after)
            return replace(found, rows=found_rows)

        return first_read

    async def _of_past(
        self, space: str, query: Callable[[ReadSession], Awaitable[Result]], as_of: AsOf, views: ProjectionGroup
    ) -> Result:
        """The result on a past. The query is repeated if the snapshots from which the past begins are deleted
        meanwhile."""
        for _ in range(_READ_TRIES - 1):
            try:
                return await query(await self._travel(space, as_of, views))
            except Rebuilding:
                self._pasts.drop(space)
        return await query(await self._travel(space, as_of, views))

    async def _travel(self, space: str, as_of: AsOf, views: ProjectionGroup) -> ReadSession:
        """A past of `views`, without content that is erased now."""
        from recallog.reading.saved_past import SavedPast

        partition, past = self._ledger.partition_of(space), None
        try:
            events = await self._count_events(space)
            saved = await SavedPast.of(views, partition, space)
            if saved is None:
                check_size(space, events)
            present = await views.access.reading(partition, None, self._progress)
            past = await self._pasts.travel(views, space, as_of, self._progress)
            return await _without_erased(past, present, space, views, saved)
        except (Rebuilding, *VIEWS_UNUSABLE):  # without views, the folds themselves check the size
            past = past or await self._pasts.travel(views, space, as_of, self._progress)
            present = await self._pasts.travel(views, space, None, self._progress)
            return await _without_erased(past, present, space, views)

    async def _count_events(self, space: str) -> int:
        reading = await self._views.access.reading(self._ledger.partition_of(space), None, self._progress)
        row = (await reading.snapshot([RowKey(activity.SPACES.name, space)])).row(activity.SPACES, space)
        return row.events if row else 0


async def _without_erased(
    past: ReadSession, present: ReadSession, space: str, views: ProjectionGroup, saved: "SavedPast | None" = None
) -> ReadSession:
    from recallog.reading.pasts import own_past

    is_own = False
    for find in views.erase:
        if events := await find(past, present, space):
            if saved is not None and not is_own:
                await saved.delete_erased(past.store)
            past, is_own = past if is_own else own_past(past), True
            await fold_onto(past, events, views.projections)
    return past


def _has_advanced(before: tuple[Generation, int] | None, now: tuple[Generation, int] | None) -> bool:
    """Whether the same generation has processed more records than before."""
    return before is not None and now is not None and before[0] == now[0] and before[1] < now[1]


def _refuse_dead_letter(letter: DeadLetterRow, after: Position) -> NoReturn:
    raise DeadLettered(
        f"the record at {after} is a dead letter ({letter.reason}: {letter.detail}) and will show in no view. "
        f"See it: recallog dead-letters show {after}"
    )
