"""The fold: processes each record of a batch (applies it, skips a repeat, or adds a dead letter) and returns changes.

It also skips events of a second answer to a trigger (`answers`).

It is pure except for fetching rows. The live projector, rebuild, verification, time travel and the test driver use it.
"""

import hashlib
import json
import math
import re
from collections.abc import Awaitable, Callable, Collection, Generator, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeVar, cast

from recallog_projections.projection import Projection
from recallog_projections.rows import Changes, EndlessReads, Fetched, FetchFailed, FetchHere, Rows
from recallog_projections.tables import Log, LogName, RowKey, Table
from recallog_projections.views import builtin, settings
from recallog_schemas import Record, codec, kinds, limits
from recallog_schemas.errors import InvalidEvent, InvariantViolation, ProjectionError
from recallog_schemas.event import ERASED_VERSION, ahead_of
from recallog_schemas.kinds import BUILT_IN_KINDS
from recallog_streams import answers, dead_letters, definitions, identity
from recallog_streams import chain as hash_chain
from recallog_streams.collector import pause_collection
from recallog_streams.dead_letters import DeadLetterRow
from recallog_streams.identity import Identity, IdTaken, NewIds
from recallog_streams.ledgers.ledger import Batch
from recallog_streams.placement import misplacement

Result = TypeVar("Result")
OfRows = TypeVar("OfRows", bound=Rows)

Request = tuple[Sequence[RowKey], Sequence[LogName]]
Decoded = Sequence[Record | DeadLetterRow]
"""Records, and dead letters for records that are not valid events."""
Fetch = Callable[[Sequence[RowKey], Sequence[LogName]], Awaitable[Fetched]]
"""Rows, and the totals of logs, at the checkpoint, in the order requested."""
Folded = tuple[Changes, int]
ReadHere = Callable[[Callable[[FetchHere], Folded]], Folded | None]
"""Calls a function with a `FetchHere`, in this thread and in one transaction. None if that is not possible now."""

Steps = Generator[Request, Fetched, Result]
"""Synchronous work that requests rows as it goes; its caller fetches them. The garbage collector can therefore be
paused while the work runs, and never while rows are fetched (`collector.pause_collection`)."""

VERSION = 6
"""Raised whenever the fold's own tables change: those of answers, dead letters, kinds and the chain. The views are then
rebuilt."""

_REASONS = {"unparsable", "future_schema", "too_large", dead_letters.KEY_MISSING}
_ADDRESS = re.compile(r"0x[0-9a-f]+")


def _only_partition(space: str) -> int:
    return 0


class ProjectionCall:
    """The attributes of a projection that the fold uses, looked up once."""

    __slots__ = ("apply", "ends_runs", "ignores", "kinds", "name", "tables", "takes_last")

    def __init__(self, projection: Projection) -> None:
        self.name, self.apply = projection.name, projection.apply
        self.kinds: Collection[str] | None = getattr(projection, "kinds", None)
        self.ends_runs: Collection[str] | None = getattr(projection, "ends_runs", self.kinds)
        """None: events of all its kinds."""
        self.takes_last = self.ends_runs is None or (self.kinds is not None and {*self.kinds} <= {*self.ends_runs})
        """Whether it takes no more than the last record of a run."""
        self.ignores: Callable[[Rows, Record], bool] = getattr(projection, "ignores", _never)
        self.tables = frozenset(table.name for table in projection.tables)

    def takes(self, kind: str, is_erased: bool = False) -> bool:
        """Whether it takes events of this kind. A projection that names kinds does not get erased events."""
        return self.kinds is None or (kind in self.kinds and not is_erased)

    def ends_at(self, kind: str, is_erased: bool) -> bool:
        """Whether a run ends with an event of this kind."""
        return self.takes(kind, is_erased) and (self.ends_runs is None or kind in self.ends_runs)

    def select_records(self, run: Sequence[Record], has_erased: bool) -> Sequence[Record]:
        """The records of a given run that it takes."""
        if has_erased and self.kinds is not None:
            run = [record for record in run if not record.event.is_erased]
        if self.takes_last:
            return run[-1:]
        kinds_taken = self.kinds
        return run if kinds_taken is None else [record for record in run if record.event.kind in kinds_taken]


def _never(rows: Rows, record: Record) -> bool:
    return False


class _RunEnd(NamedTuple):
    """What happens to a run that ends with an event of one kind."""

    ending: Sequence[ProjectionCall]
    """The projections for which the run ends there, unless they ignore the event."""
    calls: Sequence[ProjectionCall]
    """The projections that then take the run, in the order of folding."""


class _Space:
    """The records of a space in a batch, and how far they are folded."""

    __slots__ = ("applied", "has_erased", "is_counted", "records")

    def __init__(self, records: Sequence[Record]) -> None:
        self.records, self.applied = records, 0
        self.has_erased = bool([None for record in records if record.event.envelope == ERASED_VERSION])
        self.is_counted = False
        """Whether the independent projections have applied them."""

    @property
    def is_folded(self) -> bool:
        return self.is_counted and self.applied == len(self.records)


class _Tries:
    """Folds a batch with rows that are fetched in this thread. The store calls it again if its file has changed."""

    def __init__(self, rows: Rows, fold_here: Callable[[FetchHere], Folded]) -> None:
        self._rows, self._fold_here = rows, fold_here
        self.count = 0

    def __call__(self, fetch: FetchHere) -> Folded:
        self.count += 1
        if self.count > 1:
            self._rows.clear()  # what a finished fold has returned cannot be undone
        return self._fold_here(fetch)


class _Failed(Exception):
    """A projection has failed on a record; the message is the detail of its dead letter."""


class Fold:
    """The fold of a group of projections: a record is applied to all of them or to none."""

    def __init__(
        self,
        projections: Sequence[Projection],
        *,
        unique_ids: bool,
        partition_of: Callable[[str], int] = _only_partition,
        remember_until: datetime | None = None,
    ) -> None:
        self._partition_of = partition_of
        self._projections = tuple(projections)
        self.calls = calls = [ProjectionCall(projection) for projection in projections]
        """The projections, in the order of folding."""
        named = {kind for each in calls for kind in each.kinds or ()}
        self._kinds_read = None if any(each.kinds is None for each in calls) else frozenset(named)
        """The only kinds that a projection reads; None: all."""
        self._independent = [each for each, one in zip(calls, projections, strict=True) if _is_independent(one)]
        others = [each for each in calls if each not in self._independent]
        self._in_runs = [each for each in others if not each.takes_last]
        ending = {kind for each in calls for kind in each.ends_runs or ()}
        self._by_kind = {kind: _run_end(kind, others) for kind in named | ending}
        self._erased_by_kind = {kind: _run_end(kind, others, is_erased=True) for kind in named | ending}
        self._other_kind = _run_end("", others)
        self._calls = {kind: [each for each in calls if each.takes(kind)] for kind in named}
        self._calls_of_other = [each for each in calls if each.kinds is None]
        self._has_settings = any(settings.SPACES in each.tables for each in projections)
        self._all_builtin = builtin.all_builtin(projections)
        self._identity = None if unique_ids else Identity()
        self._remember_until = remember_until
        names = [projection.name for projection in projections]
        if len(set(names)) < len(names):
            raise ProjectionError(f"two projections have the same name: {sorted(names)}")
        self.tables: list[Table[Any] | Log[Any]] = [
            answers.TABLE,
            dead_letters.TABLE,
            dead_letters.COUNT,
            definitions.TABLE,
            hash_chain.BLOCKS,
        ]
        self.tables += [table for projection in projections for table in projection.tables]
        self.tables += Identity.tables if self._identity else ()
        if len({table.name for table in self.tables}) < len(self.tables):
            raise ProjectionError("two tables of the projections have the same name")

    @cached_property
    def code(self) -> str:
        """The versions of the code that writes the rows, as JSON: other code never writes the same generation.

        It covers the built-in kinds that a projection reads, so another kind rebuilds
        nothing. `definitions` covers the registered kinds.
        """
        versions = {projection.name: projection.version for projection in self._projections}
        read = self._kinds_read
        catalogue = {"catalogue": kinds.version(read), "digest": codec.schema_digest(read)}
        keep = {table.name: table.keep for table in self.tables if isinstance(table, Log)}
        code = {"fold": VERSION, "chain": hash_chain.VERSION, "projections": versions, "keep": keep, **catalogue}
        if self._identity is not None:
            code["identity"] = identity.VERSION
        made = {each.name: each.made_with for each in self._projections if hasattr(each, "made_with")}
        return json.dumps({**code, "made_with": made} if made else code, sort_keys=True)

    def new_rows(self, of: type[OfRows] = Rows, *, complete: bool = False) -> OfRows:  # type: ignore[assignment]
        """Rows for batches of one generation; `complete` as in `Rows`."""
        return of(self.tables, strict=not self._all_builtin, complete=complete)

    async def process(
        self,
        records: "Decoded",
        rows: Rows,
        fetch: Fetch,
        changes_max: float = math.inf,
        read_here: ReadHere | None = None,
    ) -> Folded:
        """The changes of the first `records` and their number: all records, or as many as have `changes_max` changes.

        `rows` may hold rows from earlier records of the same generation. With `read_here`, a batch is folded at most
        twice. Without it, it is folded again whenever a row decides which row is read next.
        """
        steps = self._fold(records, rows, changes_max)
        resume = partial(next, steps)
        while True:
            with pause_collection():
                try:
                    request = resume()
                except StopIteration as done:
                    return cast(Folded, done.value)
            if read_here is not None:
                tries = _Tries(rows, partial(self._fold_here, records, rows, changes_max, request))
                folded = read_here(tries)
                if folded is not None:
                    return folded
                read_here = None
                if tries.count:
                    rows.clear()
                    steps = self._fold(records, rows, changes_max)
                    resume = partial(next, steps)
                    continue
            resume = partial(steps.send, await fetch(*request))

    def _fold_here(
        self, records: "Decoded", rows: Rows, changes_max: float, wanted: Request, fetch: FetchHere
    ) -> Folded:
        """Fold from the beginning with the `wanted` rows, and fetch every other row when it is read."""
        rows.undo_batch()
        rows.fetch = fetch
        try:
            rows.load_from(fetch, *wanted)
            with pause_collection():
                steps = self._fold(records, rows, changes_max)
                request = next(steps)
                while True:
                    request = steps.send(fetch(*request))
        except StopIteration as done:
            return cast(Folded, done.value)
        except FetchFailed as failed:
            raise cast(Exception, failed.__cause__) from None
        finally:
            rows.fetch = None

    def decode(self, batch: Batch) -> "Decoded":
        """The records of `batch`; for records that are not valid events, dead letters that say why."""
        with pause_collection():
            partition, appended = batch.partition, batch.appended or [0] * len(batch.records)
            least = ahead_of(min([time for time in appended if time], default=0))
            records = [
                self._decode_record(partition, offset, data, time, least)
                for (offset, data), time in zip(batch.records, appended, strict=True)
            ]
            if batch.keys is None:
                return records
            valid_keys: dict[str, bytes | None] = {}  # by space, so that each space is checked once
            return [self._check_key(each, key, valid_keys) for each, key in zip(records, batch.keys, strict=True)]

    def _decode_record(
        self, partition: int, offset: int, data: bytes, time: int, least: datetime
    ) -> Record | DeadLetterRow:
        try:
            event = codec.decode(data)
        except InvalidEvent as error:
            return _make_dead_letter(offset, error)
        reached = self._remember_until is None or event.at <= self._remember_until
        memorable = reached and kinds.kind_of(event.kind).is_episode
        is_ahead = event.at > least and event.at > ahead_of(time)
        return Record(partition, offset, event, data, memorable, reached, time, is_ahead)

    def _check_key(
        self, record: Record | DeadLetterRow, key: bytes | None, valid_keys: dict[str, bytes | None]
    ) -> Record | DeadLetterRow:
        """The record, or a dead letter if it has the wrong partition or key."""
        if not isinstance(record, Record):
            return record
        space = record.event.space
        if key is not None and valid_keys.get(space) == key:
            return record
        wrong = misplacement(record.partition, key, space, self._partition_of(space))
        if wrong is not None:
            return _dead_letter(record, wrong.reason, wrong.detail)
        valid_keys[space] = key
        return record

    def _fold(self, decoded: "Decoded", rows: Rows, changes_max: float) -> Steps[Folded]:
        if self._identity is not None and not rows.is_complete:
            for _ in self._identity.read_rows(rows, [each for each in decoded if isinstance(each, Record)]):
                yield from _load_wanted(rows)
        count = len(decoded)
        while True:
            try:
                is_folded = yield from self._apply_batch(decoded[:count], rows)
            except (_Failed, EndlessReads):
                is_folded = False
            if not is_folded:
                break
            if count == 1 or rows.changed <= changes_max:
                try:
                    return rows.changes(), count
                except ProjectionError:
                    if rows.strict:
                        raise
                    # Some row cannot be stored. If every row is checked, its record becomes a dead letter.
                    rows.clear()
                    rows.strict = True
                    break
            count = max(1, int(count * changes_max / rows.changed))
            rows.undo_batch()
        rows.undo_batch()
        rows.take_wanted()
        return (yield from self._apply_one_by_one(decoded, rows, changes_max))

    def _apply_batch(self, decoded: "Decoded", rows: Rows) -> Steps[bool]:
        """Apply the records of a batch in runs, again from the run that lacked rows. Returns whether all are applied.

        Raises `_Failed` if a record fails.
        """
        accepted = self._accept_records(decoded, rows)
        while rows.is_wanting:
            rows.undo_run()
            yield from _load_wanted(rows)
            accepted = self._accept_records(decoded, rows)
        rows.finish_run()
        spaces = [_Space(records) for records in accepted.values()]
        for _ in range(limits.FOLD_PASSES_MAX):
            for space in spaces:
                self._advance(space, rows)
            spaces = [space for space in spaces if not space.is_folded]
            if not spaces:
                return True
            yield from _load_wanted(rows)
        return False

    def _accept_records(self, decoded: "Decoded", rows: Rows) -> Mapping[str, Sequence[Record]]:
        """The records that count, by space; notes their ids, answers and kinds, and the dead letters.

        Reads the settings too: they decide which rows projections read.
        """
        spaces: dict[str, list[Record]] = {}
        ids: dict[str, NewIds] = {}
        kinds_seen: set[str] = set()
        for each in decoded:
            if not isinstance(each, Record):
                dead_letters.add(rows, each)
                continue
            event = each.event
            answering = None if event.causation_id is None else answers.answering(event)
            if answering is not None and not answers.counts(rows, answering):
                continue
            if self._identity is not None:
                known = ids.get(event.space)
                if known is None:
                    known = ids[event.space] = NewIds(rows, event.space)
                try:
                    if not known.add(event, each.offset):
                        continue
                except IdTaken as conflict:
                    dead_letters.add(rows, _conflict(each, conflict))
                    continue
            if answering is not None:
                answers.note(rows, answering)
            kinds_seen.add(event.kind)
            try:
                spaces[event.space].append(each)
            except KeyError:
                spaces[event.space] = [each]
        for new in ids.values():
            new.write()
        for kind in kinds_seen - BUILT_IN_KINDS:
            definitions.note(rows, kind)
        if self._has_settings and not rows.is_complete:
            settings.read_all(rows, spaces)
        return spaces

    def _advance(self, space: "_Space", rows: Rows) -> None:
        """Apply the records of a space, up to a run that reads rows which are not loaded.

        The records after it are applied too, and undone: this shows which other rows to load.
        """
        if not space.is_counted:
            self._apply_run(self._independent, rows, space.records, space.has_erased)
            if not rows.is_wanting:
                rows.finish_run()
                space.is_counted = True
            rows.undo_run()
        by_kind, other, records, has_erased = self._by_kind, self._other_kind, space.records, space.has_erased
        begin = space.applied
        for end in range(begin + 1, len(records) + 1):
            record = records[end - 1]
            ending, calls = by_kind.get(record.event.kind, other)
            if has_erased and record.event.is_erased:
                ending, calls = self._erased_by_kind.get(record.event.kind, other)
            if ending and all(each.ignores(rows, record) for each in ending):
                ending = ()
            if end < len(records) and not ending:
                continue
            self._apply_run(calls if ending else self._in_runs, rows, records[begin:end], has_erased)
            rows.finish_run()
            begin = end
            if not rows.is_wanting:
                space.applied = end
        rows.undo_run()

    def _apply_run(self, calls: Iterable[ProjectionCall], rows: Rows, run: Sequence[Record], has_erased: bool) -> None:
        for call in calls:
            if not (taken := call.select_records(run, has_erased)):
                continue
            if rows.strict:
                rows.writable = call.tables
            try:
                call.apply(rows, taken)
            except (InvariantViolation, MemoryError):
                if not rows.is_wanting:
                    raise
            except Exception as error:
                if not rows.is_wanting:
                    raise _Failed(f"{call.name}: {type(error).__name__}: {_message(error)}") from error

    def _apply_one_by_one(self, decoded: "Decoded", rows: Rows, changes_max: float) -> Steps[Folded]:
        count = 0
        for each in decoded:
            if rows.changed >= changes_max:
                break
            dead_letter = (yield from self._apply_one(each, rows)) if isinstance(each, Record) else each
            while dead_letter is not None:
                dead_letters.add(rows, dead_letter)
                if not rows.is_wanting:
                    break
                rows.undo_run()
                yield from _load_wanted(rows)
            rows.finish_run()
            count += 1
        return rows.changes(), count

    def _apply_one(self, record: Record, rows: Rows) -> Steps[DeadLetterRow | None]:
        """Apply one record, again after each fetch until all rows are loaded that it reads."""
        for _ in range(limits.RECORD_PASSES_MAX):
            try:
                dead_letter = self._apply(record, rows)
            except EndlessReads:
                break
            if not rows.is_wanting:
                return dead_letter
            rows.undo_run()
            yield from _load_wanted(rows)
        rows.undo_run()
        rows.take_wanted()
        return _dead_letter(record, "projection_failed", "reads rows without end")

    def _apply(self, record: Record, rows: Rows) -> DeadLetterRow | None:
        event = record.event
        answering = answers.answering(event)
        if answering is not None and not answers.counts(rows, answering):
            return None
        if self._identity is not None:
            try:
                if not self._identity.first_seen(rows, event, record.offset):
                    return None
            except IdTaken as conflict:
                return _conflict(record, conflict)
        if answering is not None:
            answers.note(rows, answering)
        if event.kind not in BUILT_IN_KINDS:
            definitions.note(rows, event.kind)
        try:
            by_kind = {} if event.is_erased else self._calls
            self._apply_run(by_kind.get(event.kind, self._calls_of_other), rows, [record], has_erased=False)
        except _Failed as failed:
            rows.undo_run()
            return _dead_letter(record, "projection_failed", str(failed))
        return None


def _is_independent(projection: Projection) -> bool:
    return getattr(projection, "independent", False)


def _run_end(kind: str, calls: Sequence[ProjectionCall], *, is_erased: bool = False) -> _RunEnd:
    """What happens to a run with an event of this kind; "" for a kind that no projection names."""
    taking = [each for each in calls if not each.takes_last or each.takes(kind, is_erased)]
    return _RunEnd([each for each in calls if each.ends_at(kind, is_erased)], taking)


def _load_wanted(rows: Rows) -> Steps[None]:
    """Request the rows and totals that were read and are not loaded, and load them into `rows`."""
    row_keys, log_names = rows.take_wanted()
    if row_keys or log_names:
        values, totals = yield row_keys, log_names
        rows.load(zip(row_keys, values, strict=True), zip(log_names, totals, strict=True))


def _make_dead_letter(offset: int, error: InvalidEvent) -> DeadLetterRow:
    """The dead letter of bytes that are not a valid event. It names the broken rule, not the library's message."""
    reason = error.rule if error.rule in _REASONS else "invalid"
    return DeadLetterRow(offset, reason, _storable(f"{error.path}: {error.rule}" if error.path else error.rule))


def _dead_letter(record: Record, reason: str, detail: str) -> DeadLetterRow:
    event = record.event
    return DeadLetterRow(record.offset, reason, _storable(detail), event.space, event.id, event.kind)


def _conflict(record: Record, conflict: IdTaken) -> DeadLetterRow:
    detail = f"its id names another event, at {record.partition}:{conflict.first}"
    return _dead_letter(record, "conflict", detail)


def _message(error: Exception) -> str:
    """The error's message without memory addresses, which differ in each fold."""
    try:
        return _ADDRESS.sub("0x…", str(error))
    except Exception:  # noqa: BLE001 - `str` of an error that a projection defines may itself fail
        return ""


def _storable(detail: str) -> str:
    """`detail` cut to its limit, and without lone surrogates, which JSON can name and UTF-8 cannot represent."""
    return detail[: limits.DEAD_LETTER_DETAIL_CHARS_MAX].encode("utf-8", "replace").decode()


def digest_of(data: bytes) -> bytes:
    """The 16-byte blake2b digest by which a checkpoint identifies the last record that it has processed."""
    return hashlib.blake2b(data, digest_size=16).digest()
