"""Folders of the embedded form, filled and opened as a user's would be."""

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
    """The parts of an open folder that a benchmark calls by themselves, wired as `Memory` wires them."""

    ledger: Ledger
    store: Store
    projections: Sequence[Projection]
    projector: Projector
    """As a query's: it takes the folder's lock for each batch."""
    builder: Projector
    """As a rebuild's, without a lock."""


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Home]:
    settings = Settings(home=folder, ledger=None, views=None)
    made = compose(settings)
    views = made.views
    lock = FolderLock(folder / layout.views_lock(), settings.lock_wait_seconds)
    projector = Projector(made.ledger, views.store, views.projections, lock=lock)
    try:
        await views.store.pointer(0)  # opens the file, or makes it, before any clock starts
        await made.ledger.ends()
        yield Home(made.ledger, views.store, views.projections, projector, views.builder)
    finally:
        await made.close()


async def fill(home: Home, events: Iterator[Event]) -> None:
    for batch in batches(events, _APPENDED_AT_ONCE):
        await home.ledger.append(batch)


async def grow(folder: Path, events: Iterator[Event], before: int) -> None:
    """A ledger of `events` whose views stand where only `before` of them had been written; see `put_back`."""
    async with opened(folder) as home:
        await fill(home, islice(events, before))
        await generations.current(home.projector, 0)
        await fill(home, events)
    shutil.copy(folder / layout.views_file(), folder / _GROWN)


def put_back(folder: Path) -> None:
    """Views as `grow` left them, for the next repetition."""
    forget_views(folder)
    shutil.copy(folder / _GROWN, folder / layout.views_file())


def forget_views(folder: Path) -> None:
    for path in folder.glob(f"{layout.views_file()}*"):
        path.unlink()
