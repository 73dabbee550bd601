"""The encoding of keys and of the arguments of Lua calls, for the Redis store.

A packed key is the (space, owner, key) of a row, or the (space, owner) of a log, as one text whose order, byte by byte
in UTF-8, is the order of the tuples. Every part but the last ends with a NUL; in these parts a NUL becomes 1 1 and a 1
becomes 1 2, which preserves their order.

Rows and log entries end with a checksum of 4 bytes (see `checksums.add_checksum`), which the server does not know.

Calls have one msgpack argument instead of thousands: redis-py encodes every argument in Python, and Redis is slower too
(6 ms instead of 4 for 5,000 of them). The cmsgpack of Redis reads only the older msgpack without `bin`. Bytes are
encoded as its raw strings, which msgspec cannot do.
"""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple
from zlib import crc32

import msgspec

from recallog_projections.rows import Changes
from recallog_projections.stores.checksums import add_checksum
from recallog_projections.tables import LogName, RowKey

_encode = msgspec.msgpack.Encoder().encode


def pack_key(*parts: str) -> str:
    """The packed key of `parts`."""
    joined = "\0".join(parts)
    if "\1" not in joined and joined.count("\0") == len(parts) - 1:
        return joined
    *leading, last = parts
    return "".join(part.replace("\1", "\1\2").replace("\0", "\1\1") + "\0" for part in leading) + last


def unpack_key(packed: bytes, count: int) -> list[str]:
    """The `count` parts of a packed key."""
    *leading, last = packed.decode().split("\0", count - 1)
    return [part.replace("\1\1", "\0").replace("\1\2", "\1") if "\1" in part else part for part in leading] + [last]


def _string_head(length: int) -> bytes:
    if length < 32:
        return bytes([0xA0 | length])
    return b"\xda%b" % length.to_bytes(2, "big") if length < 65536 else b"\xdb%b" % length.to_bytes(4, "big")


_CACHED_HEADS = 2048
_STRING_HEADS = [_string_head(length) for length in range(_CACHED_HEADS)]


def _array(length: int) -> bytes:
    return b"\xdd%b" % length.to_bytes(4, "big")


def _strings(values: Sequence[bytes]) -> bytes:
    packed = [_array(len(values))]
    for value in values:
        length = len(value)
        packed.append(_STRING_HEADS[length] if length < _CACHED_HEADS else _string_head(length))
        packed.append(value)
    return b"".join(packed)


def address_of(table: str, packed: bytes) -> int:
    """The checksum of the address of a row or a log: the name of its table, and its packed key."""
    return crc32(packed, crc32(table.encode()))


def pack_changes(changes: Changes, generation: int) -> bytes:
    """The last argument of commit.lua; `generation` is the checksum of the generation's id."""
    tables: dict[str, tuple[list[bytes], list[bytes]]] = {}
    for (name, space, owner, key), data in changes.rows.items():
        try:
            written, deleted = tables[name]
        except KeyError:
            written, deleted = tables[name] = ([], [])
        packed_key = pack_key(space, owner, key).encode()
        if data is None:
            deleted.append(packed_key)
        else:
            written.append(packed_key)
            written.append(add_checksum(data, address_of(name, packed_key), generation))
    logs: dict[str, tuple[list[bytes], list[int], list[bytes]]] = {}
    for (name, space, owner), entries in changes.logs.items():
        try:
            keys, unsent, sent = logs[name]
        except KeyError:
            keys, unsent, sent = logs[name] = ([], [], [])
        packed_key = pack_key(space, owner).encode()
        address = address_of(name, packed_key)
        keys.append(packed_key)
        cut = max(0, len(entries) - changes.keep[name])
        unsent.append(cut)
        sent.append(_strings([add_checksum(entry, address, generation) for entry in entries[cut:]]))
    packed = [_array(2), _array(len(tables))]
    for name, (written, deleted) in tables.items():
        packed += (_array(3), _encode(name), _strings(written), _strings(deleted))
    packed.append(_array(len(logs)))
    for name, (keys, unsent, sent) in logs.items():
        packed += (_array(5), _encode(name), _encode(changes.keep[name]), _strings(keys), _encode(unsent))
        packed += (_array(len(sent)), *sent)
    return b"".join(packed)


class Needs(NamedTuple):
    """The last argument of read.lua, and what its answer consists of, in order."""

    packed: bytes
    rows: Sequence[tuple[int, int]]
    """For each row its index in the request, and the checksum of its address."""
    logs: Sequence[tuple[int, int]]
    """The same for each log."""


def pack_needs(generation: str, rows: Sequence[RowKey], logs: Sequence[tuple[LogName, int]]) -> Needs:
    tables: dict[str, list[str]] = {}
    of_rows: dict[str, list[tuple[int, int]]] = {}
    for number, (name, space, owner, key) in enumerate(rows):
        packed_key = pack_key(space, owner, key)
        tables.setdefault(name, []).append(packed_key)
        of_rows.setdefault(name, []).append((number, address_of(name, packed_key.encode())))
    names: dict[str, list[str | int]] = {}
    of_logs: dict[str, list[tuple[int, int]]] = {}
    for number, ((name, space, owner), newest) in enumerate(logs):
        packed_key = pack_key(space, owner)
        names.setdefault(name, []).extend((packed_key, newest))
        of_logs.setdefault(name, []).append((number, address_of(name, packed_key.encode())))
    packed = _encode((generation, list(tables.items()), list(names.items())))
    return Needs(packed, [*chain.from_iterable(of_rows.values())], [*chain.from_iterable(of_logs.values())])
