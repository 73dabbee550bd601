"""Views, locks and keys in Redis. All clients of a server share one circuit breaker.

If there are several servers, the first has the locks, keys and documents, and each has the views of its partitions.
"""

from collections.abc import Mapping

from recallog_projections.plugins import AdapterSettings
from recallog_projections.stores.redis import RedisStore
from recallog_projections.stores.redis_partitioned import PartitionedRedis
from recallog_projections.stores.redis_server import RedisServer, breaker_of, split_servers
from recallog_projections.stores.store import Store
from recallog_schemas.errors import SettingsError
from recallog_streams.databases.database import NAMESPACE, Database, Documents, Lock
from recallog_streams.keys.redis import RedisKeys
from recallog_streams.locks.redis import RedisLock


class RedisDocuments(Documents):
    """Documents in one hash of the server. Each call reads it, so that a change takes effect everywhere at once."""

    def __init__(self, server: RedisServer, key: str) -> None:
        self._server, self._key = server, key

    @property
    def location(self) -> str:
        return f"Redis (HDEL {self._key} with its id)"

    async def get(self, name: str) -> bytes | None:
        found: bytes | None = await self._server.command("HGET", self._key, name)
        return found

    async def all(self) -> Mapping[str, bytes]:
        found = await self._server.command("HGETALL", self._key)
        return {name.decode(errors="replace"): document for name, document in found.items()}

    async def put(self, name: str, document: bytes) -> None:
        await self._server.command("HSET", self._key, name, document)

    async def close(self) -> None:
        await self._server.close()


class RedisDatabase(Database):
    """The database at the URL of a Redis server, or of several: `redis://a:6379,b:6379/0`."""

    def __init__(self, url: str, settings: AdapterSettings) -> None:
        self._urls = split_servers(url)
        self._breakers = [breaker_of(each, settings.deadline_seconds) for each in self._urls]
        if len({*self._urls}) < len(self._urls):
            raise SettingsError("RECALLOG_VIEWS names a Redis server twice: name each server once")

    def store(self, namespace: str) -> Store:
        stores = [
            RedisStore(url, namespace=namespace, breaker=breaker)
            for url, breaker in zip(self._urls, self._breakers, strict=True)
        ]
        return stores[0] if len(stores) == 1 else PartitionedRedis(stores)

    def lock(self, name: str, wait_seconds: float) -> Lock:
        return RedisLock(self._urls[0], f"{NAMESPACE}:{name}", wait_seconds, self._breakers[0])

    def sealing_keys(self) -> RedisKeys:
        return RedisKeys(self._urls[0], namespace=NAMESPACE, breaker=self._breakers[0])

    def documents(self, name: str) -> RedisDocuments:
        return RedisDocuments(RedisServer(self._urls[0], self._breakers[0]), f"{{{NAMESPACE}}}:{name}")
