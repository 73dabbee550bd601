"""Places and the arguments of Lua calls as bytes, for the Redis store.

A place is a row's (space, owner, key) or a log's (space, owner) in one string whose order, byte by byte, is the order
of the tuples: every part but the last ends with a NUL, and a NUL inside such a part becomes NUL FF, which no UTF-8
begins with (the tuple layer of FoundationDB does the same). The last part needs neither.

Calls carry one msgpack argument instead of thousands: redis-py packs every argument in Python. Redis' cmsgpack knows
only the older msgpack, without `bin`: bytes are packed as its raw strings, which no encoder at hand does.
"""

import re
from collections.abc import Iterable, Sequence

from recallog_projections.projection import LogName, Need
from recallog_projections.rows import Changes

_BORDER = re.compile(rb"\0(?!\xff)")


def place(*parts: str) -> bytes:
    """The place that `parts` name."""
    joined = "\0".join(parts)
    if joined.count("\0") == len(parts) - 1:
        return joined.encode()
    *leading, last = (part.encode() for part in parts)
    return b"".join(part.replace(b"\0", b"\0\xff") + b"\0" for part in leading) + last


def parts_of(place: bytes, count: int) -> list[str]:
    """The `count` parts that make up `place`."""
    if b"\0\xff" not in place:
        return place.decode().split("\0", count - 1)
    *leading, last = _BORDER.split(place, count - 1)
    return [part.replace(b"\0\xff", b"\0").decode() for part in leading] + [last.decode()]


def space_range(space: str) -> tuple[bytes, bytes]:
    """All places of `space` lie between these two."""
    prefix = place(space, "")
    return prefix, prefix + b"\xff"


def _string_head(length: int) -> bytes:
    if length < 32:
        return bytes([0xA0 | length])
    return b"\xda%b" % length.to_bytes(2, "big") if length < 65536 else b"\xdb%b" % length.to_bytes(4, "big")


_HEADS_KEPT = 2048
_STRING_HEADS = [_string_head(length) for length in range(_HEADS_KEPT)]


def _array(length: int) -> bytes:
    return b"\xdd%b" % length.to_bytes(4, "big")


def _integer(value: int) -> bytes:
    return b"\xce%b" % value.to_bytes(4, "big")


def _strings(values: Sequence[bytes]) -> bytes:
    packed = [_array(len(values))]
    for value in values:
        length = len(value)
        packed.append(_STRING_HEADS[length] if length < _HEADS_KEPT else _string_head(length))
        packed.append(value)
    return b"".join(packed)


def _string(value: str) -> bytes:
    data = value.encode()
    return _string_head(len(data)) + data


def _integers(values: Iterable[int]) -> bytes:
    packed = [_integer(value) for value in values]
    return b"".join((_array(len(packed)), *packed))


def pack_changes(changes: Changes) -> bytes:
    """The last argument of commit.lua."""
    tables: dict[str, tuple[list[bytes], list[bytes]]] = {}
    for (name, space, owner, key), data in changes.rows.items():
        try:
            written, deleted = tables[name]
        except KeyError:
            written, deleted = tables[name] = ([], [])
        if data is None:
            deleted.append(place(space, owner, key))
        else:
            written.append(place(space, owner, key))
            written.append(data)
    logs: dict[str, tuple[list[bytes], list[int], list[bytes]]] = {}
    for (name, space, owner), entries in changes.logs.items():
        try:
            places, appended, kept = logs[name]
        except KeyError:
            places, appended, kept = logs[name] = ([], [], [])
        places.append(place(space, owner))
        appended.append(len(entries))
        kept.append(_strings(entries[max(0, len(entries) - changes.keep[name]) :]))
    packed = [_array(2), _array(len(tables))]
    for name, (written, deleted) in tables.items():
        packed += (_array(3), _string(name), _strings(written), _strings(deleted))
    packed.append(_array(len(logs)))
    for name, (places, appended, kept) in logs.items():
        packed += (_array(5), _string(name), _integer(changes.keep[name]), _strings(places), _integers(appended))
        packed += (_array(len(kept)), *kept)
    return b"".join(packed)


def pack_needs(rows: Sequence[Need], logs: Sequence[tuple[LogName, int]]) -> tuple[bytes, list[int], list[int]]:
    """The last argument of read.lua, and which of `rows` and of `logs` each part of its answer is."""
    tables: dict[str, list[int]] = {}
    for number, need in enumerate(rows):
        tables.setdefault(need[0], []).append(number)
    names: dict[str, list[int]] = {}
    for number, (log, _) in enumerate(logs):
        names.setdefault(log[0], []).append(number)
    packed = [_array(2), _array(len(tables))]
    for name, numbers in tables.items():
        places = [place(rows[number][1], rows[number][2], rows[number][3]) for number in numbers]
        packed += (_array(2), _string(name), _strings(places))
    packed.append(_array(len(names)))
    for name, numbers in names.items():
        places = [place(logs[number][0][1], logs[number][0][2]) for number in numbers]
        newest = _integers(max(0, logs[number][1]) for number in numbers)
        packed += (_array(3), _string(name), _strings(places), newest)
    return b"".join(packed), [n for ns in tables.values() for n in ns], [n for ns in names.values() for n in ns]
