"""Where a worker's batches come from: a port, so that the live loop can be tested without a cluster."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence

from recallog_streams.ledgers.ledger import Batch


class RecordSource(ABC):
    """Batches of the partitions that this worker is assigned. Can be stopped and started again."""

    @abstractmethod
    async def start(self) -> None:
        """Join the others. Raises `StorageUnavailable`."""

    @abstractmethod
    async def stop(self) -> None:
        """Leave, so that others take over at once. Does nothing where it is not started."""

    @abstractmethod
    def assigned(self) -> frozenset[int]:
        """The partitions of this worker as of now."""

    @abstractmethod
    def seek(self, partition: int, offset: int) -> bool:
        """Go on at `offset`; False where the partition is not assigned any more."""

    @abstractmethod
    async def poll(self, partitions: Collection[int], wait_seconds: float) -> Sequence[Batch]:
        """What follows in `partitions` (all of which were sought), in order, each batch where the last one ended.

        Takes about `wait_seconds` where nothing comes, and where there are no partitions. Raises `StorageUnavailable`
        where the feed must be stopped and started again.
        """

    @abstractmethod
    def lost(self) -> Collection[int]:
        """Partitions that could not go on where they should, since this was asked last.

        The ledger is not as it was, or a record cannot be handed out this way: `seek` once it is known where to go on.
        """
