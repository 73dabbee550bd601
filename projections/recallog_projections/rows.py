"""The rows of one batch in memory: what projections read and write while they fold it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from recallog_projections.tables import Log, RowKey, Table
from recallog_schemas.errors import ProjectionError

Row = TypeVar("Row", bound=msgspec.Struct)


@dataclass(slots=True)
class Changes:
    """What one commit writes: rows (None deletes) and log entries in order."""

    rows: Mapping[tuple[str, str, str, str], bytes | None] = field(default_factory=dict)
    """By (table, space, owner, key)."""
    logs: Mapping[tuple[str, str, str], Sequence[bytes]] = field(default_factory=dict)
    """By (log, space, owner)."""
    keep: Mapping[str, int] = field(default_factory=dict)
    """By log name: how many of the newest entries stay."""


class RowNotLoaded(BaseException):
    """A row that was touched but not fetched. Not an `Exception`, so that no projection swallows it."""

    def __init__(self, need: RowKey) -> None:
        super().__init__(need)
        self.need = need


class Rows:
    """Rows as they stand after the records folded so far, with an undo for the record being folded.

    Rows are encoded once, when the batch ends. With `strict` each is checked as it is written, so that one that cannot
    be stored is found out while the record that wrote it is still being folded.
    """

    def __init__(self, tables: Iterable[Table[Any] | Log[Any]], *, strict: bool = True) -> None:
        self._tables = {table.name: table for table in tables}
        self.strict = strict
        self.writable: Collection[str] | None = None
        """The names of the tables that may be written now; None: all of them. Looked at with `strict` only."""
        self.clear()

    def clear(self) -> None:
        """Forget everything, also what was fetched."""
        self._values: dict[tuple[str, str, str, str], Any] = {}
        self._totals: dict[tuple[str, str, str], int] = {}
        self._appended: dict[tuple[str, str, str], int] = {}
        self._changed: dict[tuple[str, str, str, str], Any] = {}
        """The places that were written; what stands beside them says nothing."""
        self._entries: list[tuple[tuple[str, str, str], Log[Any], Any]] = []
        self._undo: dict[tuple[str, str, str, str], Any] = {}
        """What the rows were that the record being folded has written."""
        self._entries_before = 0

    def get(self, table: Table[Row], space: str, owner: str = "", key: str = "") -> Row | None:
        """The row, or None where there is none."""
        row_key = (table.name, space, owner, key)
        try:
            return self._values[row_key]  # type: ignore[no-any-return]
        except KeyError:
            raise self._unfetched(row_key) from None

    def put(self, table: Table[Row], row: Row, space: str, owner: str = "", key: str = "") -> None:
        """Write the row. Raises `ProjectionError` where it is none of this table's."""
        if self.strict:
            self._check_writable(table)
            table.check(row)
        row_key = (table.name, space, owner, key)
        values = self._values
        try:
            before = values[row_key]
        except KeyError:
            if not table.write_only or not _is_address(row_key):
                raise self._unfetched(row_key) from None
            before = None
        self._undo.setdefault(row_key, before)
        values[row_key] = row

    def delete(self, table: Table[Row], space: str, owner: str = "", key: str = "") -> None:
        """Delete the row; nothing happens where there is none."""
        if self.strict:
            self._check_writable(table)
        row_key = (table.name, space, owner, key)
        if row_key not in self._values and not (table.write_only and _is_address(row_key)):
            raise self._unfetched(row_key)
        self._undo.setdefault(row_key, self._values.get(row_key))
        self._values[row_key] = None

    def append(self, log: Log[Row], entry: Row, space: str, owner: str = "") -> None:
        """Add `entry` to the end of a log; the oldest entries beyond `log.keep` go."""
        if self._tables.get(log.name) is not log:
            raise _unknown("log", log.name)
        if self.strict:
            self._check_writable(log)
            if not isinstance(log, Log):
                raise ProjectionError(f"{log.name!r} is a table, not a log")
            if not _is_address((space, owner)):
                raise ProjectionError(f"{(space, owner)!r} is no address of a log: space and owner are text")
            log.check(entry)
        row_key = (log.name, space, owner)
        self._entries.append((row_key, log, entry))
        self._appended[row_key] = self._appended.get(row_key, 0) + 1

    def _check_writable(self, table: Table[Any] | Log[Any]) -> None:
        if self._tables.get(table.name) is not table:
            raise _unknown("table", table.name)
        if self.writable is not None and table.name not in self.writable:
            raise ProjectionError(
                f"the table {table.name!r} belongs to another projection; it may be read, not written"
            )

    def total(self, log: Log[Row], space: str, owner: str = "") -> int:
        """How many entries were ever appended to a log, those of the record being folded included."""
        row_key = (log.name, space, owner)
        try:
            return self._totals[row_key] + self._appended.get(row_key, 0)
        except KeyError:
            pass
        if not isinstance(self._tables.get(log.name), Log):
            raise _unknown("log", log.name)
        if not _is_address(row_key):
            raise ProjectionError(f"{row_key[1:]!r} is no address of a log: space and owner are text")
        raise RowNotLoaded(RowKey(*row_key))

    def _unfetched(self, row_key: tuple[str, str, str, str]) -> BaseException:
        if not isinstance(self._tables.get(row_key[0]), Table):
            return _unknown("table", row_key[0])
        if not _is_address(row_key):
            return ProjectionError(f"{row_key[1:]!r} is no address of a row: space, owner and key are text")
        return RowNotLoaded(RowKey(*row_key))

    def missing(self, needs: Iterable[RowKey]) -> list[RowKey]:
        """Those of `needs` that are not here yet, each once; what is no address of a table is passed over."""
        missing = {need: None for need in needs if need not in self._values}
        return [need for need in missing if isinstance(need, RowKey) and self._is_missing(need)]

    def _is_missing(self, need: RowKey) -> bool:
        return need.table in self._tables and need[:3] not in self._totals and _is_address(need)

    def is_log(self, need: RowKey) -> bool:
        """Whether a log's total is needed, and not a row."""
        return isinstance(self._tables[need.table], Log)

    def fetched(self, need: RowKey, data: bytes | None) -> None:
        """Take in a row as it stands in the store."""
        if need not in self._values:
            self._values[need] = None if data is None else self._tables[need.table].decode(data)

    def fetched_total(self, need: RowKey, total: int) -> None:
        """Take in a log's total as it stands in the store: what this batch appends comes on top."""
        self._totals.setdefault(need[:3], total)

    def commit_record(self) -> None:
        """The record is decided: what it wrote stays."""
        self._changed.update(self._undo)
        self._undo.clear()
        self._entries_before = len(self._entries)

    def undo(self) -> None:
        """Forget what the record has written so far."""
        self._values.update(self._undo)
        for log, _, _ in self._entries[self._entries_before :]:
            self._appended[log] -= 1
        del self._entries[self._entries_before :]
        self._undo.clear()

    def changes(self) -> Changes:
        """All that changed since the last call, ready for one commit. Raises `ProjectionError`; then `clear`."""
        self.commit_record()
        rows = {
            row_key: None if (row := self._values[row_key]) is None else self._tables[row_key[0]].encode(row)
            for row_key in self._changed
        }
        logs: dict[tuple[str, str, str], list[bytes]] = {}
        keep: dict[str, int] = {}
        for row_key, log, entry in self._entries:
            data = log.encode(entry)
            try:
                logs[row_key].append(data)
            except KeyError:
                logs[row_key] = [data]
                keep[log.name] = log.keep
        for row_key in self._totals.keys() & self._appended.keys():
            self._totals[row_key] += self._appended[row_key]
        for written in rows:
            if getattr(self._tables[written[0]], "write_only", False):
                del self._values[written]
        self._changed, self._entries, self._entries_before, self._appended = {}, [], 0, {}
        return Changes(rows, logs, keep)

    def forget(self, table: Table[Any]) -> None:
        """Forget the rows of one table that the store holds: they are fetched again where they are needed."""
        name = table.name
        self._values = {
            row_key: row for row_key, row in self._values.items() if row_key[0] != name or row_key in self._changed
        }

    def __len__(self) -> int:
        return len(self._values)


def _unknown(what: str, name: str) -> ProjectionError:
    return ProjectionError(f"the {what} {name!r} is not among those of the projections")


def _is_address(row_key: tuple[str, ...]) -> bool:
    """Whether every part is text that a store can keep; a session that is None is the usual slip."""
    try:
        "".join(row_key).encode()
    except (TypeError, UnicodeEncodeError):
        return False
    return True
