"""A memory in a folder: its ledger, its views, and their locks and keys, in files of SQLite."""

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from recallog import layout
from recallog.reading.projection_group import INDEX
from recallog_projections.plugins import AdapterSettings
from recallog_projections.stores.sqlite import SqliteStore
from recallog_streams.databases.database import Database, Lock
from recallog_streams.locks.folder import FolderLock

if TYPE_CHECKING:
    from recallog_streams.keys.sqlite import SqliteKeys
    from recallog_streams.ledgers.sqlite import SqliteLedger


class FolderDatabase(Database):
    """Views, locks and keys in a folder, for the processes of one machine."""

    shared: ClassVar[bool] = False

    def __init__(self, folder: str, settings: AdapterSettings) -> None:
        self._folder, self._settings = Path(folder), settings

    def store(self, namespace: str) -> SqliteStore:
        name = namespace.partition(":")[2]
        file = layout.INDEX_ROWS if name == INDEX else layout.views_file(name)
        return SqliteStore(self._folder / file, self._settings.question_wait_seconds)

    def lock(self, name: str, wait_seconds: float) -> Lock:
        return FolderLock(self._folder / layout.lock_file(name), wait_seconds)

    def sealing_keys(self) -> "SqliteKeys":
        from recallog_streams.keys.sqlite import SqliteKeys

        return SqliteKeys(self._folder / layout.SEALING_KEYS, self._settings.lock_wait_seconds)

    def has_sealing_keys(self) -> bool:
        return (self._folder / layout.SEALING_KEYS).exists()


def open_ledger(folder: str, settings: AdapterSettings) -> "SqliteLedger":
    """The ledger in a folder."""
    from recallog_streams.ledgers.sqlite import SqliteLedger

    return SqliteLedger(Path(folder) / layout.LEDGER, settings.lock_wait_seconds, settings.question_wait_seconds)
