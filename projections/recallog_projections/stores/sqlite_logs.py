"""The logs of the SQLite store, in segments of consecutive entries.

A segment is what one commit appends to one log, `SEGMENT_ENTRIES` at most: a row and its slot in the index cost
much the same for one entry and for many. Its slot is the log's number and the ordinal of its first entry in one
integer (31 bits of logs, 32 of ordinals), so that a tail is one range of places.

Segments lie in the order they came, so that a batch of ten thousand agents writes a few pages of them one after the
other, and only the index of places all over.

Trimming deletes whole segments. The oldest one that is left may begin with entries which are not kept any more, so
where a log begins is what its newest segment says: `keep` entries before its end.
"""

import sqlite3
from typing import cast

import msgspec

from recallog_projections.rows import Changes
from recallog_projections.stores.store import StoredRow, ordinal_key
from recallog_projections.tables import LogName, Tail
from recallog_schemas.errors import StorageCorrupt

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
"""By (log, space, owner): the slot of its next entry."""

_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(list[bytes])


def tail(connection: sqlite3.Connection, generation: int, name: LogName, newest: int) -> Tail:
    """The newest entries of a log; of none of them, only the total, which costs no look at the entries."""
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
    """Append and trim; what is trimmed by the same commit is not written at all.

    `ends` knows the places of some logs' next entries, and learns those of the others.
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
    """The kept entries of all logs of one name, each an item of its own whatever segment it lies in."""
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
        # The end of a table of rows is looked for here too: its keys are no ordinals.
        following = min(int(after[2]) if after[2].isdecimal() else _ORDINAL_MASK, _ORDINAL_MASK) + 1
        sql += (
            " AND (l.space, l.owner) >= (?, ?) AND ((l.space, l.owner) > (?, ?) OR (s.slot & 4294967295) + s.count > ?)"
        )
        values = [*values, *after[:2], *after[:2], following]
    sql += " ORDER BY l.space, l.owner, s.slot"
    items: list[StoredRow] = []
    for found_space, owner, slot, kept, data in connection.execute(sql, values):
        first = slot & _ORDINAL_MASK
        skipped = max(0, kept - slot)
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
    """Delete some of the generation's logs; whether there were any."""
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
    """The first and the last slot that the entries of a log can have."""
    return log << _ORDINAL_BITS, log << _ORDINAL_BITS | _ORDINAL_MASK


def _newest(connection: sqlite3.Connection, log: int) -> tuple[int, int, int] | None:
    """Place, count and keep of the log's newest segment."""
    row = connection.execute(
        "SELECT slot, count, keep FROM segments WHERE slot BETWEEN ? AND ? ORDER BY slot DESC LIMIT 1",
        _range(log),
    ).fetchone()
    return cast(tuple[int, int, int] | None, row)


def _end(connection: sqlite3.Connection, generation: int, name: tuple[str, str, str]) -> int:
    """The slot of the log's next entry; the log is made where there is none."""
    log = _log(connection, generation, name)
    if log is None:
        made = connection.execute(
            "INSERT INTO logs (generation, name, space, owner) VALUES (?, ?, ?, ?)", (generation, *name)
        )
        return cast(int, made.lastrowid) << _ORDINAL_BITS
    newest = _newest(connection, log)
    return log << _ORDINAL_BITS if newest is None else newest[0] + newest[1]


def _decode(data: bytes) -> list[bytes]:
    try:
        return _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise StorageCorrupt(
            f"a segment of a log is damaged ({error}). Build the views again: recallog rebuild"
        ) from None
