"""The composition root: the one place where settings become adapters."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from recallog.folder_lock import FolderLock
from recallog.settings import Settings
from recallog_projections import built_in
from recallog_projections.projection import Projection
from recallog_projections.stores.sqlite import SqliteStore
from recallog_projections.stores.store import Store
from recallog_schemas.errors import ProjectionError, ReflectorMisconfigured
from recallog_streams.ledger import Ledger
from recallog_streams.projector import Projector
from recallog_streams.reflectors.extractive import Extractive
from recallog_streams.reflectors.port import Reflector
from recallog_streams.sqlite_ledger import SqliteLedger

LEDGER_FILE = "ledger.db"
VIEWS = "views"
VIEWS_FILE = f"{VIEWS}.db"
LOCK_FILE = f"{VIEWS}.lock"
REACTORS_LOCK_FILE = "reactors.lock"

_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Views:
    """Projections that are folded together, and the store that keeps what they compute."""

    name: str
    """"built-in", or the name of a user's projection."""
    store: Store
    projections: Sequence[Projection]
    projector: Projector
    """For readers: it takes the lock of these views for each batch."""
    builder: Projector
    """For rebuilds, which go on beside the readers and need no lock: the commit is fenced."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a memory is made of."""

    ledger: Ledger
    views: Views
    """The built-in ones."""
    own: Sequence[Views]
    """One for each projection of the user's, in a store of its own: it is built by itself, and what it cannot apply
    is missing nowhere else."""
    reactors_lock: FolderLock
    """One process answers triggers at a time."""

    def all_views(self) -> list[Views]:
        return [self.views, *self.own]


def embedded(settings: Settings, own: Sequence[Projection] = ()) -> Parts:
    """A memory in one folder: a SQLite ledger, SQLite views, no service. Raises `ProjectionError`."""
    ledger = SqliteLedger(settings.home / LEDGER_FILE, settings.lock_wait_seconds)

    def views(name: str, stem: str, projections: Sequence[Projection]) -> Views:
        store = SqliteStore(settings.home / f"{stem}.db", settings.lock_wait_seconds)
        lock = FolderLock(settings.home / f"{stem}.lock", settings.lock_wait_seconds)
        return Views(
            name,
            store,
            projections,
            projector=Projector(ledger, store, projections, lock=lock),
            builder=Projector(ledger, store, projections),
        )

    names = [projection.name for projection in own]
    for name in names:
        if _NAME.fullmatch(name) is None or names.count(name) > 1:
            raise ProjectionError(
                f"{name!r} cannot name a projection: lower case letters, digits and _, and only one of it"
            )
    return Parts(
        ledger,
        views("built-in", VIEWS, built_in.projections(settings.log_events)),
        [views(projection.name, f"{VIEWS}-{projection.name}", built_in.alone(projection)) for projection in own],
        FolderLock(settings.home / REACTORS_LOCK_FILE, settings.lock_wait_seconds),
    )


def reflector(settings: Settings) -> Reflector:
    """Who answers when a reflection is due. Raises `ReflectorMisconfigured`."""
    if settings.reflector == "extractive":
        return Extractive()
    if settings.reflector_model is None:
        raise ReflectorMisconfigured(
            "the reflector is an endpoint, and no model is named. Set RECALLOG_REFLECTOR_MODEL, or leave "
            "RECALLOG_REFLECTOR unset for the one that needs no model"
        )
    # Only those who ask a model need its client, which takes longer to import than all the rest.
    from recallog_streams.reflectors.endpoint import ChatEndpoint

    return ChatEndpoint(
        settings.reflector,
        settings.reflector_model,
        api_key=settings.reflector_api_key.get_secret_value() if settings.reflector_api_key else None,
        timeout_seconds=settings.reflector_timeout_seconds,
    )
