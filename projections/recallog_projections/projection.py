"""What a projection is: a pure fold of records into the rows of its tables and the entries of its logs."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from recallog_projections.rows import Rows
from recallog_projections.tables import Log, RowKey, Table
from recallog_schemas import Record


class Projection(Protocol):
    """A pure function from records to changes of rows.

    No I/O, no clock, no randomness: time is the record's `at`. The result must not depend on where batches end. A
    projection writes its own tables only and may read those of the others it is folded with, as they stood when its
    turn came. Raising parks the record for all projections: it becomes a dead letter and the fold goes on.

    One that looks at a few kinds of events only may name them in an attribute `kinds`: it is called for no others.

    Where some needs follow from rows, a method `further_needs(rows, record)` may name them. It is called, as a hint,
    once the rows that `needs` names are there.
    """

    @property
    def name(self) -> str:
        """Lower case, unique among the projections that are folded together."""
        ...

    @property
    def version(self) -> int:
        """Raised whenever the same records would give other rows: the views are then rebuilt by themselves."""
        ...

    @property
    def tables(self) -> Sequence[Table[Any] | Log[Any]]:
        """What it writes."""
        ...

    def needs(self, record: Record) -> Iterable[RowKey]:
        """The rows that `apply` will read or write, so that a whole batch's are fetched at once."""
        ...

    def apply(self, rows: Rows, record: Record) -> None:
        """Fold one record. It may be undone and run again when it touches a row that `needs` did not name."""
        ...
