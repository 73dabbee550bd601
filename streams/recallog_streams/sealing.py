"""Seals the events that a ledger appends, and opens the records that are read from it, with the keys of a store.

A ledger calls `sealed` for what it appends, and `opened` for each batch that it reads. So everything above it sees
events as if they were not sealed. Keys are cached; each call first asks the store whether keys were retired or
destroyed since, which is one small read. Batches and events that are not sealed need no store.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING

from recallog_schemas import Event, kinds, sealing
from recallog_schemas.errors import SourcesErased
from recallog_schemas.sealing import NotAuthentic, Policy, Unit

if TYPE_CHECKING:
    from recallog_streams.keys.key_store import Key, KeysState, KeyStore
    from recallog_streams.ledgers.ledger import Batch

_CACHED_KEYS = 65_536
"""They take about 20 MiB with their ciphers."""

Opener = Callable[[bytes], bytes]
"""Gives the clear bytes of a record: of a sealed one its event, or what is left of it if a key is destroyed. The bytes
of one whose key is missing remain as they are: no event."""

_sources: ContextVar[tuple[str, ...]] = ContextVar("sources", default=())
_cipher_of = lru_cache(_CACHED_KEYS)(sealing.cipher_of)


@contextmanager
def made_from(ids: Collection[str]) -> Iterator[None]:
    """Events that are appended within are sealed with these keys too, which are those of the events they are made from.

    They are erased when one of their sources is.
    """
    token = _sources.set(tuple(sorted({*ids})))
    try:
        yield
    finally:
        _sources.reset(token)


class Sealing:
    """The policy and the keys of one ledger."""

    def __init__(self, keys: "KeyStore | None", policy: Policy = "subjects") -> None:
        """Without `keys` nothing is sealed, and the keys of sealed records are missing."""
        self.keys = keys
        self._policy: Policy = "off" if keys is None else policy
        self._state: KeysState | None = None
        self._present: dict[Unit, Key] = {}
        self._secrets: dict[str, bytes] = {}

    async def sealed(self, events: Sequence[Event], values: Sequence[bytes]) -> Sequence[bytes]:
        """What to store of events whose canonical bytes are `values`. Raises `SourcesErased`."""
        policy, entries, sources = self._policy, kinds.entry_kinds(), _sources.get()
        if self.keys is None or policy == "off":
            return values
        units = {
            number: sealing.units_of(event, policy)
            for number, event in enumerate(events)
            if event.subject is not None or event.kind in entries or policy == "all" or sources
        }
        if not units:
            return values
        keys = await self._keys_to_write(self.keys, {unit for each in units.values() for unit in each})
        derived = await self._keys_of_sources(self.keys, sources)
        stored = [*values]
        for number, of_event in units.items():
            with_keys = {**dict(keys[unit] for unit in of_event), **derived}
            if with_keys and not events[number].is_erased and events[number].kind != sealing.ERASURE:
                cipher = _cipher_of(tuple(with_keys.values()))
                stored[number] = sealing.seal(events[number], values[number], [*with_keys], cipher)
        return stored

    async def _keys_to_write(self, store: "KeyStore", units: Collection[Unit]) -> Mapping[Unit, "Key"]:
        await self.refresh()
        if len(self._present) > _CACHED_KEYS:
            self._present.clear()
        missing = [unit for unit in units if unit not in self._present]
        keys = {unit: self._present[unit] for unit in units if unit in self._present}
        if missing:
            keys |= zip(missing, await store.keys_of(missing), strict=True)
            self._present |= keys
        return keys

    async def _keys_of_sources(self, store: "KeyStore", ids: Collection[str]) -> Mapping[str, bytes]:
        secrets = await self._read(store, ids) if ids else {}
        if any(not secrets.get(id_) for id_ in ids):
            raise SourcesErased("an event that this one is made from was erased meanwhile; make it again without it")
        return secrets

    async def opened(self, batch: "Batch") -> "Batch":
        """The batch with the clear bytes of its sealed records."""
        numbers = [number for number, (_, data) in enumerate(batch.records) if data[12:13] == b"2"]
        if not numbers:
            return batch
        records = [*batch.records]
        open_ = await self.opener([records[number][1] for number in numbers])
        for number in numbers:
            offset, data = records[number]
            records[number] = (offset, open_(data))
        return batch.opened_as(records)

    async def opener(self, values: Iterable[bytes]) -> Opener:
        """Opens sealed records that have the keys of those among `values`, in any thread."""
        ids = {id_ for data in values if sealing.is_sealed(data) for id_ in _key_ids(data)}
        secrets: Mapping[str, bytes] = {}
        if ids and self.keys is not None:
            await self.refresh()
            secrets = await self._read(self.keys, ids)
        return lambda data: _opened(data, secrets) if sealing.is_sealed(data) else data

    async def _read(self, store: "KeyStore", ids: Collection[str]) -> dict[str, bytes]:
        """The keys with these ids; missing ones are left out."""
        secrets = {id_: self._secrets[id_] for id_ in ids if id_ in self._secrets}
        if len(secrets) < len(ids):
            read = await store.read([id_ for id_ in ids if id_ not in secrets])
            if len(self._secrets) > _CACHED_KEYS:
                self._secrets.clear()
            self._secrets.update(read)
            secrets.update(read)
        return secrets

    async def refresh(self) -> "KeysState | None":
        """Forget the cached keys if one was retired or destroyed since they were read. Returns the present state."""
        if self.keys is None:
            return None
        state = await self.keys.state()
        if state != self._state:
            self._present, self._secrets, self._state = {}, {}, state
            _cipher_of.cache_clear()
        return state

    async def close(self) -> None:
        """Close the store of keys."""
        if self.keys is not None:
            await self.keys.close()


def has_sealed(batch: "Batch") -> bool:
    """Whether records of the batch have to be opened."""
    return any(data[12:13] == b"2" for _, data in batch.records)


def _opened(data: bytes, secrets: Mapping[str, bytes]) -> bytes:
    ids = _key_ids(data)
    keys = tuple(secrets.get(id_) for id_ in ids)
    try:
        if b"" in keys:
            return sealing.erased(data)
        known = tuple(key for key in keys if key is not None)
        return data if len(known) < len(ids) or not ids else sealing.opened(data, _cipher_of(known))
    except NotAuthentic:
        return sealing.CHANGED


def _key_ids(data: bytes) -> tuple[str, ...]:
    try:
        return sealing.key_ids(data)
    except NotAuthentic:
        return ()


UNSEALED = Sealing(None)
"""Of a ledger without keys."""
