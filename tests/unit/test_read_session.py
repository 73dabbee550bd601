"""Read sessions: pages of the rows of one owner, and queries whose reads are all of one checkpoint."""

import msgspec
import pytest

from recallog.reading.read_session import ReadSession
from recallog_projections.rows import Changes
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.store import Chunk, ReadResult
from recallog_projections.tables import RowKey, Table
from recallog_testing.contracts.store import A, activate, at, commit
from support.events import run


class Number(msgspec.Struct, frozen=True):
    number: int


TABLE = Table("t", Number)


def rows(*numbers: int, owner: str = "baker") -> Changes:
    return Changes({RowKey("t", "village", owner, f"{n:020d}"): TABLE.encode(Number(n)) for n in numbers})


def session(store: MemoryStore) -> ReadSession:
    return ReadSession(store, 0, A)


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    activate(store, A, 0, rows(*range(25)))
    return store


def test_a_page_has_the_newest_rows_of_one_owner(store: MemoryStore) -> None:
    commit(store, A, 0, 1, rows(99, owner="miller"))
    page = run(session(store).page(TABLE, "village", "baker", newest_first=True, limit=3))
    assert [row.number for _, row in page.items] == [24, 23, 22]
    assert not page.last
    older = run(session(store).page(TABLE, "village", "baker", newest_first=True, after=page.items[-1][0], limit=22))
    assert [row.number for _, row in older.items] == list(range(21, -1, -1))
    assert older.last


def test_a_page_has_the_rows_whose_keys_begin_with_a_prefix(store: MemoryStore) -> None:
    page = run(session(store).page(TABLE, "village", "baker", prefix=f"{1:019d}", limit=10))
    assert ([row.number for _, row in page.items], page.last) == ([*range(10, 20)], True)


def test_a_page_is_filled_from_the_short_chunks_of_a_store() -> None:
    class ShortChunks(MemoryStore):
        async def scan(self, *arguments: object, limit: int, **more: object) -> Chunk:
            return await super().scan(*arguments, limit=min(2, limit), **more)  # type: ignore[arg-type]

    store = ShortChunks()
    activate(store, A, 0, rows(*range(9)))
    page = run(session(store).page(TABLE, "village", "baker", limit=7))
    assert ([row.number for _, row in page.items], page.last) == ([*range(7)], False)
    page = run(session(store).page(TABLE, "village", "baker", limit=9))
    assert ([row.number for _, row in page.items], page.last) == ([*range(9)], True)


class MovingStore(MemoryStore):
    """The views move on before each of the next `moves` reads, as if workers had committed in between."""

    moves = 0
    checkpoint_at = 0

    async def read(self, *arguments: object, **more: object) -> ReadResult:
        if self.moves:
            self.moves -= 1
            self.checkpoint_at += 1
            await self.commit(A, at(self.checkpoint_at - 1), at(self.checkpoint_at), rows(self.checkpoint_at))
        return await super().read(*arguments, **more)  # type: ignore[arg-type]


async def two_reads(reading: ReadSession) -> tuple[int, int]:
    """The checkpoints of two reads, the second of which is a scan."""
    before = (await reading.snapshot()).processed
    await reading.page(TABLE, "village", "baker", limit=1)
    return before, (await reading.snapshot()).processed


@pytest.mark.parametrize(("moves", "expected"), [(0, (0, 0)), (1, (1, 1)), (2, (2, 2)), (3, (3, 3)), (4, (4, 4))])
def test_a_steady_query_reads_one_checkpoint(moves: int, expected: tuple[int, int]) -> None:
    store = MovingStore()
    activate(store, A, 0)
    store.moves = moves
    reading = session(store)
    assert run(reading.steady(two_reads)) == expected
    assert reading.checkpoints == {expected[0]}


def test_a_query_that_is_never_steady_returns_what_it_read_last() -> None:
    store = MovingStore()
    activate(store, A, 0)
    store.moves = 1000
    reading = session(store)
    before, after = run(reading.steady(two_reads))
    assert after == before + 1
    assert store.moves > 900


def test_a_steady_query_in_a_steady_query_is_repeated_with_it() -> None:
    async def nested(reading: ReadSession) -> tuple[int, tuple[int, int]]:
        return (await reading.snapshot()).processed, await reading.steady(two_reads)

    store = MovingStore()
    activate(store, A, 0)
    store.moves = 2
    assert run(session(store).steady(nested)) == (2, (2, 2))
