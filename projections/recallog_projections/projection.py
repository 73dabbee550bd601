"""The protocol of a projection: a pure fold of records into the rows of tables and the entries of logs."""

from collections.abc import Sequence
from typing import Any, Protocol

from recallog_projections.rows import Rows
from recallog_projections.tables import Log, Table
from recallog_schemas import Record


class Projection(Protocol):
    """A pure function from records to changes of rows.

    It uses no I/O, no clock and no randomness; the time is the record's `at`. A projection writes only its own tables.
    It may read the tables of projections that are folded with it; those folded before it have already applied the
    run. If it raises an exception, the record becomes a dead letter for all projections and the fold continues.

    A *run* is consecutive records of one space. Where runs end is not fixed, and the rows must not depend on it.

    An optional attribute `kinds` names the only kinds of events that it is called for.

    An optional attribute `ends_runs` names those of its kinds whose events end a run: only the last record of a run is
    of these kinds, so that the rows of other projections are as they are after that record. Without the attribute these
    are all its kinds, and each of its runs is one record. A projection that reads no rows but its own and the settings
    has an empty `ends_runs`, which makes its fold several times as fast.

    An optional method `ignores(rows, record)` says, from the settings alone, that a record of these kinds does not
    concern the projection. Such a record does not end a run, and the projection may or may not be called for it.

    An optional attribute `independent` is true if, in addition, no other projection reads its rows, and it reads no
    settings.

    An optional method `due(rows, record)` names triggers that the record makes due, see `views.due`.

    The fold may call a projection with rows that are not loaded, which then seem not to exist. It discards the result
    of that call, even an error, loads the rows, and calls the projection again.
    """

    @property
    def name(self) -> str:
        """In lower case, unique among the projections that are folded together."""
        ...

    @property
    def version(self) -> int:
        """Raise it whenever the same records would give other rows. The views are then rebuilt automatically."""
        ...

    @property
    def tables(self) -> Sequence[Table[Any] | Log[Any]]:
        """The tables and logs that it writes."""
        ...

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        """Fold the records of a run, of which there is at least one."""
        ...
