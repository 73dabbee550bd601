"""The operators' part of the facade: status, verification, rebuilds, dead letters, records of the ledger."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING

from recallog import queries
from recallog.access import MemoryAccess
from recallog.operations import parameters
from recallog.operations.facade import Facade, check_arguments, operation
from recallog.operations.operation import Scope
from recallog_schemas import Event, Position, limits, views
from recallog_schemas.errors import (
    IndexUnavailable,
    InvalidArgument,
    OutOfRange,
    Rebuilding,
    SettingsError,
    StorageError,
    ViewsTooNew,
)
from recallog_streams import positions

if TYPE_CHECKING:
    from recallog.components import Components
    from recallog_schemas.views import (
        AbortReport,
        Activity,
        CopyReport,
        DeadLetterDetail,
        DeadLettersView,
        LedgerDigests,
        RebuildPlans,
        RebuildReports,
        RepairReport,
        RetryReport,
        ScanReport,
        Status,
        VerifyReport,
    )
    from recallog_streams.ledgers.ledger import Batch

_INDEX_UNUSABLE = (IndexUnavailable, Rebuilding, SettingsError, StorageError, ViewsTooNew)


class Admin(Facade):
    """The operators' interface to a memory: `memory.admin`."""

    def __init__(self, access: MemoryAccess) -> None:
        self._access = access

    @property
    def _components(self) -> "Components":
        return self._access.components

    @property
    def _host(self) -> MemoryAccess:
        return self._access

    async def ledger_ends(self) -> list[int]:
        """The next offset of each partition."""
        return await self._components.ledger.ends()

    async def check_ready(self) -> None:
        """Raise an error if the memory cannot answer now: if the ledger cannot be read or loses events, or if workers
        maintain the views and this version cannot read those of a partition. The error names the partitions.

        Its cost does not depend on the size of the memory.
        """
        await queries.status.check_ready(self._components)

    @check_arguments
    async def partition_of(self, space: parameters.Space) -> int:
        """The partition that holds the events of `space`."""
        await self._components.ledger.open()
        return self._components.ledger.partition_of(space)

    @check_arguments
    async def records(
        self,
        start: parameters.FirstPosition = None,
        space: parameters.OneSpace = None,
        *,
        until: parameters.EndPosition = None,
    ) -> "AsyncIterator[Batch]":
        """Raw records of the ledger in batches, from `start` up to but not including `until`, or up to its present end.

        If `start` or `space` names a partition, only records of that partition, which must be the partition of `until`;
        otherwise records of all partitions, one after the other.
        """
        first, last = parameters.position(start), parameters.position(until)
        ends = await self._components.ledger.ends()
        for path, position in (("start", first), ("until", last)):
            if position is not None:
                positions.check_partition(len(ends), position.partition, path)
        only = first.partition if first is not None else None
        if only is None and space is not None:
            only = await self.partition_of(space)
        if last is not None and only not in (None, last.partition):
            raise OutOfRange(f"until: the records lie in partition {only}, not in {last.partition}", path="until")
        for partition, end in enumerate(ends):
            if only not in (None, partition):
                continue
            start_offset = first.offset if first is not None else 0
            end_offset = end if last is None else min(end, last.offset)
            async for batch in self._components.ledger.read(partition, start_offset, end_offset, space=space):
                yield batch

    @check_arguments
    async def known_positions(self, events: parameters.ManyEvents) -> dict[tuple[str, str], Position]:
        """The positions of the events that have the ids of `events`, by space and id, for a ledger that stores repeats.

        These are the ids that the views have processed. Empty for a ledger with unique ids, whose `append` returns the
        first position itself. Raises `Rebuilding` if the views are not built.
        """
        known = [parameters.event(each) for each in events]
        return await queries.event_lookup.known_positions(self._components, known, self._access.progress)

    async def restore_events(self, events: Sequence[Event], appended: Sequence[int]) -> Sequence[Position]:
        """Write events of an export, as `Memory.publish_many`, with the times at which they were first appended.

        The times are in milliseconds since 1970; 0 if a time is not known. A time later than now counts as now.
        """
        if len(events) != len(appended) or min(appended, default=0) < 0:
            message = "appended: one time of 0 or more for each event"
            raise InvalidArgument(message, path="appended", rule="value_error")
        return await self._access.publish(events, appended)

    async def scrub_event(self, event: Event) -> tuple[Event, Mapping[str, int]]:
        """The event as it would be written, and the number of secrets and personal data that the setting `scrub`
        replaces in it, by their sort."""
        scrubber = self._access.scrubber
        return (event, {}) if scrubber is None else scrubber.scrub_event(event)

    @operation(example="recallog status", scope=Scope.OPERATE, read_only=True, is_patient=False)
    async def status(self) -> "Status":
        """The size and progress of the views, dead letters, and due reflections. Read-only."""
        return await queries.status.status(self._components)

    @operation(example="recallog activity --minutes 60", scope=Scope.OPERATE, read_only=True)
    async def activity(self, *, minutes: parameters.Minutes = 60) -> "Activity":
        """How many events were appended in each of the last minutes.

        In each partition, only the newest 10,000 records are counted.
        """
        return await queries.activity.activity(self._components.ledger, minutes)

    @operation(example="recallog verify --json", scope=Scope.OPERATE, read_only=True, maintains_index=True)
    async def verify(
        self,
        what: parameters.Verified = None,
        *,
        digests: parameters.Digests = None,
        workers: parameters.Workers = None,
        throttle: parameters.Throttle = 0.0,
        from_zero: parameters.FromZero = False,
        progress: parameters.Report = None,
    ) -> "VerifyReport":
        """Compare the ledger with its hash chain, and every row of every view with a fresh fold of the ledger.

        Names the records that are damaged, missing or changed since the views were computed, the rows
        that differ or are damaged, and other damage of the files, which `repair` computes again.

        Raises `OutOfRange` if the ledger ends before the position of one of `digests`.
        """
        if what is not None:
            return await queries.verification.verify(self._components, what, digests or (), progress, workers, throttle)
        reports = [await self.verify("views", digests=digests, workers=workers, throttle=throttle, progress=progress)]
        if from_zero:
            reports.append(await queries.saved_pasts.verify(self._components, progress))
        if self._components.index is not None and self._components.index.exists():
            try:
                reports.append(await self.verify("index", throttle=throttle, progress=progress))
            except _INDEX_UNUSABLE as error:
                missing = views.NotCompared(views="index", partition=None, reason=str(error))
                reports[0] = reports[0].model_copy(update={"not_compared": (*reports[0].not_compared, missing)})
        return queries.verification.combine_reports(reports)

    @operation(example="recallog verify --repair", scope=Scope.OPERATE, idempotent=True, command="verify --repair")
    async def repair(self, *, progress: parameters.Report = None) -> "RepairReport":
        """Recompute damaged data that can be derived from the records of the ledger, then verify ledger and views.

        This data is the indexes, the table of spaces and the list of free pages in the ledger's file, and files of
        views. No record is changed. While records are damaged, the ledger's file is not changed. The repair needs twice
        the size of the ledger as free space. It can be interrupted and run again.
        """
        return await queries.verification.repair(self._components, progress)

    @operation(example="recallog digest", scope=Scope.OPERATE, read_only=True)
    async def digest(self) -> "LedgerDigests":
        """A digest of all records of each partition, to be kept elsewhere: `verify` compares the ledger with it.

        It is the value of the hash chain after the last record: if a record up to there changes, the digest changes.

        Raises `LedgerMismatch` if the ledger is not the one that the views were computed from.
        """
        return await queries.verification.digests(self._components)

    @operation(
        example='recallog erase --proof "Alice Smith" --proof "her secret"',
        scope=Scope.OPERATE,
        read_only=True,
        command="erase --proof",
        maintains_index=True,
    )
    async def scan(
        self, markers: parameters.Markers, *, what: parameters.Scanned = None, digests: parameters.Digests = None
    ) -> "ScanReport":
        """Look for words in everything that the memory stores, to prove that an erasure has removed them.

        It reads each file of the folder, or all keys in Redis, its files on this machine, and the records of the topic;
        and the points of the index. It searches for each marker in UTF-8, UTF-16, base64 and JSON, unchanged,
        normalised, and in lower and upper case. The exit code of the command is 1 if something was found, or could not
        be read.

        Raises `OutOfRange` if the ledger ends before the position of one of `digests`.
        """
        from recallog.scanning import scan

        if what is not None:
            return await scan.scan_points(self._components, markers)
        report = await scan.scan(self._components, self._access.settings, markers, digests or ())
        if self._components.index is None or not self._components.index.exists():
            return report
        try:
            points = (await self.scan(markers, what="index")).places
        except _INDEX_UNUSABLE as error:
            points = (views.ScannedPlace(place="the points of the index", bytes=0, problem=str(error)),)
        return report.with_places(points)

    @operation(example="recallog rebuild --workers 4 --throttle 0.5", scope=Scope.OPERATE, maintains_index=True)
    async def rebuild(
        self,
        what: parameters.Rebuilt = "views",
        *,
        accept: parameters.Accept = False,
        drop: parameters.Drop = False,
        workers: parameters.Workers = None,
        throttle: parameters.Throttle = 0.0,
        progress: parameters.Report = None,
    ) -> "RebuildReports":
        """Rebuild the views or the index from offset zero beside the live ones, then cut over.

        Readers are served from the live generation meanwhile. It can be interrupted and run again. A rebuild of the
        index reuses the vectors of unchanged texts. On a cluster several processes may run it at once and share the
        partitions.

        Several processes fold large ledgers. In a folder, each of them folds the events of some spaces; on a topic,
        each folds some partitions. In a folder, one process folds the index, and projections whose rows several spaces
        share.

        With `drop`, the live views or index are deleted first, and queries wait for the new ones. The ledger may then
        be another one or an older copy; the memory loses the records that it does not have.

        Raises `NewDeadLetters`, unless `accept`, if the new generation lacks records that the live one has, and
        `LedgerMismatch`, unless `drop`, if the ledger lacks records that the live one has processed.
        """
        options = queries.rebuilds.RebuildOptions(accept, drop, workers, throttle)
        reports = await queries.rebuilds.rebuild(self._components, what, options, progress)
        return views.RebuildReports(items=tuple(reports))

    @operation(
        example="recallog rebuild --dry-run",
        scope=Scope.OPERATE,
        read_only=True,
        command="rebuild --dry-run",
        maintains_index=True,
    )
    async def plan_rebuild(self, what: parameters.Rebuilt = "views") -> "RebuildPlans":
        """Show what `rebuild` would do now. Changes nothing."""
        return views.RebuildPlans(items=tuple(await queries.rebuilds.plan_rebuild(self._components, what)))

    @operation(
        example="recallog rebuild index --abort",
        scope=Scope.OPERATE,
        idempotent=True,
        command="rebuild --abort",
        maintains_index=True,
    )
    async def abort_rebuild(self, what: parameters.Rebuilt = "views") -> "AbortReport":
        """Cancel rebuilds that are in progress."""
        return views.AbortReport(aborted=tuple(await queries.rebuilds.abort_rebuild(self._components, what)))

    @operation(example="recallog reindex --model sentence-transformers", scope=Scope.OPERATE, maintains_index=True)
    async def reindex(self, *, model: parameters.Model, progress: parameters.Report = None) -> "RebuildReports":
        """Rebuild the semantic index with another model, which computes all vectors again.

        Until the cutover the index answers with the old model. It can be interrupted and run again; `abort_reindex`
        cancels it.
        """
        reports = await queries.rebuilds.reindex(self._components, model, progress)
        return views.RebuildReports(items=tuple(reports))

    @operation(
        example="recallog reindex --abort",
        scope=Scope.OPERATE,
        idempotent=True,
        command="reindex --abort",
        maintains_index=True,
    )
    async def abort_reindex(self) -> "AbortReport":
        """Cancel the change of the model that is in progress."""
        return await self.abort_rebuild("index")

    @operation(example="recallog copy ./memory kafka://127.0.0.1:9092/recallog.events", scope=Scope.OPERATE)
    async def copy(self, target: parameters.LedgerAddress, *, progress: parameters.Report = None) -> "CopyReport":
        """Append every event of the ledger to another one with its id, for example of a folder to a cluster.

        It can be interrupted and run again. The views of the target are updated by its workers, or in a folder by the
        next query.
        """
        from recallog import composition
        from recallog_streams import migration

        destination = await composition.target_of_copy(target)
        try:
            return await migration.copy(self._components.ledger, destination, progress)
        finally:
            await destination.close()

    @operation(example="recallog dead-letters list", scope=Scope.OPERATE, read_only=True, command="dead-letters list")
    async def dead_letters(
        self, *, limit: parameters.ListLimit = limits.PAGE_ITEMS_MAX, cursor: parameters.Cursor = None
    ) -> "DeadLettersView":
        """List the records that the views could not apply, with their reasons: a page, by position."""
        letters = await queries.dead_letters.list_dead_letters(self._components, self._access.progress)
        following = queries.dead_letters.following(letters, cursor)
        return views.DeadLettersView(**views.DeadLettersView.fields_of(following, limit))

    @operation(
        example="recallog dead-letters show 0:41", scope=Scope.OPERATE, read_only=True, command="dead-letters show"
    )
    async def dead_letter(self, position: parameters.RecordPosition) -> "DeadLetterDetail":
        """Show one dead letter with its content.

        Raises `OutOfRange` if there is none at that position.
        """
        at = parameters.record_position(position)
        return await queries.dead_letters.show_dead_letter(self._components, at, self._access.progress)

    @operation(example="recallog dead-letters retry", scope=Scope.OPERATE, command="dead-letters retry")
    async def retry_dead_letters(self, *, progress: parameters.Report = None) -> "RetryReport":
        """Rebuild the views if at least one dead letter can be applied now.

        A rebuild applies all records in order. The exit code of the command is 1 if dead letters remain.
        """
        return await queries.dead_letters.retry_dead_letters(self._components, progress)
