"""The rows that projections read and write while they fold a batch, in memory.

A row that is not loaded is fetched when it is read, if the store can be read in the same thread (`Rows.fetch`). Else it
is read as if it did not exist, and its address is noted. The caller then undoes what was written, fetches the noted
rows, and folds again.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from recallog_projections.tables import Log, LogName, RowKey, Table
from recallog_schemas import limits
from recallog_schemas.errors import ProjectionError

Row = TypeVar("Row", bound=msgspec.Struct)
Fetched = tuple[Sequence[bytes | None], Sequence[int]]
"""Rows, and the totals of logs, in the order requested."""
FetchHere = Callable[[Sequence[RowKey], Sequence[LogName]], Fetched]
"""Fetches them at the checkpoint, in the calling thread."""
_Address = tuple[str, str, str, str]
"""Table, space, owner and key."""
_LogAddress = tuple[str, str, str]

_NOT_LOADED: Any = object()


@dataclass(slots=True)
class Changes:
    """The rows (None deletes) and the log entries, in order, that one commit writes."""

    rows: Mapping[tuple[str, str, str, str], bytes | None] = field(default_factory=dict)
    """By (table, space, owner, key)."""
    logs: Mapping[tuple[str, str, str], Sequence[bytes]] = field(default_factory=dict)
    """By (log, space, owner)."""
    keep: Mapping[str, int] = field(default_factory=dict)
    """By log name: how many of the newest entries are retained."""


class EndlessReads(BaseException):
    """Projections read more rows that are not loaded than any batch needs. Not an `Exception`, so that no projection
    catches it by accident."""


class FetchFailed(BaseException):
    """A row could not be fetched or decoded. Not an `Exception`: the projection that reads it has not failed."""


class Rows:
    """The current rows of a batch, with an undo for the run being folded and for the whole batch.

    Rows are encoded once, at the end of the batch. With `strict` each row is checked when it is written, so that an
    invalid row fails the record that wrote it and not the batch.
    """

    def __init__(self, tables: Iterable[Table[Any] | Log[Any]], *, strict: bool = True, complete: bool = False) -> None:
        """`complete` says that no row exists except those that this object has written."""
        self._tables = {table.name: table for table in tables}
        self._not_cached = frozenset(name for name, table in self._tables.items() if _is_write_only(table))
        self.strict = strict
        self.writable: Collection[str] | None = None
        """The names of the tables that may be written now; None means all. Checked only with `strict`."""
        self.fetch: FetchHere | None = None
        """Fetches rows that are not loaded when they are read. If None, their addresses are noted."""
        self.clear()
        self._complete = complete

    def clear(self) -> None:
        """Drop all rows and changes."""
        self._complete = False
        self._values: dict[_Address, Any] = {}
        self._totals: dict[_LogAddress, int] = {}
        self._before: dict[_Address, Any] = {}
        """The rows that the batch has written, as they were before it."""
        self._before_run: dict[_Address, Any] = {}
        """The rows that the run being folded has written, as they were before it."""
        self._before_guesses: dict[_Address, Any] = {}
        self._entries: dict[_LogAddress, list[Any]] = {}
        """What the batch has appended."""
        self._appended: list[tuple[list[Any], int]] = []
        """The lists to which the run being folded, and guesses, have appended, and how long they were."""
        self._entries_count = 0
        self._wanted: dict[_Address | _LogAddress, None] = {}
        self._read_absent = 0
        self.is_wanting = False
        """Whether the run being folded has read rows, or totals of logs, that are not loaded: it must be undone."""

    def get(self, table: Table[Row], space: str, owner: str = "", key: str = "") -> Row | None:
        """The row, None if it does not exist."""
        address = (table.name, space, owner, key)
        row = self._values.get(address, _NOT_LOADED)
        if row is _NOT_LOADED:
            self._want(table, address)
            return self._values.get(address)
        return row  # type: ignore[no-any-return]

    def put(self, table: Table[Row], row: Row, space: str, owner: str = "", key: str = "") -> None:
        """Write the row. Raises `ProjectionError` if it does not fit the table."""
        address = (table.name, space, owner, key)
        if self.strict:
            self._check_writable(table)
            _check_address(address)
            table.check(row)
        values = self._values
        self._before_run.setdefault(address, values.get(address, _NOT_LOADED))
        values[address] = row

    def delete(self, table: Table[Row], space: str, owner: str = "", key: str = "") -> None:
        """Delete the row if it exists."""
        address = (table.name, space, owner, key)
        if self.strict:
            self._check_writable(table)
            _check_address(address)
        self._before_run.setdefault(address, self._values.get(address, _NOT_LOADED))
        self._values[address] = None

    def append(self, log: Log[Row], entry: Row, space: str, owner: str = "") -> None:
        """Append `entry` to a log. The commit drops the oldest entries beyond `log.keep`."""
        self.extend(log, (entry,), space, owner)

    def extend(self, log: Log[Row], entries: Sequence[Row], space: str, owner: str = "") -> None:
        """Append `entries` to a log, in their order."""
        address = (log.name, space, owner)
        if self.strict:
            self._check_appendable(log, address)
            for entry in entries:
                log.check(entry)
        try:
            appended = self._entries[address]
        except KeyError:
            appended = self._entries[address] = []
        self._appended.append((appended, len(appended)))
        appended += entries
        self._entries_count += len(entries)

    def _check_writable(self, table: Table[Any] | Log[Any]) -> None:
        if self._tables.get(table.name) is not table:
            raise _unknown("table", table.name)
        if self.writable is not None and table.name not in self.writable:
            raise ProjectionError(
                f"the table {table.name!r} belongs to another projection; it may be read, not written"
            )

    def _check_appendable(self, log: Log[Any], address: _LogAddress) -> None:
        if self._tables.get(log.name) is not log:
            raise _unknown("log", log.name)
        self._check_writable(log)
        self._check_log(log.name, address)

    def _check_log(self, name: str, address: _LogAddress) -> None:
        if not isinstance(self._tables.get(name), Log):
            raise ProjectionError(f"{name!r} is a table, not a log") if name in self._tables else _unknown("log", name)
        if not _is_address(address):
            raise ProjectionError(f"{address[1:]!r} is not the address of a log: space and owner must be text")

    def total(self, log: Log[Row], space: str, owner: str = "") -> int:
        """How many entries were ever appended to a log, including those of the run being folded."""
        address = (log.name, space, owner)
        before = self._totals.get(address)
        if before is None:
            self._check_log(log.name, address)
            if not self._complete:
                self._note(address)
            before = self._totals.get(address, 0)
        return before + len(self._entries.get(address, ()))

    def _want(self, table: Table[Any], address: _Address) -> None:
        """Read a row that is not loaded."""
        if self.strict or not self._complete:
            if not isinstance(self._tables.get(table.name), Table):
                raise _unknown("table", table.name)
            _check_address(address)
            self._read_absent += 1
            if max(self._read_absent, len(self._wanted)) > limits.ROWS_WANTED_MAX:
                raise EndlessReads
        if not self._complete or table.name in self._not_cached:
            self._note(address)

    def _note(self, address: _Address | _LogAddress) -> None:
        self._wanted[address] = None
        if self.fetch is None:
            self.is_wanting = True
        else:
            self.load_from(self.fetch, *self.take_wanted())

    def take_wanted(self) -> tuple[list[RowKey], list[LogName]]:
        """The rows that were read since the last call and are not loaded, and the logs whose totals were."""
        wanted, self._wanted = self._wanted, {}
        return (
            [RowKey(*address) for address in wanted if len(address) == 4],
            [LogName(*address) for address in wanted if len(address) == 3],
        )

    def load(self, rows: Iterable[tuple[RowKey, bytes | None]], totals: Iterable[tuple[LogName, int]] = ()) -> None:
        """Add rows as the store holds them, None for those that do not exist, and totals of logs, without the entries
        of this batch. A row that is loaded already is not replaced."""
        for address, data in rows:
            if address not in self._values:
                self._values[address] = None if data is None else self._tables[address.table].decode(data)
        for log_name, total in totals:
            self._totals.setdefault(log_name, total)

    def load_from(self, fetch: FetchHere, row_keys: Sequence[RowKey], log_names: Sequence[LogName]) -> None:
        """Fetch rows and totals, and `load` them. Raises `FetchFailed`."""
        try:
            values, totals = fetch(row_keys, log_names)
            self.load(zip(row_keys, values, strict=True), zip(log_names, totals, strict=True))
        except Exception as error:
            raise FetchFailed from error

    def list_written(self, table: Table[Row]) -> list[tuple[Row | None, Row | None]]:
        """The rows of `table` that the run being folded has written so far: each before this run, and now."""
        name = table.name
        return [
            (self._load_row(table, address, before), self._values[address])
            for address, before in self._before_run.items()
            if address[0] == name
        ]

    def before(self, table: Table[Row], space: str, owner: str = "", key: str = "") -> Row | None:
        """The row as it was before the run being folded."""
        address = (table.name, space, owner, key)
        if address not in self._before_run:
            return self.get(table, space, owner, key)
        return self._load_row(table, address, self._before_run[address])

    def _load_row(self, table: Table[Row], address: _Address, before: Any) -> Row | None:
        """The row as it was before it was written."""
        if before is _NOT_LOADED:
            if self.fetch is None or (self._complete and table.name not in self._not_cached):
                self._want(table, address)
                return None
            now = self._values.pop(address)  # otherwise the row would be loaded already
            self.load_from(self.fetch, [RowKey(*address)], [])
            before, self._values[address] = self._values[address], now
            self._before_run[address] = before
        return before  # type: ignore[no-any-return]

    def finish_run(self) -> None:
        """Finish the run being folded: it can no longer be undone without the rest of the batch.

        After a read of a row that is not loaded, runs are guesses instead, which `undo_run` undoes together.
        """
        if self.is_wanting or self._before:
            before = self._before_guesses if self.is_wanting else self._before
            for address, row in self._before_run.items():
                before.setdefault(address, row)
            self._before_run.clear()
        else:
            self._before, self._before_run = self._before_run, self._before
        if not self.is_wanting:
            self._appended.clear()
        self._read_absent, self.writable = 0, None

    def undo_run(self) -> None:
        """Undo what the run being folded has written, and the guesses."""
        self._restore(self._before_run)
        self._restore(self._before_guesses)
        while self._appended:
            entries, length = self._appended.pop()
            self._entries_count -= len(entries) - length
            del entries[length:]
        self._read_absent, self.writable, self.is_wanting = 0, None, False

    def undo_batch(self) -> None:
        """Undo what the batch has written since the last call of `changes`."""
        self.undo_run()
        self._restore(self._before)
        self._entries, self._entries_count = {}, 0

    def _restore(self, before: dict[_Address, Any]) -> None:
        for address, row in before.items():
            if row is _NOT_LOADED:
                del self._values[address]
            else:
                self._values[address] = row
        before.clear()

    def changes(self) -> Changes:
        """The encoded changes since the last call, for one commit.

        Raises `ProjectionError` if a row cannot be encoded; `clear` must be called then.
        """
        self.finish_run()
        tables, values = self._tables, self._values
        encoders = {name: table.encode for name, table in tables.items()}
        rows = {
            address: None if (row := values[address]) is None else encoders[address[0]](row) for address in self._before
        }
        logs: dict[_LogAddress, Sequence[bytes]] = {}
        keep: dict[str, int] = {}
        for log_address, entries in self._entries.items():
            log = tables[log_address[0]]
            if entries and isinstance(log, Log):
                logs[log_address] = log.encode_all(entries)
                keep[log.name] = log.keep
                if self._complete or log_address in self._totals:
                    self._totals[log_address] = self._totals.get(log_address, 0) + len(entries)
        for address in rows:
            if address[0] in self._not_cached:
                del values[address]
        self._before, self._entries, self._entries_count = {}, {}, 0
        return Changes(rows, logs, keep)

    @property
    def is_complete(self) -> bool:
        """Whether no row exists except those that this object has written."""
        return self._complete

    @property
    def changed(self) -> int:
        """How many rows and log entries the finished runs have written that `changes` has not returned yet."""
        return len(self._before) + self._entries_count

    def evict(self, table: Table[Any]) -> None:
        """Drop the unchanged rows of one table; they are loaded again when they are needed."""
        name = table.name
        self._values = {
            address: row for address, row in self._values.items() if address[0] != name or address in self._before
        }
        self._complete = False

    def __len__(self) -> int:
        return len(self._values)


def _is_write_only(table: Table[Any] | Log[Any]) -> bool:
    return isinstance(table, Table) and table.write_only


def _unknown(what: str, name: str) -> ProjectionError:
    return ProjectionError(f"the {what} {name!r} does not belong to any of the projections")


def _check_address(address: _Address) -> None:
    if not _is_address(address):
        raise ProjectionError(f"{address[1:]!r} is not the address of a row: space, owner and key must be text")


def _is_address(address: tuple[str, ...]) -> bool:
    """Whether every part is text that can be encoded. The usual mistake is a session that is None."""
    try:
        "".join(address).encode()
    except (TypeError, UnicodeEncodeError):
        return False
    return True
