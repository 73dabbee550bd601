"""Keys in the Redis of a cluster."""

from collections.abc import Sequence

from recallog.composition import NAMESPACE
from recallog_projections.stores.redis_server import RedisServer
from recallog_schemas.errors import StorageCorrupt
from recallog_service.access import key_document
from recallog_service.access.keys import Key, KeyStore

_HASH = f"{{{NAMESPACE}}}:keys"
_UNSEALED = b'{"id":'
"""How documents of earlier versions begin: the key alone."""


class KeysInRedis(KeyStore):
    """Keys in one hash, each as a document of its own. Each call reads the server, so that a revocation holds
    everywhere at once."""

    def __init__(self, url: str) -> None:
        self._server = RedisServer(url)

    async def get(self, id_: str) -> Key | None:
        stored = await self._server.command("HGET", _HASH, id_)
        return None if stored is None else _key(id_.encode(), stored)

    async def all(self) -> Sequence[Key]:
        stored = await self._server.command("HGETALL", _HASH)
        return sorted((_key(id_, each) for id_, each in stored.items()), key=lambda key: key.created)

    async def put(self, key: Key) -> None:
        await self._server.command("HSET", _HASH, key.id, key_document.sealed([key]))

    async def close(self) -> None:
        await self._server.close()


def _key(id_: bytes, stored: bytes) -> Key:
    """The key in a document, which is that of `id_`. Raises `StorageCorrupt`."""
    try:
        # Earlier versions have stored the key alone.
        document = b"[%s]" % stored if stored.startswith(_UNSEALED) else stored
        (key,) = key_document.opened(document)
        if key.id.encode() == id_:
            return key
    except ValueError:
        pass
    raise StorageCorrupt(
        f"the key {id_.decode(errors='replace')!r} in Redis is damaged",
        remedy=f"Delete it (HDEL {_HASH} with its id), and make a new one",
    )
