"""Keys in the Redis of a cluster."""

from collections.abc import Sequence

from recallog.composition import NAMESPACE
from recallog_projections.stores.redis_server import RedisServer
from recallog_service.access.keys import Key, KeyStore

_HASH = f"{{{NAMESPACE}}}:keys"


class KeysInRedis(KeyStore):
    """Keys as JSON in one hash. Each call reads the server, so that a revocation holds everywhere at once."""

    def __init__(self, url: str) -> None:
        self._server = RedisServer(url)

    async def get(self, id_: str) -> Key | None:
        stored = await self._server.command("HGET", _HASH, id_)
        return None if stored is None else Key.model_validate_json(stored)

    async def all(self) -> Sequence[Key]:
        stored = await self._server.command("HVALS", _HASH)
        return sorted((Key.model_validate_json(each) for each in stored), key=lambda key: key.created)

    async def put(self, key: Key) -> None:
        await self._server.command("HSET", _HASH, key.id, key.model_dump_json())

    async def close(self) -> None:
        await self._server.close()
