"""The stores, locks and keys meet their contracts."""

from pathlib import Path

from recallog_rows import RowsDatabase

from recallog.extending import AdapterSettings, Database, Generation, SealingKeys, Store
from recallog.testing.contracts import DatabaseContract, SealingKeysContract, StoreContract


def opened(folder: Path) -> RowsDatabase:
    return RowsDatabase(f"rows://{folder}/views.db", AdapterSettings())


class TestRowsDatabase(DatabaseContract):
    def make(self, folder: Path) -> Database:
        return opened(folder)


class TestRowsStore(StoreContract):
    def make(self, folder: Path) -> Store:
        return opened(folder).store("recallog")

    def lose_checkpoint(self, store: Store, generation: Generation) -> None:
        with store._file.writing() as connection:
            connection.execute("DELETE FROM facts WHERE name = ?", (f"checkpoint/{generation.id}",))


class TestRowsKeys(SealingKeysContract):
    def make(self, folder: Path) -> SealingKeys:
        return opened(folder).sealing_keys()
