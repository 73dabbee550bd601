"""Reports of verification, and digests of the ledger."""

from collections.abc import Mapping
from itertools import groupby
from operator import attrgetter
from typing import Literal, NamedTuple

from recallog_schemas.event import Position
from recallog_schemas.views.base import ComputedAt, ListView, View, count_noun, one_line

_INDEX = "index"
_RESTORE = "Keep a copy of the folder, then restore your backup of the ledger"
_REMEDIES: Mapping[str, str] = {
    "key_missing": "Put the keys back from your copy of them; then: recallog dead-letters retry",
    "damaged": f"{_RESTORE}; without one, recallog export --keep-going writes the records that can still be read",
    "missing": f"{_RESTORE}. If this ledger is right, delete what was computed from the other: recallog rebuild --drop",
    "changed": (
        "The ledger was changed after it was folded. Keep a copy of the folder and compare the range with a backup. If "
        "the ledger is wrong, restore the backup; if it is right, build again what was computed from it: "
    ),
}
"""What to do, by the problem of a range of records; for changed ones the commands follow."""
_REBUILD = "The ledger is the source of truth. Build the views again: recallog rebuild"
_REBUILD_INDEX = "The ledger is the source of truth. Build the index again: recallog rebuild index"
_REPAIR = "It follows from the records of the ledger. Compute it again: recallog verify --repair"
_REPAIR_LATER = "Decide about the damaged records first, see above. Then: recallog verify --repair"
_DROP_INDEX = "The index follows from the ledger. Build it again in new files: recallog rebuild index --drop"
_LEDGER_FIRST = "The ledger now gives other rows than the views have. Decide about its records first, see above"
_COMPARE = "Compare the range with a backup from before that digest was kept; more kept digests narrow the range"


class LedgerFinding(View):
    """Records of the ledger that are damaged, missing, without keys, or not those that views were computed from."""

    problem: Literal["damaged", "missing", "changed", "key_missing"]
    """damaged: they cannot be read. missing: the ledger ends before them. changed: they are not the records that the
    views were computed from; at least one of the range is another one. key_missing: some are sealed, and their keys are
    missing."""
    first: Position
    """The first record of the range."""
    last: Position
    """The last record of the range."""
    views: str
    """The group of views whose comparison found it."""
    reason: str
    """What the ledger says about damaged records, and how many lack their keys; "" for others."""

    def summary(self) -> str:
        """What is wrong, in one line."""
        records = f"the records {self.first} to {self.last}" if self.first != self.last else f"the record {self.first}"
        be = "are" if self.first != self.last else "is"
        is_index = self.views == _INDEX
        if self.problem == "changed":
            computed = "the index was" if is_index else f"the {self.views} views were"
            return f"{records} {be} not what {computed} computed from"
        if self.problem == "missing":
            processed = "the index has" if is_index else f"the {self.views} views have"
            return f"{records}, which {processed} processed, {be} missing"
        return f"{records} cannot be read: {self.reason}"


class RowAddress(View):
    """The address of one row of a table."""

    space: str
    """The space of the row; "" if it belongs to none."""
    owner: str
    """The agent or other owner of the row; "" if it belongs to none."""
    key: str
    """The key of the row; "" if it has none."""


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
        return _address(self.table, self.space, self.owner, self.key)


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
    expected_digest: str | None
    """The digest of the fresh fold; None if the ledger cannot be folded again."""
    difference: Difference | None
    """The first row that differs; None if the table is equal."""
    differences: int = 0
    """The number of rows that differ."""
    damaged: tuple[RowAddress, ...] = ()
    """The rows whose checksum fails; of a log, the first entry of each damaged part."""

    def damaged_addresses(self) -> list[str]:
        """The damaged rows, each as `Difference.address` writes it."""
        return [_address(self.table, each.space, each.owner, each.key) for each in self.damaged]


class NotCompared(View):
    """Views that could not be compared, or not all of them."""

    views: str
    """The group of views."""
    partition: int | None
    """The partition; None: all."""
    reason: str
    """Why, and what to do."""


class FileFinding(View):
    """A part of a file that is damaged, apart from the records of the ledger and the rows of the views."""

    views: str
    """The group of views that the file has; "" for the ledger."""
    file: str
    """The file."""
    part: str
    """What of it is damaged, for example "the index of ids"."""
    reason: str
    """What is wrong with it."""
    repairable: bool
    """Whether it follows from the records, so that `recallog verify --repair` computes it again."""

    def summary(self) -> str:
        """What is wrong, in one line."""
        return f"{self.part} in {self.file} is damaged: {self.reason}"


class DigestCheck(View):
    """A digest that was kept elsewhere, compared with the ledger."""

    position: Position
    """The position of the digest."""
    expected: str
    """The digest that was given."""
    found: str | None
    """The digest of the ledger as it is now; None if a damaged record comes before the position."""
    first: Position | None
    """If they differ, the first record that may be another one; None if they are equal."""
    last: Position | None
    """If they differ, the last record that may be another one; None if they are equal."""

    @property
    def matches(self) -> bool:
        """Whether the ledger up to the position is the one that the digest was computed from."""
        return self.found == self.expected

    def summary(self) -> str:
        """The result in one line."""
        if self.matches:
            return f"the digest at {self.position} matches: no record up to it has changed"
        if self.found is None:
            return f"the digest at {self.position} cannot be computed: a record before it is damaged"
        among = f"{self.first} to {self.last}" if self.first != self.last else str(self.first)
        return f"the digest at {self.position} does not match: it was computed from other records than {among}"


class Finding(NamedTuple):
    """One finding of a verification as text."""

    summary: str
    """What was found, in one line."""
    remedy: str = ""
    """What to do about it; "" if the summary says it."""
    difference: Difference | None = None
    """The row that differs."""


class VerifyReport(View):
    """The result of comparing the ledger with its hash chain, and the views with a fresh fold of the ledger."""

    records: int
    """The number of records in the ledger."""
    tables: tuple[TableCheck, ...]
    """The result for each table of each partition."""
    digest: str
    """The digest of all tables together: equal views have equal digests."""
    ledger: tuple[LedgerFinding, ...] = ()
    """What is wrong with the ledger, in the order of positions."""
    digests: tuple[DigestCheck, ...] = ()
    """The digests that were given, compared with the ledger."""
    not_compared: tuple[NotCompared, ...] = ()
    """The views that could not be compared."""
    files: tuple[FileFinding, ...] = ()
    """What is wrong with files apart from records and rows: indexes, tables that follow from others, free pages."""

    @property
    def clean(self) -> bool:
        """Whether everything was compared and nothing differs."""
        return not self.findings()

    @property
    def ok(self) -> bool:
        return self.clean

    def findings(self) -> list[Finding]:
        """Everything that was found, those with the same remedy one after the other. Empty if there is nothing."""
        return [*self._of_ledger(), *self._of_files(), *self._of_rows(), *self._of_comparison()]

    def _of_ledger(self) -> list[Finding]:
        changed = {each.views == _INDEX for each in self.ledger if each.problem == "changed"}
        commands = ", and ".join(
            "recallog rebuild index" if of_index else "recallog rebuild" for of_index in sorted(changed)
        )
        found = [
            Finding(each.summary(), _REMEDIES[each.problem] + (commands if each.problem == "changed" else ""))
            for each in self.ledger
        ]
        found += [
            Finding(each.summary(), _COMPARE if each.found else _RESTORE) for each in self.digests if not each.matches
        ]
        return sorted(found, key=attrgetter("remedy"))

    def _of_files(self) -> list[Finding]:
        damaged = any(each.problem == "damaged" for each in self.ledger)
        found = []
        for each in self.files:
            if each.views == _INDEX:
                found.append(Finding(each.summary(), _DROP_INDEX))
            elif each.repairable:
                found.append(Finding(each.summary(), _REPAIR_LATER if damaged and not each.views else _REPAIR))
            elif not damaged:  # otherwise the findings of damaged records say it
                found.append(Finding(each.summary(), _REMEDIES["damaged"]))
        return sorted(found, key=attrgetter("remedy"))

    def _of_rows(self) -> list[Finding]:
        found = []
        for table in self.tables:
            remedy = _REBUILD_INDEX if table.views == _INDEX else _REBUILD
            found += [Finding(f"damaged {address}", remedy) for address in table.damaged_addresses()]
            if table.difference is not None:
                more = f", and {table.differences - 1:,} more of this table" if table.differences > 1 else ""
                remedy = _LEDGER_FIRST if self.ledger else remedy
                found.append(Finding(f"differs {table.difference.address()}{more}", remedy, table.difference))
        return sorted(found, key=attrgetter("remedy"))

    def _of_comparison(self) -> list[Finding]:
        return [
            Finding(
                f"not compared: {each.views}"
                + ("" if each.partition is None else f", partition {each.partition}")
                + f": {each.reason}"
            )
            for each in self.not_compared
        ]

    def format(self) -> str:
        """The digest of the views, or each finding and what to do about it; digests that match come first."""
        lines = [each.summary() for each in self.digests if each.matches]
        for remedy, findings in groupby(self.findings(), key=attrgetter("remedy")):
            lines += [each.summary for each in findings]
            lines += [f"  → {remedy}"] if remedy else []
        if self.clean:
            rows = sum(table.rows for table in self.tables)
            lines.append(
                f"clean {count_noun(self.records, 'record')}, {count_noun(rows, 'row')}, digest {self.digest[:16]}"
            )
        return "\n".join(lines)


class RepairReport(View):
    """What was computed again from the records of the ledger, and a verification afterwards."""

    repaired: tuple[FileFinding, ...]
    """What was damaged, and has been repaired."""
    problem: str
    """Why something could not be repaired, and what to do; "" if all was."""
    verified: VerifyReport
    """The verification of ledger and views after the repair."""

    @property
    def ok(self) -> bool:
        return self.verified.clean

    def format_repairs(self) -> str:
        """What was repaired, and why something was not."""
        lines = [f"repaired {each.part} in {each.file}: {each.reason}" for each in self.repaired]
        if self.problem:
            lines.append(f"not repaired: {self.problem}")
        return "\n".join(lines or ["nothing to repair"])

    def format(self) -> str:
        """What was repaired, then the verification."""
        return f"{self.format_repairs()}\n{self.verified.format()}"


def _address(*parts: str) -> str:
    return one_line(" / ".join(part for part in parts if part))


class LedgerDigest(View):
    """The digest of all records of a partition up to a position."""

    position: Position
    """The position of the last record."""
    digest: str
    """The value of the hash chain after that record: 32 hexadecimal digits."""

    def format(self) -> str:
        """Position and digest as `recallog verify --digest` takes them: 0:41:9f86…"""
        return f"{self.position}:{self.digest}"


class LedgerDigests(ListView[LedgerDigest]):
    """The digest of each partition that has records, by partition."""
