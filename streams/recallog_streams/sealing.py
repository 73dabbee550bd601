"""Seals the events that a ledger appends, and opens the records that are read from it, with the keys of a store.

A ledger calls `sealed` for what it appends, and `opened` for what it reads. So everything above it sees
events as if they were not sealed. Keys are cached; each call first asks the store whether keys were retired or
destroyed since, which is one small read. Batches and events that are not sealed need no store.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from recallog_schemas import Event, kinds, sealing
from recallog_schemas.errors import InvariantViolation, SourcesErased
from recallog_schemas.sealing import NotAuthentic, Policy, Unit

if TYPE_CHECKING:
    from recallog_streams.keys.sealing_keys import KeysState, SealingKey, SealingKeys

_CACHED_KEYS = 65_536
"""They take about 20 MiB with their ciphers."""

Records = Sequence[tuple[int, bytes]]
"""Offsets and bytes."""
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

    def __init__(
        self,
        keys: "Callable[[], SealingKeys]",
        policy: Policy = "subjects",
        exist: Callable[[], bool] = lambda: True,
    ) -> None:
        """`keys` makes the store of keys when it is first needed. While there are no keys, `exist` is false."""
        self._make_keys, self._exist = keys, exist
        self._policy: Policy = policy
        self._state: KeysState | None = None
        self._present: dict[Unit, SealingKey] = {}
        self._secrets: dict[str, bytes] = {}

    @cached_property
    def keys(self) -> "SealingKeys":
        """The store of keys. It may be created by its first write."""
        return self._make_keys()

    async def sealed(self, events: Sequence[Event], values: Sequence[bytes]) -> Sequence[bytes]:
        """What to store of events whose canonical bytes are `values`. Raises `SourcesErased`."""
        policy, entries, sources = self._policy, kinds.entry_kinds(), _sources.get()
        if policy == "off":
            return values
        units = {
            number: sealing.units_of(event, policy)
            for number, event in enumerate(events)
            if event.subject is not None or event.kind in entries or policy == "all" or sources
        }
        if not units:
            return values
        keys = await self._keys_to_write({unit for each in units.values() for unit in each})
        derived = await self._keys_of_sources(sources)
        stored = [*values]
        for number, of_event in units.items():
            with_keys = {**dict(keys[unit] for unit in of_event), **derived}
            if with_keys and not events[number].is_erased and events[number].kind != sealing.ERASURE:
                cipher = _cipher_of(tuple(with_keys.values()))
                stored[number] = sealing.seal(events[number], values[number], [*with_keys], cipher)
        return stored

    async def _keys_to_write(self, units: Collection[Unit]) -> Mapping[Unit, "SealingKey"]:
        await self.refresh()
        if len(self._present) > _CACHED_KEYS:
            self._present.clear()
        missing = [unit for unit in units if unit not in self._present]
        keys = {unit: self._present[unit] for unit in units if unit in self._present}
        if missing:
            keys |= zip(missing, await self.keys.keys_of(missing), strict=True)
            self._present |= keys
        return keys

    async def _keys_of_sources(self, ids: Collection[str]) -> Mapping[str, bytes]:
        secrets = await self._read(ids) if ids else {}
        if any(not secrets.get(id_) for id_ in ids):
            raise SourcesErased("an event that this one is made from was erased meanwhile; make it again without it")
        return secrets

    async def opened(self, records: Records) -> Records:
        """The records with the clear bytes of those that are sealed; the same object if none is."""
        numbers = [number for number, (_, data) in enumerate(records) if data[12:13] == b"2"]
        if not numbers:
            return records
        clear = [*records]
        open_ = await self.opener([records[number][1] for number in numbers])
        for number in numbers:
            offset, data = records[number]
            clear[number] = (offset, open_(data))
        return clear

    async def opener(self, values: Iterable[bytes]) -> Opener:
        """Opens sealed records that have the keys of those among `values`, in any thread."""
        ids = {id_ for data in values if sealing.is_sealed(data) for id_ in _key_ids(data)}
        secrets: Mapping[str, bytes] = {}
        if ids and await self.refresh() is not None:
            secrets = await self._read(ids)
        return lambda data: _opened(data, secrets) if sealing.is_sealed(data) else data

    async def _read(self, ids: Collection[str]) -> dict[str, bytes]:
        """The keys with these ids; missing ones are left out."""
        secrets = {id_: self._secrets[id_] for id_ in ids if id_ in self._secrets}
        if len(secrets) < len(ids):
            read = await self.keys.read([id_ for id_ in ids if id_ not in secrets])
            if len(self._secrets) > _CACHED_KEYS:
                self._secrets.clear()
            self._secrets.update(read)
            secrets.update(read)
        return secrets

    async def refresh(self) -> "KeysState | None":
        """Forget the cached keys if one was retired or destroyed since they were read. Returns the present state; None
        while there are no keys."""
        if not self._is_open and not self._exist():
            return None
        state = await self.keys.state()
        if state != self._state:
            self._present, self._secrets, self._state = {}, {}, state
            _cipher_of.cache_clear()
        return state

    def destroyed(self, partition: int) -> int:
        """A number that changes whenever a key of events of the partition is destroyed, as of the last `refresh`; 0 if
        none was."""
        return 0 if self._state is None else self._state.destroyed.get(partition, 0)

    async def close(self) -> None:
        """Close the store of keys."""
        if self._is_open:
            await self.keys.close()

    @property
    def _is_open(self) -> bool:
        return "keys" in vars(self)


def may_be_sealed(records: Records) -> bool:
    """Whether records have to be opened."""
    return any(data[12:13] == b"2" for _, data in records)


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


def _no_keys() -> "SealingKeys":
    raise InvariantViolation("this ledger has no keys")


UNSEALED = Sealing(_no_keys, "off", lambda: False)
"""Of a ledger without keys: nothing is sealed, and the keys of sealed records are missing."""
