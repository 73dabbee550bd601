"""A group of projections that are folded together, with the store of their rows and the access to them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recallog.reading.view_access import ViewAccess
from recallog_projections.projection import Projection
from recallog_projections.stores.store import Store
from recallog_streams.projector import Projector

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from recallog.reading.time_travel import Erase
    from recallog_streams.parallel.catching_up import ParallelCatchUp
    from recallog_streams.parallel.partitions import Open

BUILT_IN = "built-in"
"""Name of the group of the built-in projections."""
INDEX = "index"
"""Name of the group of the semantic index."""


@dataclass(frozen=True, slots=True)
class ProjectionGroup:
    """Projections that are folded together. A record is applied to all of them, or is a dead letter of all of them."""

    name: str
    """`BUILT_IN`, `INDEX`, or the name of a user's projection."""
    store: Store
    projections: Sequence[Projection]
    builder: Projector
    """The projector of workers and rebuilds. It takes no lock: the store refuses the commit of a stale writer."""
    access: ViewAccess
    """The access of readers."""
    make: Callable[[], Sequence[Projection]] | None = None
    """Makes the projections, even in another process if it can be pickled."""
    open: "Open | None" = None
    """Opens ledger and store in another process, if it can be pickled."""
    erase: "Sequence[Erase]" = ()
    """Functions that find in a past of these views the content that is erased now."""
    snapshot_records: int = 0
    """The number of records of a space after which a query of the past writes a snapshot of it; 0 means never."""

    def catching_up(self, workers: int | None, throttle: float) -> "AbstractAsyncContextManager[ParallelCatchUp]":
        """A catch-up with `workers` processes (default: one for each core) and with pauses.

        The processes end with the block.
        """
        from recallog_streams.parallel.catching_up import ParallelCatchUp, cores  # most commands do not rebuild

        return ParallelCatchUp(self.make, workers or cores(), throttle, self.open).running()
