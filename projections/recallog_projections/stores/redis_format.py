"""Places and the arguments of Lua calls as bytes, for the Redis store.

A place is a row's (space, owner, key) or a log's (space, owner) in one text whose order, byte by byte in UTF-8, is the
order of the tuples: every part but the last ends with a NUL. A NUL inside such a part becomes 1 1 and a 1 becomes 1 2,
which keeps their order. The last part needs neither.

Calls carry one msgpack argument instead of thousands: redis-py packs every argument in Python, and Redis takes longer
too (6 ms instead of 4 for 5,000 of them). Redis' cmsgpack knows only the older msgpack, without `bin`: bytes are packed
as its raw strings, which no encoder at hand does.
"""

from collections.abc import Iterable, Sequence

import msgspec

from recallog_projections.rows import Changes
from recallog_projections.tables import LogName, RowKey

_encode = msgspec.msgpack.Encoder().encode


def pack_row_key(*parts: str) -> str:
    """The place that `parts` name."""
    joined = "\0".join(parts)
    if "\1" not in joined and joined.count("\0") == len(parts) - 1:
        return joined
    *leading, last = parts
    return "".join(part.replace("\1", "\1\2").replace("\0", "\1\1") + "\0" for part in leading) + last


def parts_of(pack_row_key: bytes, count: int) -> list[str]:
    """The `count` parts that make up `pack_row_key`."""
    *leading, last = pack_row_key.decode().split("\0", count - 1)
    return [part.replace("\1\1", "\0").replace("\1\2", "\1") if "\1" in part else part for part in leading] + [last]


def space_range(space: str) -> tuple[str, str]:
    """All places of `space` are the first of these or after it, and before the second."""
    begin = pack_row_key(space, "")
    return begin, begin[:-1] + "\1"


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
            deleted.append(pack_row_key(space, owner, key).encode())
        else:
            written.append(pack_row_key(space, owner, key).encode())
            written.append(data)
    logs: dict[str, tuple[list[bytes], list[int], list[bytes]]] = {}
    for (name, space, owner), entries in changes.logs.items():
        try:
            row_keys, unsent, kept = logs[name]
        except KeyError:
            row_keys, unsent, kept = logs[name] = ([], [], [])
        row_keys.append(pack_row_key(space, owner).encode())
        cut = max(0, len(entries) - changes.keep[name])
        unsent.append(cut)
        kept.append(_strings(entries[cut:]))
    packed = [_array(2), _array(len(tables))]
    for name, (written, deleted) in tables.items():
        packed += (_array(3), _string(name), _strings(written), _strings(deleted))
    packed.append(_array(len(logs)))
    for name, (row_keys, unsent, kept) in logs.items():
        packed += (_array(5), _string(name), _integer(changes.keep[name]), _strings(row_keys), _integers(unsent))
        packed += (_array(len(kept)), *kept)
    return b"".join(packed)


def pack_needs(
    generation: str, rows: Sequence[RowKey], logs: Sequence[tuple[LogName, int]]
) -> tuple[bytes, list[int], list[int]]:
    """The last argument of read.lua, and which of `rows` and of `logs` each part of its answer is."""
    tables: dict[str, list[str]] = {}
    row_numbers: dict[str, list[int]] = {}
    for number, (name, space, owner, key) in enumerate(rows):
        tables.setdefault(name, []).append(pack_row_key(space, owner, key))
        row_numbers.setdefault(name, []).append(number)
    names: dict[str, list[str | int]] = {}
    log_numbers: dict[str, list[int]] = {}
    for number, ((name, space, owner), newest) in enumerate(logs):
        names.setdefault(name, []).extend((pack_row_key(space, owner), newest))
        log_numbers.setdefault(name, []).append(number)
    packed = _encode((generation, list(tables.items()), list(names.items())))
    return packed, [n for ns in row_numbers.values() for n in ns], [n for ns in log_numbers.values() for n in ns]
