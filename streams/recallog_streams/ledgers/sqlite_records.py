"""Reading the records of the SQLite ledger: each read compares checksums, and names the record that is damaged.

A record carries a checksum of its offset, the number of its space, its id, its value and the time at which it was first
appended; a space carries one of its number and name. Reads return the records before the first damaged one, and raise
`Damaged` at that one.
"""

import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from recallog_projections.sqlite.errors import Damaged, is_damage
from recallog_projections.stores.checksums import checksum, is_intact
from recallog_schemas import limits
from recallog_streams.ledgers.ledger import Batch

_OFFSETS_MAX = 1 << 40

_SHORT_RANGE = 10_000
"""For up to this many offsets the index of spaces is compared with the records, in 2 ms. The index of ids is compared
as a whole, which takes 160 ms for a space of 1,000,000."""
_CHECKED_RECORDS = 128
"""How many records are checked at once, which takes half the time of checking each alone. They may take 32 MiB."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The records of the space with a number, found by their index, or among all records; None: of all spaces."""

    space: int | None
    by_index: bool = False


ALL_RECORDS = Selection(None)
NO_RECORDS = Selection(-1, by_index=True)


def event_checksum(offset: int, space: int, id_: str, value: bytes, appended: int) -> int:
    """The checksum of a record; `space` is the number of its space."""
    return crc32(value, crc32(id_.encode(), offset)) ^ space ^ appended


def is_intact_record(offset: int, space: Any, id_: Any, value: Any, crc: object, appended: Any) -> bool:
    """Whether a record matches its checksum. In a damaged file the columns can be of any type."""
    try:
        return event_checksum(offset, space, id_, value, appended) == crc
    except (TypeError, AttributeError):
        return False


def checksum_of_old(offset: int, space: Any, id_: Any, value: Any) -> int:
    """The checksum of a record of version 1; -1, which none has, for one that was damaged before."""
    try:
        return event_checksum(offset, space, id_, value, 0)
    except (TypeError, AttributeError):
        return -1


def space_checksum(number: int, name: str) -> int:
    return checksum(number, (name,), b"")


def end_of(connection: sqlite3.Connection) -> int:
    """The offset after the last record. If it cannot be read, the indexes provide it, since other records may be
    readable."""
    sql = "SELECT coalesce(max(+offset) + 1, 0) FROM events INDEXED BY {}"
    try:
        (end,) = connection.execute("SELECT coalesce(max(offset) + 1, 0) FROM events").fetchone()
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        for index in ("events_of_space", "sqlite_autoindex_events_1"):
            with suppress(sqlite3.DatabaseError):
                (end,) = connection.execute(sql.format(index)).fetchone()
                return int(end)
        raise
    return int(end)


def number_of(connection: sqlite3.Connection, name: str) -> int | None:
    """The number of a space; None for a space without events."""
    row = connection.execute("SELECT number, crc FROM spaces WHERE name = ?", (name,)).fetchone()
    if row is None:
        return None
    number, crc = row
    if not is_intact(number, (name,), b"", crc):
        raise Damaged(f"the number of the space {name!r} fails its checksum")
    return int(number)


def find(connection: sqlite3.Connection, space: int, id_: str) -> tuple[int, bytes] | None:
    """The offset and the value of an event; None if there is none."""
    sql = "SELECT offset, value, crc, appended FROM events WHERE space = ? AND id = ?"
    row = connection.execute(sql, (space, id_)).fetchone()
    if row is None:
        return None
    offset, value, *sums = row
    if offset is None:
        raise Damaged(f"the index of the events has the event {id_!r} without its offset")
    if not is_intact_record(offset, space, id_, value, *sums):
        raise _damaged_record(offset)
    return int(offset), value


def selection(connection: sqlite3.Connection, space: str, start: int, until: int) -> Selection:
    """How to read one space in a range: by its index, unless the index is damaged, or has other offsets than the
    records or the index of ids."""
    number = number_of(connection, space)
    if number is None:
        return NO_RECORDS
    short = until - start <= _SHORT_RANGE and _has_all(connection, number, "NOT INDEXED", start, until)
    whole = short or _has_all(connection, number, "INDEXED BY sqlite_autoindex_events_1", 0, _OFFSETS_MAX)
    return Selection(number, by_index=whole)


def _has_all(connection: sqlite3.Connection, space: int, other: str, start: int, until: int) -> bool:
    """Whether the index of spaces has the same offsets of a space in a range as the `other` way to find them."""
    sql = "SELECT count(*), total(offset) FROM events {} WHERE space = ? AND offset >= ? AND offset < ?"
    try:
        found, expected = (
            connection.execute(sql.format(by), (space, start, until)).fetchone()
            for by in ("INDEXED BY events_of_space", other)
        )
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return False
    return bool(found == expected)


def read(connection: sqlite3.Connection, start: int, until: int, select: Selection) -> Batch:
    """The next records, within the limits of a batch, or those before the first damaged one."""
    batch = None if select.by_index or select.space is not None else _read_intact(connection, start, until)
    return batch or _read_up_to_damage(connection, start, until, select)


def _read_intact(connection: sqlite3.Connection, start: int, until: int) -> Batch | None:
    """The next records of all spaces, if all up to the batch's end are intact."""
    sql = "SELECT value, space, id, crc, appended FROM events WHERE offset >= ? AND offset < ? ORDER BY offset LIMIT ?"
    records: list[tuple[int, bytes]] = []
    spaces: list[int] = []
    appended: list[int] = []
    room_bytes = limits.READ_BATCH_BYTES
    try:
        cursor = connection.execute(sql, (start, until, limits.READ_BATCH_RECORDS))
        while rows := cursor.fetchmany(_CHECKED_RECORDS):
            following = start + len(records)
            # The checksum covers the offset that the record must have, so that a hole or a repeated row fails it.
            if [
                crc32(value, crc32(id_.encode(), offset)) ^ space ^ time
                for offset, (value, space, id_, _, time) in enumerate(rows, following)
            ] != [row[3] for row in rows]:
                return None
            values = [row[0] for row in rows]
            room_bytes -= sum(map(len, values))
            records += enumerate(values, following)
            spaces += [row[1] for row in rows]
            appended += [row[4] for row in rows]
            if room_bytes < 0:
                while room_bytes < 0 and len(records) > 1:
                    room_bytes += len(records.pop()[1])
                return _batch(start, start + len(records), records, spaces, appended)
    except (TypeError, AttributeError):
        return None
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return None
    following = start + len(records)
    is_full = following == until or len(records) == limits.READ_BATCH_RECORDS
    return _batch(start, following, records, spaces, appended) if is_full else None


def _read_up_to_damage(connection: sqlite3.Connection, start: int, until: int, select: Selection) -> Batch:
    """The next records, read one by one, which is slower and finds the damaged one."""
    where = "offset >= ? AND offset < ?"
    values: list[int | None] = [start, until]
    if select.by_index:
        where, values = f"space = ? AND {where}", [select.space, *values]
    sql = f"SELECT offset, space, id, value, crc, appended FROM events WHERE {where} ORDER BY offset LIMIT ?"
    records: list[tuple[int, bytes]] = []
    spaces: list[int] = []
    appended: list[int] = []
    seen, room_bytes, following, damage = 0, limits.READ_BATCH_BYTES, start, None
    dense, only = not select.by_index, None if select.by_index else select.space
    try:
        for offset, space, id_, value, crc, time in connection.execute(sql, [*values, limits.READ_BATCH_RECORDS]):
            if offset < following:
                damage = Damaged(f"the record at 0:{offset} is there twice", position=f"0:{following}", until=following)
                break
            if dense and offset > following:
                break
            if not is_intact_record(offset, space, id_, value, crc, time):
                damage = _damaged_record(offset)
                break
            if only is None or space == only:
                room_bytes -= len(value)
                if room_bytes < 0 and records:
                    break
                records.append((offset, value))
                spaces.append(space)
                appended.append(time)
            seen += 1
            following = offset + 1
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        damage = Damaged(
            f"the record at 0:{following} cannot be read: {error}",
            position=f"0:{following}",
            until=_next_readable(connection, following) or until,
        )
    full = room_bytes < 0 or seen == limits.READ_BATCH_RECORDS
    if dense and damage is None and not full and following < until:
        damage = _hole(connection, following)
    if damage is None:
        return _batch(start, following if full else until, records, spaces, appended)
    if following == start:
        raise damage
    return _batch(start, following, records, spaces, appended)


def _batch(start: int, following: int, records: list[tuple[int, bytes]], spaces: list[int], times: list[int]) -> Batch:
    """`spaces` and `times` may have more numbers than there are records."""
    return Batch(0, start, following, records, spaces=spaces[: len(records)], appended=times[: len(records)])


def _damaged_record(offset: int) -> Damaged:
    return Damaged(f"the record at 0:{offset} fails its checksum", position=f"0:{offset}", until=offset + 1)


def _hole(connection: sqlite3.Connection, offset: int) -> Damaged | None:
    """The damage of a missing record at `offset`; None if the ledger ends there."""
    (found,) = connection.execute("SELECT min(offset) FROM events WHERE offset >= ?", (offset,)).fetchone()
    if found is None:
        return None
    return Damaged(f"the record at 0:{offset} is missing", position=f"0:{offset}", until=found)


def _next_readable(connection: sqlite3.Connection, damaged: int) -> int | None:
    """The first offset after `damaged` whose page can be read; None if there is none."""

    def next_at(offset: int) -> int | None:
        (found,) = connection.execute("SELECT min(offset) FROM events WHERE offset >= ?", (offset,)).fetchone()
        return None if found is None else int(found)

    unreadable, step = damaged, 1
    while step < _OFFSETS_MAX:
        try:
            found = next_at(damaged + step)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            unreadable, step = damaged + step, 2 * step
        else:
            break
    else:
        return None
    readable = damaged + step
    while readable - unreadable > 1:
        middle = (unreadable + readable) // 2
        try:
            found, readable = next_at(middle), middle
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            unreadable = middle
    return found
