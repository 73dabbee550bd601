"""A memory whose views are folded by workers."""

from typing import ClassVar

from recallog.extending import MemoryLedger


class LedgerOfWorkers(MemoryLedger):
    """A ledger whose views are folded by other processes, as on a cluster."""

    folded_by_workers: ClassVar[bool] = True
