"""Keys in the database of a cluster."""

from collections.abc import Sequence

from recallog_schemas.errors import StorageCorrupt
from recallog_service.access import key_document
from recallog_service.access.keys import Key, KeyStore
from recallog_streams.databases.database import Documents

_UNSEALED = b'{"id":'
"""Documents of earlier versions begin with it; they contain only the key."""


class KeysInDatabase(KeyStore):
    """Keys by id, each as a separate document. Each call reads the database, so that a revocation takes effect
    everywhere at once."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    async def get(self, id_: str) -> Key | None:
        stored = await self._documents.get(id_)
        return None if stored is None else _key(id_, stored, self._documents.location)

    async def all(self) -> Sequence[Key]:
        keys = [_key(id_, each, self._documents.location) for id_, each in (await self._documents.all()).items()]
        return sorted(keys, key=lambda key: key.created)

    async def put(self, key: Key) -> None:
        await self._documents.put(key.id, key_document.seal_keys([key]))

    async def close(self) -> None:
        await self._documents.close()


def _key(id_: str, stored: bytes, place: str) -> Key:
    """The key in the document of `id_`. Raises `StorageCorrupt`."""
    try:
        # Earlier versions stored only the key.
        document = b"[%s]" % stored if stored.startswith(_UNSEALED) else stored
        (key,) = key_document.read_keys(document)
        if key.id == id_:
            return key
    except ValueError:
        pass
    raise StorageCorrupt(
        f"the key {id_!r} in the database of the views is damaged",
        remedy=f"Delete it in {place}, and make a new one",
    )
