"""The common form of commands: check first, publish, and read the verdict of the views.

The views decide in ledger order. A change that they would refuse now is refused before it is written, by their own fold
over the present rows. A caller that gives the id of the event may repeat the call. Its event is therefore always
written, and the verdict on the first event counts.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from recallog.access import MemoryAccess
from recallog.operations.parameters import At
from recallog.reading.applying import apply_loaded
from recallog_projections.rows import Rows
from recallog_projections.tables import Log, LogName, RowKey, Table
from recallog_schemas import Event, Position, Record, limits, rules

if TYPE_CHECKING:
    from recallog.reading.read_session import ReadSession, Snapshot
    from recallog_projections.projection import Projection

Reasons = Mapping[str, str]
"""Why a change is refused, by the id of each item that is not changed; "" refers to the whole change. Empty if the
change is made."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of the views on the events of a command."""

    positions: Sequence[Position]
    """The positions of the events."""
    reasons: Sequence[Reasons]
    """For each event, why it was refused."""
    snapshot: "Snapshot"
    """The rows that were requested, as they are after the last event."""

    @property
    def position(self) -> Position:
        """The position of the last event."""
        return self.positions[-1]


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges the commands of a model as the views do, by a projection that records its refusals.

    The events of one call belong to one agent of one space.
    """

    fold: Callable[[], "Projection"]
    refusals: Log[Any]
    """A log whose rows have `event` and `why`, like those of `recallog_projections.refusals`."""
    reads: Sequence[Table[Any]] = ()
    """Tables of other projections that it reads."""

    async def foresee(self, access: MemoryAccess, events: Sequence[Event]) -> list[Reasons]:
        """For each event, in their order, why the views would refuse it now."""
        rows = await access.of_views(self.refusals, events[0].space, At(), partial(self.fold_now, events=events))
        log = (self.refusals.name, events[0].space, events[0].agent)
        return self._reasons(events, rows.changes().logs.get(log, ()))

    async def publish(
        self, access: MemoryAccess, events: Sequence[Event], rows: Sequence[RowKey] = (), keys: Collection[str] = ()
    ) -> Verdict:
        """Append events, all or none, and read the verdict once the views have processed them, with some rows.

        `keys` as in `MemoryAccess.append`.
        """
        positions = await access.append(events, keys=keys)
        log = LogName(self.refusals.name, events[0].space, events[0].agent)

        async def read(reading: "ReadSession") -> "Snapshot":
            return await reading.snapshot(rows, [(log, self.refusals.keep)])

        snapshot = await access.of_views(self.refusals, log.space, At(after=positions[-1]), read)
        tail = snapshot.tail(self.refusals, log.space, log.owner)
        return Verdict(positions, self._reasons(events, tail.entries), snapshot)

    async def fold_now(self, reading: "ReadSession", events: Sequence[Event]) -> Rows:
        """The rows that the fold would write for events now. Nothing is written."""
        fold = self.fold()
        rows = Rows((*fold.tables, *self.reads), strict=False)
        first = limits.INTEGER_MAX - len(events)
        records = [
            Record(reading.partition, first + number, rules.with_newest_rule(event), b"", memorable=False)
            for number, event in enumerate(events)
        ]

        def apply() -> None:
            for record in records:
                fold.apply(rows, [record])
                rows.finish_run()

        await apply_loaded(reading, rows, apply)
        return rows

    def _reasons(self, events: Sequence[Event], notes: Sequence[bytes]) -> list[Reasons]:
        why = {note.event: note.why for note in self.refusals.decode_all(notes)}
        found = (why.get(event.id, {}) for event in events)
        return [{"": each} if isinstance(each, str) else each for each in found]
