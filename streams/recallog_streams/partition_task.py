"""The state of one partition that is assigned to a worker."""

import asyncio
from dataclasses import dataclass, field
from enum import Enum

from recallog_projections.stores.store import Checkpoint, Generation
from recallog_streams.projector import Projector

BACKOFF_SECONDS_MIN = 0.1
BACKOFF_SECONDS_MAX = 5.0


class TaskState(Enum):
    """building: its generation is folded up to the ledger's end, after a start, a rebalance, a cutover or a loss.
    live: batches are folded as they arrive.
    failed: an error occurred that may pass or needs an operator; `why` names it. Tried again after a backoff.
    idle: newer code has built its views, and this worker has nothing to do for it.
    """

    BUILDING = "building"
    LIVE = "live"
    FAILED = "failed"
    IDLE = "idle"


@dataclass(slots=True, eq=False)
class PartitionTask:
    """One assigned partition."""

    partition: int
    state: TaskState = TaskState.BUILDING
    why: str = ""
    projector: Projector | None = None
    """The projector that maintains it, since it was last prepared."""
    generation: Generation | None = None
    checkpoint: Checkpoint | None = None
    processed: int | None = None
    """The number of offsets that its views have processed, also while they are being built; None if unknown."""
    end: int = 0
    """The ledger's end at the last check."""
    dead_letters: int | None = None
    """The number of its dead letters at the last check."""
    garbage_collected: bool = False
    """Whether replaced generations are deleted; the process that replaced one may have died before it did so."""
    lives: int = 0
    """How often it has become live. In between, another worker may have had the partition."""
    failures: int = 0
    again_at: float = 0.0
    """When a failed or idle task is tried again, in the event loop's time."""
    preparing: "asyncio.Task[None] | None" = field(default=None, repr=False)

    @property
    def lag(self) -> int | None:
        """The number of offsets still to process; None if unknown."""
        return None if self.processed is None else max(0, self.end - self.processed)

    def progress(self, done: int, total: int) -> None:
        """Record that `done` of `total` offsets are processed."""
        self.processed, self.end = done, max(self.end, total)

    def live(self, generation: Generation, checkpoint: Checkpoint) -> None:
        """Record that `generation` has caught up to `checkpoint`."""
        self.state, self.why, self.garbage_collected, self.lives = TaskState.LIVE, "", False, self.lives + 1
        self.generation, self.checkpoint, self.processed = generation, checkpoint, checkpoint.offset + 1


def backoff(failures: int) -> float:
    """Seconds to wait after `failures` consecutive failures: exponential, with an upper bound."""
    return min(BACKOFF_SECONDS_MAX, BACKOFF_SECONDS_MIN * 2.0 ** min(failures - 1, 10))
