"""The logs of the SQLite store, in segments of consecutive entries.

A segment holds the entries that one commit appends to one log, at most `SEGMENT_ENTRIES`: a row and its index entry
cost much the same for one entry and for many. Its slot is an integer of the log's number (31 bits) and the ordinal of
its first entry (32 bits), so that a tail is one range of slots.

Segments are stored in the order of their commits, so that a batch of ten thousand agents writes a few consecutive pages
of them, and only the index of slots at random.

Trimming deletes whole segments. The oldest remaining one may begin with entries that are no longer part of the log, so
that a log begins `keep` entries before the end of its newest segment.
"""

import sqlite3
from typing import cast

import msgspec

from recallog_projections.rows import Changes
from recallog_projections.sqlite_file import Damaged
from recallog_projections.stores.store import StoredRow, ordinal_key
from recallog_projections.tables import LogName, Tail

SEGMENT_ENTRIES = 32

SCHEMA = """
    CREATE TABLE logs (
        number INTEGER PRIMARY KEY, generation INTEGER, name TEXT, space TEXT, owner TEXT,
        UNIQUE (generation, name, space, owner)
    );
    CREATE TABLE segments (
        id INTEGER PRIMARY KEY, slot INTEGER NOT NULL UNIQUE, count INTEGER NOT NULL, keep INTEGER NOT NULL,
        entries BLOB NOT NULL
    );
"""

_ORDINAL_BITS = 32
_ORDINAL_MASK = (1 << _ORDINAL_BITS) - 1

LogEnds = dict[tuple[str, str, str], int]
"""By (log, space, owner): the slot of the next entry."""

_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(list[bytes])


def tail(connection: sqlite3.Connection, generation: int, name: LogName, newest: int) -> Tail:
    """The newest entries of a log, and its total. With `newest` 0 no entries are read."""
    log = _log(connection, generation, name)
    last = _newest(connection, log) if log is not None else None
    if last is None:
        return Tail([], 0)
    slot, count, keep = last
    end = slot + count
    total = end & _ORDINAL_MASK
    wanted = min(newest, keep, total)
    if wanted <= 0:
        return Tail([], total)
    begin = slot & ~_ORDINAL_MASK
    segments = connection.execute(
        "SELECT entries FROM segments WHERE slot BETWEEN "
        "coalesce((SELECT max(slot) FROM segments WHERE slot BETWEEN ? AND ?), ?) AND ? ORDER BY slot",
        (begin, end - wanted, begin, slot),
    ).fetchall()
    return Tail([entry for (data,) in segments for entry in _decode(data)][-wanted:], total)


def append(connection: sqlite3.Connection, generation: int, changes: Changes, ends: LogEnds) -> None:
    """Append and trim. Entries that the same commit would trim are not written.

    `ends` caches the slots of the logs' next entries; missing ones are added to it.
    """
    added: list[tuple[int, int, int, bytes]] = []
    cut: list[tuple[int, int, int]] = []
    for name, entries in changes.logs.items():
        slot = ends.get(name) or _end(connection, generation, name)
        end = ends[name] = slot + len(entries)
        keep = changes.keep[name[0]]
        for n in range(max(0, len(entries) - keep), len(entries), SEGMENT_ENTRIES):
            segment = entries[n : n + SEGMENT_ENTRIES]
            added.append((slot + n, len(segment), keep, _encode(segment)))
        if end & _ORDINAL_MASK > keep:
            cut.append((slot & ~_ORDINAL_MASK, end - keep - 1, end - keep))
    connection.executemany("DELETE FROM segments WHERE slot BETWEEN ? AND ? AND slot + count <= ?", cut)
    connection.executemany("INSERT INTO segments (slot, count, keep, entries) VALUES (?, ?, ?, ?)", added)


def scan(
    connection: sqlite3.Connection,
    generation: int,
    table: str,
    space: str | None,
    after: tuple[str, str, str] | None,
    limit: int,
) -> list[StoredRow]:
    """The entries of all logs of one name, each as an item of its own."""
    sql = (
        "SELECT l.space, l.owner, s.slot, newest.slot + newest.count - newest.keep, s.entries FROM logs l "
        "CROSS JOIN segments newest ON newest.slot = (SELECT max(slot) FROM segments "
        "WHERE slot BETWEEN l.number << 32 AND (l.number << 32) + 4294967295) "
        "CROSS JOIN segments s ON s.slot BETWEEN l.number << 32 AND newest.slot "
        "AND s.slot + s.count > newest.slot + newest.count - newest.keep WHERE l.generation = ? AND l.name = ?"
    )
    values: list[object] = [generation, table]
    if space is not None:
        sql, values = f"{sql} AND l.space = ?", [*values, space]
    following = 0
    if after is not None:
        # A scan of a table reads here after its last row, whose key is not an ordinal.
        following = min(int(after[2]) if after[2].isdecimal() else _ORDINAL_MASK, _ORDINAL_MASK) + 1
        sql += (
            " AND (l.space, l.owner) >= (?, ?) AND ((l.space, l.owner) > (?, ?) OR (s.slot & 4294967295) + s.count > ?)"
        )
        values = [*values, *after[:2], *after[:2], following]
    sql += " ORDER BY l.space, l.owner, s.slot"
    items: list[StoredRow] = []
    for found_space, owner, slot, begin, data in connection.execute(sql, values):
        first = slot & _ORDINAL_MASK
        skipped = max(0, begin - slot)
        if after is not None and (found_space, owner) == after[:2]:
            skipped = max(skipped, following - first)
        entries = _decode(data)[skipped : skipped + limit - len(items)]
        items += [
            StoredRow(found_space, owner, ordinal_key(first + skipped + n), entry) for n, entry in enumerate(entries)
        ]
        if len(items) == limit:
            break
    return items


def collect_garbage(connection: sqlite3.Connection, generation: int) -> bool:
    """Delete up to 200 of the generation's logs; whether there were any."""
    logs = connection.execute("SELECT number FROM logs WHERE generation = ? LIMIT 200", (generation,)).fetchall()
    connection.executemany("DELETE FROM segments WHERE slot BETWEEN ? AND ?", [_range(log) for (log,) in logs])
    connection.executemany("DELETE FROM logs WHERE number = ?", logs)
    return bool(logs)


def _log(connection: sqlite3.Connection, generation: int, name: tuple[str, str, str]) -> int | None:
    row = connection.execute(
        "SELECT number FROM logs WHERE generation = ? AND name = ? AND space = ? AND owner = ?", (generation, *name)
    ).fetchone()
    return cast(int, row[0]) if row else None


def _range(log: int) -> tuple[int, int]:
    """The first and the last slot that a log can have."""
    return log << _ORDINAL_BITS, log << _ORDINAL_BITS | _ORDINAL_MASK


def _newest(connection: sqlite3.Connection, log: int) -> tuple[int, int, int] | None:
    """Slot, count and keep of the log's newest segment."""
    row = connection.execute(
        "SELECT slot, count, keep FROM segments WHERE slot BETWEEN ? AND ? ORDER BY slot DESC LIMIT 1",
        _range(log),
    ).fetchone()
    return cast(tuple[int, int, int] | None, row)


def _end(connection: sqlite3.Connection, generation: int, name: tuple[str, str, str]) -> int:
    """The slot of the log's next entry. The log is created if it does not exist."""
    log = _log(connection, generation, name)
    if log is None:
        created = connection.execute(
            "INSERT INTO logs (generation, name, space, owner) VALUES (?, ?, ?, ?)", (generation, *name)
        )
        return cast(int, created.lastrowid) << _ORDINAL_BITS
    newest = _newest(connection, log)
    return log << _ORDINAL_BITS if newest is None else newest[0] + newest[1]


def _decode(data: bytes) -> list[bytes]:
    try:
        return _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise Damaged(f"a segment of a log: {error}") from None
