"""The logs of the SQLite store, in segments of consecutive entries.

A segment holds the entries that one commit appends to one log, at most `SEGMENT_ENTRIES`: a row and its index entry
cost much the same for one entry and for many. Its slot is an integer of the log's number (31 bits) and the ordinal of
its first entry (32 bits), so that a tail is one range of slots.

Segments are stored in the order of their commits, so that a batch of ten thousand agents writes a few consecutive pages
of them, and only the index of slots at random.

Each log and each segment carries a checksum of its row. Segments follow one another without a gap: a missing one is
noticed, unless it is the newest.

Trimming deletes whole segments. The oldest remaining one may begin with entries that are no longer part of the log, so
that a log begins `keep` entries before the end of its newest segment.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from recallog_projections.rows import Changes
from recallog_projections.sqlite.errors import Damaged
from recallog_projections.stores.checksums import checksum, is_intact
from recallog_projections.stores.store import Scan, StoredRow, ordinal_key
from recallog_projections.tables import LogName, Tail

SEGMENT_ENTRIES = 32

SCHEMA = """
    CREATE TABLE logs (
        number INTEGER PRIMARY KEY, generation INTEGER, name TEXT, space TEXT, owner TEXT, crc INTEGER NOT NULL,
        UNIQUE (generation, name, space, owner)
    );
    CREATE TABLE segments (
        id INTEGER PRIMARY KEY, slot INTEGER NOT NULL UNIQUE, count INTEGER NOT NULL, keep INTEGER NOT NULL,
        entries BLOB NOT NULL, crc INTEGER NOT NULL
    );
"""

_SELECT = "SELECT slot, count, keep, CAST(entries AS BLOB), crc FROM segments"

_ORDINAL_BITS = 32
_ORDINAL_MASK = (1 << _ORDINAL_BITS) - 1

LogEnds = dict[tuple[str, str, str], int]
"""By (log, space, owner): the slot of the next entry."""

DAMAGED = b"damaged"
"""The data of an item, compared by identity, that a scan found damaged."""

_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(list[bytes])


class _Segment(NamedTuple):
    slot: int
    length: int
    keep: int
    data: bytes

    @property
    def end(self) -> int:
        """The slot after its last entry."""
        return self.slot + self.length

    def entries(self) -> list[bytes]:
        return _decoder.decode(self.data)


def tail(connection: sqlite3.Connection, generation: int, name: LogName, newest: int) -> Tail:
    """The newest entries of a log, and its total. With `newest` 0 no entries are returned."""
    log = _log(connection, generation, name)
    segments = iter(()) if log is None else _newest_first(connection, log)
    last = next(segments, None)
    if last is None:
        return Tail([], 0)
    total = last.end & _ORDINAL_MASK
    wanted = min(newest, last.keep, total)
    if wanted <= 0:
        return Tail([], total)
    parts, missing = [last.entries()], wanted - last.length
    while missing > 0:
        segment = next(segments, None)
        if segment is None:
            raise Damaged(f"{missing} entries of the log {' / '.join(name)} are missing")
        parts.append(segment.entries())
        missing -= segment.length
    return Tail([entry for part in reversed(parts) for entry in part][-wanted:], total)


def append(connection: sqlite3.Connection, generation: int, changes: Changes, ends: LogEnds, *, has_all: bool) -> None:
    """Append and trim. Entries that the same commit would trim are not written.

    `ends` caches the slots of the logs' next entries; missing ones are added to it. `has_all`: it has all logs.
    """
    added: list[tuple[int, int, int, bytes, int]] = []
    cut: list[tuple[int, int, int]] = []
    for name, entries in changes.logs.items():
        slot = ends.get(name) or _end(connection, generation, name, is_new=has_all)
        end = ends[name] = slot + len(entries)
        keep = changes.keep[name[0]]
        for n in range(max(0, len(entries) - keep), len(entries), SEGMENT_ENTRIES):
            segment = entries[n : n + SEGMENT_ENTRIES]
            first, count, data = slot + n, len(segment), _encode(segment)
            added.append((first, count, keep, data, checksum(0, segment_address(first, count, keep), data)))
        if end & _ORDINAL_MASK > keep:
            cut.append((slot & ~_ORDINAL_MASK, end - keep - 1, end - keep))
    connection.executemany("DELETE FROM segments WHERE slot BETWEEN ? AND ? AND slot + count <= ?", cut)
    connection.executemany("INSERT INTO segments (slot, count, keep, entries, crc) VALUES (?, ?, ?, ?, ?)", added)


def scan(connection: sqlite3.Connection, generation: int, wanted: Scan, report: bool) -> list[StoredRow]:
    """The entries of all logs of one name, each as an item of its own, one more than are `wanted`.

    With `report`, a damaged segment is one item with the key of its first entry, and a damaged log one with an empty
    key; their data is `DAMAGED`.
    """
    sql = "SELECT number, space, owner, crc FROM logs WHERE generation = ? AND name = ?"
    table, after = wanted.table, wanted.after
    values: list[object] = [generation, table]
    if wanted.space is not None:
        sql, values = f"{sql} AND space = ?", [*values, wanted.space]
    if after is not None:
        sql, values = f"{sql} AND (space, owner) >= (?, ?)", [*values, *after[:2]]
    items: list[StoredRow] = []
    for log, found_space, owner, crc in connection.execute(f"{sql} ORDER BY space, owner", values):
        name = (table, str(found_space), str(owner))
        following = 0
        if after is not None and name[1:] == after[:2]:
            # A scan of a table reads here after its last row, whose key is not an ordinal.
            following = min(int(after[2]) if after[2].isdecimal() else _ORDINAL_MASK, _ORDINAL_MASK) + 1
        if _is_log(log, generation, name, crc):
            found = (
                _scan_damaged(connection, log, name, following) if report else _scan(connection, log, name, following)
            )
        elif report:
            found = iter(() if following else [StoredRow(*name[1:], "", DAMAGED)])
        else:
            raise _damaged_log(name)
        for item in found:
            items.append(item)
            if len(items) > wanted.limit:
                return items
    return items


def _scan(connection: sqlite3.Connection, log: int, name: tuple[str, str, str], following: int) -> Iterator[StoredRow]:
    """The entries of one log from the ordinal `following` on."""
    last = _newest(connection, log)
    if last is None:
        return
    begin, _ = _range(log)
    first = max(begin + following, last.end - last.keep)
    if first >= last.end:
        return
    for segment in _following(connection, first, last.end):
        for slot, entry in enumerate(segment.entries(), segment.slot):
            if slot >= first:
                yield StoredRow(*name[1:], ordinal_key(slot & _ORDINAL_MASK), entry)


def _scan_damaged(
    connection: sqlite3.Connection, log: int, name: tuple[str, str, str], following: int
) -> Iterator[StoredRow]:
    """`_scan` that goes on after damaged segments."""
    first, end = _range(log)
    first += following
    try:
        last = _newest(connection, log)
    except Damaged:
        oldest = first
    else:
        oldest = first if last is None else last.end - last.keep
    for row in _rows(connection, max(first, oldest), end):
        try:
            segment = _segment(row)
        except Damaged:
            if row[0] >= first:
                yield StoredRow(*name[1:], ordinal_key(int(row[0]) & _ORDINAL_MASK), DAMAGED)
            continue
        for slot, entry in enumerate(segment.entries(), segment.slot):
            if slot >= max(first, oldest):
                yield StoredRow(*name[1:], ordinal_key(slot & _ORDINAL_MASK), entry)


def collect_garbage(connection: sqlite3.Connection, generation: int) -> bool:
    """Delete up to 200 of the generation's logs. Returns whether there were any."""
    logs = connection.execute("SELECT number FROM logs WHERE generation = ? LIMIT 200", (generation,)).fetchall()
    connection.executemany("DELETE FROM segments WHERE slot BETWEEN ? AND ?", [_range(log) for (log,) in logs])
    connection.executemany("DELETE FROM logs WHERE number = ?", logs)
    return bool(logs)


def _log(connection: sqlite3.Connection, generation: int, name: tuple[str, str, str]) -> int | None:
    row = connection.execute(
        "SELECT number, crc FROM logs WHERE generation = ? AND name = ? AND space = ? AND owner = ?",
        (generation, *name),
    ).fetchone()
    if row is None:
        _check_neighbours(connection, (generation, *name))
        return None
    log: int
    log, crc = row
    if not _is_log(log, generation, name, crc):
        raise _damaged_log(name)
    return log


def _check_neighbours(connection: sqlite3.Connection, address: tuple[int, str, str, str]) -> None:
    """Raise `Damaged` if a log beside a missing one fails its checksum: its damaged key may hide the missing one."""
    columns = ("generation", "name", "space", "owner")
    for comparison, order in (("<", "DESC"), (">", "ASC")):
        row = connection.execute(
            f"SELECT number, {', '.join(columns)}, (SELECT crc FROM logs l WHERE l.number = logs.number) FROM logs "
            f"WHERE ({', '.join(columns)}) {comparison} (?, ?, ?, ?) "
            f"ORDER BY {', '.join(f'{column} {order}' for column in columns)} LIMIT 1",
            address,
        ).fetchone()
        if row is not None and not is_intact(row[0], tuple(map(str, row[1:5])), b"", row[5]):
            raise _damaged_log((str(row[2]), str(row[3]), str(row[4])))


def _is_log(log: int, generation: int, name: tuple[str, str, str], crc: object) -> bool:
    return is_intact(log, (f"{generation}", *name), b"", crc)


def _damaged_log(name: tuple[str, str, str]) -> Damaged:
    return Damaged(f"the log {' / '.join(name)} fails its checksum")


def _range(log: int) -> tuple[int, int]:
    """The first and the last slot that a log can have."""
    return log << _ORDINAL_BITS, log << _ORDINAL_BITS | _ORDINAL_MASK


def _newest_first(connection: sqlite3.Connection, log: int) -> Iterator[_Segment]:
    """The segments of a log from the newest one backwards, without a gap."""
    begin = None
    for row in connection.execute(f"{_SELECT} WHERE slot BETWEEN ? AND ? ORDER BY slot DESC", _range(log)):
        segment = _segment(row)
        if begin is not None and segment.end != begin:
            raise _missing_segment(segment.end)
        yield segment
        begin = segment.slot


def _newest(connection: sqlite3.Connection, log: int) -> _Segment | None:
    return next(_newest_first(connection, log), None)


def _following(connection: sqlite3.Connection, first: int, end: int) -> Iterator[_Segment]:
    """The segments from the one that holds the slot `first` up to the slot `end`, without a gap."""
    following = None
    for row in _rows(connection, first, end - 1):
        segment = _segment(row)
        if segment.slot > first if following is None else segment.slot != following:
            break
        yield segment
        following = segment.end
    if following != end:
        raise _missing_segment(first if following is None else following)


def _missing_segment(slot: int) -> Damaged:
    return Damaged(f"the segment of a log at slot {slot} is missing")


def _rows(connection: sqlite3.Connection, first: int, last: int) -> sqlite3.Cursor:
    """The segments from the one that holds the slot `first` up to the slot `last`, in their order."""
    begin = first & ~_ORDINAL_MASK
    return connection.execute(
        f"{_SELECT} WHERE slot BETWEEN "
        "coalesce((SELECT max(slot) FROM segments WHERE slot BETWEEN ? AND ?), ?) AND ? ORDER BY slot",
        (begin, first, begin, last),
    )


def segment_address(slot: int, count: int, keep: int) -> tuple[str]:
    """What the checksum of a segment covers besides its entries."""
    return (f"{slot} {count} {keep}",)


def _segment(row: Sequence[Any]) -> _Segment:
    slot, count, keep, data, crc = row
    if not is_intact(0, segment_address(slot, count, keep), data, crc):
        raise Damaged(f"the segment of a log at slot {slot} fails its checksum")
    return _Segment(slot, count, keep, data)


def _end(connection: sqlite3.Connection, generation: int, name: tuple[str, str, str], *, is_new: bool) -> int:
    """The slot of the log's next entry. The log is created if it does not exist."""
    log = None if is_new else _log(connection, generation, name)
    if log is None:
        (log,) = connection.execute("SELECT coalesce(max(number), 0) + 1 FROM logs").fetchone()
        crc = checksum(log, (f"{generation}", *name), b"")
        connection.execute("INSERT INTO logs VALUES (?, ?, ?, ?, ?, ?)", (log, generation, *name, crc))
        return int(log) << _ORDINAL_BITS
    newest = _newest(connection, log)
    return log << _ORDINAL_BITS if newest is None else newest.end
