"""One partition that a worker keeps the views of, and how that goes."""

import asyncio
from dataclasses import dataclass, field
from enum import Enum

from recallog_projections.stores.store import Checkpoint, Generation

BACKOFF_SECONDS_MIN = 0.1
BACKOFF_SECONDS_MAX = 5.0


class State(Enum):
    """building: its generation is brought to the ledger's end first: after a start, a rebalance, a cutover, a loss.
    live: batches are folded as they come.
    failed: something is wrong that may pass, or that an operator must see to; `why` says what; tried again.
    idle: newer code has built its views, and this worker has nothing more to do for it.
    """

    BUILDING = "building"
    LIVE = "live"
    FAILED = "failed"
    IDLE = "idle"


@dataclass(slots=True, eq=False)
class PartitionTask:
    """One assigned partition."""

    partition: int
    state: State = State.BUILDING
    why: str = ""
    generation: Generation | None = None
    checkpoint: Checkpoint | None = None
    processed: int | None = None
    """How many offsets its views have decided, those still being built too; None while that is not known."""
    end: int = 0
    """The ledger's end as of the last look."""
    dead_letters: int | None = None
    """Its dead letters as of the last look."""
    garbage_collected: bool = False
    """Whether what replaced generations have left behind is gone; whoever replaced one may have died before that."""
    failures: int = 0
    again_at: float = 0.0
    """When a failed or idle one is tried again, in the event loop's time."""
    preparing: "asyncio.Task[None] | None" = field(default=None, repr=False)

    @property
    def lag(self) -> int | None:
        """Offsets still to decide; None while that is not known."""
        return None if self.processed is None else max(0, self.end - self.processed)

    def progress(self, done: int, total: int) -> None:
        """Its views are being built."""
        self.processed, self.end = done, max(self.end, total)

    def live(self, generation: Generation, checkpoint: Checkpoint) -> None:
        """It has caught up."""
        self.state, self.why, self.garbage_collected = State.LIVE, "", False
        self.generation, self.checkpoint, self.processed = generation, checkpoint, checkpoint.offset + 1


def backoff(failures: int) -> float:
    """Seconds to wait after so many failures in a row."""
    return min(BACKOFF_SECONDS_MAX, BACKOFF_SECONDS_MIN * 2.0 ** min(failures - 1, 10))
