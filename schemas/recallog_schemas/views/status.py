"""The state of a ledger and its views."""

from recallog_schemas.views.base import View
from recallog_schemas.views.reflection import PendingTrigger, Unreflected


class PartitionStatus(View):
    """How far the views of one partition are."""

    views: str
    partition: int
    end: int
    checkpoint: int
    lag: int
    """Records not decided yet."""
    generation: str | None
    building: str | None
    building_checkpoint: int | None
    dead_letters: int
    incomplete: bool
    """Some dead letters are of a future schema: newer code can read them."""


class Status(View):
    """The whole at a glance, as it is: asking folds nothing."""

    ledger: str
    records: int
    """Decided: applied, skipped as repeats, or dead letters."""
    spaces: int
    agents: int
    sessions: int
    partitions: tuple[PartitionStatus, ...]
    pending: tuple[PendingTrigger, ...]
    """Reflections that are due; the first 100 of `pending_total`."""
    pending_total: int
    unreflected: tuple[Unreflected, ...]
    """Agents past turn 30 for which reflection is off; the first 100 of `unreflected_total`."""
    unreflected_total: int
    ledger_bytes: int
    views_bytes: int
    index_bytes: int
