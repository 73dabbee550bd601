"""The rows that projections read and write while they fold a batch, in memory."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from recallog_projections.tables import Log, RowKey, Table
from recallog_schemas.errors import ProjectionError

Row = TypeVar("Row", bound=msgspec.Struct)


@dataclass(slots=True)
class Changes:
    """The rows (None deletes) and the log entries, in order, that one commit writes."""

    rows: Mapping[tuple[str, str, str, str], bytes | None] = field(default_factory=dict)
    """By (table, space, owner, key)."""
    logs: Mapping[tuple[str, str, str], Sequence[bytes]] = field(default_factory=dict)
    """By (log, space, owner)."""
    keep: Mapping[str, int] = field(default_factory=dict)
    """By log name: how many of the newest entries are retained."""


class RowNotLoaded(BaseException):
    """A projection used rows that are not loaded. Not an `Exception`, so that no projection catches it by accident."""

    def __init__(self, *row_keys: RowKey) -> None:
        super().__init__(*row_keys)
        self.row_keys = row_keys


class Rows:
    """The current rows of a batch, with an undo for the record being folded.

    Rows are encoded once, at the end of the batch. With `strict` each row is checked when it is written, so that an
    invalid row fails the record that wrote it and not the batch.
    """

    def __init__(self, tables: Iterable[Table[Any] | Log[Any]], *, strict: bool = True) -> None:
        self._tables = {table.name: table for table in tables}
        self.strict = strict
        self.writable: Collection[str] | None = None
        """The names of the tables that may be written now; None means all. Checked only with `strict`."""
        self.clear()

    def clear(self) -> None:
        """Drop all rows and changes."""
        self._values: dict[tuple[str, str, str, str], Any] = {}
        self._totals: dict[tuple[str, str, str], int] = {}
        self._appended: dict[tuple[str, str, str], int] = {}
        self._changed: dict[tuple[str, str, str, str], Any] = {}
        """The keys of the rows that were written; the values are not used."""
        self._entries: list[tuple[tuple[str, str, str], Log[Any], Any]] = []
        self._undo: dict[tuple[str, str, str, str], Any] = {}
        """The previous values of the rows that the record being folded has written."""
        self._entries_before = 0

    def get(self, table: Table[Row], space: str, owner: str = "", key: str = "") -> Row | None:
        """The row, None if it does not exist. Raises `RowNotLoaded` if it is not loaded."""
        row_key = (table.name, space, owner, key)
        try:
            return self._values[row_key]  # type: ignore[no-any-return]
        except KeyError:
            raise self._not_loaded(row_key) from None

    def put(self, table: Table[Row], row: Row, space: str, owner: str = "", key: str = "") -> None:
        """Write the row. Raises `ProjectionError` if it does not fit the table, `RowNotLoaded` if it is not loaded."""
        if self.strict:
            self._check_writable(table)
            table.check(row)
        row_key = (table.name, space, owner, key)
        values = self._values
        before = values.get(row_key)
        if before is None and row_key not in values and not self._is_new(table, row_key):
            raise self._not_loaded(row_key)
        self._undo.setdefault(row_key, before)
        values[row_key] = row

    def _is_new(self, table: Table[Any], row_key: tuple[str, str, str, str]) -> bool:
        """Whether a row may be written that was not loaded. Built-in projections have their addresses from valid
        events."""
        return table.write_only and (not self.strict or _is_address(row_key))

    def delete(self, table: Table[Row], space: str, owner: str = "", key: str = "") -> None:
        """Delete the row if it exists. Raises `RowNotLoaded` if it is not loaded."""
        if self.strict:
            self._check_writable(table)
        row_key = (table.name, space, owner, key)
        if row_key not in self._values and not (table.write_only and _is_address(row_key)):
            raise self._not_loaded(row_key)
        self._undo.setdefault(row_key, self._values.get(row_key))
        self._values[row_key] = None

    def append(self, log: Log[Row], entry: Row, space: str, owner: str = "") -> None:
        """Append `entry` to a log. The commit drops the oldest entries beyond `log.keep`."""
        if self._tables.get(log.name) is not log:
            raise _unknown("log", log.name)
        if self.strict:
            self._check_writable(log)
            if not isinstance(log, Log):
                raise ProjectionError(f"{log.name!r} is a table, not a log")
            if not _is_address((space, owner)):
                raise ProjectionError(f"{(space, owner)!r} is not the address of a log: space and owner must be text")
            log.check(entry)
        log_name = (log.name, space, owner)
        self._entries.append((log_name, log, entry))
        self._appended[log_name] = self._appended.get(log_name, 0) + 1

    def _check_writable(self, table: Table[Any] | Log[Any]) -> None:
        if self._tables.get(table.name) is not table:
            raise _unknown("table", table.name)
        if self.writable is not None and table.name not in self.writable:
            raise ProjectionError(
                f"the table {table.name!r} belongs to another projection; it may be read, not written"
            )

    def total(self, log: Log[Row], space: str, owner: str = "") -> int:
        """How many entries were ever appended to a log, including those of the record being folded.

        Raises `RowNotLoaded` if the total is not loaded.
        """
        log_name = (log.name, space, owner)
        try:
            return self._totals[log_name] + self._appended.get(log_name, 0)
        except KeyError:
            pass
        if not isinstance(self._tables.get(log.name), Log):
            raise _unknown("log", log.name)
        if not _is_address(log_name):
            raise ProjectionError(f"{log_name[1:]!r} is not the address of a log: space and owner must be text")
        raise RowNotLoaded(RowKey(*log_name))

    def _not_loaded(self, row_key: tuple[str, str, str, str]) -> BaseException:
        if not isinstance(self._tables.get(row_key[0]), Table):
            return _unknown("table", row_key[0])
        if not _is_address(row_key):
            return ProjectionError(f"{row_key[1:]!r} is not the address of a row: space, owner and key must be text")
        return RowNotLoaded(RowKey(*row_key))

    def require(self, needs: Iterable[RowKey]) -> None:
        """Raise `RowNotLoaded` for all rows of `needs` that are not loaded, so that they are loaded in one call.

        For a projection whose rows follow from what the record has changed in others, so that no need names them.
        """
        missing = self.missing(needs)
        if missing:
            raise RowNotLoaded(*missing)

    def missing(self, needs: Iterable[RowKey]) -> list[RowKey]:
        """Those of `needs` that are not loaded, without duplicates. Invalid addresses are ignored."""
        missing = {need: None for need in needs if need not in self._values}
        return [need for need in missing if isinstance(need, RowKey) and self._is_missing(need)]

    def _is_missing(self, need: RowKey) -> bool:
        return need.table in self._tables and need[:3] not in self._totals and _is_address(need)

    def is_log(self, need: RowKey) -> bool:
        """Whether `need` names a log, of which the total is loaded, and not a row."""
        return isinstance(self._tables[need.table], Log)

    def load(self, need: RowKey, data: bytes | None) -> None:
        """Add a row as the store holds it, None if it does not exist. A row that is loaded already stays."""
        if need not in self._values:
            self._values[need] = None if data is None else self._tables[need.table].decode(data)

    def load_total(self, need: RowKey, total: int) -> None:
        """Add the total of a log as the store holds it, without the entries of this batch."""
        self._totals.setdefault(need[:3], total)

    def written(self, table: Table[Row]) -> list[tuple[Row | None, Row | None]]:
        """The rows of `table` that the record being folded has written so far: each before this record, and now."""
        return [(before, self._values[row_key]) for row_key, before in self._undo.items() if row_key[0] == table.name]

    def before(self, table: Table[Row], space: str, owner: str = "", key: str = "") -> Row | None:
        """The row as it was before the record being folded. Raises `RowNotLoaded` if it is not loaded."""
        row_key = (table.name, space, owner, key)
        return self._undo[row_key] if row_key in self._undo else self.get(table, space, owner, key)

    def commit_record(self) -> None:
        """Finish the record being folded: its writes can no longer be undone."""
        self._changed.update(self._undo)
        self._undo.clear()
        self._entries_before = len(self._entries)

    def undo(self) -> None:
        """Undo the writes of the record being folded."""
        self._values.update(self._undo)
        for log, _, _ in self._entries[self._entries_before :]:
            self._appended[log] -= 1
        del self._entries[self._entries_before :]
        self._undo.clear()

    def changes(self) -> Changes:
        """The encoded changes since the last call, for one commit.

        Raises `ProjectionError` if a row cannot be encoded; `clear` must be called then.
        """
        self.commit_record()
        rows = {
            row_key: None if (row := self._values[row_key]) is None else self._tables[row_key[0]].encode(row)
            for row_key in self._changed
        }
        logs: dict[tuple[str, str, str], list[bytes]] = {}
        keep: dict[str, int] = {}
        for log_name, log, entry in self._entries:
            data = log.encode(entry)
            try:
                logs[log_name].append(data)
            except KeyError:
                logs[log_name] = [data]
                keep[log.name] = log.keep
        for log_name in self._totals.keys() & self._appended.keys():
            self._totals[log_name] += self._appended[log_name]
        for written in rows:
            if getattr(self._tables[written[0]], "write_only", False):
                del self._values[written]
        self._changed, self._entries, self._entries_before, self._appended = {}, [], 0, {}
        return Changes(rows, logs, keep)

    @property
    def changed(self) -> int:
        """How many rows and log entries the records have written that `changes` has not returned yet."""
        return len(self._changed) + len(self._entries)

    def evict(self, table: Table[Any]) -> None:
        """Drop the unchanged rows of one table; they are loaded again when they are needed."""
        name = table.name
        self._values = {
            row_key: row for row_key, row in self._values.items() if row_key[0] != name or row_key in self._changed
        }

    def __len__(self) -> int:
        return len(self._values)


def _unknown(what: str, name: str) -> ProjectionError:
    return ProjectionError(f"the {what} {name!r} does not belong to any of the projections")


def _is_address(row_key: tuple[str, ...]) -> bool:
    """Whether every part is text that can be encoded. The usual mistake is a session that is None."""
    try:
        "".join(row_key).encode()
    except (TypeError, UnicodeEncodeError):
        return False
    return True
