"""Keys in a Redis server, for clusters.

    {namespace:keys}:secrets    hash    the keys by id; "" for one that was destroyed
    {namespace:keys}:units      hash    the unit of each key by id
    {namespace:keys}:present    hash    the id of the present key by unit
    {namespace:keys}:state      hash    `retired`, and by partition the sum of destroyed keys

The views in a Redis can be computed again, and keys cannot: the server needs its append-only file. If the server
supports it (`WAITAOF`, since 7.2), a new key is on its disk before it is used.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from recallog_projections.breaker import Breaker
from recallog_projections.notices import warn_once
from recallog_projections.stores.redis_server import RedisServer, Script
from recallog_schemas import limits
from recallog_schemas.errors import StorageError, StorageUnavailable
from recallog_schemas.sealing import Unit
from recallog_streams.keys.sealing_keys import MARKS, KeysState, SealingKey, SealingKeys, mark_of, name_of

_DESTROY = Script("destroy_keys")
_TELLS = (7, 2)
"""The first version whose servers report whether their append-only file has a write."""


class RedisKeys(SealingKeys):
    """Keys in one namespace of the Redis server at `url`."""

    def __init__(self, url: str, *, namespace: str = "recallog", breaker: Breaker | None = None) -> None:
        super().__init__()
        self._server = RedisServer(url, breaker)
        self._secrets, self._units, self._present, self._state = (
            f"{{{namespace}:keys}}:{name}" for name in ("secrets", "units", "present", "state")
        )
        self._waits: Sequence[tuple[Any, ...]] | None = None

    @property
    def location(self) -> str:
        return f"the Redis at {self._server.address}"

    async def state(self) -> KeysState:
        counts = {name.decode(): int(count) for name, count in _pairs(await self._command("HGETALL", self._state))}
        retired = counts.pop("retired", 0)
        return KeysState(retired, {int(partition): count for partition, count in counts.items()})

    async def read(self, ids: Iterable[str]) -> Mapping[str, bytes]:
        return dict(await self._values(self._secrets, [*ids]))

    async def present(self, units: Sequence[str]) -> Mapping[str, SealingKey]:
        ids = {unit: id_.decode() for unit, id_ in await self._values(self._present, units)}
        secrets = await self.read(ids.values())
        return {unit: SealingKey(id_, secrets[id_]) for unit, id_ in ids.items() if secrets.get(id_)}

    async def _values(self, key: str, fields: Sequence[str]) -> list[tuple[str, bytes]]:
        found = await self._command("HMGET", key, *fields) if fields else []
        return [(field, value) for field, value in zip(fields, found, strict=True) if value is not None]

    async def add(self, keys: Sequence[SealingKey]) -> None:
        await self._durably(("HSET", self._secrets, *(part for key in keys for part in key)))

    async def assign(self, keys: Mapping[str, SealingKey]) -> Mapping[str, SealingKey]:
        units = ("HSET", self._units, *(part for unit, key in keys.items() for part in (key.id, unit)))
        await self._server.exchange([units, *(("HSETNX", self._present, unit, key.id) for unit, key in keys.items())])
        return await self.present([*keys])

    async def retire(self, units: Sequence[Unit]) -> list[str]:
        names = [name_of(unit) for unit in units]
        ids = [id_.decode() for _, id_ in await self._values(self._present, names)]
        if ids:
            retired = ("HINCRBY", self._state, "retired", len(ids))
            await self._durably(("HDEL", self._present, *names), retired)
        return ids

    async def destroy(self, ids: Iterable[str], partition: int) -> int:
        marks = [part for id_ in sorted({*ids}) for part in (id_, mark_of(id_))]
        keys = (self._secrets, self._units, self._present, self._state)
        destroyed = int(await self._server.run(_DESTROY, len(keys), *keys, partition, MARKS, *marks))
        await self._durably(("HINCRBY", self._state, "retired", 0))
        return destroyed

    async def _durably(self, *commands: tuple[Any, ...]) -> None:
        """Run commands, and wait until the server's append-only file has what was written."""
        if self._waits is None:
            self._waits = await self._waiting()
        give_up = time.monotonic() + limits.PATIENT_SECONDS  # a busy disk takes longer than a question may
        answers = await self._server.exchange([*commands, *self._waits])
        while self._waits and not answers[-1][0]:
            if time.monotonic() > give_up:
                raise StorageUnavailable(f"{self.location} has not written keys to its disk in time. Try again")
            # `WAITAOF` waits for the writes of its own connection. The file has them in their order.
            answers = await self._server.exchange([("HINCRBY", self._state, "retired", 0), *self._waits])

    async def _waiting(self) -> Sequence[tuple[Any, ...]]:
        persistence = await self._command("INFO", "persistence")
        if not persistence.get("aof_enabled") or await self._syncs_never():
            warn_once(
                "storage",
                ("keys without a file", self._server.address),
                f"{self.location} has keys of sealed events and no append-only file that it syncs: sealed events "
                "become unreadable if it loses them. Set appendonly to yes and appendfsync to everysec, or "
                "name another store: RECALLOG_KEYS",
            )
            return ()
        version = str((await self._command("INFO", "server")).get("redis_version", "0"))
        numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
        return [("WAITAOF", 1, 0, round(1000 * self._server.deadline_seconds / 2))] if numbers >= _TELLS else ()

    async def _syncs_never(self) -> bool:
        """Whether the operating system decides when the server's file reaches the disk; False if unknown."""
        try:
            answer = await self._command("CONFIG", "GET", "appendfsync")
        except StorageError:  # the account may lack the right
            return False
        return list(answer) == [b"appendfsync", b"no"]

    async def _command(self, *words: Any) -> Any:
        return await self._server.command(*words)

    async def close(self) -> None:
        await self._server.close()


def _pairs(answer: Any) -> Iterable[tuple[bytes, bytes]]:
    pairs: Iterable[tuple[bytes, bytes]] = answer.items()
    return pairs
