"""The store in memory: the contract of stores."""

from pathlib import Path

from contract.store_contract import StoreContract
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.store import Generation, Store


class TestMemoryStore(StoreContract):
    def make(self, folder: Path) -> MemoryStore:
        return MemoryStore()

    def lose_checkpoint(self, store: Store, generation: Generation) -> None:
        assert isinstance(store, MemoryStore)
        del store._tables[generation.id]
