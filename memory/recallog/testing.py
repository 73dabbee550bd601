"""Test a projection of your own without any service, files or event loop.

```python
driver = ProjectionDriver(MyProjection())
driver.given(Event(space="village", agent="baker", kind="agent.spoke", turn=1, payload={"text": "Bread!"}))
assert driver.row(MY_TABLE, "village", "baker") == MyRow(...)
```
"""

from collections.abc import Coroutine
from typing import Any, TypeVar

import msgspec

from recallog_projections.projection import Projection
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.store import Generation, StoredRow
from recallog_projections.tables import Log, LogName, RowKey, Table
from recallog_projections.views import builtin
from recallog_schemas import Event, Position, limits
from recallog_schemas.errors import InvariantViolation, ProjectionError
from recallog_streams import dead_letters
from recallog_streams.dead_letters import DeadLetterRow
from recallog_streams.ledgers.memory import MemoryLedger
from recallog_streams.projector import Projector

Result = TypeVar("Result")
Row = TypeVar("Row", bound=msgspec.Struct)

__all__ = ["ProjectionDriver"]


class ProjectionDriver:
    """A ledger and a store in memory, and the real projector between them.

    The projection is folded as `Memory.open(projections=…)` does it, with the settings it may read. A record that it
    cannot apply raises `ProjectionError`, unless `dead_letters_allowed`.
    """

    def __init__(self, projection: Projection, *, unique_ids: bool = True, dead_letters_allowed: bool = False) -> None:
        self._projections = builtin.with_settings(projection)
        self._unique_ids = unique_ids
        self._dead_letters_allowed = dead_letters_allowed
        self.ledger = MemoryLedger(unique_ids=unique_ids)
        self._projector, self._generation = self._fresh(self.ledger)

    def given(self, *events: Event) -> list[Position]:
        """Append events, fold them, and return their positions."""
        positions = _finish(self.ledger.append(events))
        self.fold()
        return positions

    def fold(self) -> None:
        """Fold all records of the ledger, for example after `driver.ledger.append_bytes(...)`."""
        _finish(self._projector.catch_up(self._generation, self._end()))
        letters = self.dead_letters()
        if letters and not self._dead_letters_allowed:
            first = letters[0]
            raise ProjectionError(f"the record at 0:{first.offset} is a dead letter: {first.reason}: {first.detail}")

    def row(self, table: Table[Row], space: str, owner: str = "", key: str = "") -> Row | None:
        """One row, None if it does not exist."""
        row_key = RowKey(table.name, space, owner, key)
        (data,) = _finish(self._projector.store.read(0, [row_key], generation=self._generation)).rows
        return None if data is None else table.decode(data)

    def log_entries(self, log: Log[Row], space: str, owner: str = "") -> list[Row]:
        """All entries that a log retains, oldest first."""
        wanted = [(LogName(log.name, space, owner), limits.LOG_EVENTS_MAX)]
        (tail,) = _finish(self._projector.store.read(0, logs=wanted, generation=self._generation)).logs
        return [log.decode(data) for data in tail.entries]

    def dead_letters(self) -> list[DeadLetterRow]:
        """The records that could not be applied, each with the reason."""
        return _finish(dead_letters.all_dead_letters(self._projector.store, self._generation))

    def check(self) -> None:
        """Raise `ProjectionError` if the rows depend on anything but the records, such as where batches end."""
        expected = self._all_rows(self._projector, self._generation)
        for batch_records in (1, 3):
            ledger = MemoryLedger(unique_ids=self._unique_ids, batch_records=batch_records)
            for data in self.ledger.values():
                ledger.append_bytes(data)
            projector, generation = self._fresh(ledger)
            _finish(projector.catch_up(generation, self._end()))
            found = self._all_rows(projector, generation)
            for table, rows in expected.items():
                if found[table] != rows:
                    raise ProjectionError(
                        f"the rows of {table!r} differ when the same records are folded in batches of "
                        f"{batch_records}: does the projection keep state of its own, or use a clock or randomness?"
                    )

    def _fresh(self, ledger: MemoryLedger) -> tuple[Projector, Generation]:
        projector = Projector(ledger, MemoryStore(), self._projections)
        return projector, _finish(projector.first_generation(0, 0))

    def _end(self) -> int:
        (end,) = _finish(self.ledger.ends())
        return end

    def _all_rows(self, projector: Projector, generation: Generation) -> dict[str, list[StoredRow]]:
        rows = {}
        for table in projector.fold.tables:
            chunk = _finish(projector.store.scan(generation, table.name, limit=limits.AS_OF_RECORDS_MAX))
            rows[table.name] = list(chunk.items)
        return rows


def _finish(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """The result of a coroutine that never waits: ledger and store are in memory. Works inside an event loop too."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    raise InvariantViolation("a ledger or store in memory waited")
