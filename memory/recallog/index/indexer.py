"""The indexer: follows the ledger and maintains the active generation of the index in each partition.

The model that computes the vectors is a property of the index, not of the process: the active generation names it. The
settings name it only for the first generation. Therefore a cutover changes the model for all processes at once.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import msgspec

from recallog.index.building import ROWS_LOST, not_built
from recallog.index.questions import EmbeddedQuestions
from recallog.reading.projection_group import INDEX, ProjectionGroup
from recallog.reading.view_access import CatchUpOnRead
from recallog_projections.index import points
from recallog_projections.index.documents import DocumentMaker, Index, built_in_makers
from recallog_projections.index.embedders.embedder import Embedder
from recallog_projections.index.embedders.registry import GIVEN
from recallog_projections.index.engines.engine import Engine
from recallog_projections.index.store import IndexStore, MadeWith, added_documents, collection_of, damage, made_with
from recallog_projections.index.unread import unread
from recallog_projections.projection import Projection
from recallog_projections.stores.store import Checkpoint, Generation, Pointer, Store
from recallog_schemas import limits
from recallog_schemas.errors import (
    IndexDamaged,
    IndexLost,
    IndexUnavailable,
    LockTimeout,
    Rebuilding,
    RecallogError,
    StorageCorrupt,
    ViewsTooNew,
)
from recallog_streams import generations
from recallog_streams.ledgers.ledger import Batch, Ledger
from recallog_streams.partition_task import backoff
from recallog_streams.progress import Progress
from recallog_streams.projector import Projector
from recallog_streams.stop_signal import StopSignal

POLL_SECONDS = 0.2
"""How often the ledger's end is read while there is nothing to index."""
CHECK_SECONDS = 5.0
"""How often the indexer checks that the engine still has the collection."""
REPAIR_SECONDS = 600.0
"""The shortest time between two rebuilds of a partition because of damage. A call that fails for another reason does
not cause a rebuild."""
ROUND_RECORDS = 8 * limits.INDEX_BATCH_RECORDS
"""The number of records of one partition that are indexed before the next partition."""

_log = logging.getLogger("recallog.index")

DROP = "recallog rebuild index --drop"
"""The command with which an operator drops the index."""


@dataclass(frozen=True, slots=True)
class IndexSnapshot:
    """The generation of the index that answers one query."""

    engine: Engine
    collection: str
    embedder: Embedder
    questions: EmbeddedQuestions
    token_vectors: bool
    generation: str
    checkpoint: int
    """The last offset that was processed."""
    unread: int = 0
    """The number of offsets from the oldest to the newest event whose vectors are not computed yet."""


@dataclass
class Indexer:
    """Follows a ledger and maintains the index of all its partitions."""

    ledger: Ledger
    rows: Store
    """The store of the index's checkpoints and of the rows that its projection reads."""
    engine: Engine
    load: Callable[[str], Embedder]
    """Loads an embedder by its name. It is called once for each name."""
    name: str
    """The embedder of the first generation."""
    token_vectors: bool = True
    lock: Callable[[int], AbstractAsyncContextManager[Any]] = lambda partition: nullcontext()
    """Held while a partition is indexed, so that processes that share an index do not compute vectors twice."""
    load_for_queries: Callable[[str], Embedder] | None = None
    """Loads a second embedder by its name for queries, so that they do not wait for a batch. None: queries use the same
    one."""
    deadline_seconds: float = limits.DEADLINE_SECONDS
    """How long a query waits for an embedder on another machine."""
    documents: Mapping[str, DocumentMaker] = field(default_factory=dict)
    """Makers of the documents of models that are not built in, by the names of the models."""

    def __post_init__(self) -> None:
        self._views: dict[MadeWith, ProjectionGroup] = {}
        self._embedders: dict[tuple[str, Callable[[str], Embedder]], Embedder] = {}
        self._loading = Lock()
        self._questions = EmbeddedQuestions(self.deadline_seconds)
        self._closed = False
        self._checked_at = -CHECK_SECONDS
        self._examined: set[str] = set()
        """The generations whose collections have been examined for damage."""
        self._collected: set[str] = set()
        """The generations whose predecessors have been deleted."""
        self._damage: dict[int, str] = {}
        """By partition: the damage in its active generation, beside which it is rebuilt."""
        self._repaired_at: dict[int, float] = {}
        self._unread: dict[str, int] = {}
        """By generation: see `IndexSnapshot.unread`."""
        self._loss: dict[int, str] = {}
        """By partition: why it does not have a generation that can answer, if it had one before."""
        self.problem = ""
        """Why the index does not follow the ledger, in one sentence; "" if it does."""
        self.at_end = False
        """Whether the last round found nothing to index."""

    @property
    def indexed(self) -> int:
        """The number of texts that this process has indexed, including those of a batch that is not committed yet."""
        stores = [group.store for group in self._views.values() if isinstance(group.store, IndexStore)]
        return sum(store.counts.embedded + store.counts.reused for store in stores)

    @property
    def repair(self) -> str:
        """The damage or loss that is being repaired, in one sentence; "" without one."""
        found = [*self._loss.values(), *self._damage.values()]
        return f"{found[0]}; it is being rebuilt" if found else ""

    async def embedder(self, name: str) -> Embedder:
        """The embedder with this name. The first call loads it. Raises `IndexUnavailable`, or `SettingsError`."""
        return await self._embedder(name, self.load)

    async def _embedder(self, name: str, load: Callable[[str], Embedder]) -> Embedder:
        known = self._embedders.get((name, load))
        return known if known is not None else await asyncio.to_thread(self._load_embedder, name, load)

    def _load_embedder(self, name: str, load: Callable[[str], Embedder]) -> Embedder:
        with self._loading:
            if (name, load) not in self._embedders:
                loaded = self._embedders[name, load] = load(name)
                if self._closed:
                    self.close()
                return loaded
            return self._embedders[name, load]

    def close(self) -> None:
        """Unload the models. A model that is being loaded is unloaded afterwards. May block: call it in a thread."""
        self._closed = True
        while self._embedders:
            self._embedders.popitem()[1].close()

    async def open(self, partition: int) -> IndexSnapshot:
        """The active generation. Raises `IndexUnavailable` if there is none yet, or if this process has another
        model."""
        try:
            return await self._open(partition)
        except IndexUnavailable:
            raise
        except RecallogError as error:  # of the rows, or the embedder's settings are wrong
            raise IndexUnavailable(str(error)) from error

    async def _open(self, partition: int) -> IndexSnapshot:
        active, checkpoint = await self._read_active(partition)
        if active is not None:
            await self._examine(partition, active)
        if active is None or checkpoint is None or partition in self._loss:
            if self.problem:
                raise IndexUnavailable(f"the index cannot be built: {self.problem}")
            await self.engine.collections()  # raises if it is not there
            raise await not_built(self.ledger, self.rows, partition, self._loss.get(partition, ""))
        made = made_with(active.code)
        embedder = await self._embedder(made.embedder, self.load_for_queries or self.load)
        check_model(embedder, made)
        return IndexSnapshot(
            self.engine,
            collection_of(active),
            embedder,
            self._questions,
            made.token_vectors,
            active.id,
            checkpoint.offset,
            self._unread.get(active.id, 0),
        )

    async def _read_active(self, partition: int) -> tuple[Generation | None, Checkpoint | None]:
        """The active generation and its checkpoint, by one call to the thread of the rows if they have one."""
        found = await self.rows.read_current(partition, (), (), lambda generation, checkpoint: True)
        if found is not None:
            return found.generation, found.checkpoint
        active = (await self.rows.pointer(partition)).active
        return active, None if active is None else await self.rows.checkpoint(active)

    def note_damage(self, partition: int, found: str) -> None:
        """Note that the active generation of a partition is damaged. `run` rebuilds it beside the damaged one, at most
        every `REPAIR_SECONDS`."""
        if time.monotonic() - self._repaired_at.get(partition, -math.inf) >= REPAIR_SECONDS:
            self._damage.setdefault(partition, found)

    async def views(self, partition: int = 0) -> ProjectionGroup:
        """The index as a projection group, for `rebuild` and `verify`. Raises `IndexUnavailable`."""
        pointer = await self.rows.pointer(partition)
        return await self._views_of(await self._choose_making(pointer))

    def projections(self, made: Mapping[str, Any]) -> list[Projection]:
        """The projections of an index that was made with `made`."""
        return Index(made, built_in_makers(), self.documents).group()

    async def group_for_move(self, name: str, *, token_vectors: bool | None = None) -> ProjectionGroup:
        """The index with the embedder `name`, as a projection group. Rebuilding it replaces the embedder."""
        return await self._views_of(
            await self._made_with(name, self.token_vectors if token_vectors is None else token_vectors)
        )

    async def run(self, stopping: StopSignal, progress: Progress | None = None) -> None:
        """Index all partitions up to the ledger's end, and follow it until `stopping` is set."""
        failures = 0
        while not stopping:
            try:
                indexed = await stopping.unless(self._round(progress))
            except Exception as error:  # noqa: BLE001 - a user's engine or embedder may raise anything
                failures += 1
                named = f"{type(error).__name__}: {error}"
                self.problem = str(error) if isinstance(error, RecallogError) else named
                _log.warning("%s", named, exc_info=not isinstance(error, RecallogError))
                await stopping.pause(backoff(failures))
            else:
                failures, self.problem, self.at_end = 0, "", not indexed
                if not indexed:
                    await stopping.pause(POLL_SECONDS)

    async def _round(self, progress: Progress | None) -> bool:
        check_engine = time.monotonic() - self._checked_at >= CHECK_SECONDS
        if check_engine:
            self._checked_at = time.monotonic()
        ends = await self.ledger.ends()
        indexed = [await self._step(partition, end, check_engine, progress) for partition, end in enumerate(ends)]
        return any(indexed)

    async def _step(self, partition: int, end: int, check_engine: bool, progress: Progress | None) -> bool:
        """Index the next records of one partition. Returns whether there were any.

        With `check_engine`, also check that the engine still has the collection.
        """
        pointer = await self.rows.pointer(partition)
        views = await self._views_of(await self._choose_making(pointer))
        active, projector = pointer.active, views.builder
        try:
            if active is not None and await projector.fits(active):
                await self._examine(partition, active)
                await self._collect_once(projector.store, active)
                store = projector.store if check_engine else self.rows
                done = await store.checkpoint(active)
                if done is not None and done.offset + 1 >= end and partition not in self._damage:
                    self._loss.pop(partition, None)
                    return await self._embed_newest(projector.store, active)
            async with self.lock(partition):
                await self._index_round(projector, partition, active, end, progress)
        except LockTimeout:
            return False  # another process indexes it
        except IndexDamaged as error:
            self.note_damage(partition, str(error))
            if partition not in self._damage:
                raise
        except (IndexLost, Rebuilding):
            pass  # a cutover, or the collection was set aside: the next round continues in another generation
        return True

    async def _embed_newest(self, store: Store, active: Generation) -> bool:
        """Compute vectors that were left out because of a backlog. Returns whether there were any."""
        if not self._unread.get(active.id) or not isinstance(store, IndexStore):
            return False
        await store.embed_newest(active)
        await self._note_unread(active)
        return True

    async def _note_unread(self, active: Generation) -> None:
        self._unread[active.id] = len(await unread(self.rows, active))

    async def _collect_once(self, store: Store, active: Generation) -> None:
        """Delete the remains of a process that ended after a cutover to this generation."""
        if active.id not in self._collected:
            async with self.lock(active.partition):
                await store.collect_garbage(active.partition)
            self._collected.add(active.id)

    async def _examine(self, partition: int, active: Generation) -> None:
        """Check for damage, and for another ledger, when the collection of a generation is first used in this process.

        Until it is repaired, queries do not use the collection, since most of it may be missing. A server checks its
        own files. Raises `LedgerMismatch` if the index was computed from another ledger.
        """
        if active.id in self._examined or self.rows.remote:
            return
        checkpoint = await self.rows.checkpoint(active)
        if checkpoint is not None:
            with suppress(StorageCorrupt):  # a damaged record does not make it another ledger
                await Projector(self.ledger, self.rows, [], drop=DROP).verify_ledger_identity(partition, checkpoint)
        try:
            await self._note_unread(active)
            found = await damage(self.rows, self.engine, active)
        except (IndexLost, Rebuilding):  # there is nothing to check: it is rebuilt
            found = ""
        except IndexDamaged as error:
            found = str(error)
        self._examined.add(active.id)
        if found:
            self.note_damage(partition, f"files of the index are damaged: {found}")
            self._loss[partition] = self._damage.get(partition, found)

    async def _index_round(
        self, projector: Projector, partition: int, active: Generation | None, end: int, progress: Progress | None
    ) -> None:
        if isinstance(projector.store, IndexStore) and not self.rows.remote:
            projector.store.backlog_end = end - limits.INDEX_BATCH_RECORDS
        done = await projector.store.checkpoint(active) if active is not None else None
        if active is None or done is None or not await projector.fits(active):
            if done is None and (lost := await self._explain_loss(projector.store, partition, active)):
                self._loss[partition] = lost
            await self._note_unread(await generations.current(projector, partition, progress))
            self._loss.pop(partition, None)
        elif partition in self._damage:
            _log.warning("%s; the index of partition %d is built again", self._damage[partition], partition)
            self._repaired_at[partition] = time.monotonic()
            await generations.rebuild(projector, partition, progress, accept=True)
            del self._damage[partition]
            self._loss.pop(partition, None)
        else:
            # At most one round, so that no partition waits until another one has reached the end.
            await projector.catch_up(active, min(end, done.offset + 1 + ROUND_RECORDS), progress)
            await self._note_unread(active)

    async def _explain_loss(self, store: Store, partition: int, active: Generation | None) -> str:
        """Why a partition does not have a generation that can answer; "" if it never had one."""
        if active is not None:
            return self.engine.cause_of_loss(collection_of(active)) or "the files of the index were lost"
        building = (await self.rows.pointer(partition)).building
        if building is None and isinstance(store, IndexStore) and await store.collections(partition):
            return ROWS_LOST
        return ""

    async def _choose_making(self, pointer: Pointer) -> MadeWith:
        if pointer.active is not None:
            before = made_with(pointer.active.code)
            return msgspec.structs.replace(before, points=points.VERSION)
        return await self._made_with(self.name, self.token_vectors)

    async def _made_with(self, name: str, token_vectors: bool) -> MadeWith:
        embedder = await self.embedder(name)
        return MadeWith(name, embedder.model, token_vectors and embedder.token_vectors)

    async def _views_of(self, made: MadeWith) -> ProjectionGroup:
        if made not in self._views:
            embedder = await self.embedder(made.embedder)
            check_model(embedder, made)
            store = IndexStore(self.rows, self.engine, embedder, token_vectors=made.token_vectors)
            projections = self.projections(msgspec.structs.asdict(made))
            projector = IndexProjector(
                self.ledger,
                store,
                projections,
                batch_records=limits.INDEX_BATCH_RECORDS,
                batch_bytes=limits.INDEX_BATCH_BYTES,
                drop=DROP,
            )
            self._views[made] = ProjectionGroup(INDEX, store, projections, projector, CatchUpOnRead(projector))
        return self._views[made]


class IndexProjector(Projector):
    """A projector whose embedder or engine may be provided by the user. Their errors are raised as
    `IndexUnavailable`."""

    async def fits(self, generation: Generation) -> bool:
        """As in `Projector`.

        Raises `ViewsTooNew` if the generation has documents of a model that this process does not have, or has in an
        older version. Otherwise, two processes with different models would replace each other's index for ever.
        """
        known = added_documents(self.fold.code)
        for name, version in added_documents(generation.code).items():
            if known.get(name, 0) < version:
                raise ViewsTooNew(
                    f"the index has documents of the memory model {name}, version {version}, which this process cannot "
                    "make. Install the package of the model for this process, or give the model to it; or build the "
                    "index without these documents: recallog rebuild index"
                )
        return await super().fits(generation)

    async def process(
        self, generation: Generation, batch: Batch, checkpoint: Checkpoint | None = None
    ) -> Checkpoint | None:
        try:
            return await super().process(generation, batch, checkpoint)
        except RecallogError:
            raise
        except Exception as error:
            raise IndexUnavailable(f"{type(error).__name__}: {error}") from error


def check_model(embedder: Embedder, made: MadeWith) -> None:
    """Raise `IndexUnavailable` if `embedder` is not the model that the index was built with."""
    if embedder.model != made.model:
        again = f"memory.admin.reindex(model={GIVEN!r})" if made.embedder == GIVEN else ""
        raise IndexUnavailable(
            f"the index was built with {made.model}, but {made.embedder!r} is {embedder.model} here. Rebuild it: "
            f"{again or f'recallog reindex --model {made.embedder}'}"
        )
