"""Records that the fold could not apply. The bytes stay in the ledger; a dead letter says where and why."""

import msgspec

from recallog_projections.projection import Table
from recallog_projections.stores.store import Generation, Store
from recallog_schemas import limits


class DeadLetterRow(msgspec.Struct, frozen=True):
    """Why one record is in no view. Made from the record and the code alone, so that every fold parks alike."""

    offset: int
    reason: str
    """One stable word: unparsable, future_schema, too_large, invalid, wrong_partition, wrong_key, conflict,
    projection_failed."""
    detail: str
    space: str = ""
    id: str = ""
    kind: str = ""


class DeadLetterCount(msgspec.Struct, frozen=True):
    """Of one partition. `future` of them only a newer version can judge: until then the generation is incomplete."""

    total: int = 0
    future: int = 0


TABLE = Table("dead_letters", DeadLetterRow)
COUNT = Table("dead_letters.count", DeadLetterCount)


def key_of(offset: int) -> str:
    return f"{offset:020d}"


async def all_dead_letters(store: Store, generation: Generation, *, beyond: int = -1) -> list[DeadLetterRow]:
    """The generation's dead letters behind the offset `beyond`, by offset."""
    found: list[DeadLetterRow] = []
    after = ("", "", key_of(beyond)) if beyond >= 0 else None
    while True:
        chunk = await store.scan(generation, TABLE.name, after=after, limit=limits.SCAN_ITEMS)
        found += [TABLE.decode(item.data) for item in chunk.items]
        if chunk.last:
            return found
        after = chunk.items[-1].row_key
