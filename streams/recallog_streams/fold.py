"""The fold: it decides each record of a batch (applied, skipped as a repeat, or parked) and says what changes.

Pure but for the rows it asks for. Live projector, rebuild, verification, time travel and the test driver all run this.
"""

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from datetime import datetime
from typing import Any

from recallog_projections.projection import Log, LogName, Projection, RowKey, Table
from recallog_projections.rows import Changes, RowNotLoaded, Rows
from recallog_projections.views import builtin
from recallog_schemas import Event, Record, codec, kinds, limits
from recallog_schemas.errors import InvalidEvent, InvariantViolation, ProjectionError
from recallog_streams import dead_letters
from recallog_streams.dead_letters import DeadLetterCount, DeadLetterRow
from recallog_streams.identity import Conflict, Identity
from recallog_streams.ledgers.ledger import Batch

Fetch = Callable[[Sequence[RowKey], Sequence[LogName]], Awaitable[tuple[Sequence[bytes | None], Sequence[int]]]]
"""Rows and the totals of logs as they stand at the checkpoint, in the order asked for."""

# The rows of the last batches are still here, and mostly all that a batch needs: a few agents or sessions seen for the
# first time are fetched one by one, and only then is every record asked what it needs. One fetch costs about as much as
# asking 64 records; where it crosses a network it also takes its time, so of a small batch the first miss asks.
_MISSES_BEFORE_ASKING = 16
_RECORDS_ASKED_PER_MISS = 64

VERSION = 2
"""Raised whenever the fold's own tables (dead letters, identity) change; the views are then rebuilt."""

_REASONS = {"unparsable", "future_schema", "too_large"}
_ADDRESS = re.compile(r"0x[0-9a-f]+")


def _only_partition(space: str) -> int:
    return 0


class _Folded:
    """A projection as the loop over records calls it."""

    __slots__ = ("apply", "kinds", "name", "needs", "tables")

    def __init__(self, projection: Projection) -> None:
        self.name, self.needs, self.apply = projection.name, projection.needs, projection.apply
        self.kinds: Collection[str] | None = getattr(projection, "kinds", None)
        self.tables = frozenset(table.name for table in projection.tables)


class Fold:
    """The projections of one projector, folded together: a record counts for all of them or for none."""

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
        folded = [_Folded(projection) for projection in projections]
        named = {kind for each in folded for kind in each.kinds or ()}
        self._of_other_kinds = [each for each in folded if each.kinds is None]
        self._by_kind = {kind: [each for each in folded if each.kinds is None or kind in each.kinds] for kind in named}
        self._all_builtin = builtin.all_builtin(projections)
        self._identity = None if unique_ids else Identity()
        self._remember_until = remember_until
        names = [projection.name for projection in projections]
        if len(set(names)) < len(names):
            raise ProjectionError(f"two projections have the same name: {sorted(names)}")
        self.tables: list[Table[Any] | Log[Any]] = [dead_letters.TABLE, dead_letters.COUNT]
        self.tables += [table for projection in projections for table in projection.tables]
        self.tables += Identity.tables if self._identity else ()
        if len({table.name for table in self.tables}) < len(self.tables):
            raise ProjectionError("two tables of the projections have the same name")

    @property
    def code(self) -> str:
        """What writes the rows, as JSON: other code never writes the same generation."""
        versions = {projection.name: projection.version for projection in self._projections}
        catalogue = {"catalogue": kinds.CATALOGUE_VERSION, "digest": codec.schema_digest()}
        keep = {table.name: table.keep for table in self.tables if isinstance(table, Log)}
        code = {"fold": VERSION, "projections": versions, "keep": keep, **catalogue}
        made = {each.name: each.made_with for each in self._projections if hasattr(each, "made_with")}
        return json.dumps({**code, "made_with": made} if made else code, sort_keys=True)

    def new_rows(self) -> Rows:
        return Rows(self.tables, strict=not self._all_builtin)

    async def process(self, batch: Batch, rows: Rows, fetch: Fetch) -> Changes:
        """What the records of `batch` change. `rows` holds what earlier batches of the same generation have seen."""
        decoded = self._decoded(batch)
        try:
            return await self._fold(batch.partition, decoded, rows, fetch)
        except ProjectionError:
            if rows.strict:
                raise
            # Some row cannot be stored. Folded once more with every row looked at, its record is parked.
            rows.clear()
            rows.strict = True
            return await self._fold(batch.partition, decoded, rows, fetch)

    async def _fold(
        self, partition: int, decoded: Sequence[tuple[int, bytes, Event | DeadLetterRow]], rows: Rows, fetch: Fetch
    ) -> Changes:
        records = [
            self._record(partition, offset, data, event) for offset, data, event in decoded if isinstance(event, Event)
        ]
        if self._identity is not None:
            for needs in self._identity.batches_of_needs(rows, records):
                await _fetch(rows, fetch, rows.missing(needs))
        following = iter(records)
        least = 1 if self._remote else _MISSES_BEFORE_ASKING
        misses, patience = 0, max(least, len(records) // _RECORDS_ASKED_PER_MISS)
        for _, _, event in decoded:
            if isinstance(event, Event):
                record, need = next(following), None
                try:
                    dead_letter = self._apply(record, rows)
                except RowNotLoaded as missing:
                    need = missing.need
                if need is not None:
                    rows.undo()
                    misses += 1
                    if misses == patience:
                        await _fetch(rows, fetch, self._missing(rows, records))
                    dead_letter = await self._apply_again(need, record, rows, fetch)
            else:
                dead_letter = event
            if dead_letter is not None:
                await self._add_dead_letter(dead_letter, rows, fetch)
            rows.commit_record()
        return rows.changes()

    def _decoded(self, batch: Batch) -> list[tuple[int, bytes, Event | DeadLetterRow]]:
        """Offset, bytes, and the event that they hold or the reason why they hold none that counts."""
        decoded = [(offset, data, _decoded(offset, data)) for offset, data in batch.records]
        if batch.keys is None:
            return decoded
        keys: dict[str, bytes | None] = {}  # of the spaces that were found in their place, so that each is judged once
        placed: list[tuple[int, bytes, Event | DeadLetterRow]] = []
        for (offset, data, event), key in zip(decoded, batch.keys, strict=True):
            found = event
            if isinstance(event, Event) and (key is None or keys.get(event.space) != key):
                found = self._placed(batch.partition, offset, key, event)
                if found is event:
                    keys[event.space] = key
            placed.append((offset, data, found))
        return placed

    def _placed(self, partition: int, offset: int, key: bytes | None, event: Event) -> Event | DeadLetterRow:
        """`event`, unless it lies where the order of its space does not reach, or where its space is not looked for."""
        if key == event.space.encode() and self._partition_of(event.space) == partition:
            return event
        if (expected := self._partition_of(event.space)) != partition:
            reason, detail = "wrong_partition", f"its space {event.space!r} lies in partition {expected}"
        else:
            reason, detail = "wrong_key", f"its key is {key!r}, not its space {event.space!r}"
        return DeadLetterRow(offset, reason, _storable(detail), event.space, event.id, event.kind)

    def _record(self, partition: int, offset: int, data: bytes, event: Event) -> Record:
        reached = self._remember_until is None or event.at <= self._remember_until
        memorable = reached and not kinds.kind_of(event.kind).bookkeeping
        return Record(partition, offset, event, data, memorable, reached)

    def _missing(self, rows: Rows, records: Sequence[Record]) -> list[RowKey]:
        try:
            return rows.missing(self._needs(records))
        except TypeError:
            return []  # some projection's need is not even hashable

    def _needs(self, records: Sequence[Record]) -> Iterator[RowKey]:
        for record in records:
            for folded in self._by_kind.get(record.event.kind, self._of_other_kinds):
                try:
                    yield from folded.needs(record)
                except Exception:  # noqa: BLE001 - needs is a hint; it is `apply` that judges the record
                    continue

    async def _apply_again(self, need: RowKey, record: Record, rows: Rows, fetch: Fetch) -> DeadLetterRow | None:
        """Fold a record that touched a row which was not there, as often as it takes until all of them are.

        Nothing is awaited while the exception is handled. It holds the frames that hold the batch, and becomes the
        context of whatever the store's client raises and keeps in a cycle: no cycles are collected while batches are
        folded, and a worker of 8 partitions once held 116 batches so.
        """
        for _ in range(limits.PROJECTION_RERUNS_MAX):
            if needed := rows.missing([need]):
                await _fetch(rows, fetch, list(dict.fromkeys([*needed, *self._missing(rows, [record])])))
            try:
                return self._apply(record, rows)
            except RowNotLoaded as missing:
                rows.undo()
                need = missing.need
        return _dead_letter(record, "projection_failed", "reads rows without end")

    def _apply(self, record: Record, rows: Rows) -> DeadLetterRow | None:
        rows.writable = None
        if self._identity is not None:
            try:
                if not self._identity.first_seen(rows, record.event, record.offset, record.data):
                    return None
            except Conflict as conflict:
                return _dead_letter(
                    record, "conflict", f"its id names another event, at {record.partition}:{conflict.first}"
                )
        for folded in self._by_kind.get(record.event.kind, self._of_other_kinds):
            rows.writable = folded.tables
            try:
                folded.apply(rows, record)
            except (InvariantViolation, MemoryError):
                raise
            except Exception as error:  # noqa: BLE001 - one bad record or projection must not stop the stream
                rows.undo()
                said = f"{folded.name}: {type(error).__name__}: {_said(error)}"
                return _dead_letter(record, "projection_failed", said)
        return None

    async def _add_dead_letter(self, dead_letter: DeadLetterRow, rows: Rows, fetch: Fetch) -> None:
        rows.writable = None
        row_key = RowKey(dead_letters.TABLE.name, "", "", dead_letters.key_of(dead_letter.offset))
        await _fetch(rows, fetch, rows.missing([row_key, RowKey(dead_letters.COUNT.name, "")]))
        count = rows.get(dead_letters.COUNT, "") or DeadLetterCount()
        future = count.future + (dead_letter.reason == "future_schema")
        rows.put(dead_letters.COUNT, DeadLetterCount(count.total + 1, future), "")
        rows.put(dead_letters.TABLE, dead_letter, "", key=row_key.key)


async def _fetch(rows: Rows, fetch: Fetch, needs: Sequence[RowKey]) -> None:
    if not needs:
        return
    of_rows = [need for need in needs if not rows.is_log(need)]
    of_logs = [need for need in needs if rows.is_log(need)]
    values, totals = await fetch(of_rows, [LogName(*need[:3]) for need in of_logs])
    for need, data in zip(of_rows, values, strict=True):
        rows.fetched(need, data)
    for need, total in zip(of_logs, totals, strict=True):
        rows.fetched_total(need, total)


def _decoded(offset: int, data: bytes) -> Event | DeadLetterRow:
    try:
        return codec.decode(data)
    except InvalidEvent as error:
        return _rejected(offset, error)


def _rejected(offset: int, error: InvalidEvent) -> DeadLetterRow:
    """The dead letter of bytes that are no event. It names the broken rule, not the library's words for it."""
    reason = error.rule if error.rule in _REASONS else "invalid"
    return DeadLetterRow(offset, reason, _storable(f"{error.path}: {error.rule}" if error.path else error.rule))


def _dead_letter(record: Record, reason: str, detail: str) -> DeadLetterRow:
    event = record.event
    return DeadLetterRow(record.offset, reason, _storable(detail), event.space, event.id, event.kind)


def _said(error: Exception) -> str:
    """The error's words without addresses in memory, which no two folds share."""
    try:
        return _ADDRESS.sub("0x…", str(error))
    except Exception:  # noqa: BLE001 - a projection's own error may fail at that too
        return ""


def _storable(detail: str) -> str:
    """Bounded, and without the half surrogate pairs that JSON can name and UTF-8 cannot hold."""
    return detail[: limits.DEAD_LETTER_DETAIL_CHARS_MAX].encode("utf-8", "replace").decode()


def digest_of(data: bytes) -> bytes:
    """16 bytes (blake2b) by which a checkpoint recognises the last record it has decided."""
    return hashlib.blake2b(data, digest_size=16).digest()
