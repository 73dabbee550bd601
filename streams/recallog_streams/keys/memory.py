"""Keys in memory, for ledgers that need not outlive the process."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from recallog_schemas.sealing import DESTROYED, Unit
from recallog_streams.keys.sealing_keys import MARKS, KeysState, SealingKey, SealingKeys, mark_of, name_of


class MemoryKeys(SealingKeys):
    """Keys in dicts."""

    def __init__(self) -> None:
        super().__init__()
        self._secrets: dict[str, bytes] = {}
        self._present: dict[str, str] = {}
        self._retired = 0
        self._destroyed = Counter[int]()

    async def state(self) -> KeysState:
        return KeysState(self._retired, dict(self._destroyed))

    async def read(self, ids: Iterable[str]) -> Mapping[str, bytes]:
        return {id_: self._secrets[id_] for id_ in ids if id_ in self._secrets}

    async def present(self, units: Sequence[str]) -> Mapping[str, SealingKey]:
        ids = {unit: self._present[unit] for unit in units if unit in self._present}
        return {unit: SealingKey(id_, self._secrets[id_]) for unit, id_ in ids.items()}

    async def add(self, keys: Sequence[SealingKey]) -> None:
        self._secrets.update(keys)

    async def assign(self, keys: Mapping[str, SealingKey]) -> Mapping[str, SealingKey]:
        for unit, key in keys.items():
            self._present.setdefault(unit, key.id)
        return await self.present([*keys])

    async def retire(self, units: Sequence[Unit]) -> list[str]:
        return self._retire({name_of(unit) for unit in units})

    def _retire(self, units: Iterable[str]) -> list[str]:
        ids = [self._present.pop(unit) for unit in units if unit in self._present]
        self._retired += len(ids)
        return ids

    async def destroy(self, ids: Iterable[str], partition: int) -> int:
        gone = {id_ for id_ in ids if self._secrets.get(id_) != DESTROYED}
        self._retire([unit for unit, id_ in self._present.items() if id_ in gone])
        self._secrets.update(dict.fromkeys(gone, DESTROYED))
        self._destroyed[partition] = (self._destroyed[partition] + sum(map(mark_of, gone))) % MARKS
        return len(gone)

    async def close(self) -> None:
        return None
