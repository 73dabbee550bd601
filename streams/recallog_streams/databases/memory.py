"""Views and keys in this process's memory."""

from contextlib import nullcontext
from typing import ClassVar

from recallog_projections.plugins import AdapterSettings
from recallog_projections.stores.memory import MemoryStore
from recallog_streams.databases.database import Database, Lock
from recallog_streams.keys.memory import MemoryKeys


class MemoryDatabase(Database):
    """Each store and each store of keys is a new one that nothing else uses, so locks do nothing."""

    shared: ClassVar[bool] = False

    def store(self, namespace: str) -> MemoryStore:
        return MemoryStore()

    def lock(self, name: str, wait_seconds: float) -> Lock:
        return nullcontext

    def sealing_keys(self) -> MemoryKeys:
        return MemoryKeys()


def open_database(url: str, settings: AdapterSettings) -> MemoryDatabase:
    """The database at `memory://`."""
    return MemoryDatabase()
