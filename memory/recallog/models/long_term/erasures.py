"""Erasures in time travel: what is erased in the ledger is erased in every past of it too."""

from collections.abc import Mapping, Sequence

from recallog.reading.applying import apply_loaded
from recallog.reading.read_session import ReadSession
from recallog_projections.models.long_term import tables
from recallog_projections.models.long_term.tables import Erasure
from recallog_projections.projection import Projection
from recallog_projections.rows import Rows
from recallog_projections.stores.store import Generation
from recallog_projections.views import settings
from recallog_schemas import Event, Record, codec, limits, timestamps
from recallog_schemas.errors import InvariantViolation

_ERASED = "memory.erased"


async def found(present: ReadSession, space: str) -> dict[str, Erasure]:
    """The erasures of a space, by the id of the entry."""
    rows = present.scan(tables.ERASURES.name, space)
    return {item.key: tables.ERASURES.decode(item.data) async for item, _ in rows}


async def erase(past: ReadSession, present: ReadSession, space: str, folded: Sequence[Projection]) -> None:
    """Erase in a past fold what is erased at present.

    As of a time, an entry may stand that is a duplicate of an erased one at present: events that happened later had not
    been reached, among them the one that it repeats.
    """
    erased = await found(present, space)
    if not erased:
        return
    standing = [
        tables.ROWS.decode(item.data).id
        for table in (tables.ROWS, tables.ENDED)
        async for item, _ in past.scan(table.name, space)
    ]
    for ids in _parts(standing):
        snapshot = await present.snapshot(tables.ref_key(space, id_) for id_ in ids)
        for id_ in ids:
            ref = snapshot.row(tables.IDS, *tables.ref_key(space, id_)[1:])
            if ref is not None and ref.status == tables.DUPLICATE and ref.of in erased:
                erased[id_] = erased[ref.of]
    reading = [each for each in folded if _ERASED in getattr(each, "kinds", ())]
    await _erase(past, space, {id_: erased[id_] for id_ in standing if id_ in erased}, reading)


def _parts(ids: Sequence[str]) -> Sequence[Sequence[str]]:
    return [ids[first : first + limits.SCAN_ITEMS] for first in range(0, len(ids), limits.SCAN_ITEMS)]


async def _erase(
    past: ReadSession, space: str, erased: Mapping[str, Erasure], projections: Sequence[Projection]
) -> None:
    """Fold the erasures of entries that stand in the past."""
    generation = past.source
    checkpoint = await past.store.checkpoint(generation) if isinstance(generation, Generation) else None
    if not isinstance(generation, Generation) or checkpoint is None:
        raise InvariantViolation("the fold of a past has no checkpoint")
    rows = Rows([*(table for each in projections for table in each.tables), settings.AGENTS], strict=False)

    def apply() -> None:
        for id_, erasure in erased.items():
            record = _record_of(rows, past.partition, checkpoint.offset, space, id_, erasure)
            for projection in projections:
                projection.apply(rows, [record])
            rows.finish_run()

    if erased:
        await apply_loaded(past, rows, apply)
        await past.store.commit(generation, checkpoint, checkpoint, rows.changes())


def _record_of(rows: Rows, partition: int, offset: int, space: str, id_: str, erasure: Erasure) -> Record:
    """The record of an erasure by the one who owned the entry then."""
    ref = rows.get(tables.IDS, space, "", id_)
    if ref is None:
        raise InvariantViolation(f"the past has no verdict on {id_}")
    payload = {"entries": [id_]} | ({} if erasure.reason is None else {"reason": erasure.reason})
    at = timestamps.moment_of(erasure.at)
    event = Event(id="erased", space=space, agent=ref.owner, kind=_ERASED, at=at, turn=0, payload=payload)
    return Record(partition, offset, event, codec.encode(event), memorable=False)
