"""Folders of the embedded form, filled and opened as in a user's program."""

import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from benchmarks.workload import batches
from recallog import Event, Settings, layout
from recallog.composition import compose
from recallog_projections.projection import Projection
from recallog_projections.stores.store import Store
from recallog_streams import generations
from recallog_streams.ledgers.ledger import Ledger
from recallog_streams.locks.folder import FolderLock
from recallog_streams.projector import Projector

_APPENDED_AT_ONCE = 1_000
_GROWN = "before"


@dataclass(frozen=True, slots=True)
class Home:
    """The components of an open folder that benchmarks call directly, composed as in `Memory`."""

    ledger: Ledger
    store: Store
    projections: Sequence[Projection]
    projector: Projector
    """The projector of queries, which takes the lock of the folder for each batch."""
    builder: Projector
    """The projector of rebuilds, without a lock."""


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Home]:
    settings = Settings(home=folder, ledger=None, views=None)
    made = compose(settings)
    views = made.views
    lock = FolderLock(folder / layout.views_lock(), settings.lock_wait_seconds)
    projector = Projector(made.ledger, views.store, views.projections, lock=lock)
    try:
        await views.store.pointer(0)  # opens or creates the file before the measurement starts
        await made.ledger.ends()
        yield Home(made.ledger, views.store, views.projections, projector, views.builder)
    finally:
        await made.close()


async def fill(home: Home, events: Iterator[Event]) -> None:
    for batch in batches(events, _APPENDED_AT_ONCE):
        await home.ledger.append(batch)


async def grow(folder: Path, events: Iterator[Event], before: int) -> None:
    """Create a ledger of `events` and a copy of the views of the first `before` of them; see `restore_views`."""
    async with opened(folder) as home:
        await fill(home, islice(events, before))
        await generations.current(home.projector, 0)
        await fill(home, events)
    shutil.copy(folder / layout.views_file(), folder / _GROWN)


def restore_views(folder: Path) -> None:
    """Restore the views that `grow` has copied, for the next repetition."""
    delete_views(folder)
    shutil.copy(folder / _GROWN, folder / layout.views_file())


def delete_views(folder: Path) -> None:
    for path in folder.glob(f"{layout.views_file()}*"):
        path.unlink()
