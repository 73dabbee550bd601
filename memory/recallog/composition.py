"""The composition root: settings to adapters, found by URL scheme.

| setting | schemes of Recallog's own |
| --- | --- |
| `ledger` | a folder (SQLite), `kafka://…`, `memory://` |
| `views` | a folder (SQLite), `redis://…`, `rediss://…`, `unix://…`, `memory://` |
| `index` | `embedded`, `off`, `http://…` and `https://…` (a Qdrant server) |
| `embedder` | see `recallog_projections.index.embedders.registry` |

Any other scheme is looked up among the entry points of installed distributions (`recallog_projections.plugins`).
"""

import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import SecretStr

from recallog import layout, loading, model
from recallog.components import Components, Lock
from recallog.index.semantic_index import IndexInProcess, SemanticIndex
from recallog.index.served_index import ServedIndex
from recallog.reading.projection_group import BUILT_IN, INDEX, ProjectionGroup
from recallog.reading.view_access import CatchUpOnRead, ViewAccess, WaitForWorkers
from recallog.settings import Settings
from recallog_projections import plugins
from recallog_projections.plugins import scheme_of
from recallog_projections.projection import Projection
from recallog_projections.stores.store import Outcome, Store
from recallog_projections.views import builtin
from recallog_schemas import extras, kinds, limits
from recallog_schemas.errors import ProjectionError, SettingsError
from recallog_schemas.sealing import Policy
from recallog_streams.ledgers.ledger import Ledger
from recallog_streams.projector import ProcessedBatch, Projector
from recallog_streams.sealing import Sealing

if TYPE_CHECKING:
    from recallog.index.indexer import Indexer
    from recallog.model import Model
    from recallog_projections.breaker import Breaker
    from recallog_projections.index.embedders.embedder import Embedder
    from recallog_projections.index.engines.engine import Engine
    from recallog_streams.keys.sealing_keys import SealingKeys
    from recallog_streams.ledgers.kafka.address import KafkaAddress
    from recallog_streams.parallel.partitions import Opened
    from recallog_streams.tracing import Tracing

REACTORS = "reactors"
NAMESPACE = "recallog"
"""Prefix of the namespaces in stores that several memories may share."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_RESERVED = frozenset({INDEX, REACTORS})
"""Names of Recallog's own namespaces and locks."""
_REDIS = frozenset({"redis", "rediss", "unix"})
_NEED_BOTH = _REDIS | {"kafka", "memory"}

Namespaced = Callable[[str], Store]
"""The store of one namespace: "" for the built-in views, else the name of a projection, or "index"."""


def compose(
    settings: Settings,
    own: Sequence[Projection] = (),
    processed: Callable[[ProcessedBatch], None] | None = None,
    embedder: "Embedder | None" = None,
    models: "Sequence[Model] | None" = None,
) -> Components:
    """The components that the settings name; `processed` is called with each batch that workers and rebuilds commit.

    `own` are projections of the user's own; without them, those that the settings name. The projections of `models`
    that are not built in (by default, of installed packages) follow. With an `embedder`,
    this process maintains the index itself.

    Raises `SettingsError`, or `ProjectionError` for a projection whose name is invalid or used twice.
    """
    _check_combination(settings)
    redis = _redis_breaker(settings)
    ledger = ledger_at(settings.ledger or str(settings.home), settings, redis)
    tracing = settings.tracing()
    stores = _stores(settings, redis)
    return assemble(
        ledger,
        stores,
        own=own or loading.projections(settings.projections),
        models=models,
        lock=_locks(settings, redis),
        index=_index(settings, ledger, stores, redis, embedder, models),
        log_events=settings.log_events,
        after_wait_seconds=settings.after_wait_seconds,
        processed=processed if tracing is None else _traced(processed, tracing),
        elsewhere=partial(compose, settings.model_copy(update={"index": "off"}), own, models=models),
    )


def _traced(processed: Callable[[ProcessedBatch], None] | None, tracing: "Tracing") -> Callable[[ProcessedBatch], None]:
    """`processed`, which also adds the span of each batch."""

    def both(batch: ProcessedBatch) -> None:
        if batch.outcome is Outcome.APPLIED:
            tracing.folded(batch.partition, batch.records, batch.seconds, batch.traceparents)
        if processed is not None:
            processed(batch)

    return both


def assemble(
    ledger: Ledger,
    stores: Namespaced,
    *,
    own: Sequence[Projection] = (),
    models: "Sequence[Model] | None" = None,
    lock: Callable[[str], Lock] = lambda name: nullcontext,
    index: SemanticIndex | None = None,
    log_events: int = limits.LOG_EVENTS_KEPT,
    after_wait_seconds: float = 10.0,
    processed: Callable[[ProcessedBatch], None] | None = None,
    elsewhere: Callable[[], Components] | None = None,
) -> Components:
    """Components from a ledger and a store for each namespace, for `Memory(components)`.

    `lock(name)` returns the lock that the processes of one memory hold while they fold the views `name`. Without locks
    they may fold the same batch twice. This costs only time, since the store refuses the second commit. `own` and
    `models` are as in `compose`. `elsewhere` makes the same components in another process.

    Raises `ProjectionError` for a projection whose name is invalid or used twice.
    """
    chosen = model.chosen(models)
    added = [(projection, each) for each in chosen if not each.is_built_in for projection in each.projections()]
    names = [projection.name for projection in (*own, *(projection for projection, _ in added))]
    for name in names:
        if _NAME.fullmatch(name) is None or names.count(name) > 1 or name in _RESERVED:
            raise ProjectionError(
                f"{name!r} cannot name a projection: use lower case letters, digits and _, and each name once; "
                f"{' and '.join(sorted(_RESERVED))} are reserved"
            )

    def group(
        name: str, namespace: str, make: Callable[[], Sequence[Projection]], of_models: "Sequence[Model]" = ()
    ) -> ProjectionGroup:
        store, projections = stores(namespace), make()
        report = None if processed is None else partial(_named, processed, name)
        drop = "recallog rebuild --drop" + (" --projections module:name" if namespace else "")
        builder = Projector(ledger, store, projections, processed=report, drop=drop)
        access: ViewAccess
        if ledger.folded_by_workers:
            access = WaitForWorkers(builder, after_wait_seconds)
        else:
            access = CatchUpOnRead(Projector(ledger, store, projections, lock=lock(namespace), drop=drop), projections)
        make_elsewhere = partial(_make_with_models, make) if kinds.registered() else make
        erase = [each.erase for each in of_models if each.erase is not None]
        open_ = None if elsewhere is None else partial(_opened_elsewhere, elsewhere, name)
        return ProjectionGroup(name, store, projections, builder, access, make_elsewhere, open_, erase)

    def own_group(projection: Projection, of_models: "Sequence[Model]" = ()) -> ProjectionGroup:
        return group(projection.name, projection.name, partial(builtin.with_settings, projection), of_models)

    of_built_in = [each for each in chosen if each.is_built_in]
    return Components(
        ledger,
        group(BUILT_IN, "", partial(builtin.projections, log_events), of_built_in),
        [*map(own_group, own), *(own_group(projection, [each]) for projection, each in added)],
        lock(REACTORS),
        index,
        log_events,
    )


def _make_with_models(make: Callable[[], Sequence[Projection]]) -> Sequence[Projection]:
    """The projections in a process that does not have the kinds of the installed models yet."""
    model.installed()
    return make()


@asynccontextmanager
async def _opened_elsewhere(make: Callable[[], Components], name: str) -> "AsyncIterator[Opened]":
    """The group `name` in another process."""
    from recallog_streams.parallel.partitions import Opened

    components = make()
    try:
        await components.ledger.open()
        (group,) = (each for each in components.groups() if each.name == name)
        yield Opened(group.builder, group.projections)
    finally:
        await components.close()


def _named(processed: Callable[[ProcessedBatch], None], views: str, batch: ProcessedBatch) -> None:
    """Report a batch with the name of its views, which their projector does not know."""
    processed(replace(batch, views=views))


def ledger_at(url: str, settings: Settings, redis: "Breaker | None" = None) -> Ledger:
    """The ledger at a URL, or in a folder, with its keys. Raises `SettingsError`."""
    ledger = _ledger_at(url, settings)
    ledger.sealing = sealing_at(url, settings, redis)
    return ledger


def _ledger_at(url: str, settings: Settings) -> Ledger:
    scheme = scheme_of(url) if "://" in url else ""
    if not scheme:
        from recallog_streams.ledgers.sqlite import SqliteLedger

        return SqliteLedger(Path(url) / layout.LEDGER, settings.lock_wait_seconds, _question_wait_seconds(settings))
    if scheme == "kafka":
        with extras.needed("cluster"):
            from recallog_streams.ledgers.kafka.ledger import KafkaLedger

        return KafkaLedger(
            address_of(url),
            batch_records=limits.CLUSTER_BATCH_RECORDS,
            deadline_seconds=settings.deadline_seconds,
            tracing=settings.tracing(),
        )
    if scheme == "memory":
        from recallog_streams.ledgers.memory import MemoryLedger

        return MemoryLedger()
    factory = plugins.load(plugins.LEDGERS, scheme)
    if factory is None:
        raise SettingsError(
            f"RECALLOG_LEDGER: no adapter for {scheme}://. It is a folder, kafka://host:9092/topic, memory://, or a "
            f"scheme that an installed package registers in the entry points {plugins.LEDGERS}"
        )
    ledger: Ledger = factory(url)
    return ledger


async def target_of_copy(url: str, seal: Policy | None = None) -> Ledger:
    """The ledger at a URL, or in a folder, to which another one is copied; `seal` instead of the setting of that name.

    Raises `SettingsError`, or `LedgerMismatch` if its views are ahead of it: those in the folder, or those of the
    environment's settings if they name the same ledger.
    """
    given: dict[str, Any] = {} if seal is None else {"seal": seal}
    settings = Settings.valid(**given)
    if "://" not in url:
        settings = Settings.valid(home=Path(url), ledger=None, views=None, index="off", **given)
    elif url != settings.ledger or settings.views is None:
        return ledger_at(url, settings)
    components = compose(settings.model_copy(update={"index": "off"}))
    try:
        await components.guard.check(range(await components.ledger.partitions()), components.ledger.opening)
    except BaseException:
        await components.ledger.close()
        raise
    finally:
        for group in components.groups():
            await group.store.close()
    return components.ledger


def address_of(ledger_url: str) -> "KafkaAddress":
    """The address of a ledger on Kafka. Raises `SettingsError`."""
    from recallog_streams.ledgers.kafka.address import KafkaAddress

    try:
        return KafkaAddress.parse(ledger_url)
    except ValueError as error:
        raise SettingsError(f"RECALLOG_LEDGER: {error}") from None


def _secret(value: SecretStr | None) -> str | None:
    return value.get_secret_value() if value is not None else None


def _check_combination(settings: Settings) -> None:
    """Raise `SettingsError` for a ledger and a store of views that do not fit together."""
    ledger, views = settings.ledger, settings.views
    for name, url, other_name, other in (
        ("RECALLOG_LEDGER", ledger, "RECALLOG_VIEWS", views),
        ("RECALLOG_VIEWS", views, "RECALLOG_LEDGER", ledger),
    ):
        if url is not None and other is None and scheme_of(url) in _NEED_BOTH:
            raise SettingsError(
                f"{name} is set and {other_name} is not: a cluster needs both, a memory in a folder needs neither"
            )
    if ledger is not None and scheme_of(ledger) == "kafka" and views is not None and "://" not in views:
        raise SettingsError(
            "RECALLOG_VIEWS: workers maintain the views of a ledger on Kafka, and they cannot share a folder; name a "
            "Redis: redis://host:6379/0"
        )


def sealing_at(ledger: str, settings: Settings, redis: "Breaker | None" = None) -> Sealing:
    """What seals and opens records of the ledger at a URL, or in a folder. Raises `SettingsError`."""
    in_place = "://" not in ledger or scheme_of(ledger) == "memory"
    url = settings.keys or (ledger if in_place else settings.views)
    if url is None:
        return Sealing(_no_place_of_keys, settings.seal, lambda: False)
    scheme = scheme_of(url) if "://" in url else ""
    if not scheme:
        file = Path(url) / layout.SEALING_KEYS
        return Sealing(partial(_sqlite_keys, file, settings), settings.seal, file.exists)
    if scheme in _REDIS:
        with extras.needed("cluster"):
            from recallog_streams.keys.redis import RedisKeys

        breaker = redis if url == settings.views else None
        return Sealing(partial(RedisKeys, url, namespace=NAMESPACE, breaker=breaker), settings.seal)
    if scheme == "memory":
        from recallog_streams.keys.memory import MemoryKeys

        return Sealing(MemoryKeys, settings.seal)
    factory = plugins.load(plugins.KEYS, scheme)
    if factory is None:
        raise SettingsError(
            f"RECALLOG_KEYS: no adapter for {scheme}://. It is a folder, redis://host:6379/0, memory://, or a scheme "
            f"that an installed package registers in the entry points {plugins.KEYS}"
        )
    return Sealing(partial(factory, url), settings.seal)


def _no_place_of_keys() -> "SealingKeys":
    raise SettingsError(
        "RECALLOG_KEYS: name where the keys of sealed events are, for example redis://host:6379/0; or seal nothing: "
        "RECALLOG_SEAL=off"
    )


def _sqlite_keys(file: Path, settings: Settings) -> "SealingKeys":
    from recallog_streams.keys.sqlite import SqliteKeys

    return SqliteKeys(file, settings.lock_wait_seconds)


def _redis_breaker(settings: Settings) -> "Breaker | None":
    """The circuit breaker of all clients of the Redis of the views; None if the views are not in a Redis."""
    if settings.views is None or scheme_of(settings.views) not in _REDIS:
        return None
    with extras.needed("cluster"):
        from recallog_projections.stores.redis_server import breaker_of

    return breaker_of(settings.views, settings.deadline_seconds)


def _stores(settings: Settings, redis: "Breaker | None") -> Namespaced:
    url = settings.views
    scheme = "" if url is None or "://" not in url else scheme_of(url)
    if url is None or not scheme:
        folder = settings.home if url is None else Path(url)
        return lambda namespace: _sqlite_store(folder, namespace, settings)
    if scheme in _REDIS:
        with extras.needed("cluster"):
            from recallog_projections.stores.redis import RedisStore

        return lambda namespace: RedisStore(url, namespace=_shared_namespace(namespace), breaker=redis)
    if scheme == "memory":
        from recallog_projections.stores.memory import MemoryStore

        return lambda namespace: MemoryStore()
    factory = plugins.load(plugins.STORES, scheme)
    if factory is None:
        raise SettingsError(
            f"RECALLOG_VIEWS: no adapter for {scheme}://. It is a folder, redis://host:6379/0, memory://, or a scheme "
            f"that an installed package registers in the entry points {plugins.STORES}"
        )
    return lambda namespace: factory(url, _shared_namespace(namespace))


def _shared_namespace(namespace: str) -> str:
    return f"{NAMESPACE}:{namespace}" if namespace else NAMESPACE


def _sqlite_store(folder: Path, namespace: str, settings: Settings) -> Store:
    from recallog_projections.stores.sqlite import SqliteStore

    file = layout.INDEX_ROWS if namespace == INDEX else layout.views_file(namespace)
    return SqliteStore(folder / file, _question_wait_seconds(settings))


def _question_wait_seconds(settings: Settings) -> float:
    """How long a query waits for a lock of a folder: it can be answered without it."""
    return min(settings.deadline_seconds, settings.lock_wait_seconds)


def _locks(settings: Settings, redis: "Breaker | None") -> Callable[[str], Lock]:
    """Locks among the processes of one memory: in Redis, else in the folder; none for a memory in this process."""
    views = settings.views
    if views is not None and scheme_of(views) in _REDIS:
        from recallog_streams.locks.redis import RedisLock

        return lambda name: RedisLock(views, _shared_namespace(name), settings.lock_wait_seconds, redis)
    if settings.ledger is not None and scheme_of(settings.ledger) == "memory":
        return lambda name: nullcontext
    from recallog_streams.locks.folder import FolderLock

    def lock(name: str) -> Lock:
        if name == REACTORS:
            return FolderLock(settings.home / layout.REACTORS_LOCK, settings.lock_wait_seconds)
        return FolderLock(settings.home / layout.views_lock(name), _question_wait_seconds(settings))

    return lock


def _index(
    settings: Settings,
    ledger: Ledger,
    stores: Namespaced,
    redis: "Breaker | None",
    given: "Embedder | None",
    models: "Sequence[Model] | None",
) -> SemanticIndex | None:
    """The semantic index, or None if it is off. Its modules are imported when it is first used.

    `given` is an embedder that this program alone has. Raises `SettingsError`.
    """
    in_folder = settings.ledger is None and settings.views is None
    url = settings.index or ("embedded" if in_folder else "off")
    if url == "off":
        if given is not None:
            raise SettingsError(
                "an embedder is given, and the index is off. Leave RECALLOG_INDEX unset for a memory in a folder, or "
                "name a Qdrant server: http://host:6333"
            )
        return None
    if url == "embedded" and not in_folder:
        raise SettingsError("RECALLOG_INDEX=embedded is for a memory in a folder; a cluster's is a Qdrant server")
    if url == "embedded" and given is None:
        return ServedIndex(settings, ledger)
    engine = _engine(settings, url)

    def indexer(load: "Callable[[str], Embedder]", name: str) -> "Indexer":
        from recallog.index.indexer import Indexer

        return Indexer(
            ledger,
            stores(INDEX),
            engine(),
            load,
            name,
            settings.index_token_vectors,
            _index_lock(settings, redis),
            deadline_seconds=settings.deadline_seconds,
            documents=model.documents(models),
        )

    if given is None:
        return IndexInProcess(lambda: indexer(lambda name: _embedder(settings, name), settings.embedder))
    from recallog.index.followed_index import FollowedIndex
    from recallog.index.ownership import Ownership

    ownership = Ownership(settings.home, given.model) if url == "embedded" else None
    return FollowedIndex(indexer, given, ownership)


def _engine(settings: Settings, url: str) -> "Callable[[], Engine]":
    """Opens the engine of the index at a URL, or in the folder. Raises `SettingsError`."""
    scheme = scheme_of(url)
    factory = plugins.load(plugins.ENGINES, scheme) if scheme not in ("", "http", "https") else None
    if url != "embedded" and scheme not in ("http", "https") and factory is None:
        raise SettingsError(
            f"RECALLOG_INDEX: embedded, off, the URL of a Qdrant server, or a scheme that an installed package "
            f"registers in the entry points {plugins.ENGINES}, not {url!r}"
        )

    def opened() -> "Engine":
        if factory is not None:
            return cast("Engine", factory(url))
        if url == "embedded":
            from recallog_projections.index.engines.edge import EdgeEngine

            return EdgeEngine(settings.home / layout.INDEX_ENGINE)
        with extras.needed("cluster"):
            from recallog_projections.index.engines.server import ServerEngine

        return ServerEngine(url, deadline_seconds=settings.deadline_seconds)

    return opened


def _embedder(settings: Settings, name: str) -> "Embedder":
    from recallog_projections.index.embedders.registry import embedder

    return embedder(name, api_key=_secret(settings.embedder_api_key), deadline_seconds=settings.deadline_seconds)


def _index_lock(settings: Settings, redis: "Breaker | None") -> Callable[[int], AbstractAsyncContextManager[Any]]:
    """The lock that one indexer of a partition holds at a time. It does not wait: it raises `LockTimeout` at once."""
    views = settings.views
    if views is None or scheme_of(views) not in _REDIS:
        return lambda partition: nullcontext()
    from recallog_streams.locks.redis import RedisLock

    return lambda partition: RedisLock(views, _shared_namespace(f"{INDEX}:{partition}"), 0, redis)()
