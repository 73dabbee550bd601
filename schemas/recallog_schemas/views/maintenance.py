"""Reports of rebuilds and of copies of ledgers."""

from recallog_schemas.event import Position
from recallog_schemas.views.base import ListView, View, count_noun, one_line


class RebuildPlan(View):
    """The plan of a rebuild for one partition."""

    views: str
    """The group of views: the built-in ones, a projection of the user, or the index."""
    partition: int
    """The number of the partition."""
    records: int
    """The number of records to fold."""
    replaces: str | None
    """The generation that readers use now."""
    joins: str | None
    """The building generation that the rebuild would complete."""

    def format(self) -> str:
        """Views, partition, number of records and generations in one line."""
        joins = f", joining {self.joins}" if self.joins else ""
        return f"{self.views}, partition {self.partition}: {count_noun(self.records, 'record')}{joins}, replacing " + (
            self.replaces or "nothing"
        )


class RebuildPlans(ListView[RebuildPlan]):
    """The plan of a rebuild, by partition."""


class RebuildReport(View):
    """The result of a rebuild for one partition."""

    views: str
    """The group of views: the built-in ones, a projection of the user, or the index."""
    partition: int
    """The number of the partition."""
    replaced: str | None
    """The generation that readers used before; None if there was none."""
    generation: str
    """The generation that readers use now."""
    joined: bool
    """Whether it completed a generation that was already being built."""
    records: int
    """The number of records that were folded."""
    seconds: float
    """How long the rebuild took."""

    def format(self) -> str:
        """Number of records, duration, rate and generations in one line."""
        joined = ", joined one under way" if self.joined else ""
        rate = self.records / self.seconds if self.seconds else 0
        return (
            f"rebuilt {count_noun(self.records, 'record')} in {self.seconds:.1f} s ({rate:,.0f}/s{joined}): "
            f"{self.replaced or 'nothing'} → {self.generation}"
        )


class RebuildReports(ListView[RebuildReport]):
    """The result of a rebuild, by partition."""


class AbortReport(View):
    """The generations whose rebuild was cancelled."""

    aborted: tuple[str, ...]
    """The ids of the generations."""

    def format(self) -> str:
        """The generations in one line; `no rebuild is running` if there are none."""
        return f"cancelled: {', '.join(self.aborted)}" if self.aborted else "no rebuild is running"


class LeftOut(View):
    """A record that was not copied."""

    position: Position
    """Its position in the source."""
    why: str
    """The reason, in a sentence."""

    def format(self) -> str:
        """Position and reason in one line."""
        return one_line(f"left out {self.position}: {self.why}")


class CopyReport(View):
    """The result of copying a ledger."""

    records: int
    """Records in the source."""
    copied: int
    """Events that are in the target now."""
    left_out: int
    """Records that were not copied."""
    problems: tuple[LeftOut, ...]
    """The first 100 of them."""
    switched: bool = False
    """Whether the source refuses further events, and names the target to producers."""

    @property
    def ok(self) -> bool:
        return not self.left_out

    def format(self) -> str:
        """The problems, one per line, then the numbers of records."""
        return "\n".join((*(problem.format() for problem in self.problems), self.summary))

    @property
    def summary(self) -> str:
        """The numbers of records in one line."""
        copied = f"copied {self.copied:,} of {count_noun(self.records, 'record')}"
        return f"{copied}; the source refuses events and names the target" if self.switched else copied
