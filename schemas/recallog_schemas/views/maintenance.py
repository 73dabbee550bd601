"""What rebuilds and migrations do."""

from recallog_schemas.views.base import View


class RebuildPlan(View):
    """What a rebuild would do for one partition."""

    views: str
    partition: int
    records: int
    replaces: str | None
    """The generation that readers are served from now."""
    joins: str | None
    """The generation under way, which it would complete."""


class RebuildReport(View):
    """What a rebuild did for one partition."""

    views: str
    partition: int
    replaced: str | None
    generation: str
    joined: bool
    records: int
    seconds: float


class CopyReport(View):
    """What a copy of a ledger did: records in the source, events that are in the target now, records left out."""

    records: int
    copied: int
    left_out: int
