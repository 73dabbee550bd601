"""A recorded ledger of rule 1, by which nearly equal texts were replaced or skipped: its entries stay as they were.

`entries_rule_1.jsonl` was written before events stated a rule. `entries_rule_1.json` has the rows of the views of then.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from recallog import Memory
from recallog.settings import Settings
from recallog_projections.models.long_term import tables
from recallog_projections.views import builtin
from recallog_schemas import codec, kinds, rules
from recallog_streams import migration
from recallog_streams.ledgers.memory import MemoryLedger
from support.cli import recallog
from support.entries_checking import View
from support.events import run
from support.finishing import finish
from support.folding import folded, ledger_at

pytestmark = pytest.mark.models("all")

HERE = Path(__file__).parent
LINES = (HERE / "entries_rule_1.jsonl").read_bytes().splitlines()
RECORDED: dict[str, list[Any]] = json.loads((HERE / "entries_rule_1.json").read_bytes())


def rows_of(ledger: MemoryLedger) -> dict[str, list[Any]]:
    """The recorded tables, as the views of a ledger have them."""
    projector, generation = folded(ledger, builtin.projections())
    view = View(projector.store, generation)
    found: dict[str, list[Any]] = {}
    for table in (tables.IDS, tables.ROWS, tables.ENDED, tables.AGENTS, tables.KEPT, tables.TYPES):
        rows = view.rows(table).items()
        found[table.name] = [[table.name, *key, msgspec.to_builtins(row)] for key, row in rows]
    for log in (tables.AUDIT, tables.REFUSALS):
        found[log.name] = [
            [*key, [msgspec.to_builtins(entry) for entry in entries]] for key, entries in view.log(log).items()
        ]
    return {name: rows for name, rows in found.items() if rows}


def plain(rows: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """As JSON has it, without the names of tables in the keys."""
    return {
        name: sorted(
            ([part for part in each if part != name] for each in json.loads(msgspec.json.encode(of_table))), key=str
        )
        for name, of_table in rows.items()
    }


@pytest.mark.parametrize("batch_records", [1, 7, 1_000])
def test_the_recorded_ledger_has_its_entries(batch_records: int) -> None:
    assert plain(rows_of(ledger_at(LINES, batch_records=batch_records))) == plain(RECORDED)


def test_a_copied_ledger_has_its_entries() -> None:
    target = MemoryLedger()
    finish(migration.copy(ledger_at(LINES), target))
    assert plain(rows_of(target)) == plain(RECORDED)


def test_an_export_states_the_rule_so_that_a_restored_ledger_has_its_entries(tmp_path: Path) -> None:
    async def lines_of(home: Path, given: Sequence[bytes] = ()) -> list[bytes]:
        async with Memory.open(Settings(home=home, index="off")) as memory:
            await memory._access.components.ledger.append([codec.decode(line) for line in given])
            return [data async for batch in memory.admin.records() for _, data in batch.records]

    assert run(lines_of(tmp_path / "old", LINES)) == LINES
    exported = tmp_path / "backup.jsonl"
    assert recallog("export", "--output", str(exported), "--home", str(tmp_path / "old")).code == 0
    assert recallog("ingest", str(exported), "--home", str(tmp_path / "new"), RECALLOG_INDEX="off").code == 0
    restored = run(lines_of(tmp_path / "new"))
    assert plain(rows_of(ledger_at(restored))) == plain(RECORDED)
    stated = {
        rules.rule_of(event) for line in restored if kinds.kind_of((event := codec.decode(line)).kind).newest_rule
    }
    assert stated == {1}
