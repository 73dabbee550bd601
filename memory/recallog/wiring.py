"""The composition root: the one place where settings become adapters."""

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recallog.folder_lock import FolderLock
from recallog.index.asking import Asking
from recallog.index.indexing import INDEX, Indexing
from recallog.serving import Folding, Following
from recallog.settings import Settings
from recallog.views import Views
from recallog_projections import built_in
from recallog_projections.projection import Projection
from recallog_projections.stores.sqlite import SqliteStore
from recallog_projections.stores.store import Store
from recallog_schemas import limits
from recallog_schemas.errors import ProjectionError, ReflectorMisconfigured, SettingsError
from recallog_streams.ledger import Ledger
from recallog_streams.projector import Decided, Projector
from recallog_streams.reflectors.extractive import Extractive
from recallog_streams.reflectors.port import Reflector
from recallog_streams.sqlite_ledger import SqliteLedger

if TYPE_CHECKING:
    from recallog_streams.kafka.address import KafkaAddress

LEDGER_FILE = "ledger.db"
VIEWS = "views"
VIEWS_FILE = f"{VIEWS}.db"
LOCK_FILE = f"{VIEWS}.lock"
REACTORS_LOCK_FILE = "reactors.lock"
BUILT_IN = "built-in"
NAMESPACE = "recallog"
"""What the keys of the views begin with in Redis."""

_BOTH = ("RECALLOG_LEDGER", "RECALLOG_VIEWS")
_NAME = re.compile(r"[a-z][a-z0-9_]*")


Lock = Callable[[], AbstractAsyncContextManager[Any]]


@dataclass(frozen=True, slots=True)
class Parts:
    """What a memory is made of."""

    ledger: Ledger
    views: Views
    """The built-in ones."""
    own: Sequence[Views]
    """One for each projection of the user's, in a store of its own: it is built by itself, and what it cannot apply
    is missing nowhere else."""
    reactors_lock: Lock
    """One process answers triggers at a time."""
    index: Asking | None = None
    """None: it is off."""

    def all_views(self) -> list[Views]:
        return [self.views, *self.own]

    async def close(self) -> None:
        """Let go of files and connections."""
        await self.ledger.close()
        for views in self.all_views():
            await views.store.close()
        if self.index is not None:
            await self.index.close()


def parts(
    settings: Settings, own: Sequence[Projection] = (), decided: Callable[[Decided], None] | None = None
) -> Parts:
    """What the settings ask for; `decided` hears of each batch that workers and rebuilds commit.

    Raises `SettingsError`, or `ProjectionError`.
    """
    names = [projection.name for projection in own]
    for name in names:
        if _NAME.fullmatch(name) is None or names.count(name) > 1:
            raise ProjectionError(
                f"{name!r} cannot name a projection: lower case letters, digits and _, and only one of it"
            )
    if settings.ledger is None and settings.views is None:
        return _embedded(settings, own)
    if settings.ledger is None or settings.views is None:
        given, absent = ("RECALLOG_VIEWS", "RECALLOG_LEDGER") if settings.ledger is None else _BOTH
        raise SettingsError(f"{given} is set and {absent} is not: a cluster needs both, a memory in a folder neither")
    return _cluster(settings, settings.ledger, settings.views, own, decided)


def _embedded(settings: Settings, own: Sequence[Projection]) -> Parts:
    """A memory in one folder: a SQLite ledger, SQLite views, no service."""
    ledger = SqliteLedger(settings.home / LEDGER_FILE, settings.lock_wait_seconds)

    def views(name: str, stem: str, projections: Sequence[Projection]) -> Views:
        store = SqliteStore(settings.home / f"{stem}.db", settings.lock_wait_seconds)
        lock = FolderLock(settings.home / f"{stem}.lock", settings.lock_wait_seconds)
        return Views(
            name,
            store,
            projections,
            builder=Projector(ledger, store, projections),
            serving=Folding(Projector(ledger, store, projections, lock=lock)),
        )

    return Parts(
        ledger,
        views(BUILT_IN, VIEWS, built_in.projections(settings.log_events)),
        [views(projection.name, f"{VIEWS}-{projection.name}", built_in.alone(projection)) for projection in own],
        FolderLock(settings.home / REACTORS_LOCK_FILE, settings.lock_wait_seconds),
        _index(settings, ledger, lambda: SqliteStore(settings.home / INDEX / "rows.db", settings.lock_wait_seconds)),
    )


def _cluster(
    settings: Settings,
    ledger_url: str,
    views_url: str,
    own: Sequence[Projection],
    decided: Callable[[Decided], None] | None,
) -> Parts:
    """A memory on Kafka and Redis, whose views workers keep."""
    # Only a cluster needs these packages: they come with recallog[cluster].
    from recallog.redis_lock import RedisLock
    from recallog_projections.stores.redis import RedisStore

    ledger = ledger_of(ledger_url, settings)

    def views(name: str, namespace: str, projections: Sequence[Projection]) -> Views:
        store = RedisStore(views_url, namespace=namespace)
        builder = Projector(ledger, store, projections, decided=decided)
        return Views(name, store, projections, builder, Following(builder, settings.after_wait_seconds))

    return Parts(
        ledger,
        views(BUILT_IN, NAMESPACE, built_in.projections(settings.log_events)),
        [views(projection.name, f"{NAMESPACE}:{projection.name}", built_in.alone(projection)) for projection in own],
        RedisLock(views_url, f"{NAMESPACE}:reactors", settings.lock_wait_seconds),
        _index(
            settings,
            ledger,
            lambda: RedisStore(views_url, namespace=f"{NAMESPACE}:index"),
            lambda partition: RedisLock(views_url, f"{NAMESPACE}:index:{partition}", 0)(),
        ),
    )


def _index(
    settings: Settings,
    ledger: Ledger,
    rows: Callable[[], Store],
    lock: Callable[[int], AbstractAsyncContextManager[Any]] = lambda partition: nullcontext(),
) -> Asking | None:
    """The semantic index, or None where it is off. Raises `SettingsError`."""
    place = settings.index or ("embedded" if settings.ledger is None else "off")
    if place == "off":
        return None
    key = settings.embedder_api_key.get_secret_value() if settings.embedder_api_key else None
    if place == "embedded":
        if settings.ledger is not None:
            raise SettingsError("RECALLOG_INDEX=embedded is for a memory in a folder; a cluster's is a Qdrant server")
        from recallog.index.client import Served, ServedEmbedder, ServedEngine

        home = settings.home
        indexing = Indexing(
            ledger,
            rows(),
            ServedEngine(home),
            lambda name: ServedEmbedder(home, name),
            settings.embedder,
            settings.index_pieces,
        )
        return Asking(indexing, Served(settings))
    if not place.startswith(("http://", "https://")):
        raise SettingsError(f"RECALLOG_INDEX: embedded, off, or the URL of a Qdrant server, not {place!r}")
    from recallog_projections.index.embedders import embedder
    from recallog_projections.index.server import ServerEngine

    return Asking(
        Indexing(
            ledger,
            rows(),
            ServerEngine(place),
            lambda name: embedder(name, api_key=key),
            settings.embedder,
            settings.index_pieces,
            lock,
        ),
        None,
    )


def ledger_of(place: str, settings: Settings) -> Ledger:
    """The ledger at a URL or in a folder, for those who want no views. Raises `SettingsError`."""
    if "://" not in place:
        return SqliteLedger(Path(place) / LEDGER_FILE, settings.lock_wait_seconds)
    from recallog_streams.kafka.ledger import KafkaLedger

    return KafkaLedger(address_of(place), batch_records=limits.CLUSTER_BATCH_RECORDS)


def address_of(ledger_url: str) -> "KafkaAddress":
    """Where the ledger of a cluster is. Raises `SettingsError`."""
    from recallog_streams.kafka.address import KafkaAddress

    try:
        return KafkaAddress.parse(ledger_url)
    except ValueError as error:
        raise SettingsError(f"RECALLOG_LEDGER: {error}") from None


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
