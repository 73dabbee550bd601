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
