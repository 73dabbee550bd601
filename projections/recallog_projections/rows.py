"""The rows of one batch in memory: what projections read and write while they fold it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from recallog_projections.projection import Log, LogName, Need, Table
from recallog_schemas.errors import ProjectionError

Row = TypeVar("Row", bound=msgspec.Struct)


@dataclass(slots=True)
class Changes:
    """What one commit writes: rows (None deletes) and log entries in order."""

    rows: Mapping[Need, bytes | None] = field(default_factory=dict)
    logs: Mapping[LogName, Sequence[bytes]] = field(default_factory=dict)
    keep: Mapping[str, int] = field(default_factory=dict)
    """By log name: how many of the newest entries stay."""


class Unfetched(BaseException):
    """A row that was touched but not fetched. Not an `Exception`, so that no projection swallows it."""

    def __init__(self, need: Need) -> None:
        super().__init__(need)
        self.need = need


class Rows:
    """Rows as they stand after the records folded so far, with an undo for the record being folded."""

    def __init__(self, tables: Iterable[Table[Any] | Log[Any]]) -> None:
        self._tables = {table.name: table for table in tables}
        self._values: dict[Need, Any] = {}
        self._changed: dict[Need, bytes | None] = {}
        self._entries: list[tuple[LogName, bytes]] = []
        self._undo: list[tuple[Need, Any, bool, bytes | None]] = []
        self._entries_before = 0

    def get(self, table: Table[Row], space: str, owner: str = "", key: str = "") -> Row | None:
        """The row, or None where there is none."""
        need = Need(table.name, space, owner, key)
        try:
            return self._values[need]  # type: ignore[no-any-return]
        except KeyError:
            self._check(table)
            raise Unfetched(need) from None

    def put(self, table: Table[Row], row: Row, space: str, owner: str = "", key: str = "") -> None:
        """Write the row. Raises `ProjectionError` where it does not fit its table."""
        self._write(table, Need(table.name, space, owner, key), row, table.encode(row))

    def delete(self, table: Table[Row], space: str, owner: str = "", key: str = "") -> None:
        self._write(table, Need(table.name, space, owner, key), None, None)

    def append(self, log: Log[Row], entry: Row, space: str, owner: str = "") -> None:
        """Add `entry` to the end of a log; the oldest entries beyond `log.keep` go."""
        self._check(log)
        self._entries.append((LogName(log.name, space, owner), log.encode(entry)))

    def _write(self, table: Table[Row], need: Need, row: Row | None, data: bytes | None) -> None:
        self._check(table)
        if need not in self._values:
            raise Unfetched(need)
        self._undo.append((need, self._values[need], need in self._changed, self._changed.get(need)))
        self._values[need] = row
        self._changed[need] = data

    def _check(self, table: Table[Row] | Log[Row]) -> None:
        if self._tables.get(table.name) is not table:
            raise ProjectionError(f"{table.name!r} is not among the tables of the projections")

    def missing(self, needs: Iterable[Need]) -> list[Need]:
        """Those of `needs` that are not here yet, each once; what is no address of a table is passed over."""
        missing = {need: None for need in needs if need not in self._values}
        return [need for need in missing if isinstance(need, Need) and need.table in self._tables]

    def fetched(self, need: Need, data: bytes | None) -> None:
        """Take in a row as it stands in the store."""
        if need not in self._values:
            self._values[need] = None if data is None else self._tables[need.table].decode(data)

    def keep(self) -> None:
        """The record is decided: what it wrote stays."""
        self._undo.clear()
        self._entries_before = len(self._entries)

    def undo(self) -> None:
        """Forget what the record has written so far."""
        for need, row, was_changed, data in reversed(self._undo):
            self._values[need] = row
            if was_changed:
                self._changed[need] = data
            else:
                del self._changed[need]
        del self._entries[self._entries_before :]
        self._undo.clear()

    def changes(self) -> Changes:
        """All that changed since the last call, ready for one commit."""
        logs: dict[LogName, list[bytes]] = {}
        for name, data in self._entries:
            logs.setdefault(name, []).append(data)
        changes = Changes(rows=self._changed, logs=logs, keep={name.log: self._tables[name.log].keep for name in logs})
        self._changed, self._entries, self._entries_before = {}, [], 0
        return changes

    def __len__(self) -> int:
        return len(self._values)
