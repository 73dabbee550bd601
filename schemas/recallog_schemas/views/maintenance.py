"""Reports of rebuilds and of copies of ledgers."""

from recallog_schemas.views.base import View


class RebuildPlan(View):
    """The plan of a rebuild for one partition."""

    views: str
    partition: int
    records: int
    replaces: str | None
    """The generation that readers use now."""
    joins: str | None
    """The building generation that the rebuild would complete."""


class RebuildReport(View):
    """The result of a rebuild for one partition."""

    views: str
    partition: int
    replaced: str | None
    generation: str
    joined: bool
    records: int
    seconds: float


class CopyReport(View):
    """The result of copying a ledger: records in the source, events now in the target, and records left out."""

    records: int
    copied: int
    left_out: int
