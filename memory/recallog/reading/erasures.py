"""Erasures in time travel: what is erased in the ledger is erased in every past of it too."""

from collections.abc import Mapping

from recallog.reading.read_session import ReadSession
from recallog.reading.time_travel import check_size
from recallog_projections.rows import RowNotLoaded, Rows
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.store import Checkpoint, Generation, Store
from recallog_projections.views.entries import changing, tables
from recallog_projections.views.entries.projection import Entries
from recallog_projections.views.entries.tables import Erasure
from recallog_projections.views.settings import SettingsProjection
from recallog_schemas import Event, Record, codec, timestamps
from recallog_schemas.errors import InvariantViolation
from recallog_streams.ledgers.ledger import Ledger
from recallog_streams.progress import Progress
from recallog_streams.projector import ProcessedBatch, Projector

ERASED = "memory.erased"


async def erasures_in(reading: ReadSession, space: str) -> Mapping[str, Erasure]:
    """The erasures of a space, by the id of the entry."""
    rows = reading.scan(tables.ERASURES.name, space)
    return {item.key: tables.ERASURES.decode(item.data) async for item, _ in rows}


async def all_erasures(ledger: Ledger, space: str, progress: Progress | None = None) -> Mapping[str, Erasure]:
    """The erasures of a space from a fold in memory, for ledgers without views. Raises `OutOfRange` as travel does."""
    records = 0

    def count(batch: ProcessedBatch) -> None:
        nonlocal records
        records += batch.records
        check_size(space, records)

    partition = ledger.partition_of(space)
    end = (await ledger.ends())[partition]
    projector = Projector(ledger, MemoryStore(), [Entries(), SettingsProjection()], space=space, processed=count)
    generation = await projector.first_generation(partition, end)
    await projector.catch_up(generation, end, progress)
    return await erasures_in(ReadSession(projector.store, partition, generation), space)


async def erase(store: Store, generation: Generation, space: str, erasures: Mapping[str, Erasure]) -> None:
    """Erase entries in a past fold, in which they may still stand, or may not have been retained yet."""
    checkpoint = await store.checkpoint(generation)
    if checkpoint is None:
        raise InvariantViolation("the fold of a past has no checkpoint")
    rows = Rows(tables.ALL, strict=False)
    for id_, erasure in erasures.items():
        await _erase(rows, store, generation, checkpoint, (space, id_, erasure))
    changes = rows.changes()
    if changes.rows or changes.logs:
        await store.commit(generation, checkpoint, checkpoint, changes)


async def _erase(
    rows: Rows, store: Store, generation: Generation, checkpoint: Checkpoint, erased: tuple[str, str, Erasure]
) -> None:
    while True:
        try:
            _apply(rows, generation.partition, checkpoint.offset, *erased)
        except RowNotLoaded as missing:
            rows.undo()
            found = await store.read(generation.partition, [missing.row_key], generation=generation)
            rows.load(missing.row_key, found.rows[0])
        else:
            rows.commit_record()
            return


def _apply(rows: Rows, partition: int, offset: int, space: str, id_: str, erasure: Erasure) -> None:
    """Fold the erasure, by whoever owned the entry then."""
    ref = rows.get(tables.IDS, space, "", id_)
    if ref is None or tables.row_key(space, ref) is None:
        return
    payload = {"entries": [id_]} | ({} if erasure.reason is None else {"reason": erasure.reason})
    event = Event(
        id="erased",
        space=space,
        agent=ref.owner,
        kind=ERASED,
        at=timestamps.moment_of(erasure.at),
        turn=0,
        payload=payload,
    )
    changing.apply(rows, Record(partition, offset, event, codec.encode(event), memorable=False))
