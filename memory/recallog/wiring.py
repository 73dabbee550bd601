"""The composition root: the one place where settings become adapters."""

from collections.abc import Sequence
from dataclasses import dataclass

from recallog.folder_lock import FolderLock
from recallog.settings import Settings
from recallog_projections import built_in
from recallog_projections.projection import Projection
from recallog_projections.stores.sqlite import SqliteStore
from recallog_projections.stores.store import Store
from recallog_streams.ledger import Ledger
from recallog_streams.projector import Projector
from recallog_streams.sqlite_ledger import SqliteLedger

LEDGER_FILE = "ledger.db"
VIEWS_FILE = "views.db"
LOCK_FILE = "projector.lock"


@dataclass(frozen=True, slots=True)
class Parts:
    """What a memory is made of."""

    ledger: Ledger
    store: Store
    projections: Sequence[Projection]
    projector: Projector
    """For readers: it takes the folder's lock for each batch."""
    builder: Projector
    """For rebuilds, which go on beside the readers and need no lock: the commit is fenced."""


def embedded(settings: Settings, more: Sequence[Projection] = ()) -> Parts:
    """A memory in one folder: a SQLite ledger, SQLite views, no service."""
    ledger = SqliteLedger(settings.home / LEDGER_FILE, settings.lock_wait_seconds)
    store = SqliteStore(settings.home / VIEWS_FILE, settings.lock_wait_seconds)
    lock = FolderLock(settings.home / LOCK_FILE, settings.lock_wait_seconds)
    projections = built_in.projections(more)
    return Parts(
        ledger,
        store,
        projections,
        projector=Projector(ledger, store, projections, lock=lock),
        builder=Projector(ledger, store, projections),
    )
