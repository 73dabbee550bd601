"""Seals the events that a ledger appends, and opens the records that are read from it, with the keys of a store.

A ledger calls `seal` when it appends, and `unseal` when it reads. So all layers above it see
events as if they were not sealed. Keys are cached; each call first asks the store whether keys were retired or
destroyed since, which is one small read. Batches and events that are not sealed need no store.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from recallog_projections.notices import warn_once
from recallog_schemas import Event, kinds, sealing
from recallog_schemas.errors import (
    InvariantViolation,
    SourcesErased,
    StorageCorrupt,
    StorageForeign,
    StorageTooNew,
)
from recallog_schemas.event import ERASED_VERSION
from recallog_schemas.sealing import DESTROYED, Cipher, Policy

if TYPE_CHECKING:
    from recallog_streams.keys.sealing_keys import KeysState, SealingKeys

_CACHED_KEYS = 65_536
"""How many keys are cached. With their ciphers they take about 20 MiB."""

Belonging = tuple[str, str | None, str | None, tuple[str, ...]]
"""The space of an event, its subject, and the id of its entry, which name its units; and the keys of its sources."""
Records = Sequence[tuple[int, bytes]]
"""Offsets and bytes."""
Opener = Callable[[bytes], bytes]
"""Gives the clear bytes of a record: for a sealed one its event, or the rest of it if a key is destroyed. If a key
is missing, the bytes stay sealed and are not an event."""

Sources = Mapping[tuple[str, str], Collection[str]]
"""By space and id of an event: the ids of the keys of its sources."""

_NOTHING: Sources = {}
_sources: ContextVar[Sources] = ContextVar("sources", default=_NOTHING)
_cipher_of = lru_cache(_CACHED_KEYS)(sealing.cipher_of)


@contextmanager
def made_from(keys: Sources) -> Iterator[None]:
    """Events appended in the block are also sealed with these keys: each is erased when one of its sources is."""
    token = _sources.set(keys)
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
        self.problem = ""
        """What is wrong with the store of keys, as of its last use; "" if nothing is."""
        self._ciphers: dict[Belonging, Cipher | None] = {}
        self._secrets: dict[str, bytes] = {}

    @cached_property
    def keys(self) -> "SealingKeys":
        """The store of keys. It may be created by its first write."""
        return self._make_keys()

    @property
    def seals(self) -> bool:
        """Whether some events are sealed."""
        return self._policy != "off"

    @property
    def location(self) -> str:
        """Where the keys are, for messages."""
        return self.keys.location

    async def seal(self, events: Sequence[Event], values: Sequence[bytes]) -> Sequence[bytes]:
        """What to store of events whose canonical bytes are `values`. Raises `SourcesErased`."""
        policy, entries, sources = self._policy, kinds.entry_kinds(), _sources.get()
        if policy == "off":
            return values
        is_for_all = policy in ("all", "each")
        belongings = {
            number: _belonging(event, policy, sources.get((event.space, event.id), ()))
            for number, event in enumerate(events)
            if (event.subject is not None or event.kind in entries or is_for_all or (event.space, event.id) in sources)
            and event.envelope != ERASED_VERSION
            and event.kind != sealing.ERASURE
        }
        if not belongings:
            return values
        ciphers = await self._ciphers_of({*belongings.values()})
        stored = [*values]
        for number, belonging in belongings.items():
            cipher = ciphers[belonging]
            stored[number] = values[number] if cipher is None else cipher.seal(events[number], values[number])
        return stored

    async def _ciphers_of(self, belongings: Collection[Belonging]) -> Mapping[Belonging, Cipher | None]:
        """The cipher of events that belong to these units; None: they are not sealed."""
        await self.refresh()
        ciphers = self._ciphers  # of the state that was just read: `refresh` may replace them meanwhile
        if len(ciphers) > _CACHED_KEYS:
            ciphers.clear()
        found = {each: ciphers[each] for each in belongings if each in ciphers}
        units = {each: sealing.named_units(*each[:3], self._policy) for each in belongings if each not in found}
        needed = [*{unit for each in units.values() for unit in each}]
        keys = dict(zip(needed, await self.keys.keys_of(needed) if needed else (), strict=True))
        for belonging, of_event in units.items():
            secrets = {**dict(keys[unit] for unit in of_event), **await self._keys_of_sources(belonging[3])}
            found[belonging] = sealing.cipher_of(secrets, secrets.values()) if secrets else None
            if not belonging[3]:
                ciphers[belonging] = found[belonging]
        return found

    async def _keys_of_sources(self, ids: Collection[str]) -> Mapping[str, bytes]:
        secrets = await self._read(ids)
        if missing := [id_ for id_ in ids if id_ not in secrets]:
            raise SourcesErased(
                f"{len(missing)} keys of what this event is made from are missing in {self.location}. Put the keys "
                "back, or erase whom they are about"
            )
        if DESTROYED in secrets.values():
            raise SourcesErased("an event that this one is made from was erased meanwhile; make it again without it")
        return {id_: secrets[id_] for id_ in ids}

    async def unseal(self, records: Records) -> Records:
        """The records, with sealed ones opened; the same object if none is sealed."""
        numbers = [number for number, (_, data) in enumerate(records) if data[12:13] == b"2"]
        if not numbers:
            return records
        keys = [sealing.keys_in(records[number][1]) for number in numbers]
        openers, clear = await self._openers(frozenset(keys)), [*records]
        for number, of_record in zip(numbers, keys, strict=True):
            offset, data = records[number]
            clear[number] = (offset, openers[of_record](data))
        return clear

    async def opener(self, values: Iterable[bytes]) -> Opener:
        """Opens sealed records with the keys among `values`, in any thread."""
        openers = await self._openers({sealing.keys_in(data) for data in values})
        return lambda data: openers.get(sealing.keys_in(data), _as_it_is)(data)

    async def _openers(self, keys: Collection[bytes]) -> Mapping[bytes, Opener]:
        """The cipher of the records with these keys, which are named as in a record."""
        ids = {of_record: sealing.ids_of(of_record) for of_record in keys}
        wanted = {id_ for of_record in ids.values() for id_ in of_record}
        secrets = await self._read(wanted) if wanted and await self.refresh() is not None else {}
        return {of_record: _opener_of(ids[of_record], secrets) for of_record in keys}

    async def _read(self, ids: Collection[str]) -> dict[str, bytes]:
        """The keys with these ids; missing ones are left out."""
        cached = self._secrets  # of the last read state, as in `_ciphers_of`
        secrets = {id_: cached[id_] for id_ in ids if id_ in cached}
        if len(secrets) < len(ids):
            read: Mapping[str, bytes] = {}
            with self._damage_noted():
                read = await self.keys.read([id_ for id_ in ids if id_ not in secrets])
            if len(cached) > _CACHED_KEYS:
                cached.clear()
            cached.update(read)
            secrets.update(read)
        return secrets

    async def refresh(self) -> "KeysState | None":
        """Forget the cached keys if one was retired or destroyed since they were read. Returns the present state; None
        while there are no keys.

        While the store of keys is damaged, the cached keys remain, and unsealed events can be used.
        """
        if not self._is_open and not self._exist():
            return None
        state = self._state
        with self._damage_noted():
            state = await self.keys.state()
        if state != self._state:
            self._ciphers, self._secrets, self._state = {}, {}, state
            _cipher_of.cache_clear()
        return state

    @contextmanager
    def _damage_noted(self) -> Iterator[None]:
        """Continue without keys if their store is damaged. If it only does not answer now, its error is
        raised, since a later attempt may succeed."""
        self.problem = ""
        try:
            yield
        except (StorageCorrupt, StorageForeign, StorageTooNew) as error:
            self.problem = str(error)
            warn_once("storage", ("keys", self.location), f"sealed events cannot be read: {error}")

    def count_destroyed(self, partition: int) -> int:
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


def _belonging(event: Event, policy: Policy, sources: Collection[str]) -> Belonging:
    return event.space, event.subject, sealing.entry_of(event, policy), tuple(sorted(sources))


def may_be_sealed(records: Records) -> bool:
    """Whether records have to be opened."""
    return any(data[12:13] == b"2" for _, data in records)


def _opener_of(ids: tuple[str, ...], secrets: Mapping[str, bytes]) -> Opener:
    """Opens the records that have the keys with these ids."""
    keys = tuple(secrets[id_] for id_ in ids if id_ in secrets)
    if DESTROYED in keys:
        return sealing.erase_record
    return _as_it_is if not ids or len(keys) < len(ids) else _cipher_of(ids, keys).open


def _as_it_is(data: bytes) -> bytes:
    return data


def _no_keys() -> "SealingKeys":
    raise InvariantViolation("this ledger has no keys")


UNSEALED = Sealing(_no_keys, "off", lambda: False)
"""For a ledger without keys: nothing is sealed, and the keys of sealed records are missing."""
