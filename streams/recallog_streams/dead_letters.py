"""Dead letters: where and why the fold could not apply a record. The record's bytes stay in the ledger."""

import msgspec

from recallog_projections.rows import Rows
from recallog_projections.stores.store import Generation, Store
from recallog_projections.tables import Table
from recallog_schemas import limits

KEY_MISSING = "key_missing"
"""The reason of a sealed record whose key is not in the store of keys, and was not destroyed there."""


class DeadLetterRow(msgspec.Struct, frozen=True):
    """Why one record is not in any view. It follows from record and code alone, so every fold gives the same row."""

    offset: int
    reason: str
    """One stable word: unparsable, future_schema, too_large, invalid, wrong_partition, wrong_key, conflict,
    projection_failed, key_missing."""
    detail: str
    space: str = ""
    id: str = ""
    kind: str = ""


class DeadLetterCount(msgspec.Struct, frozen=True):
    """The dead letters of one partition. `future` of them have a schema that only newer code can read: until it does,
    the generation is incomplete."""

    total: int = 0
    future: int = 0


def _sum(one: DeadLetterCount, other: DeadLetterCount) -> DeadLetterCount:
    return DeadLetterCount(one.total + other.total, one.future + other.future)


TABLE = Table("dead_letters", DeadLetterRow, apart=True)
COUNT = Table("dead_letters.count", DeadLetterCount, add=_sum)


def add(rows: Rows, dead_letter: DeadLetterRow) -> None:
    """Write a dead letter, and count it."""
    count = rows.get(COUNT, "") or DeadLetterCount()
    future = count.future + (dead_letter.reason == "future_schema")
    rows.put(COUNT, DeadLetterCount(count.total + 1, future), "")
    rows.put(TABLE, dead_letter, "", key=key_of(dead_letter.offset))


def key_of(offset: int) -> str:
    return f"{offset:020d}"


async def all_dead_letters(store: Store, generation: Generation, *, beyond: int = -1) -> list[DeadLetterRow]:
    """The generation's dead letters after the offset `beyond`, by offset."""
    found: list[DeadLetterRow] = []
    after = ("", "", key_of(beyond)) if beyond >= 0 else None
    while True:
        chunk = await store.scan(generation, TABLE.name, after=after, limit=limits.SCAN_ITEMS)
        found += [TABLE.decode(item.data) for item in chunk.items]
        if chunk.last:
            return found
        after = chunk.items[-1].row_key
