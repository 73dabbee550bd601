"""The composition root: finds the adapters that the settings name, by URL scheme.

| setting | schemes of Recallog's own |
| --- | --- |
| `ledger` | a folder (SQLite), `kafka://…`, `memory://` |
| `views` | a folder (SQLite), `redis://…`, `rediss://…`, `unix://…`, `memory://` |
| `index` | `embedded`, `off`, `http://…` and `https://…` (a Qdrant server) |
| `embedder` | see `recallog_projections.index.embedders.registry` |

Any other scheme is looked up among the entry points of installed distributions (`recallog_projections.plugins`).
No other module knows a scheme.
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
from recallog.components import Components
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
from recallog_streams.databases.database import NAMESPACE, Database, Lock
from recallog_streams.ledgers.ledger import Ledger
from recallog_streams.projector import ProcessedBatch, Projector
from recallog_streams.sealing import Sealing

if TYPE_CHECKING:
    from recallog.index.indexer import Indexer
    from recallog.model import Model
    from recallog_projections.index.embedders.embedder import Embedder
    from recallog_projections.index.engines.engine import Engine
    from recallog_streams.keys.sealing_keys import SealingKeys
    from recallog_streams.parallel.partitions import WorkerParts
    from recallog_streams.tracing import Tracing

REACTORS = "reactors"

_FOLDER = ""
"""The scheme of a folder."""
_REDIS = "recallog_streams.databases.redis:RedisDatabase"
_QDRANT = "recallog_projections.index.engines.server:open_engine"
_OWN = {
    plugins.LEDGERS: {
        _FOLDER: "recallog.folder:open_ledger",
        "kafka": "recallog_streams.ledgers.kafka.ledger:open_ledger",
        "memory": "recallog_streams.ledgers.memory:open_ledger",
    },
    plugins.STORES: {
        _FOLDER: "recallog.folder:FolderDatabase",
        "memory": "recallog_streams.databases.memory:open_database",
        **dict.fromkeys(("redis", "rediss", "unix"), _REDIS),
    },
    plugins.ENGINES: dict.fromkeys(("http", "https"), _QDRANT),
}
"""Recallog's own adapters, by scheme. They have the form of entry points, but do not require a scan of the installed
distributions."""
_SETTINGS = {
    plugins.LEDGERS: ("RECALLOG_LEDGER", "a folder, kafka://host:9092/topic, memory://"),
    plugins.STORES: ("RECALLOG_VIEWS", "a folder, redis://host:6379/0, memory://"),
    plugins.KEYS: ("RECALLOG_KEYS", "a folder, redis://host:6379/0, memory://"),
    plugins.ENGINES: ("RECALLOG_INDEX", "embedded, off, the URL of a Qdrant server"),
}
"""The setting of each group, and its possible values."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_RESERVED = frozenset({INDEX, REACTORS})
"""Names of Recallog's own namespaces and locks."""
_NEED_BOTH = frozenset({"kafka", "memory", "redis", "rediss", "unix"})

Namespaced = Callable[[str], Store]
"""Makes the store of one namespace: "" for the built-in views, else the name of a projection, or "index"."""


def compose(
    settings: Settings,
    own: Sequence[Projection] = (),
    processed: Callable[[ProcessedBatch], None] | None = None,
    embedder: "Embedder | None" = None,
    models: "Sequence[Model] | None" = None,
) -> Components:
    """The components that the settings name; `processed` is called with each batch that workers and rebuilds commit.

    `own` are the user's projections; without them, those that the settings name are used. The projections of `models`
    that are not built in (by default, of installed packages) follow. With an `embedder`, this process maintains the
    index itself.

    Raises `SettingsError`, or `ProjectionError` for a projection whose name is invalid or used twice.
    """
    _check_combination(settings)
    database = database_of(settings)
    ledger = ledger_at(settings.ledger or str(settings.home), settings, database)
    _check_shared(ledger, settings)
    tracing = settings.tracing()

    def lock(name: str) -> Lock:
        if name == REACTORS:
            return database.lock(name, settings.lock_wait_seconds)
        return database.lock(layout.views_name(name), adapter_settings(settings).question_wait_seconds)

    def stores(name: str) -> Store:
        return database.store(f"{NAMESPACE}:{name}" if name else NAMESPACE)

    return assemble(
        ledger,
        stores,
        own=own or loading.projections(settings.projections),
        models=models,
        lock=lock,
        index=_index(settings, ledger, database, embedder, models),
        log_events=settings.log_events,
        snapshot_records=settings.snapshot_records,
        after_wait_seconds=settings.after_wait_seconds,
        processed=processed if tracing is None else _trace_batches(processed, tracing),
        elsewhere=partial(compose, settings.model_copy(update={"index": "off"}), own, models=models),
    )


def _trace_batches(
    processed: Callable[[ProcessedBatch], None] | None, tracing: "Tracing"
) -> Callable[[ProcessedBatch], None]:
    """`processed`, with a span for each batch."""

    def both(batch: ProcessedBatch) -> None:
        if batch.outcome is Outcome.APPLIED:
            tracing.add_span(batch.partition, batch.records, batch.seconds, batch.traceparents)
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
    snapshot_records: int = limits.SNAPSHOT_RECORDS,
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
    chosen = model.choose_models(models)
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
        report = None if processed is None else partial(_report_batch, processed, name)
        drop = "recallog rebuild --drop" + (" --projections module:name" if namespace else "")
        builder = Projector(ledger, store, projections, processed=report, drop=drop)
        access: ViewAccess
        if ledger.folded_by_workers:
            access = WaitForWorkers(builder, after_wait_seconds)
        else:
            access = CatchUpOnRead(Projector(ledger, store, projections, lock=lock(namespace), drop=drop), projections)
        make_elsewhere = partial(_make_with_models, make) if kinds.list_registered() else make
        erase = [each.erase for each in of_models if each.erase is not None]
        open_ = None if elsewhere is None else partial(_opened_elsewhere, elsewhere, name)
        return ProjectionGroup(
            name, store, projections, builder, access, make_elsewhere, open_, erase, snapshot_records
        )

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
    model.load_installed()
    return make()


@asynccontextmanager
async def _opened_elsewhere(make: Callable[[], Components], name: str) -> "AsyncIterator[WorkerParts]":
    """The group `name` in another process."""
    from recallog_streams.parallel.partitions import WorkerParts

    components = make()
    try:
        await components.ledger.open()
        (group,) = (each for each in components.groups() if each.name == name)
        yield WorkerParts(group.builder, group.projections)
    finally:
        await components.close()


def _report_batch(processed: Callable[[ProcessedBatch], None], views: str, batch: ProcessedBatch) -> None:
    """Report a batch with the name of its views, which their projector does not know."""
    processed(replace(batch, views=views))


def adapter_settings(settings: Settings) -> plugins.AdapterSettings:
    """The settings that adapters receive."""
    engine = plugins.EngineSettings(*(getattr(settings, f"index_{name}") for name in plugins.EngineSettings._fields))
    return plugins.AdapterSettings(
        settings.deadline_seconds, settings.lock_wait_seconds, settings.telemetry, settings.create_ledger, engine
    )


def ledger_at(url: str, settings: Settings, database: Database | None = None) -> Ledger:
    """The ledger at a URL, or in a folder, with its keys. Raises `SettingsError`.

    `database` is the database of the views. By default, it is opened if it has the keys.
    """
    ledger = cast("Ledger", _factory(plugins.LEDGERS, url)(url, adapter_settings(settings)))
    ledger.sealing = sealing_at(url, settings, database)
    return ledger


def database_of(settings: Settings) -> Database:
    """The database of the views: their stores, the locks and the keys of the memory. Raises `SettingsError`."""
    return _database_at(settings.views or str(settings.home), settings)


def _database_at(url: str, settings: Settings, named: str = plugins.STORES) -> Database:
    """The database at a URL, or in a folder. An error names the group `named` of entry points."""
    return cast("Database", _factory(plugins.STORES, url, named)(url, adapter_settings(settings)))


def _scheme_of(url: str) -> str:
    return scheme_of(url) if "://" in url else _FOLDER


def _factory(group: str, url: str, named: str = "") -> Callable[..., Any]:
    """The factory of the adapter for the scheme of a URL, or for a folder. Raises `SettingsError`."""
    scheme = _scheme_of(url)
    target = _OWN[group].get(scheme)
    if target is not None:
        with extras.import_extra("cluster"):
            return cast("Callable[..., Any]", plugins.import_object(target))
    factory: Callable[..., Any] | None = plugins.load(group, scheme)
    if factory is None:
        named = named or group
        setting, forms = _SETTINGS[named]
        raise SettingsError(
            f"{setting}: no adapter for {scheme}://. It is {forms}, or a scheme that an installed package registers "
            f"in the entry points {named}"
        )
    return factory


async def target_of_copy(url: str, seal: Policy | None = None) -> Ledger:
    """The ledger at a URL, or in a folder, to which another ledger is copied. `seal` replaces the setting with that
    name.

    Raises `SettingsError`, or `LedgerMismatch` if its views are ahead of it. These are the views in the folder, or
    those of the environment's settings if they name the same ledger.
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


def _secret(value: SecretStr | None) -> str | None:
    return value.get_secret_value() if value is not None else None


def _check_combination(settings: Settings) -> None:
    """Raise `SettingsError` for a ledger and a store of views that cannot be combined."""
    ledger, views = settings.ledger, settings.views
    for name, url, other_name, other in (
        ("RECALLOG_LEDGER", ledger, "RECALLOG_VIEWS", views),
        ("RECALLOG_VIEWS", views, "RECALLOG_LEDGER", ledger),
    ):
        if url is not None and other is None and scheme_of(url) in _NEED_BOTH:
            raise SettingsError(
                f"{name} is set and {other_name} is not: a cluster needs both, a memory in a folder needs neither"
            )


def _check_shared(ledger: Ledger, settings: Settings) -> None:
    """Raise `SettingsError` if workers cannot share the views."""
    if ledger.folded_by_workers and "://" not in (settings.views or ""):
        raise SettingsError(
            f"RECALLOG_VIEWS: workers maintain the views of {ledger.location or 'this ledger'}, and they cannot share "
            "a folder; name a database, such as redis://host:6379/0"
        )


def sealing_at(ledger: str, settings: Settings, database: Database | None = None) -> Sealing:
    """Seals and opens records of the ledger at a URL, or in a folder. Raises `SettingsError`.

    `database` is the database of the views. It has the keys unless the settings name another place.
    """
    in_place = "://" not in ledger or scheme_of(ledger) == "memory"
    url = settings.keys or (ledger if in_place else settings.views)
    if url is None:
        return Sealing(_no_place_of_keys, settings.seal, lambda: False)
    if database is None or url != settings.views:
        if settings.keys and (factory := plugins.load(plugins.KEYS, _scheme_of(url))) is not None:
            return Sealing(partial(factory, url, adapter_settings(settings)), settings.seal)
        database = _database_at(url, settings, plugins.KEYS if settings.keys else plugins.STORES)
    return Sealing(database.sealing_keys, settings.seal, database.has_sealing_keys)


def _no_place_of_keys() -> "SealingKeys":
    raise SettingsError(
        "RECALLOG_KEYS: name where the keys of sealed events are, for example redis://host:6379/0; or seal nothing: "
        "RECALLOG_SEAL=off"
    )


def _index(
    settings: Settings, ledger: Ledger, database: Database, given: "Embedder | None", models: "Sequence[Model] | None"
) -> SemanticIndex | None:
    """The semantic index, or None if it is off. Its modules are imported when it is first used.

    `given` is an embedder that only this program has. Raises `SettingsError`.
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
            database.store(f"{NAMESPACE}:{INDEX}"),
            engine(),
            load,
            name,
            settings.index_token_vectors,
            _index_lock(database),
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
    if url != "embedded":
        if "://" not in url:
            raise SettingsError(f"RECALLOG_INDEX: {_SETTINGS[plugins.ENGINES][1]}, not {url!r}")
        if scheme_of(url) in _OWN[plugins.ENGINES]:  # its client takes long to import, and may not be needed
            return lambda: cast("Engine", _factory(plugins.ENGINES, url)(url, adapter_settings(settings)))
        return partial(_factory(plugins.ENGINES, url), url, adapter_settings(settings))

    def open_engine() -> "Engine":
        from recallog_projections.index.engines.edge import EdgeEngine

        return EdgeEngine(settings.home / layout.INDEX_ENGINE)

    return open_engine


def _embedder(settings: Settings, name: str) -> "Embedder":
    from recallog_projections.index.embedders.registry import embedder

    return embedder(name, api_key=_secret(settings.embedder_api_key), deadline_seconds=settings.deadline_seconds)


def _index_lock(database: Database) -> Callable[[int], AbstractAsyncContextManager[Any]]:
    """The lock that one indexer of a partition holds at a time. It does not wait, but raises `LockTimeout` at once."""
    if not database.shared:
        return lambda partition: nullcontext()
    return lambda partition: database.lock(f"{INDEX}:{partition}", 0)()
