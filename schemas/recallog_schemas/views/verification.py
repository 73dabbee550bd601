"""Reports of verification."""

from recallog_schemas.views.base import ComputedAt, View


class Difference(View):
    """The first row in which a view differs from a fresh fold. `found` or `expected` is None if that row is missing."""

    table: str
    space: str
    owner: str
    key: str
    found: str | None
    expected: str | None

    def address(self) -> str:
        return " / ".join(part for part in (self.table, self.space, self.owner, self.key) if part)


class TableCheck(ComputedAt):
    """One table of the views compared with a fresh fold: its rows, its digest, and the first difference."""

    views: str
    table: str
    rows: int
    digest: str
    expected_digest: str
    difference: Difference | None


class VerifyReport(View):
    """The result of comparing the views with a fresh fold of the ledger."""

    records: int
    tables: tuple[TableCheck, ...]
    digest: str
    """The digest of all tables together: equal views have equal digests."""

    @property
    def clean(self) -> bool:
        """Whether no row differs."""
        return all(table.difference is None for table in self.tables)

    @property
    def ok(self) -> bool:
        return self.clean

    def format(self) -> str:
        """The digest, or the first row that differs in each table."""
        differing = [table.difference.address() for table in self.tables if table.difference is not None]
        if differing:
            return "\n".join(f"differs {address}" for address in differing)
        rows = sum(table.rows for table in self.tables)
        return f"clean {self.records:,} records, {rows:,} rows, digest {self.digest[:16]}"
