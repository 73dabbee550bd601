"""Views, locks and keys in a Redis server. All clients of a server share one circuit breaker."""

from collections.abc import Mapping

from recallog_projections.plugins import AdapterSettings
from recallog_projections.stores.redis import RedisStore
from recallog_projections.stores.redis_server import RedisServer, breaker_of
from recallog_streams.databases.database import NAMESPACE, Database, Documents, Lock
from recallog_streams.keys.redis import RedisKeys
from recallog_streams.locks.redis import RedisLock


class RedisDocuments(Documents):
    """Documents in one hash of the server. Each call asks it, so that a change holds everywhere at once."""

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
    """The database at the URL of a Redis server."""

    def __init__(self, url: str, settings: AdapterSettings) -> None:
        self._url = url
        self._breaker = breaker_of(url, settings.deadline_seconds)

    def store(self, namespace: str) -> RedisStore:
        return RedisStore(self._url, namespace=namespace, breaker=self._breaker)

    def lock(self, name: str, wait_seconds: float) -> Lock:
        return RedisLock(self._url, f"{NAMESPACE}:{name}", wait_seconds, self._breaker)

    def sealing_keys(self) -> RedisKeys:
        return RedisKeys(self._url, namespace=NAMESPACE, breaker=self._breaker)

    def documents(self, name: str) -> RedisDocuments:
        return RedisDocuments(RedisServer(self._url, self._breaker), f"{{{NAMESPACE}}}:{name}")
