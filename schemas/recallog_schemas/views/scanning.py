"""The report of a scan of what a memory stores for given words."""

from collections.abc import Iterable
from typing import ClassVar, Self

from recallog_schemas.views.base import Bounded, View
from recallog_schemas.views.verification import DigestCheck, LedgerDigest


class MarkerFound(View):
    """A form of a marker that a scan has found in a place."""

    marker: int
    """The number of the marker among those that were given, from 1: the report does not repeat the words."""
    form: str
    """The form, for example "base64", or "UTF-8, case-folded"."""
    count: int
    """How often it was found. A long row of a SQLite file counts in the bytes of the file, and in its rows."""


class ScannedPlace(View):
    """A place that a scan has read."""

    place: str
    """A file, a key of Redis, a partition of the ledger, or the points of the index."""
    bytes: int
    """How many bytes of it were searched."""
    found: tuple[MarkerFound, ...] = ()
    """What was found there."""
    problem: str = ""
    """Why it could not be read; "" if it was."""

    def format(self) -> str:
        """What was found there, and why it could not be read."""
        lines = [
            f"found marker {each.marker} in {self.place} ({each.form}, {each.count:,} times)" for each in self.found
        ]
        return "\n".join([*lines, f"not read: {self.place}: {self.problem}"] if self.problem else lines)


class ScanReport(Bounded):
    """What a scan of everything that a memory stores has read and found."""

    list_field: ClassVar[str] = "places"

    places: tuple[ScannedPlace, ...]
    """What was read, places with markers first. Places of one store in which nothing was found are one place."""
    ledger: tuple[LedgerDigest, ...] = ()
    """The digest of each partition of the ledger now."""
    digests: tuple[DigestCheck, ...] = ()
    """The digests that were kept from before, compared with the ledger: an erasure changes no record."""

    def with_places(self, places: Iterable[ScannedPlace]) -> Self:
        """The report with further places."""
        both = sorted((*self.places, *places), key=lambda each: not each.found)
        return self.model_copy(update={"places": tuple(both)})

    @property
    def found(self) -> tuple[ScannedPlace, ...]:
        """The places that have a marker."""
        return tuple(each for each in self.places if each.found)

    @property
    def ok(self) -> bool:
        return not any(each.found or each.problem for each in self.places) and all(x.matches for x in self.digests)

    def format(self) -> str:
        """What was found, how much was read, and the digests."""
        lines = [text for each in self.places if (text := each.format())]
        lines.append(f"read {len(self.places):,} places, {sum(each.bytes for each in self.places):,} bytes")
        lines += ["nothing was found"] if not self.found else []
        lines += [each.summary() for each in self.digests]
        return "\n".join([*lines, *(f"the ledger now: {each.format()}" for each in self.ledger)])
