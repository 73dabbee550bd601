"""In a folder the fold fetches rows as they are read; the rows that it writes are those of a fold in memory."""

import json
import random
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog_projections.models.long_term import tables
from recallog_projections.stores.sqlite import SqliteStore
from recallog_projections.views import builtin
from recallog_schemas.errors import StorageCorrupt
from recallog_streams.ledgers.memory import MemoryLedger
from recallog_streams.projector import GenerationGone, Projector
from support.events import event, one_loop, run
from support.folding import all_rows, folded, ledger_at
from support.random_entries import random_history
from support.random_events import random_ledger

pytestmark = pytest.mark.models("all")


class CountingStore(SqliteStore):
    """Counts the batches that were folded in the thread of the caller."""

    here = 0

    def read_here(self, *given: Any) -> Any:
        found = super().read_here(*given)
        self.here += found is not None
        return found


class TwiceStore(CountingStore):
    """Its file is exchanged while it is read: the reading is repeated."""

    def read_here(self, *given: Any) -> Any:
        super().read_here(*given)
        return super().read_here(*given)


class FailingStore(CountingStore):
    """Its file is exchanged while it is read, and cannot be read then."""

    def read_here(self, *given: Any) -> Any:
        self.here += super().read_here(*given) is not None


def entries(rng: random.Random) -> list[bytes]:
    return [json.dumps(event).encode() for event in random_history(rng, 80)]


def events(rng: random.Random) -> list[bytes]:
    return random_ledger(rng, 80, unique_ids=False)


async def rows_in(store: CountingStore, values: Sequence[bytes], batch_records: int) -> tuple[Any, int]:
    """The rows of all tables after a fold into a file, in which each batch finds no row in memory."""
    ledger = ledger_at(values, unique_ids=False, batch_records=batch_records)
    projector = Projector(ledger, store, builtin.projections())
    generation = await projector.first_generation(0, 0)
    end = (await ledger.ends())[0]
    for until in range(batch_records, end + batch_records, batch_records):
        projector = Projector(ledger, store, builtin.projections())
        await projector.catch_up(generation, min(until, end))
    found = {}
    for table in projector.fold.tables:
        items = (await store.scan(generation, table.name, limit=1_000_000)).items
        found[table.name] = {item.row_key: item.data for item in items}
    await store.close()
    return found, store.here


@pytest.mark.parametrize("values_of", [entries, events])
@pytest.mark.parametrize("store_of", [CountingStore, TwiceStore, FailingStore])
def test_rows_that_are_fetched_as_they_are_read_make_the_rows_of_a_fold_in_memory(
    values_of: Callable[[random.Random], list[bytes]], store_of: type[CountingStore]
) -> None:
    @settings(max_examples=10, deadline=None)
    @given(st.integers(0, 2**32), st.sampled_from((4, 40)))
    def check(seed: int, batch_records: int) -> None:
        values = values_of(random.Random(seed))
        expected = all_rows(*folded(ledger_at(values, unique_ids=False, batch_records=batch_records)))
        with TemporaryDirectory() as folder, one_loop():
            found, here = run(rows_in(store_of(Path(folder) / "views.db"), values, batch_records))
        assert found == expected
        assert here > 0

    check()


def test_a_damaged_row_is_a_fault_of_the_file_and_no_dead_letter(tmp_path: Path) -> None:
    async def work() -> None:
        store = SqliteStore(tmp_path / "views.db")
        ledger = MemoryLedger()
        projector = Projector(ledger, store, builtin.projections())
        generation = await projector.first_generation(0, 0)
        await ledger.append([event("memory.retained", id="e1", payload={"text": "Rye costs 3.", "type": "fact"})])
        await projector.catch_up(generation, 1)
        with closing(sqlite3.connect(tmp_path / "views.db")) as connection, connection:
            connection.execute("UPDATE rows SET value = zeroblob(length(value)) WHERE name = ?", (tables.ROWS.name,))
        await ledger.append([event("memory.updated", payload={"entry": "e1", "text": "Rye costs 4."})])
        with pytest.raises((StorageCorrupt, GenerationGone)):
            await Projector(ledger, store, builtin.projections()).catch_up(generation, 2)
        await store.close()

    with one_loop():
        run(work())
