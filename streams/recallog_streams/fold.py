"""The fold: processes each record of a batch (applies it, skips a repeat, or adds a dead letter) and returns changes.

Also skipped is what belongs to a second answer to one trigger (`answers`).

It is pure except for fetching rows. The live projector, rebuild, verification, time travel and the test driver use it.
"""

import hashlib
import json
import math
import re
from collections.abc import Awaitable, Callable, Collection, Generator, Iterable, Iterator, Sequence
from datetime import datetime
from functools import cached_property, partial
from itertools import chain
from typing import Any, TypeVar, cast

from recallog_projections.projection import Projection
from recallog_projections.rows import Changes, RowNotLoaded, Rows
from recallog_projections.tables import Log, LogName, RowKey, Table
from recallog_projections.views import builtin
from recallog_schemas import Event, Record, codec, kinds, limits
from recallog_schemas.errors import InvalidEvent, InvariantViolation, ProjectionError
from recallog_schemas.kinds import BUILT_IN_KINDS
from recallog_streams import answers, dead_letters, definitions, identity
from recallog_streams import chain as hash_chain
from recallog_streams.collector import uncollected
from recallog_streams.dead_letters import DeadLetterCount, DeadLetterRow
from recallog_streams.identity import Conflict, Identity
from recallog_streams.ledgers.ledger import Batch
from recallog_streams.placement import misplacement

Result = TypeVar("Result")

Request = tuple[Sequence[RowKey], Sequence[LogName]]
Fetched = tuple[Sequence[bytes | None], Sequence[int]]
Decoded = Sequence[Record | DeadLetterRow]
"""Records, and dead letters of those that are no valid events."""
Fetch = Callable[[Sequence[RowKey], Sequence[LogName]], Awaitable[Fetched]]
"""Rows, and the totals of logs, at the checkpoint, in the order requested."""

Steps = Generator[Request, Fetched, Result]
"""Synchronous work that requests rows as it goes; its caller fetches them. The garbage collector can therefore be
paused while the work runs, and never while rows are fetched (`collector.uncollected`)."""

# The rows of recent batches are cached, and a batch rarely needs others. The first missing rows (of a new agent or
# session) are fetched one by one; after some misses the needs of all records are collected and fetched together. One
# fetch costs about as much as collecting the needs of 64 records. A remote fetch also has network latency: there a
# small batch collects at its first miss.
_MISSES_BEFORE_PREFETCH = 16
_RECORDS_PER_MISS = 64

VERSION = 5
"""Raised whenever the fold's own tables change: those of answers, dead letters, kinds and the chain. The views are then
rebuilt."""

_REASONS = {"unparsable", "future_schema", "too_large"}
_ADDRESS = re.compile(r"0x[0-9a-f]+")


def _only_partition(space: str) -> int:
    return 0


class _ProjectionCalls:
    """The attributes of a projection that the loop over records uses, looked up once."""

    __slots__ = ("apply", "further_needs", "kinds", "name", "needs", "tables")

    def __init__(self, projection: Projection) -> None:
        self.name, self.needs, self.apply = projection.name, projection.needs, projection.apply
        self.further_needs: Callable[[Rows, Record], Iterable[RowKey]] = getattr(projection, "further_needs", _nothing)
        self.kinds: Collection[str] | None = getattr(projection, "kinds", None)
        self.tables = frozenset(table.name for table in projection.tables)


def _nothing(rows: Rows, record: Record) -> Iterable[RowKey]:
    return ()


class Fold:
    """The fold of a group of projections: a record is applied to all of them or to none."""

    def __init__(
        self,
        projections: Sequence[Projection],
        *,
        unique_ids: bool,
        partition_of: Callable[[str], int] = _only_partition,
        remember_until: datetime | None = None,
        remote: bool = False,
    ) -> None:
        self._remote = remote
        self._partition_of = partition_of
        self._projections = tuple(projections)
        calls = [_ProjectionCalls(projection) for projection in projections]
        named = {kind for each in calls for kind in each.kinds or ()}
        self._for_other_kinds = [each for each in calls if each.kinds is None]
        self._kinds_read = None if self._for_other_kinds else frozenset(named)
        """The only kinds that a projection reads; None: all."""
        self._by_kind = {kind: [each for each in calls if each.kinds is None or kind in each.kinds] for kind in named}
        self._with_further_needs = [each for each in calls if each.further_needs is not _nothing]
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

        Of the catalogue it covers the built-in kinds that a projection reads: another kind rebuilds nothing.
        `definitions` covers the kinds that are registered.
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

    def new_rows(self) -> Rows:
        return Rows(self.tables, strict=not self._all_builtin)

    async def process(
        self, records: "Decoded", rows: Rows, fetch: Fetch, changes_max: float = math.inf
    ) -> tuple[Changes, int]:
        """The changes of the first `records`, and how many these are: all, or as many as have `changes_max` changes.

        `rows` may hold rows from earlier records of the same generation.
        """
        steps = self._fold(records, rows, changes_max)
        resume = partial(next, steps)
        while True:
            with uncollected():
                try:
                    request = resume()
                except StopIteration as done:
                    return cast(tuple[Changes, int], done.value)
            resume = partial(steps.send, await fetch(*request))

    def decoded(self, batch: Batch) -> "Decoded":
        """The records of `batch`; for those that are no valid events, the dead letters that say why."""
        with uncollected():
            return [
                self._record(batch.partition, offset, data, event) if isinstance(event, Event) else event
                for offset, data, event in self._decoded(batch)
            ]

    def _fold(self, decoded: "Decoded", rows: Rows, changes_max: float) -> Steps[tuple[Changes, int]]:
        try:
            return (yield from self._apply_all(decoded, rows, changes_max))
        except ProjectionError:
            if rows.strict:
                raise
            # Some row cannot be stored. Folding again with every row checked turns its record into a dead letter.
            rows.clear()
            rows.strict = True
        return (yield from self._apply_all(decoded, rows, changes_max))

    def _apply_all(self, decoded: "Decoded", rows: Rows, changes_max: float) -> Steps[tuple[Changes, int]]:
        records = [record for record in decoded if isinstance(record, Record)]
        if self._identity is not None:
            for needs in self._identity.batches_of_needs(rows, records):
                yield from _load(rows, rows.missing(needs))
        misses_min = 1 if self._remote else _MISSES_BEFORE_PREFETCH
        misses, misses_before_prefetch = 0, max(misses_min, len(records) // _RECORDS_PER_MISS)
        count = 0
        for record in decoded:
            if rows.changed >= changes_max:
                break
            if isinstance(record, Record):
                missing_rows: Sequence[RowKey] = ()
                try:
                    dead_letter = self._apply(record, rows)
                except RowNotLoaded as missing:
                    missing_rows = missing.row_keys
                if missing_rows:
                    rows.undo()
                    misses += 1
                    if misses == misses_before_prefetch:
                        yield from self._load_needs(records, rows)
                    dead_letter = yield from self._apply_again(missing_rows, record, rows)
            else:
                dead_letter = record
            if dead_letter is not None:
                yield from _add_dead_letter(dead_letter, rows)
            rows.commit_record()
            count += 1
        return rows.changes(), count

    def _decoded(self, batch: Batch) -> list[tuple[int, bytes, Event | DeadLetterRow]]:
        """Offset, bytes, and the event in them or the dead letter that explains why there is no valid one."""
        decoded = [(offset, data, _decoded(offset, data)) for offset, data in batch.records]
        if batch.keys is None:
            return decoded
        valid_keys: dict[str, bytes | None] = {}  # by space, so that each space is checked once
        checked: list[tuple[int, bytes, Event | DeadLetterRow]] = []
        for (offset, data, event), key in zip(decoded, batch.keys, strict=True):
            result = event
            if isinstance(event, Event) and (key is None or valid_keys.get(event.space) != key):
                result = self._check_key(batch.partition, offset, key, event)
                if result is event:
                    valid_keys[event.space] = key
            checked.append((offset, data, result))
        return checked

    def _check_key(self, partition: int, offset: int, key: bytes | None, event: Event) -> Event | DeadLetterRow:
        """`event`, or a dead letter if its record has the wrong partition or key."""
        wrong = misplacement(partition, key, event.space, self._partition_of(event.space))
        if wrong is None:
            return event
        return DeadLetterRow(offset, wrong.reason, _storable(wrong.detail), event.space, event.id, event.kind)

    def _record(self, partition: int, offset: int, data: bytes, event: Event) -> Record:
        reached = self._remember_until is None or event.at <= self._remember_until
        memorable = reached and kinds.kind_of(event.kind).is_episode
        return Record(partition, offset, event, data, memorable, reached)

    def _load_needs(self, records: Sequence[Record], rows: Rows) -> Steps[None]:
        """Load what all `records` need, then what they need because of those rows."""
        yield from _load(rows, _missing(rows, self._needs(records)))
        yield from _load(rows, _missing(rows, self._further_needs(records, rows)))

    def _needs(self, records: Sequence[Record]) -> Iterator[RowKey]:
        for record in records:
            if (answering := answers.answering(record.event)) is not None:
                yield answering.row_key
            if record.event.kind not in BUILT_IN_KINDS:
                yield definitions.key_of(record.event.kind)
            for projection in self._by_kind.get(record.event.kind, self._for_other_kinds):
                try:
                    yield from projection.needs(record)
                except Exception:  # noqa: BLE001 - needs is a hint; errors of a record are those that `apply` raises
                    continue

    def _further_needs(self, records: Sequence[Record], rows: Rows) -> Iterator[RowKey]:
        for projection in self._with_further_needs:
            for record in records:
                if projection.kinds is not None and record.event.kind not in projection.kinds:
                    continue
                try:
                    yield from projection.further_needs(rows, record)
                except (Exception, RowNotLoaded):  # noqa: BLE001 - a hint, as `needs` is
                    continue

    def _apply_again(self, needs: Sequence[RowKey], record: Record, rows: Rows) -> Steps[DeadLetterRow | None]:
        """Fold a record that needs rows which are not loaded, again after each fetch until all of them are."""
        for _ in range(limits.PROJECTION_RERUNS_MAX):
            if needed := rows.missing(needs):
                named = _missing(rows, chain(self._needs([record]), self._further_needs([record], rows)))
                yield from _load(rows, list(dict.fromkeys([*needed, *named])))
            try:
                return self._apply(record, rows)
            except RowNotLoaded as missing:
                rows.undo()
                needs = missing.row_keys
        return _dead_letter(record, "projection_failed", "reads rows without end")

    def _apply(self, record: Record, rows: Rows) -> DeadLetterRow | None:
        rows.writable = None
        answering = answers.answering(record.event)
        if answering is not None and not answers.counts(rows, answering):
            return None
        if self._identity is not None:
            try:
                if not self._identity.first_seen(rows, record.event, record.offset):
                    return None
            except Conflict as conflict:
                return _dead_letter(
                    record, "conflict", f"its id names another event, at {record.partition}:{conflict.first}"
                )
        if answering is not None:
            answers.note(rows, answering)
        if record.event.kind not in BUILT_IN_KINDS:
            definitions.note(rows, record.event.kind)
        for projection in self._by_kind.get(record.event.kind, self._for_other_kinds):
            if rows.strict:
                rows.writable = projection.tables
            try:
                projection.apply(rows, record)
            except (InvariantViolation, MemoryError):
                raise
            except Exception as error:  # noqa: BLE001 - one bad record or projection must not stop the stream
                rows.undo()
                detail = f"{projection.name}: {type(error).__name__}: {_message(error)}"
                return _dead_letter(record, "projection_failed", detail)
        return None


def _add_dead_letter(dead_letter: DeadLetterRow, rows: Rows) -> Steps[None]:
    rows.writable = None
    row_key = RowKey(dead_letters.TABLE.name, "", "", dead_letters.key_of(dead_letter.offset))
    yield from _load(rows, rows.missing([row_key, RowKey(dead_letters.COUNT.name, "")]))
    count = rows.get(dead_letters.COUNT, "") or DeadLetterCount()
    future = count.future + (dead_letter.reason == "future_schema")
    rows.put(dead_letters.COUNT, DeadLetterCount(count.total + 1, future), "")
    rows.put(dead_letters.TABLE, dead_letter, "", key=row_key.key)


def _missing(rows: Rows, needs: Iterable[RowKey]) -> list[RowKey]:
    try:
        return rows.missing(needs)
    except TypeError:
        return []  # some projection's need is not even hashable


def _load(rows: Rows, needs: Sequence[RowKey]) -> Steps[None]:
    """Request the rows and totals of `needs`, and load them into `rows`."""
    if not needs:
        return
    of_rows = [need for need in needs if not rows.is_log(need)]
    of_logs = [need for need in needs if rows.is_log(need)]
    values, totals = yield of_rows, [LogName(*need[:3]) for need in of_logs]
    for need, data in zip(of_rows, values, strict=True):
        rows.load(need, data)
    for need, total in zip(of_logs, totals, strict=True):
        rows.load_total(need, total)


def _decoded(offset: int, data: bytes) -> Event | DeadLetterRow:
    try:
        return codec.decode(data)
    except InvalidEvent as error:
        return _rejected(offset, error)


def _rejected(offset: int, error: InvalidEvent) -> DeadLetterRow:
    """The dead letter of bytes that are not a valid event. It names the broken rule, not the library's message."""
    reason = error.rule if error.rule in _REASONS else "invalid"
    return DeadLetterRow(offset, reason, _storable(f"{error.path}: {error.rule}" if error.path else error.rule))


def _dead_letter(record: Record, reason: str, detail: str) -> DeadLetterRow:
    event = record.event
    return DeadLetterRow(record.offset, reason, _storable(detail), event.space, event.id, event.kind)


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
