"""Reports of verification."""

from recallog_schemas.views.base import ComputedAt, View


class Difference(View):
    """The first row in which a view differs from a fresh fold. `found` or `expected` is None if that row is missing."""

    table: str
    """The name of the table."""
    space: str
    """The space of the row; "" if it belongs to none."""
    owner: str
    """The agent or other owner of the row; "" if it belongs to none."""
    key: str
    """The key of the row; "" if it has none."""
    found: str | None
    """The row in the views; None if it is missing there."""
    expected: str | None
    """The row of the fresh fold; None if it has none."""

    def address(self) -> str:
        """The names of table, space, owner and key, as far as the row has them."""
        return " / ".join(part for part in (self.table, self.space, self.owner, self.key) if part)


class TableCheck(ComputedAt):
    """One table of the views compared with a fresh fold: its rows, its digest, and the first difference."""

    views: str
    """The group of views: the built-in ones, a projection of the user, or the index."""
    table: str
    """The name of the table."""
    rows: int
    """The number of its rows."""
    digest: str
    """The digest of its rows in the views."""
    expected_digest: str
    """The digest of the fresh fold."""
    difference: Difference | None
    """The first row that differs; None if the table is equal."""


class VerifyReport(View):
    """The result of comparing the views with a fresh fold of the ledger."""

    records: int
    """The number of records in the ledger."""
    tables: tuple[TableCheck, ...]
    """The result for each table of each partition."""
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
