"""The state of a ledger and its views."""

from recallog_schemas.views.base import View
from recallog_schemas.views.reflection import PendingTrigger, Unreflected


class PartitionStatus(View):
    """The progress of the views of one partition."""

    views: str
    partition: int
    end: int
    checkpoint: int
    lag: int
    """The number of records not processed yet."""
    generation: str | None
    building: str | None
    building_checkpoint: int | None
    dead_letters: int
    incomplete: bool
    """Some dead letters have a future schema: newer code can read them."""

    def format(self) -> str:
        return (
            f"{self.views}, partition {self.partition}: {self.checkpoint + 1:,} of {self.end:,} records processed, "
            f"{self.dead_letters:,} dead letters, generation {self.generation or 'none yet'}"
        )


class Status(View):
    """The state of the ledger and its views. Computing it folds no records."""

    ledger: str
    records: int
    """Processed records: applied, skipped as repeats, or dead letters."""
    spaces: int
    agents: int
    sessions: int
    partitions: tuple[PartitionStatus, ...]
    pending: tuple[PendingTrigger, ...]
    """Due reflections: the first 100 of `pending_total`."""
    pending_total: int
    unreflected: tuple[Unreflected, ...]
    """Agents past turn 30 whose reflection is off: the first 100 of `unreflected_total`."""
    unreflected_total: int
    ledger_bytes: int
    views_bytes: int
    index_bytes: int

    def format(self) -> str:
        """The counts, then the progress of each group of views, one per line."""
        counts = f"{self.records:,} records, {self.spaces:,} spaces, {self.agents:,} agents, {self.sessions:,} sessions"
        return "\n".join((counts, *(row.format() for row in self.partitions)))
