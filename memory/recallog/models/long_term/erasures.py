"""Erasures in time travel: content that is erased in the ledger is also erased in every past view."""

from collections.abc import Sequence

from recallog.reading.read_session import ReadSession
from recallog_projections.models.long_term import tables
from recallog_projections.models.long_term.tables import Erasure
from recallog_schemas import Event, limits, timestamps
from recallog_schemas.errors import InvariantViolation

_ERASED = "memory.erased"


async def find_erasures(present: ReadSession, space: str) -> dict[str, Erasure]:
    """The erasures of a space, by the id of the entry."""
    rows = present.scan(tables.ERASURES.name, space)
    return {item.key: tables.ERASURES.decode(item.data) async for item, _ in rows}


async def events(past: ReadSession, present: ReadSession, space: str) -> Sequence[Event]:
    """Events that erase in a past view the entries that are erased now.

    A past view by time can have an entry that is a duplicate of an erased entry: the past view ends before later
    events, and one of these may be the entry that it repeats.
    """
    erased = await find_erasures(present, space)
    if not erased:
        return ()
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
    return [await _event(past, space, id_, erased[id_]) for id_ in standing if id_ in erased]


def _parts(ids: Sequence[str]) -> Sequence[Sequence[str]]:
    return [ids[first : first + limits.SCAN_ITEMS] for first in range(0, len(ids), limits.SCAN_ITEMS)]


async def _event(past: ReadSession, space: str, id_: str, erasure: Erasure) -> Event:
    """The erasure of an entry by the agent that owned it then."""
    key = tables.ref_key(space, id_)
    ref = (await past.snapshot([key])).row(tables.IDS, *key[1:])
    if ref is None:
        raise InvariantViolation(f"the past has no verdict on {id_}")
    payload = {"entries": [id_]} | ({} if erasure.reason is None else {"reason": erasure.reason})
    at = timestamps.moment_of(erasure.at)
    return Event(id="erased", space=space, agent=ref.owner, kind=_ERASED, at=at, turn=0, payload=payload)
