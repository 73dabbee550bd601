"""What verification found."""

from recallog_schemas.views.base import ComputedAt, View


class Difference(View):
    """The first row in which a view differs from a fresh fold; None where one of them has no such row."""

    table: str
    space: str
    owner: str
    key: str
    found: str | None
    expected: str | None

    def address(self) -> str:
        return " / ".join(part for part in (self.table, self.space, self.owner, self.key) if part)


class TableCheck(ComputedAt):
    """One table of the views compared with a fresh fold: its rows, its canonical digest, and what differs first."""

    views: str
    table: str
    rows: int
    digest: str
    expected_digest: str
    difference: Difference | None


class VerifyReport(View):
    """What verification found."""

    records: int
    tables: tuple[TableCheck, ...]
    digest: str
    """Of all tables together: equal views have equal digests."""

    @property
    def clean(self) -> bool:
        return all(table.difference is None for table in self.tables)
