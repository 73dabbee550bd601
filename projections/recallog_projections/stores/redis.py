"""The store of views in Redis, for the cluster form: Redis or Valkey, version 6.2 or later.

All keys of a partition share a hash tag, so that they are on one node and one Lua call can change them together:

    {namespace:0}:pointer                   hash    ids of the active and the building generation, and both as JSON
    {namespace:0}:generations               set     ids of all generations, also of retired ones
    {namespace:0}:<id>:checkpoint           string  "offset record digest"; a generation without it is lost
    {namespace:0}:<id>:commits              stream  the last commit; its id is the number of processed offsets
    {namespace:0}:<id>:tables               set     "rows:<table>" and "logs:<log>": the names in the keys below
    {namespace:0}:<id>:rows:<table>         hash    rows by packed key (see redis_format)
    {namespace:0}:<id>:rows-order:<table>   zset    the same keys, all with score 0, in the order of scans
    {namespace:0}:<id>:log:<log>:<key>      list    the newest entries of one log, by packed key
    {namespace:0}:<id>:dropped:<log>        hash    how many older entries were dropped from a log, by packed key
    {namespace:0}:<id>:logs-order:<log>     zset    the packed keys of the logs, all with score 0
    {namespace}:manifest                    string  the ledger that the views belong to
    {namespace}:partitions                  set     all partitions that have had a generation

A commit, a read, a scan and every change of the pointer is one Lua call. Redis runs one call at a time: this makes a
commit atomic and lets it fence stale writers, and it is why every call is bounded. A loss of data (a flush, an older
snapshot that was restored) shows in the pointer and the checkpoint, which every call checks first.

Values end with a checksum that covers their address. This process computes and compares it; to the server it is a part
of the value. A generation in which a value fails it counts as lost: its checkpoint is deleted, and workers build the
views again. The counts of dropped entries have no checksum, since the server changes them.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, cast
from zlib import crc32

import msgspec

from recallog_projections.breaker import Breaker
from recallog_projections.notices import warn_once
from recallog_projections.rows import Changes
from recallog_projections.stores.checksums import add_checksum, strip_checksum
from recallog_projections.stores.redis_format import (
    address_of,
    pack_changes,
    pack_key,
    pack_needs,
    unpack_key,
)
from recallog_projections.stores.redis_server import RedisServer, Script
from recallog_projections.stores.store import (
    CHAIN_START,
    Checkpoint,
    Chunk,
    Generation,
    Outcome,
    Pointer,
    ReadResult,
    Scan,
    Store,
    StoredRow,
    ordinal_key,
)
from recallog_projections.tables import LogName, RowKey, Tail
from recallog_schemas.errors import (
    InvariantViolation,
    LedgerMismatch,
    Rebuilding,
    SettingsError,
    StorageError,
    StorageUnavailable,
)

COMMIT_CHANGES_MAX = 3_000
"""The most rows and log entries of a commit, so that its Lua call takes less than 20 ms.

About 1,000 records that were said have as many: the projector folds as many as fit. A plan or an erasure has hundreds
in one record. Each takes 4 µs on a busy 2-core machine, 5 µs if most rows are new. Larger commits succeed too, but
block the server for longer.
"""

WAIT_SECONDS_MAX = 0.1
"""How long a reader waits for a generation before it looks whether another one has replaced it. During an upgrade
workers of an earlier version may maintain it, which wake no readers."""
WAITING_MAX = 20
"""How many readers wait at a time: each of them takes a connection. Others poll."""
READ_ROWS_MAX = 2_000
READ_ATTEMPTS_MAX = 10
SCAN_KEYS = 500
_SCANS = {"hash": "HSCAN", "set": "SSCAN", "zset": "ZSCAN"}
_WHOLE = {"string": ("GET",), "list": ("LRANGE", 0, -1), "stream": ("XRANGE", "-", "+")}
"""By the type of a key, how its values are read: in parts, or as a whole."""
SCAN_BYTES = 4 * 1024 * 1024
GARBAGE_LOGS = 200
SIZE_SAMPLES = 64

_COMMIT = Script("commit")
_READ = Script("read")
_SCAN = Script("scan")
_CREATE = Script("create")
_ACTIVATE = Script("activate", repeatable=False)
_RETIRE = Script("retire", repeatable=False)
_DELETE_CHECKPOINTS = Script("delete_checkpoints")
_FORGET = Script("forget")

_MANIFEST = crc32(b"manifest")
IN_PART = b" in part "
"""Between the manifest of a ledger and the place of one of several servers, as in "… in part 1 of 3"."""
_CHECKPOINT_FAILS = "their checkpoint fails its checksum"


class RedisStore(Store):
    """One namespace of the Redis server at `url`; a commit is one Lua call.

    The methods raise `StorageUnavailable` if the server cannot be reached or refuses writes now (the checkpoint then
    shows whether a write was made), `StorageFull` if it has no memory left, and `StorageError` if its maxmemory-policy
    is not noeviction. Stores of one server share a `breaker` (see `redis_server.breaker_of`). The constructor raises
    `SettingsError` if `url` or `namespace` is invalid.
    """

    remote: ClassVar[bool] = True
    commit_changes_max: ClassVar[int] = COMMIT_CHANGES_MAX

    def __init__(self, url: str, *, namespace: str = "recallog", breaker: Breaker | None = None) -> None:
        if not re.fullmatch(r"[A-Za-z0-9._:-]{1,64}", namespace):
            raise SettingsError(f"the namespace {namespace!r} is not 1 to 64 letters, digits and . _ : -")
        self._server = RedisServer(url, breaker)
        self._namespace = namespace
        self._damage: dict[int, str] = {}
        """By partition: the error for readers, until its views can be read again."""
        self._waiting = 0

    @property
    def address(self) -> str:
        """Host and port of the server, or the path of its socket."""
        return self._server.address

    def wrong_part(self, stored: bytes, named: str) -> LedgerMismatch:
        """The error for a server whose manifest says that it holds another part of the views than the settings name."""
        _, separator, place = stored.rpartition(IN_PART)
        held = f"part {place.decode()}" if separator else "all"
        return LedgerMismatch(
            f"the Redis at {self.address} holds {held} of the views, and RECALLOG_VIEWS names it as {named}. Name the "
            "same servers in the same order; to spread the views over these servers instead, delete them and build "
            "them again: recallog rebuild --drop"
        )

    def _partition(self, partition: int) -> str:
        return f"{{{self._namespace}:{partition}}}:"

    def _prefix(self, generation: Generation) -> str:
        return f"{{{self._namespace}:{generation.partition}}}:{generation.id}:"

    async def clear(self) -> None:
        """As in `Store`. The manifest is deleted last: until then no other ledger is accepted."""
        partitions = [int(each) for each in await self._server.command("SMEMBERS", f"{{{self._namespace}}}:partitions")]
        for partition in partitions:
            await self._server.command("DEL", self._partition(partition) + "pointer")
            await self._delete_checkpoints(partition)
        await self._server.command("DEL", f"{{{self._namespace}}}:manifest")
        for partition in partitions:
            await self.collect_garbage(partition)

    async def manifest(self) -> bytes | None:
        """The manifest that is stored; None if there is none, or if it is damaged."""
        found: bytes | None = await self._server.command("GET", f"{{{self._namespace}}}:manifest")
        return None if found is None else strip_checksum(found, _MANIFEST)

    async def remember_manifest(self, manifest: bytes) -> bytes:
        key, value = f"{{{self._namespace}}}:manifest", add_checksum(manifest, _MANIFEST)
        if await self._server.command("SETNX", key, value):
            return manifest
        found: bytes | None = await self._server.command("GET", key)
        if found is None:
            return manifest
        stored = strip_checksum(found, _MANIFEST)
        if stored is not None:
            if IN_PART in stored and IN_PART not in manifest:
                raise self.wrong_part(stored, "all")
            return stored
        # It is not known to which ledger these views belong.
        for partition in await self._server.command("SMEMBERS", f"{{{self._namespace}}}:partitions"):
            await self._server.command("DEL", self._partition(int(partition)) + "pointer")
            await self._delete_checkpoints(int(partition))
        await self._server.command("SET", key, value)
        self._say("all views", "the name of their ledger fails its checksum")
        return manifest

    async def pointer(self, partition: int) -> Pointer:
        key = self._partition(partition) + "pointer"
        fields = ("active-generation", "building-generation", "active", "building")
        *encoded, active_id, building_id = await self._server.command("HMGET", key, *fields)
        pointer = await self._pointer(partition, encoded)
        for field, id_, generation in (
            ("active", active_id, pointer.active),
            ("building", building_id, pointer.building),
        ):
            if id_ is not None and (generation is None or generation.id.encode() != id_):
                await self._forget(partition, field, id_)
                return Pointer()
        return pointer

    async def _pointer(self, partition: int, encoded: Sequence[bytes | None]) -> Pointer:
        """The pointer in two fields; an empty one, after deleting it, if one of them is damaged."""
        found: list[Generation | None] = []
        for field, data in zip(("active-generation", "building-generation"), encoded, strict=True):
            found.append(None if data is None else _generation(data, partition))
            if data is not None and found[-1] is None:
                await self._forget(partition, field, data)
                return Pointer()
        return Pointer(*found)

    async def _forget(self, partition: int, field: str, value: bytes) -> Rebuilding:
        """Delete a damaged pointer. Returns the error for a reader."""
        if await self._server.run(_FORGET, 1, self._partition(partition) + "pointer", field, value):
            await self._delete_checkpoints(partition)
        return self._say(f"the views of partition {partition}", "their pointer fails its checksum", partition)

    async def _lose(self, generation: Generation, what: str) -> Rebuilding:
        """Count a damaged generation as lost. Returns the error for a reader."""
        await self._server.command("DEL", self._prefix(generation) + "checkpoint")
        return self._say(f"the views of partition {generation.partition}", what, generation.partition)

    def _say(self, views: str, what: str, partition: int | None = None) -> Rebuilding:
        message = f"{views} in the Redis at {self._server.address} ({self._namespace}) are damaged: {what}"
        warn_once("storage", message, f"{message}. Workers build them again from the ledger")
        error = f"{message}; they are built again from the ledger, try again when they are built"
        if partition is not None:
            self._damage[partition] = error
        return Rebuilding(error)

    async def create(self, generation: Generation, replaces: Generation | None = None) -> Pointer:
        # A separate command, since the key may be on another node. A partition may be listed without a generation.
        await self._server.command("SADD", f"{{{self._namespace}}}:partitions", generation.partition)
        partition, prefix = self._partition(generation.partition), self._prefix(generation)
        keys = (partition + "pointer", partition + "generations", prefix + "checkpoint")
        replaced = b"" if replaces is None else _pack_generation(replaces)
        arguments = (generation.id, _pack_generation(generation), _pack_checkpoint(generation, Checkpoint()), replaced)
        return await self._pointer(generation.partition, await self._server.run(_CREATE, 3, *keys, *arguments))

    async def activate(self, building: Generation, *, unless_beyond: int | None = None) -> bool:
        partition, prefix = self._partition(building.partition), self._prefix(building)
        compared = "" if unless_beyond is None else unless_beyond
        encoded = _pack_generation(building)
        keys = (partition + "pointer", prefix + "checkpoint")
        return bool(await self._server.run(_ACTIVATE, 2, *keys, encoded, partition, compared))

    async def retire(self, generation: Generation) -> bool:
        key = self._partition(generation.partition) + "pointer"
        return bool(await self._server.run(_RETIRE, 1, key, _pack_generation(generation)))

    async def collect_garbage(self, partition: int) -> None:
        """As in `Store`, in steps of a few milliseconds. After an interruption, a later call continues."""
        prefix = self._partition(partition)
        for id_ in await self._delete_checkpoints(partition):
            await self._drop(f"{prefix}{id_.decode()}:")
            await self._server.command("SREM", prefix + "generations", id_)

    async def has_garbage(self, partition: int) -> bool:
        prefix = self._partition(partition)
        known = await self._server.command("HMGET", prefix + "pointer", "active", "building")
        return not {*await self._server.command("SMEMBERS", prefix + "generations")} <= {*known}

    async def _delete_checkpoints(self, partition: int) -> Sequence[bytes]:
        """Delete the checkpoints of the generations that the pointer does not name, and return their ids."""
        prefix = self._partition(partition)
        deleted: Sequence[bytes] = await self._server.run(
            _DELETE_CHECKPOINTS, 2, prefix + "pointer", prefix + "generations", prefix
        )
        return deleted

    async def _drop(self, prefix: str) -> None:
        # The names of keys are deleted after the keys, so that a call that follows an interrupted one finds the rest.
        await self._server.command("UNLINK", f"{prefix}commits")
        for kind, name in await self._tables(prefix):
            if kind == "rows":
                await self._server.command("UNLINK", f"{prefix}rows:{name}", f"{prefix}rows-order:{name}")
            else:
                await self._drop_logs(prefix, name)
            await self._server.command("SREM", f"{prefix}tables", f"{kind}:{name}")

    async def _drop_logs(self, prefix: str, name: str) -> None:
        order = f"{prefix}logs-order:{name}"
        while packed_keys := await self._server.command("ZRANGE", order, 0, GARBAGE_LOGS - 1):
            await self._server.command("UNLINK", *(_log_key(prefix, name, found) for found in packed_keys))
            await self._server.command("ZREM", order, *packed_keys)
        await self._server.command("UNLINK", f"{prefix}dropped:{name}")

    async def _tables(self, prefix: str) -> list[tuple[str, str]]:
        """("rows", table) and ("logs", log) for all tables and logs of the generation."""
        names = await self._server.command("SMEMBERS", f"{prefix}tables")
        return sorted((kind, name) for kind, _, name in (found.decode().partition(":") for found in names))

    async def checkpoint(self, generation: Generation) -> Checkpoint | None:
        data = await self._server.command("GET", self._prefix(generation) + "checkpoint")
        checkpoint = None if data is None else _checkpoint(generation, data)
        if data is not None and checkpoint is None:
            await self._lose(generation, _CHECKPOINT_FAILS)
        return checkpoint

    async def commit(self, generation: Generation, expected: Checkpoint, new: Checkpoint, changes: Changes) -> Outcome:
        prefix = self._prefix(generation)
        outcome: bytes = await self._server.run(
            _COMMIT,
            2,
            self._partition(generation.partition) + "pointer",
            prefix + "checkpoint",
            generation.id,
            prefix,
            expected.offset,
            new.offset,
            _pack_checkpoint(generation, expected),
            _pack_checkpoint(generation, new),
            pack_changes(changes, crc32(generation.id.encode())),
        )
        if outcome == b"damaged":
            await self._lose(generation, _CHECKPOINT_FAILS)
            return Outcome.LOST
        if outcome == b"backwards":
            raise InvariantViolation(f"a commit from offset {expected.offset} back to {new.offset}")
        return Outcome(outcome.decode())

    async def wait_for(self, generation: Generation, offset: int, seconds: float) -> None:
        if self._waiting >= WAITING_MAX:
            return await super().wait_for(generation, offset, seconds)
        self._waiting += 1
        try:
            longest_ms = max(1, round(1000 * min(seconds, WAIT_SECONDS_MAX, self._server.deadline_seconds / 2)))
            # Entries after this id are of commits with `offset` and later ones.
            key, after = f"{self._prefix(generation)}commits", f"{offset}-0"
            await self._server.command("XREAD", "BLOCK", longest_ms, "STREAMS", key, after, alone=True)
        finally:
            self._waiting -= 1

    async def read(
        self,
        partition: int,
        rows: Sequence[RowKey] = (),
        logs: Sequence[tuple[LogName, int]] = (),
        generation: Generation | None = None,
    ) -> ReadResult:
        if len(rows) + len(logs) <= READ_ROWS_MAX:
            return await self._read(partition, rows, logs, generation)
        for _ in range(READ_ATTEMPTS_MAX):
            parts = [
                await self._read(partition, some_rows, some_logs, generation)
                for some_rows, some_logs in _parts(rows, logs)
            ]
            first = parts[0]
            # Every change of a generation moves its checkpoint, so that parts with the same one are of the same moment.
            if all((part.generation, part.checkpoint) == (first.generation, first.checkpoint) for part in parts):
                found = [row for part in parts for row in part.rows]
                return ReadResult(
                    first.generation, first.checkpoint, found, [tail for part in parts for tail in part.logs]
                )
        raise StorageUnavailable(
            f"the views of partition {partition} changed {READ_ATTEMPTS_MAX} times while {len(rows) + len(logs):,} of "
            "their rows and logs were read; read fewer at once, or try again"
        )

    async def _read(
        self,
        partition: int,
        rows: Sequence[RowKey],
        logs: Sequence[tuple[LogName, int]],
        generation: Generation | None,
    ) -> ReadResult:
        needs = pack_needs("" if generation is None else generation.id, rows, logs)
        answer = await self._server.run(_READ, 1, self._partition(partition) + "pointer", needs.packed)
        if answer is None:
            none_yet = f"partition {partition} has no views yet; try again when they are built"
            raise Rebuilding(self._damage.get(partition, none_yet))
        active, packed_checkpoint, found_rows, found_logs = answer
        of = generation or _generation(active, partition)
        if of is None:
            raise await self._forget(partition, "active-generation", active)
        checkpoint = _checkpoint(of, packed_checkpoint)
        if checkpoint is None:
            if generation is None:
                await self.pointer(partition)  # forgets one that names two generations as the active one
            raise await self._lose(of, _CHECKPOINT_FAILS)
        mask = crc32(of.id.encode())
        data: list[bytes | None] = [None] * len(rows)
        for (number, address), row in zip(needs.rows, chain.from_iterable(found_rows), strict=True):
            if row is not None:
                data[number] = intact = strip_checksum(row, address, mask)
                if intact is None:
                    raise await self._lose(
                        of, f"the row {rows[number][1:]} of {rows[number].table!r} fails its checksum"
                    )
        tails: list[Tail] = [_EMPTY] * len(logs)
        for (number, address), total, entries in zip(needs.logs, found_logs[::2], found_logs[1::2], strict=True):
            found = [strip_checksum(entry, address, mask) for entry in entries]
            if None in found:
                raise await self._lose(of, f"an entry of the log {logs[number][0]} fails its checksum")
            tails[number] = Tail(cast(list[bytes], found), total)
        self._damage.pop(partition, None)
        return ReadResult(of, checkpoint, data, tails)

    async def scan_chunk(self, generation: Generation, scan: Scan, damaged: list[tuple[str, str, str]] | None) -> Chunk:
        """As in `Store`. A chunk also ends when its items reach 4 MiB; it is then not the last."""
        keys, table, after = scan.key_range(), scan.table, scan.after
        # The key of a log has two parts, and would sort before an end of three.
        parts = 2 if scan.includes_logs else 3
        end = "+" if keys.end is None else f"({pack_key(*keys.end[:parts])}"
        logs_from, log, ordinal = "", "", 0
        if scan.includes_logs:
            logs_from = f"[{pack_key(*keys.first[:2])}"
            if after is not None:
                log = pack_key(*after[:2])
                # A scan of a table reads here after its last row, whose key is not an ordinal.
                ordinal = int(after[2]) + 1 if after[2].isdecimal() else 0
        answer = await self._server.run(
            _SCAN,
            1,
            self._prefix(generation) + "checkpoint",
            self._prefix(generation),
            table,
            scan.limit,
            SCAN_BYTES,
            f"[{pack_key(*keys.first)}",
            end,
            logs_from,
            log,
            ordinal,
            int(scan.newest_first),
        )
        if answer is None:
            raise Rebuilding(f"the generation {generation.id} is gone; read again")
        packed_checkpoint, more, rows, logs = answer
        checkpoint = _checkpoint(generation, packed_checkpoint)
        if checkpoint is None:
            raise await self._lose(generation, _CHECKPOINT_FAILS)
        found: list[tuple[tuple[str, str, str], int, bytes]] = []
        for packed, data in zip(rows[::2], rows[1::2], strict=True):
            row_space, owner, key = unpack_key(packed, 3)
            found.append(((row_space, owner, key), address_of(table, packed), data))
        for packed, start, entries in zip(logs[::3], logs[1::3], logs[2::3], strict=True):
            (log_space, owner), address = unpack_key(packed, 2), address_of(table, packed)
            found += [((log_space, owner, ordinal_key(start + n)), address, entry) for n, entry in enumerate(entries)]
        items, mask = [], crc32(generation.id.encode())
        for row_key, address, data in found:
            intact = strip_checksum(data, address, mask)
            if intact is not None:
                items.append(StoredRow(*row_key, intact))
            elif damaged is not None:
                damaged.append(row_key)
            else:
                raise await self._lose(generation, f"the row {row_key} of {table!r} fails its checksum")
        return Chunk(checkpoint, items, last=more == b"0")

    async def size_bytes(self) -> int:
        """The bytes that the namespace takes in the server's memory, estimated as in `sizes`."""
        partitions = await self._server.command("SMEMBERS", f"{{{self._namespace}}}:partitions")
        total = 0
        for partition in map(int, partitions):
            prefix = self._partition(partition)
            total += sum((await self.sizes(partition)).values())
            total += await self._usage(f"{prefix}pointer", f"{prefix}generations")
        return total + await self._usage(f"{{{self._namespace}}}:manifest", f"{{{self._namespace}}}:partitions")

    async def sizes(self, partition: int) -> Mapping[str, int]:
        """The bytes that each table and log of a partition takes in the server's memory, including keys and indexes.

        The sum over all generations, estimated from 64 samples of each hash and 64 lists of each log.
        """
        sizes: dict[str, int] = {}
        for id_ in await self._server.command("SMEMBERS", self._partition(partition) + "generations"):
            prefix = f"{self._partition(partition)}{id_.decode()}:"
            tables = await self._tables(prefix)
            found = await asyncio.gather(*(self._bytes_of(prefix, *table) for table in tables))
            for (_, name), taken in zip(tables, found, strict=True):
                sizes[name] = sizes.get(name, 0) + taken
        return sizes

    async def _bytes_of(self, prefix: str, kind: str, name: str) -> int:
        """The bytes of a table or a log. Its calls are sent with those for others: `status` asks for all of them."""
        if kind == "rows":
            return await self._usage(f"{prefix}rows:{name}", f"{prefix}rows-order:{name}")
        order = f"{prefix}logs-order:{name}"
        taken, count, sample = await asyncio.gather(
            self._usage(f"{prefix}dropped:{name}", order),
            self._server.command("ZCARD", order),
            self._server.command("ZRANDMEMBER", order, SIZE_SAMPLES),
        )
        of_sample = await self._usage(*(_log_key(prefix, name, each) for each in sample))
        return taken + round(of_sample / max(1, len(sample)) * int(count))

    async def _usage(self, *keys: str | bytes) -> int:
        calls = [self._server.command("MEMORY", "USAGE", key, "SAMPLES", SIZE_SAMPLES) for key in keys]
        return sum(answer or 0 for answer in await asyncio.gather(*calls))

    async def contents(self) -> AsyncIterator[tuple[str, bytes]]:
        """All keys of the namespace and of namespaces in it, including locks and keys of other parts, with their
        values."""
        async for keys in self._pages("SCAN", match=f"{{{self._namespace}[}}:]*"):
            for key in keys:
                name = key.decode(errors="backslashreplace")
                yield name, key
                kind = (await self._server.command("TYPE", key)).decode()
                if kind in _SCANS:
                    async for found in self._pages(_SCANS[kind], key):
                        yield name, _join_texts(found)
                elif kind in _WHOLE:
                    yield name, _join_texts(await self._server.command(_WHOLE[kind][0], key, *_WHOLE[kind][1:]))

    async def _pages(self, *words: Any, match: str = "*") -> AsyncIterator[Any]:
        """The pages that a command with a cursor answers."""
        cursor: int | bytes = 0
        while True:
            cursor, found = await self._server.command(*words, cursor, "MATCH", match, "COUNT", SCAN_KEYS)
            yield found
            if int(cursor) == 0:
                return

    async def files(self) -> Sequence[Path]:
        """The append-only file and the dump, if the server runs on this machine and may be asked."""
        try:
            words = await self._server.command("CONFIG", "GET", "dir", "dbfilename", "appenddirname")
        except StorageError:
            return ()
        found = {name.decode(): value.decode() for name, value in zip(words[::2], words[1::2], strict=True)}
        folder = Path(found["dir"])
        return [folder / found[name] for name in ("dbfilename", "appenddirname") if found.get(name)]

    async def close(self) -> None:
        await self._server.close()


def _join_texts(value: Any) -> bytes:
    """The texts in an answer, as redis-py gives it: lists, tuples, dicts and numbers may be in it."""
    if isinstance(value, dict):
        value = [*value.items()]
    if isinstance(value, list | tuple):
        return b"\n".join(map(_join_texts, value))
    return value if isinstance(value, bytes) else b""


_EMPTY = Tail([], 0)


def _log_key(prefix: str, name: str, packed: bytes) -> bytes:
    return f"{prefix}log:{name}:".encode() + packed


def _parts(
    rows: Sequence[RowKey], logs: Sequence[tuple[LogName, int]]
) -> Iterator[tuple[Sequence[RowKey], Sequence[tuple[LogName, int]]]]:
    for first in range(0, len(rows), READ_ROWS_MAX):
        yield rows[first : first + READ_ROWS_MAX], ()
    for first in range(0, len(logs), READ_ROWS_MAX):
        yield (), logs[first : first + READ_ROWS_MAX]


def _pack_generation(generation: Generation) -> bytes:
    return add_checksum(msgspec.json.encode(generation), generation.partition)


@lru_cache(maxsize=256)
def _generation(data: bytes, partition: int) -> Generation | None:
    """The generation in a field of the pointer of a partition; None if it is damaged."""
    intact = strip_checksum(data, partition)
    return None if intact is None else msgspec.json.decode(intact, type=Generation)


def _pack_checkpoint(generation: Generation, checkpoint: Checkpoint) -> bytes:
    data = b"%d %d %b%b" % (checkpoint.offset, checkpoint.record, checkpoint.chain, checkpoint.digest)
    return add_checksum(data, crc32(generation.id.encode()))


def _checkpoint(generation: Generation, data: bytes) -> Checkpoint | None:
    """The checkpoint of a generation; None if it is damaged."""
    intact = strip_checksum(data, crc32(generation.id.encode()))
    if intact is None:
        return None
    offset, record, digests = intact.split(b" ", 2)
    size = len(CHAIN_START)
    return Checkpoint(int(offset), int(record), digests[size:], digests[:size])
