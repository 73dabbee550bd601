"""Views in Redis, for the cluster form. Redis and Valkey from version 6.2 on.

All keys of a partition share a hash tag, so that they lie on one node and one Lua call can change them together:

    {namespace:0}:pointer                   hash    ids of the active and the building generation, and these as JSON
    {namespace:0}:generations               set     ids of all that were created and not yet swept
    {namespace:0}:<id>:checkpoint           string  "offset record digest"; a generation without it is lost
    {namespace:0}:<id>:tables               set     "rows:<table>" and "logs:<log>": where a sweep finds the keys below
    {namespace:0}:<id>:rows:<table>         hash    rows by place (see redis_format)
    {namespace:0}:<id>:rows-order:<table>   zset    the same places, all with score 0, in the order that scans need
    {namespace:0}:<id>:log:<log>:<place>    list    the newest entries of one log
    {namespace:0}:<id>:dropped:<log>        hash    how many entries a log has had before those, by place
    {namespace:0}:<id>:logs-order:<log>     zset    the places of logs
    {namespace}:manifest                    string  the ledger that the views belong to
    {namespace}:partitions                  set     the partitions that ever had a generation

A commit, a read, a scan and every change of the pointer is one Lua call: Redis runs nothing beside it. That is what
makes a commit atomic and lets it fence stale writers, and it is why every call is bounded: while one runs, everybody
waits. What a store lost (flushed, or an older snapshot restored) shows in the pointer and the checkpoint alone, which
every call looks at first.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import ClassVar

import msgspec

from recallog_projections.rows import Changes
from recallog_projections.stores.redis_format import pack_changes, pack_needs, pack_row_key, parts_of, space_range
from recallog_projections.stores.redis_server import RedisServer, Script
from recallog_projections.stores.store import (
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
"""Rows and log entries that one commit should not exceed, so that its Lua call stays below 20 ms.

A batch of 1,000 records makes about as many: 4 µs each on a busy 2-core machine, 5 where most rows are new. More are
committed all the same, and keep everybody waiting for longer.
"""

READ_PLACES_MAX = 2_000
READ_ATTEMPTS_MAX = 10
SCAN_BYTES = 4 * 1024 * 1024
SWEEP_LOGS = 200
SIZE_SAMPLES = 64

_COMMIT = Script("commit")
_READ = Script("read")
_SCAN = Script("scan")
_CREATE = Script("create")
_ACTIVATE = Script("activate", repeatable=False)
_RETIRE = Script("retire", repeatable=False)
_UNNAME = Script("unname")

_REMEDY = "Build the views again: recallog rebuild"


class RedisStore(Store):
    """One namespace of a Redis server; a commit is one Lua call.

    Raises `StorageUnavailable` where the server cannot be reached or takes no writes now (whether a write was made then
    shows in the checkpoint), `StorageFull` where it has no memory left, and `StorageError` where it is not fit to keep
    views: its maxmemory-policy must be noeviction. `SettingsError` where `url` or `namespace` is none.
    """

    remote: ClassVar[bool] = True

    def __init__(self, url: str, *, namespace: str = "recallog") -> None:
        if not re.fullmatch(r"[A-Za-z0-9._:-]{1,64}", namespace):
            raise SettingsError(f"the namespace {namespace!r} is not 1 to 64 letters, digits and . _ : -")
        self._server = RedisServer(url)
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

    async def create(self, generation: Generation) -> Pointer:
        # On its own, as it may lie on another node. A partition that is known before it has anything is no harm.
        await self._server.command("SADD", f"{{{self._namespace}}}:partitions", generation.partition)
        partition, prefix = self._partition(generation.partition), self._prefix(generation)
        keys = (partition + "pointer", partition + "generations", prefix + "checkpoint")
        arguments = (generation.id, msgspec.json.encode(generation), _pack_checkpoint(Checkpoint()))
        return _pointer(await self._server.run(_CREATE, 3, *keys, *arguments))

    async def activate(self, building: Generation, *, unless_beyond: int | None = None) -> bool:
        partition, prefix = self._partition(building.partition), self._prefix(building)
        judged = "" if unless_beyond is None else unless_beyond
        encoded = msgspec.json.encode(building)
        keys = (partition + "pointer", prefix + "checkpoint")
        return bool(await self._server.run(_ACTIVATE, 2, *keys, encoded, partition, judged))

    async def retire(self, generation: Generation) -> bool:
        key = self._partition(generation.partition) + "pointer"
        return bool(await self._server.run(_RETIRE, 1, key, msgspec.json.encode(generation)))

    async def collect_garbage(self, partition: int) -> None:
        """As in `Store`. In steps of a few milliseconds at most; it may die between any two and be run again."""
        prefix = self._partition(partition)
        for id_ in await self._server.run(_UNNAME, 2, prefix + "pointer", prefix + "generations", prefix):
            await self._drop(f"{prefix}{id_.decode()}:")
            await self._server.command("SREM", prefix + "generations", id_)

    async def _drop(self, prefix: str) -> None:
        # What names the keys goes after them, so that a sweep which died finds what it left.
        for kind, name in await self._tables(prefix):
            if kind == "rows":
                await self._server.command("UNLINK", f"{prefix}rows:{name}", f"{prefix}rows-order:{name}")
            else:
                await self._drop_logs(prefix, name)
            await self._server.command("SREM", f"{prefix}tables", f"{kind}:{name}")

    async def _drop_logs(self, prefix: str, name: str) -> None:
        order = f"{prefix}logs-order:{name}"
        while row_keys := await self._server.command("ZRANGE", order, 0, SWEEP_LOGS - 1):
            await self._server.command("UNLINK", *(_log_key(prefix, name, found) for found in row_keys))
            await self._server.command("ZREM", order, *row_keys)
        await self._server.command("UNLINK", f"{prefix}dropped:{name}")

    async def _tables(self, prefix: str) -> list[tuple[str, str]]:
        """("rows", table) and ("logs", log) for all that the generation has."""
        names = await self._server.command("SMEMBERS", f"{prefix}tables")
        return sorted((kind, name) for kind, _, name in (found.decode().partition(":") for found in names))

    async def checkpoint(self, generation: Generation) -> Checkpoint | None:
        data = await self._server.command("GET", self._prefix(generation) + "checkpoint")
        return None if data is None else _checkpoint(data)

    async def commit(self, generation: Generation, expected: Checkpoint, new: Checkpoint, changes: Changes) -> Outcome:
        prefix = self._prefix(generation)
        answer: bytes = await self._server.run(
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
        if answer == b"backwards":
            raise InvariantViolation(f"a commit from offset {expected.offset} back to {new.offset}")
        return Outcome(answer.decode())

    async def read(
        self,
        partition: int,
        rows: Sequence[RowKey] = (),
        logs: Sequence[tuple[LogName, int]] = (),
        generation: Generation | None = None,
    ) -> ReadResult:
        # Pointer and checkpoint are read in one call: where the checkpoint is absent, rereading the pointer is no use.
        if len(rows) + len(logs) <= READ_PLACES_MAX:
            return await self._read(partition, rows, logs, generation)
        for _ in range(READ_ATTEMPTS_MAX):
            parts = [
                await self._read(partition, some_rows, some_logs, generation)
                for some_rows, some_logs in _parts(rows, logs)
            ]
            first = parts[0]
            # Whatever changes a generation moves its checkpoint, so parts with the same one are of the same moment.
            if all((part.generation, part.checkpoint) == (first.generation, first.checkpoint) for part in parts):
                found = [row for part in parts for row in part.rows]
                return ReadResult(
                    first.generation, first.checkpoint, found, [tail for part in parts for tail in part.logs]
                )
        raise StorageUnavailable(
            f"the views of partition {partition} changed each time while {len(rows) + len(logs):,} of their rows and "
            "logs were read; ask for fewer at once, or try again"
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
    ) -> Chunk:
        """As in `Store`. A chunk ends early, as one that is not the last, when its items come to 4 MiB."""
        prefix = self._prefix(generation)
        begin, end = "[", "+"
        if space is not None:
            first, beyond = space_range(space)
            begin, end = f"[{first}", f"({beyond}"
        rows_from, logs_from, log, ordinal = begin, begin, "", 0
        if after is not None:
            log = pack_row_key(*after[:2])
            rows_from = max(begin, f"({pack_row_key(*after)}", key=_border)
            logs_from = max(begin, f"[{log}", key=_border)
            # The end of a table of rows is looked for here too: its keys are no ordinals.
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
            row_space, owner, key = parts_of(found, 3)
            items.append(StoredRow(row_space, owner, key, data))
        for found, start, entries in zip(logs[::3], logs[1::3], logs[2::3], strict=True):
            log_space, owner = parts_of(found, 2)
            items += [StoredRow(log_space, owner, ordinal_key(start + n), entry) for n, entry in enumerate(entries)]
        return Chunk(_checkpoint(checkpoint), items, last=more == b"0")

    async def size_bytes(self) -> int:
        """What the namespace takes in the server's memory, in bytes, estimated as in `sizes`."""
        partitions = await self._server.command("SMEMBERS", f"{{{self._namespace}}}:partitions")
        total = 0
        for partition in map(int, partitions):
            prefix = self._partition(partition)
            total += sum((await self.sizes(partition)).values())
            total += sum(await self._usage([f"{prefix}pointer", f"{prefix}generations"]))
        return total + sum(await self._usage([f"{{{self._namespace}}}:{key}" for key in ("manifest", "partitions")]))

    async def sizes(self, partition: int) -> Mapping[str, int]:
        """Bytes that each table and log of a partition takes in the server's memory, keys and indexes included.

        All its generations together. Estimated from 64 samples of each hash, and from 64 lists of each log.
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
        row_keys = await self._server.command("ZRANDMEMBER", order, SIZE_SAMPLES)
        sampled = await self._usage([_log_key(prefix, name, found) for found in row_keys])
        return round(sum(sampled) / len(sampled) * count) if sampled else 0

    async def _usage(self, keys: Sequence[str | bytes]) -> list[int]:
        answers = await self._server.commands([("MEMORY", "USAGE", key, "SAMPLES", SIZE_SAMPLES) for key in keys])
        return [answer or 0 for answer in answers]

    async def close(self) -> None:
        await self._server.close()


_EMPTY = Tail([], 0)


def _border(bound: str) -> str:
    """What a bound of ZRANGEBYLEX begins or ends at."""
    return bound[1:]


def _log_key(prefix: str, name: str, pack_row_key: bytes) -> bytes:
    return f"{prefix}log:{name}:".encode() + pack_row_key


def _parts(
    rows: Sequence[RowKey], logs: Sequence[tuple[LogName, int]]
) -> Iterator[tuple[Sequence[RowKey], Sequence[tuple[LogName, int]]]]:
    for first in range(0, len(rows), READ_PLACES_MAX):
        yield rows[first : first + READ_PLACES_MAX], ()
    for first in range(0, len(logs), READ_PLACES_MAX):
        yield (), logs[first : first + READ_PLACES_MAX]


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
    return b"%d %d %b" % (checkpoint.offset, checkpoint.record, checkpoint.digest)


def _checkpoint(data: bytes) -> Checkpoint:
    try:
        offset, record, digest = data.split(b" ", 2)
        return Checkpoint(int(offset), int(record), digest)
    except ValueError:
        raise StorageCorrupt(f"a checkpoint of the views is damaged: {data[:100]!r}. {_REMEDY}") from None
