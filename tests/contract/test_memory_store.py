"""The store in memory: the contract of stores."""

from pathlib import Path

from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.store import Generation, Store
from recallog_testing.contracts.store import StoreContract


class TestMemoryStore(StoreContract):
    def make(self, folder: Path) -> MemoryStore:
        return MemoryStore()

    def lose_checkpoint(self, store: Store, generation: Generation) -> None:
        assert isinstance(store, MemoryStore)
        del store._tables[generation.id]
