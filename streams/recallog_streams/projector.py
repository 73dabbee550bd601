"""The projector: the loop that folds a ledger into generations, for live views, rebuild, verification and time travel.

1. read the checkpoint of the generation, which is the only resume offset
2. before the first commit, read the record that it names again: a different ledger is refused
3. take the next batch; one that does not follow the checkpoint is discarded
4. fold it in memory
5. commit rows, log entries and the new checkpoint in one atomic step, expecting the checkpoint of step 1
6. applied, or already there: continue. Ahead or mismatch: go back to 1. Retired or lost: stop, the generation is gone
"""

import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from recallog_projections.projection import Projection
from recallog_projections.rows import Changes, Fetched, Rows
from recallog_projections.stores.store import Checkpoint, Generation, Outcome, Store
from recallog_projections.tables import LogName, RowKey
from recallog_schemas import kinds, limits
from recallog_schemas.errors import InvariantViolation, LedgerMismatch, LockTimeout, Rebuilding
from recallog_streams import chain as hash_chain
from recallog_streams import definitions, erasing, identity
from recallog_streams.collector import pause_collection
from recallog_streams.definitions import KindRedefined
from recallog_streams.fold import Fold, digest_of
from recallog_streams.ledgers.ledger import Batch, Ledger, Manifest, parts_of, record_at
from recallog_streams.progress import Progress

_SMALL_BATCH_RECORDS = 64
"""For at most this many records, a useless fold (if another process has moved the checkpoint) is cheaper than reading
the checkpoint again."""
_COMMIT_SHARE = 0.9
"""The share of a commit that is planned, since batches differ."""
_CHANGES_PER_RECORD, _KNOWN_RECORDS = 3.5, 100
"""The assumed number of changes per record before the first commit, for events of speech, and its weight in records."""


@dataclass(frozen=True, slots=True)
class ProcessedBatch:
    """One batch that a projector tried to commit, for metrics and telemetry."""

    partition: int
    records: int
    seconds: float
    """From taking the batch to the store's answer."""
    outcome: Outcome
    traceparents: Sequence[str] = ()
    """See `Batch`."""
    views: str = ""
    """The name of the views; "" if the receiver does not get it."""


class GenerationGone(Rebuilding):
    """The generation was retired by a cutover, or lost with its store: read the pointer again."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """The records below `until` that a generation has not processed at its checkpoint, and the first of them."""

    generation: Generation
    checkpoint: Checkpoint
    batch: Batch
    until: int


@dataclass(slots=True)
class _Cache:
    """The rows of recent batches, valid while the stored checkpoint is `checkpoint`."""

    checkpoint: Checkpoint
    rows: Rows


class Projector:
    """Folds one ledger into generations of one store."""

    def __init__(
        self,
        ledger: Ledger,
        store: Store,
        projections: Sequence[Projection],
        *,
        space: str | None = None,
        remember_until: datetime | None = None,
        lock: Callable[[], AbstractAsyncContextManager[Any]] = nullcontext,
        processed: Callable[[ProcessedBatch], None] | None = None,
        batch_records: int | None = None,
        batch_bytes: int | None = None,
        drop: str = "recallog rebuild --drop",
    ) -> None:
        """`batch_records` and `batch_bytes` are the maxima of a commit; None means those of the ledger's batches.

        `drop` is how an operator drops the views, for messages.
        """
        self.ledger = ledger
        self.store = store
        self.fold = Fold(
            projections,
            unique_ids=ledger.unique_ids,
            partition_of=ledger.partition_of,
            remember_until=remember_until,
        )
        self._space = space
        self._lock = lock
        self._on_processed = processed
        self._batch_records = batch_records
        self._batch_bytes = batch_bytes
        self._drop = drop
        self._changes_per_record = _CHANGES_PER_RECORD
        """The average number, mostly of the last commits."""
        self._caches: dict[str, _Cache] = {}
        """By generation, in the order of their last commits."""
        self._verified: dict[str, object] = {}
        """By generation: the opening of the ledger that it was compared with."""
        self._defined: dict[str, int] = {}
        """By generation: how many registered kinds it was compared with."""

    def new_generation(self, partition: int, until: int) -> Generation:
        """A generation of this code and of the last known keys, not yet known to the store."""
        keys = self.ledger.sealing.count_destroyed(partition)
        return Generation(secrets.token_hex(8), partition, self.fold.code, until, keys)

    async def fits(self, generation: Generation) -> bool:
        """Whether this process would fold the same generation: by its code, its keys, and its definitions of kinds.

        Raises `Rebuilding` if the generation is gone.
        """
        if generation.code != self.fold.code:
            return False
        # The store of keys is read only if they may differ: the keys that this process has seen last suffice, since no
        # generation of other keys gets beyond the event that says that they are destroyed.
        may_differ = self.ledger.sealing.count_destroyed(generation.partition) != generation.keys
        if may_differ and not await self.has_keys(generation):
            return False
        return await self._has_definitions(generation)

    async def has_keys(self, generation: Generation) -> bool:
        """Whether no key was destroyed since the generation was begun: otherwise it may contain erased events.

        A store of keys without any destroyed key is new, because the old one is lost: the generation remains, since
        its events cannot be read again.
        """
        sealing = self.ledger.sealing
        await sealing.refresh()
        return sealing.count_destroyed(generation.partition) in (generation.keys, 0)

    async def _has_definitions(self, generation: Generation) -> bool:
        registered = kinds.list_registered()
        if not registered or self._defined.get(generation.id) == len(registered):
            return True
        row_keys = [definitions.key_of(kind) for kind in registered]
        found = await self.store.read(generation.partition, row_keys, [], generation)
        if not definitions.are_present(registered, found.rows):
            return False
        self._defined[generation.id] = len(registered)
        return True

    async def first_generation(self, partition: int, until: int) -> Generation:
        """The building generation of a store that has been empty, such as a new `MemoryStore`."""
        await self.ledger.sealing.refresh()
        building = (await self.store.create(self.new_generation(partition, until))).building
        if building is None:
            raise InvariantViolation("a new store has no building generation")
        return building

    async def catch_up_on(self, backlog: Backlog, progress: Progress | None = None) -> None:
        """`catch_up` for a caller that has just read the checkpoint and the records after it."""
        generation, until = backlog.generation, backlog.until
        await self.verify_once(generation, backlog.checkpoint)
        done = await self._process_all(generation, self.parts(backlog.batch), until, progress)
        if done is None or done.offset + 1 < until:
            await self.catch_up(generation, until, progress)

    async def catch_up(self, generation: Generation, until: int, progress: Progress | None = None) -> Checkpoint:
        """Process all records below `until`. Raises `GenerationGone` or `LedgerMismatch`."""
        checkpoint: Checkpoint | None = None
        while True:
            checkpoint = checkpoint or await self.resume(generation)
            if checkpoint.offset + 1 >= until:
                return checkpoint
            batches = self.ledger.read(generation.partition, checkpoint.offset + 1, until, space=self._space)
            async with aclosing(batches):  # type: ignore[type-var]
                async for batch in batches:
                    checkpoint = await self._process_all(generation, self.parts(batch), until, progress)
                    if checkpoint is None:
                        break

    def parts(self, batch: Batch) -> Sequence[Batch]:
        """`batch` in parts, each of which is one commit."""
        return parts_of(batch, self._batch_records, self._batch_bytes)

    async def _process_all(
        self, generation: Generation, batches: Sequence[Batch], until: int, progress: Progress | None
    ) -> Checkpoint | None:
        checkpoint = None
        for batch in batches:
            try:
                async with self._lock():
                    with pause_collection() if len(batch.records) > _SMALL_BATCH_RECORDS else nullcontext():
                        checkpoint = await self.process(generation, batch)
                    if checkpoint is None:
                        return None
            except LockTimeout:
                stored = await self.store.checkpoint(generation)
                if stored is not None and stored.offset + 1 == batch.start:
                    raise
                return None  # the holder of the lock makes progress
            if progress is not None:
                progress(batch.next, until)
        return checkpoint

    def invalidate(self) -> None:
        """Verify the ledger's identity again before the next batch: it may have been replaced."""
        self._verified.clear()

    async def resume(self, generation: Generation) -> Checkpoint:
        """The checkpoint at which the generation continues. Raises `GenerationGone` or `LedgerMismatch`."""
        checkpoint = await self.store.checkpoint(generation)
        if checkpoint is None:
            raise GenerationGone(f"the generation {generation.id} is gone")
        await self.verify_once(generation, checkpoint)
        return checkpoint

    async def _resume_before(self, batch: Batch, generation: Generation) -> Checkpoint:
        """`resume`; for a small batch, the checkpoint that was committed here last, if the batch follows it."""
        cache = self._caches.get(generation.id)
        if cache is None or cache.checkpoint.offset + 1 != batch.start or len(batch.records) > _SMALL_BATCH_RECORDS:
            return await self.resume(generation)
        await self.verify_once(generation, cache.checkpoint)
        return cache.checkpoint

    async def verify_once(self, generation: Generation, checkpoint: Checkpoint) -> None:
        """`verify_ledger_identity`, the first time that the generation is used here, and after the ledger was opened
        again. Raises `LedgerMismatch`."""
        opening = self.ledger.opening
        if generation.id not in self._verified or self._verified[generation.id] != opening:
            await self.verify_ledger_identity(generation.partition, checkpoint)
            self._verified[generation.id] = opening

    async def process(
        self, generation: Generation, batch: Batch, checkpoint: Checkpoint | None = None
    ) -> Checkpoint | None:
        """Fold and commit one batch. Returns the new checkpoint, or None if the batch does not follow the current one.

        Records with many changes, such as the parts of a plan, need several commits: each ends after as many changes
        as the store takes at a time, or has more only if a single record has. A caller that knows the generation's
        `checkpoint` passes it, which saves a read. If it has moved meanwhile, the commit is refused.
        """
        checkpoint = checkpoint or await self._resume_before(batch, generation)
        if batch.start != checkpoint.offset + 1:
            return None
        while True:
            part = batch.cut(0, min(len(batch.records), self._commit_records))
            processed = await self._process_next(generation, part, checkpoint)
            if processed is None:
                return None
            checkpoint, count = processed
            if count == len(batch.records):
                return checkpoint
            batch = batch.cut(count, len(batch.records))

    @property
    def _commit_records(self) -> int:
        """How many records will probably fit into one commit, by the previous records. A fold of more is repeated."""
        return max(1, int(_COMMIT_SHARE * self.store.commit_changes_max / self._changes_per_record))

    async def _process_next(
        self, generation: Generation, batch: Batch, checkpoint: Checkpoint
    ) -> tuple[Checkpoint, int] | None:
        """Fold and commit the first records of a batch. Returns the new checkpoint, and how many records these were."""
        # Taken out until its batch is committed: rows of a batch that failed, or that another task of this
        # process is folding now, must not be used.
        cache = self._caches.pop(generation.id, None)
        if cache is None or cache.checkpoint != checkpoint or len(cache.rows) > limits.CACHED_ROWS_MAX:
            cache = _Cache(checkpoint, self.fold.new_rows(complete=checkpoint.offset < 0))

        fetch = partial(self.fetch, generation, checkpoint)
        read_here = partial(self.store.read_here, generation, checkpoint)
        began = time.monotonic()
        try:
            records = self.fold.decode(batch)
            changes, count = await self.fold.process(
                records, cache.rows, fetch, self.store.commit_changes_max, read_here
            )
        except GenerationMoved:
            return None
        except KindRedefined:  # by another process, since the generation was compared
            self._defined.pop(generation.id, None)
            raise
        changed = len(changes.rows) + sum(map(len, changes.logs.values()))
        known = _KNOWN_RECORDS * self._changes_per_record
        self._changes_per_record = max(0.01, (known + changed) / (_KNOWN_RECORDS + count))  # repeats change nothing
        new, outcome = await self.commit(generation, batch.cut(0, count), checkpoint, changes, began)
        if outcome is Outcome.APPLIED:
            self._store_cache(generation, _Cache(new, cache.rows))
        return (new, count) if outcome in (Outcome.APPLIED, Outcome.ALREADY_THERE) else None

    async def fetch(
        self, generation: Generation, checkpoint: Checkpoint, needs: Sequence[RowKey], logs: Sequence[LogName]
    ) -> Fetched:
        """Rows, and totals of logs, at the checkpoint. Raises `GenerationMoved` if the checkpoint has changed, or
        `GenerationGone`."""
        totals = [(log, 0) for log in logs]
        try:
            snapshot = await self.store.read(generation.partition, needs, totals, generation)
        except Rebuilding as error:
            raise GenerationGone(f"the generation {generation.id} is gone") from error
        if snapshot.checkpoint != checkpoint:
            raise GenerationMoved
        return snapshot.rows, [tail.total for tail in snapshot.logs]

    async def commit(
        self, generation: Generation, batch: Batch, checkpoint: Checkpoint, changes: Changes, began: float
    ) -> tuple[Checkpoint, Outcome]:
        """Commit the changes of a batch that follows the checkpoint. Returns the new checkpoint, and the outcome.

        Raises `GenerationGone`, also if the batch has an erasure whose keys the generation was folded with. `began` is
        when the batch was taken, by the monotonic clock.
        """
        await self._destroy_erased(generation, batch)
        record, digest, chain = checkpoint.record, checkpoint.digest, checkpoint.chain
        if batch.records:
            record, digest = batch.stored[-1][0], digest_of(batch.stored[-1][1])
        if self._space is None:
            chain, block_ends = hash_chain.extend_chain(chain, batch)
            changes = Changes({**changes.rows, **block_ends}, changes.logs, changes.keep) if block_ends else changes
        new = Checkpoint(batch.next - 1, record, digest, chain)
        outcome = await self.store.commit(generation, checkpoint, new, changes)
        if self._on_processed is not None:
            seconds, traceparents = time.monotonic() - began, batch.traceparents or ()
            self._on_processed(ProcessedBatch(batch.partition, len(batch.records), seconds, outcome, traceparents))
        if outcome in (Outcome.RETIRED, Outcome.LOST):
            raise GenerationGone(f"the generation {generation.id} is {outcome.value}")
        return new, outcome

    async def _destroy_erased(self, generation: Generation, batch: Batch) -> None:
        """Destroy the keys that the records of a batch erase, unless that is done.

        Raises `GenerationGone` for a generation that was begun before: its rows may contain erased data, and no
        process folds it beyond this batch.
        """
        sealing = self.ledger.sealing
        if (ids := erasing.erased_keys(batch)) and await sealing.refresh() is not None:
            if any((await sealing.keys.read(ids)).values()):  # in a read-only folder, none of them is left
                await sealing.keys.destroy(ids, generation.partition)
            if not await self.has_keys(generation):
                raise GenerationGone(f"the generation {generation.id} was folded with keys that are destroyed")

    def _store_cache(self, generation: Generation, cache: _Cache) -> None:
        """Store the cache of a generation, and evict rows if all caches together exceed `limits.CACHED_ROWS_MAX`."""
        self._caches[generation.id] = cache
        rows = sum(len(each.rows) for each in self._caches.values())
        if rows > limits.CACHED_ROWS_MAX:
            # In a large space, hardly any bucket of ids is read twice.
            for each in self._caches.values():
                each.rows.evict(identity.BUCKETS)
            rows = sum(len(each.rows) for each in self._caches.values())
        for stale in [*self._caches][:-1]:
            if rows <= limits.CACHED_ROWS_MAX:
                break
            rows -= len(self._caches.pop(stale).rows)

    async def verify_ledger_identity(self, partition: int, checkpoint: Checkpoint) -> bytes:
        """Make sure that the views belong to this ledger as it is now; its manifest. Raises `LedgerMismatch`."""
        manifest = msgspec.json.encode(await self.ledger.manifest())
        stored = await self.store.remember_manifest(manifest)
        if stored != manifest:
            raise LedgerMismatch(
                f"{self._views} were computed from another ledger: {_show_difference(stored, manifest)}. "
                f"{self._if_replaced}"
            )
        if checkpoint.record < 0:
            return manifest
        data = await record_at(self.ledger, partition, checkpoint.record, stored=True)
        if data is None or digest_of(data) != checkpoint.digest:
            gone = "is missing" if data is None else "is another one"
            raise self.mismatch(partition, checkpoint.record, gone)
        return manifest

    async def verify_not_ahead(self, partition: int) -> None:
        """Make sure that the ledger has all records that any generation has processed, of this code or another one.

        Raises `LedgerMismatch`. Creates nothing, neither a ledger nor views.
        """
        if not await self.store.exists():
            return
        # The views are read before the ledger, which others may extend meanwhile.
        pointer = await self.store.pointer(partition)
        known = [generation for generation in (pointer.active, pointer.building) if generation is not None]
        stored = [await self.store.checkpoint(generation) for generation in known]
        last = max((each for each in stored if each is not None), key=lambda each: each.record, default=None)
        if last is None:
            return
        if not await self.ledger.exists():
            raise LedgerMismatch(
                f"the ledger {self.ledger.location} is missing, and {self._views} were computed from it. "
                f"{self._if_replaced}"
            )
        begun_until = 0 if pointer.building is None else pointer.building.until
        processed = max(last.record, begun_until - 1)
        if processed >= (await self.ledger.ends())[partition]:
            raise self.mismatch(partition, processed, "is missing")
        await self.verify_ledger_identity(partition, last)

    def mismatch(self, partition: int, offset: int, gone: str) -> LedgerMismatch:
        """The error that a record which the views have processed is missing or has changed: `gone` says which."""
        return LedgerMismatch(
            f"the record at {partition}:{offset}, which {self._views} have processed, {gone} in the "
            f"{' '.join(('ledger', self.ledger.location)).strip()}. recallog verify names what differs. "
            f"{self._if_replaced}",
            position=f"{partition}:{offset}",
        )

    @property
    def _views(self) -> str:
        return f"the views {self.store.location}".strip()

    @property
    def _if_replaced(self) -> str:
        return f"Put the ledger back that they belong to; or, if this one is right, drop the views: {self._drop}"


def _show_difference(stored: bytes, manifest: bytes) -> str:
    """What differs between the manifest of the views and that of the ledger, encoded as JSON."""
    try:
        theirs, ours = (msgspec.json.decode(each, type=Manifest) for each in (stored, manifest))
    except msgspec.MsgspecError:
        return f"{stored.decode(errors='replace')}, not {manifest.decode()}"
    differing = [(getattr(theirs, name), getattr(ours, name)) for name in Manifest.__struct_fields__]
    return "; ".join(f"{before}, not {now}" for before, now in differing if before != now)


CatchUp = Callable[[Projector, Generation, int, Progress | None], Awaitable[Checkpoint]]
"""`Projector.catch_up`, or another way to do the same."""


class GenerationMoved(Exception):
    """Another projector committed to the generation while this one was folding."""
