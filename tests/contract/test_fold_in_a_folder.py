"""In a folder the fold fetches rows as they are read; the rows that it writes are those of a fold in memory."""

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog_projections.stores.sqlite import SqliteStore
from recallog_projections.views import builtin
from recallog_streams.projector import Projector
from support.events import one_loop, run
from support.folding import all_rows, folded, ledger_at
from support.random_entries import random_history
from support.random_events import random_ledger


class CountingStore(SqliteStore):
    """Counts the batches that were folded in the thread of the caller."""

    here = 0

    def read_here(self, *given: Any) -> Any:
        found = super().read_here(*given)
        self.here += found is not None
        return found


def entries(rng: random.Random) -> list[bytes]:
    return [json.dumps(event).encode() for event in random_history(rng, 80)]


def events(rng: random.Random) -> list[bytes]:
    return random_ledger(rng, 80, unique_ids=False)


async def rows_in(folder: Path, values: Sequence[bytes], batch_records: int) -> tuple[Any, int]:
    """The rows of all tables after a fold into a file, in which each batch finds no row in memory."""
    store = CountingStore(folder / "views.db")
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
def test_rows_that_are_fetched_as_they_are_read_make_the_rows_of_a_fold_in_memory(
    values_of: Callable[[random.Random], list[bytes]],
) -> None:
    @settings(max_examples=10, deadline=None)
    @given(st.integers(0, 2**32), st.sampled_from((4, 40)))
    def check(seed: int, batch_records: int) -> None:
        values = values_of(random.Random(seed))
        expected = all_rows(*folded(ledger_at(values, unique_ids=False, batch_records=batch_records)))
        with TemporaryDirectory() as folder, one_loop():
            found, here = run(rows_in(Path(folder), values, batch_records))
        assert found == expected
        assert here > 0

    check()
