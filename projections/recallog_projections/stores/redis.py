"""The store of views in Redis, for the cluster form: Redis or Valkey, version 6.2 or later.

All keys of a partition share a hash tag, so that they are on one node and one Lua call can change them together:

    {namespace:0}:pointer                   hash    ids of the active and the building generation, and both as JSON
    {namespace:0}:generations               set     ids of all generations, also of retired ones
    {namespace:0}:<id>:checkpoint           string  "offset record digest"; a generation without it is lost
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
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import ClassVar

import msgspec

from recallog_projections.breaker import Breaker
from recallog_projections.rows import Changes
from recallog_projections.stores.redis_format import pack_changes, pack_key, pack_needs, space_range, unpack_key
from recallog_projections.stores.redis_server import RedisServer, Script
from recallog_projections.stores.store import (
    CHAIN_START,
    Checkpoint,
    Chunk,
    Generation,
    Outcome,
    Pointer,
    ReadResult,
    Store,
    StoredRow,
    ordinal_key,
)
from recallog_projections.tables import LogName, RowKey, Tail
from recallog_schemas.errors import InvariantViolation, Rebuilding, SettingsError, StorageCorrupt, StorageUnavailable

COMMIT_CHANGES_MAX = 3_000
"""How many rows and log entries a commit should have at most, so that its Lua call takes less than 20 ms.

A batch of 1,000 records has about as many. Each takes 4 µs on a busy 2-core machine, 5 µs if most rows are new. Larger
commits succeed too, but block the server for longer.
"""

READ_ROWS_MAX = 2_000
READ_ATTEMPTS_MAX = 10
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

_REMEDY = "Build the views again: recallog rebuild"


class RedisStore(Store):
    """One namespace of the Redis server at `url`; a commit is one Lua call.

    The methods raise `StorageUnavailable` if the server cannot be reached or refuses writes now (the checkpoint then
    shows whether a write was made), `StorageFull` if it has no memory left, and `StorageError` if its maxmemory-policy
    is not noeviction. Stores of one server share a `breaker` (see `redis_server.breaker_of`). The constructor raises
    `SettingsError` if `url` or `namespace` is invalid.
    """

    remote: ClassVar[bool] = True

    def __init__(self, url: str, *, namespace: str = "recallog", breaker: Breaker | None = None) -> None:
        if not re.fullmatch(r"[A-Za-z0-9._:-]{1,64}", namespace):
            raise SettingsError(f"the namespace {namespace!r} is not 1 to 64 letters, digits and . _ : -")
        self._server = RedisServer(url, breaker)
        self._namespace = namespace

    def _partition(self, partition: int) -> str:
        return f"{{{self._namespace}:{partition}}}:"

    def _prefix(self, generation: Generation) -> str:
        return f"{{{self._namespace}:{generation.partition}}}:{generation.id}:"

    async def remember_manifest(self, manifest: bytes) -> bytes:
        key = f"{{{self._namespace}}}:manifest"
        if await self._server.command("SETNX", key, manifest):
            return manifest
        found: bytes | None = await self._server.command("GET", key)
        return manifest if found is None else found

    async def pointer(self, partition: int) -> Pointer:
        key = self._partition(partition) + "pointer"
        return _pointer(await self._server.command("HMGET", key, "active-generation", "building-generation"))

    async def create(self, generation: Generation, replaces: Generation | None = None) -> Pointer:
        # A separate command, since the key may be on another node. A partition may be listed without a generation.
        await self._server.command("SADD", f"{{{self._namespace}}}:partitions", generation.partition)
        partition, prefix = self._partition(generation.partition), self._prefix(generation)
        keys = (partition + "pointer", partition + "generations", prefix + "checkpoint")
        replaced = b"" if replaces is None else msgspec.json.encode(replaces)
        arguments = (generation.id, msgspec.json.encode(generation), _pack_checkpoint(Checkpoint()), replaced)
        return _pointer(await self._server.run(_CREATE, 3, *keys, *arguments))

    async def activate(self, building: Generation, *, unless_beyond: int | None = None) -> bool:
        partition, prefix = self._partition(building.partition), self._prefix(building)
        compared = "" if unless_beyond is None else unless_beyond
        encoded = msgspec.json.encode(building)
        keys = (partition + "pointer", prefix + "checkpoint")
        return bool(await self._server.run(_ACTIVATE, 2, *keys, encoded, partition, compared))

    async def retire(self, generation: Generation) -> bool:
        key = self._partition(generation.partition) + "pointer"
        return bool(await self._server.run(_RETIRE, 1, key, msgspec.json.encode(generation)))

    async def collect_garbage(self, partition: int) -> None:
        """As in `Store`, in steps of a few milliseconds. After an interruption, a later call continues."""
        prefix = self._partition(partition)
        for id_ in await self._server.run(_DELETE_CHECKPOINTS, 2, prefix + "pointer", prefix + "generations", prefix):
            await self._drop(f"{prefix}{id_.decode()}:")
            await self._server.command("SREM", prefix + "generations", id_)

    async def _drop(self, prefix: str) -> None:
        # The names of keys are deleted after the keys, so that a call that follows an interrupted one finds the rest.
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
        return None if data is None else _checkpoint(data)

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
            _pack_checkpoint(new),
            pack_changes(changes),
        )
        if outcome == b"backwards":
            raise InvariantViolation(f"a commit from offset {expected.offset} back to {new.offset}")
        return Outcome(outcome.decode())

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
        packed, row_numbers, log_numbers = pack_needs("" if generation is None else generation.id, rows, logs)
        answer = await self._server.run(_READ, 1, self._partition(partition) + "pointer", packed)
        if answer is None:
            raise Rebuilding(f"partition {partition} has no views yet; try again when they are built")
        active, checkpoint, found_rows, found_logs = answer
        data: list[bytes | None] = [None] * len(rows)
        for number, row in zip(row_numbers, chain.from_iterable(found_rows), strict=True):
            data[number] = row
        tails: list[Tail] = [_EMPTY] * len(logs)
        for number, total, entries in zip(log_numbers, found_logs[::2], found_logs[1::2], strict=True):
            tails[number] = Tail(entries, total)
        return ReadResult(generation or _generation(active), _checkpoint(checkpoint), data, tails)

    async def scan(
        self,
        generation: Generation,
        table: str,
        *,
        space: str | None = None,
        after: tuple[str, str, str] | None = None,
        limit: int,
        damaged: list[tuple[str, str, str]] | None = None,
    ) -> Chunk:
        """As in `Store`. A chunk also ends when its items reach 4 MiB; it is then not the last."""
        prefix = self._prefix(generation)
        begin, end = "[", "+"
        if space is not None:
            first, beyond = space_range(space)
            begin, end = f"[{first}", f"({beyond}"
        rows_from, logs_from, log, ordinal = begin, begin, "", 0
        if after is not None:
            log = pack_key(*after[:2])
            rows_from = max(begin, f"({pack_key(*after)}", key=_bound_value)
            logs_from = max(begin, f"[{log}", key=_bound_value)
            # A scan of a table reads here after its last row, whose key is not an ordinal.
            ordinal = int(after[2]) + 1 if after[2].isdecimal() else 0
        answer = await self._server.run(
            _SCAN,
            1,
            prefix + "checkpoint",
            prefix,
            table,
            limit,
            SCAN_BYTES,
            rows_from,
            end,
            logs_from,
            log,
            ordinal,
        )
        if answer is None:
            raise Rebuilding(f"the generation {generation.id} is gone; read again")
        checkpoint, more, rows, logs = answer
        items = []
        for found, data in zip(rows[::2], rows[1::2], strict=True):
            row_space, owner, key = unpack_key(found, 3)
            items.append(StoredRow(row_space, owner, key, data))
        for found, start, entries in zip(logs[::3], logs[1::3], logs[2::3], strict=True):
            log_space, owner = unpack_key(found, 2)
            items += [StoredRow(log_space, owner, ordinal_key(start + n), entry) for n, entry in enumerate(entries)]
        return Chunk(_checkpoint(checkpoint), items, last=more == b"0")

    async def size_bytes(self) -> int:
        """The bytes that the namespace takes in the server's memory, estimated as in `sizes`."""
        partitions = await self._server.command("SMEMBERS", f"{{{self._namespace}}}:partitions")
        total = 0
        for partition in map(int, partitions):
            prefix = self._partition(partition)
            total += sum((await self.sizes(partition)).values())
            total += sum(await self._usage([f"{prefix}pointer", f"{prefix}generations"]))
        return total + sum(await self._usage([f"{{{self._namespace}}}:{key}" for key in ("manifest", "partitions")]))

    async def sizes(self, partition: int) -> Mapping[str, int]:
        """The bytes that each table and log of a partition takes in the server's memory, including keys and indexes.

        The sum over all generations, estimated from 64 samples of each hash and 64 lists of each log.
        """
        sizes: dict[str, int] = {}
        for id_ in await self._server.command("SMEMBERS", self._partition(partition) + "generations"):
            prefix = f"{self._partition(partition)}{id_.decode()}:"
            for kind, name in await self._tables(prefix):
                if kind == "rows":
                    taken = sum(await self._usage([f"{prefix}rows:{name}", f"{prefix}rows-order:{name}"]))
                else:
                    taken = sum(await self._usage([f"{prefix}dropped:{name}", f"{prefix}logs-order:{name}"]))
                    taken += await self._log_bytes(prefix, name)
                sizes[name] = sizes.get(name, 0) + taken
        return sizes

    async def _log_bytes(self, prefix: str, name: str) -> int:
        order = f"{prefix}logs-order:{name}"
        count = await self._server.command("ZCARD", order)
        packed_keys = await self._server.command("ZRANDMEMBER", order, SIZE_SAMPLES)
        sampled = await self._usage([_log_key(prefix, name, found) for found in packed_keys])
        return round(sum(sampled) / len(sampled) * count) if sampled else 0

    async def _usage(self, keys: Sequence[str | bytes]) -> list[int]:
        answers = await self._server.commands([("MEMORY", "USAGE", key, "SAMPLES", SIZE_SAMPLES) for key in keys])
        return [answer or 0 for answer in answers]

    async def close(self) -> None:
        await self._server.close()


_EMPTY = Tail([], 0)


def _bound_value(bound: str) -> str:
    """The value in a bound of ZRANGEBYLEX, without its first character ("[" or "(")."""
    return bound[1:]


def _log_key(prefix: str, name: str, packed: bytes) -> bytes:
    return f"{prefix}log:{name}:".encode() + packed


def _parts(
    rows: Sequence[RowKey], logs: Sequence[tuple[LogName, int]]
) -> Iterator[tuple[Sequence[RowKey], Sequence[tuple[LogName, int]]]]:
    for first in range(0, len(rows), READ_ROWS_MAX):
        yield rows[first : first + READ_ROWS_MAX], ()
    for first in range(0, len(logs), READ_ROWS_MAX):
        yield (), logs[first : first + READ_ROWS_MAX]


def _pointer(answer: Sequence[bytes | None]) -> Pointer:
    active, building = (None if data is None else _generation(data) for data in answer)
    return Pointer(active, building)


@lru_cache(maxsize=256)
def _generation(data: bytes) -> Generation:
    try:
        return msgspec.json.decode(data, type=Generation)
    except msgspec.MsgspecError as error:
        raise StorageCorrupt(f"the pointer to the views is damaged ({error}). {_REMEDY}") from None


def _pack_checkpoint(checkpoint: Checkpoint) -> bytes:
    return b"%d %d %b%b" % (checkpoint.offset, checkpoint.record, checkpoint.chain, checkpoint.digest)


def _checkpoint(data: bytes) -> Checkpoint:
    try:
        offset, record, digests = data.split(b" ", 2)
        size = len(CHAIN_START)
        return Checkpoint(int(offset), int(record), digests[size:], digests[:size])
    except ValueError:
        raise StorageCorrupt(f"a checkpoint of the views is damaged: {data[:100]!r}. {_REMEDY}") from None
