"""The port through which a worker receives batches, so that the live loop can be tested without a cluster."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence

from recallog_streams.ledgers.ledger import Batch


class RecordSource(ABC):
    """Provides batches of the partitions that this worker is assigned. Can be stopped and started again."""

    @abstractmethod
    async def start(self) -> None:
        """Join the group of workers. Raises `StorageUnavailable`."""

    @abstractmethod
    async def stop(self) -> None:
        """Leave the group, so that other workers take over at once. Does nothing if not started."""

    @abstractmethod
    def assigned(self) -> frozenset[int]:
        """The partitions that are currently assigned to this worker."""

    @abstractmethod
    def seek(self, partition: int, offset: int) -> bool:
        """Continue at `offset`. False if the partition is no longer assigned."""

    @abstractmethod
    async def poll(self, partitions: Collection[int], wait_seconds: float) -> Sequence[Batch]:
        """At most one batch of each of `partitions`; it begins where the previous batch of its partition ended.

        They come from the ledger that was there at `start`. If another ledger replaces it, there are no further
        records.

        `seek` must have been called for all `partitions`. Returns after about `wait_seconds` if there are no records or
        no partitions. Raises `StorageUnavailable` if the source must be stopped and started again.
        """

    @abstractmethod
    def lost(self) -> Collection[int]:
        """Partitions that could not continue at the expected offset since the last call.

        The ledger has changed, or the source cannot return a record. Call `seek` with the offset to continue at.
        """
