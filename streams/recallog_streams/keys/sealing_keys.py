"""The port of the keys of sealed records: where keys are kept, which are used for new events, which are destroyed.

An adapter keeps keys durably by their ids, and the present key of each unit. It never holds what events contain.
"""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

from recallog_schemas.sealing import KEY_BYTES, Unit

MARKS = 1 << 48
_ID_BYTES = 12
_BLOCK_KEYS_MAX = 256


class SealingKey(NamedTuple):
    """A key and its id. The id is random and never belongs to another key."""

    id: str
    secret: bytes


class KeysState(NamedTuple):
    """A value that changes whenever a key is retired or destroyed."""

    retired: int = 0
    """How many keys were retired."""
    destroyed: Mapping[int, int] = {}
    """By the partition of the events that they have sealed: the sum of `mark_of` all keys that were destroyed. A store
    that is restored from a copy, and in which the same keys are destroyed again, has the same sums."""


class SealingKeys(ABC):
    """Keeps keys. A unit has one present key at most; an older key stays readable by its id.

    Keys are made in blocks, which are durable before the first of their keys is used. A block belongs to the
    object that made it. Nobody else uses the rest of it, since a crashed process may have used it.
    """

    def __init__(self) -> None:
        self._block: list[SealingKey] = []
        self._block_keys = 1

    @property
    def location(self) -> str:
        """Its file or address without passwords, for messages; "" if it has none."""
        return ""

    async def keys_of(self, units: Sequence[Unit]) -> list[SealingKey]:
        """The present key of each unit. A unit without a key gets one, which is durable."""
        names = [name_of(unit) for unit in units]
        found = await self.present(names)
        # Repeated if an erasure has meanwhile retired an assigned key.
        while missing := [name for name in dict.fromkeys(names) if name not in found]:
            while len(self._block) < len(missing):
                await self._add_block()
            given = {name: self._block.pop() for name in missing}
            found = {**found, **await self.assign(given)}
        return [found[name] for name in names]

    async def _add_block(self) -> None:
        block = [_new_key() for _ in range(self._block_keys)]
        await self.add(block)
        self._block += block
        self._block_keys = min(2 * self._block_keys, _BLOCK_KEYS_MAX)

    @abstractmethod
    async def state(self) -> KeysState:
        """How many keys were retired and destroyed. It is called with each append and batch, and must be fast."""

    @abstractmethod
    async def read(self, ids: Iterable[str]) -> Mapping[str, bytes]:
        """The keys with these ids, `DESTROYED` for those that were destroyed; a missing key is left out."""

    @abstractmethod
    async def present(self, units: Sequence[str]) -> Mapping[str, SealingKey]:
        """The present keys of units, which are named as by `name_of`. A unit without a key is left out."""

    @abstractmethod
    async def add(self, keys: Sequence[SealingKey]) -> None:
        """Store new keys, which belong to no unit yet. They are durable when this returns."""

    @abstractmethod
    async def assign(self, keys: Mapping[str, SealingKey]) -> Mapping[str, SealingKey]:
        """Make each of `keys`, which were added, the present key of its unit, unless the unit has got one meanwhile.

        Returns the present keys. Need not be durable: a unit whose key was lost gets another one.
        """

    @abstractmethod
    async def retire(self, units: Sequence[Unit]) -> list[str]:
        """Take the present keys from units, durably: later events get new ones. Returns the ids of these keys."""

    @abstractmethod
    async def destroy(self, ids: Iterable[str], partition: int) -> int:
        """Overwrite keys durably. Returns how many were not destroyed before, including missing ones.

        Keys that are not retired are retired first. `partition` is the partition of the events that they have sealed.
        A call without ids completes an interrupted one, for example in a log.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close files and connections."""


def name_of(unit: Unit) -> str:
    """The name of a unit in a store of keys: a digest of fixed length, without the words of the unit."""
    return blake2b("\0".join(unit).encode(), digest_size=16).hexdigest()


def mark_of(id_: str) -> int:
    """The number of a key in the sums of destroyed ones, from 1. Sums are modulo `MARKS`."""
    return 1 + int.from_bytes(blake2b(id_.encode(), digest_size=6).digest(), "big") % (MARKS - 1)


def _new_key() -> SealingKey:
    return SealingKey(secrets.token_urlsafe(_ID_BYTES), secrets.token_bytes(KEY_BYTES))
