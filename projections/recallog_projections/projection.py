"""The protocol of a projection: a pure fold of records into the rows of tables and the entries of logs."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from recallog_projections.rows import Rows
from recallog_projections.tables import Log, RowKey, Table
from recallog_schemas import Record


class Projection(Protocol):
    """A pure function from records to changes of rows.

    It uses no I/O, no clock and no randomness; the time is the record's `at`. The result must not depend on the
    boundaries of batches. A projection writes only its own tables. It may read those of the projections that are folded
    with it: the ones folded before it have already applied the record. If it raises an exception, the record becomes a
    dead letter for all projections and the fold continues.

    An optional attribute `kinds` names the only kinds of events that it is called for.

    A projection whose rows follow from those that the record has changed in others (`Rows.written`) names them by
    `Rows.require`.

    An optional method `due(rows, record)` names triggers that the record makes due, see `views.due`.

    An optional method `further_needs(rows, record)` names rows that depend on the values of others. It is a hint, and
    is called when the rows that `needs` names are loaded.
    """

    @property
    def name(self) -> str:
        """In lower case, unique among the projections that are folded together."""
        ...

    @property
    def version(self) -> int:
        """To be raised whenever the same records would give other rows. The views are then rebuilt automatically."""
        ...

    @property
    def tables(self) -> Sequence[Table[Any] | Log[Any]]:
        """The tables and logs that it writes."""
        ...

    def needs(self, record: Record) -> Iterable[RowKey]:
        """The rows that `apply` will read or write, so that those of a batch are loaded in one call."""
        ...

    def apply(self, rows: Rows, record: Record) -> None:
        """Fold one record. If it uses a row that `needs` did not name, it is undone, and runs again with that row."""
        ...
