"""How many records are folded at once: as many as one commit takes, so that nearly none are folded twice."""

from collections.abc import Sequence
from typing import ClassVar

import pytest

from recallog_projections.rows import Rows
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.views import builtin
from recallog_schemas import Record, codec
from recallog_streams.projector import Projector
from support.events import event, run
from support.folding import all_rows, ledger_at

RECORDS = 3_000

AllRows = dict[str, dict[tuple[str, str, str], bytes]]


class SmallCommits(MemoryStore):
    """A store that takes few changes at a time."""

    commit_changes_max = 1_000


class Given:
    """Counts the records that it is given, and writes nothing."""

    name: ClassVar[str] = "given"
    version: ClassVar[int] = 1
    ends_runs: ClassVar[Sequence[str]] = ()
    tables = ()

    def __init__(self) -> None:
        self.records = 0

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        self.records += len(run)


def fold(values: list[bytes], store: MemoryStore) -> tuple[AllRows, int]:
    """Fold a ledger. -> its rows, and how many records projections were given"""
    given = Given()
    projector = Projector(ledger_at(values, unique_ids=False), store, [*builtin.projections(), given])
    generation = run(projector.first_generation(0, 0))
    run(projector.catch_up(generation, len(values)))
    return all_rows(projector, generation), given.records


def test_records_of_a_batch_with_several_commits_are_folded_once() -> None:
    values = [
        codec.encode(event(space=f"space-{n % 20}", id=f"e-{n}", payload={"text": f"{n}"})) for n in range(RECORDS)
    ]
    rows, given = fold(values, SmallCommits())
    assert given == RECORDS
    assert rows == fold(values, MemoryStore())[0]


def test_repeats_are_given_to_no_projection_and_are_folded_once() -> None:
    values = [codec.encode(event(id="always-the-same", payload={"text": "nine sacks"}))] * RECORDS
    assert fold(values, SmallCommits())[1] == 1


@pytest.mark.models("long_term")
def test_after_records_with_many_changes_few_records_are_folded_twice() -> None:
    entries = [f"m-{n}" for n in range(200)]
    values = [codec.encode(event("memory.retained", id=id_, payload={"text": f"About {id_}."})) for id_ in entries]
    values.append(codec.encode(event("memory.erased", id="erased", payload={"entries": entries})))
    values += [codec.encode(event(id=f"e-{n}", payload={"text": f"{n}"})) for n in range(RECORDS)]
    rows, given = fold(values, SmallCommits())
    assert given < 2 * len(values)
    assert rows == fold(values, MemoryStore())[0]
