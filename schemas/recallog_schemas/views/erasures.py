"""The answer to an erasure: what it erases, and what it cannot reach."""

from recallog_schemas.event import Position
from recallog_schemas.views.base import View, count_noun, one_line

_NOT_SEALED = (
    "not sealed, and still in the ledger",
    "write a sealed copy of the ledger (recallog copy TARGET --seal all), erase there, and delete this one",
)
_NO_OWN_KEY = (
    "without keys of their own, and still in the ledger",
    "erase their subject; or write a copy in which each event has a key (recallog copy TARGET --seal each), erase "
    "there, and delete this one. RECALLOG_SEAL=each gives later events such keys",
)


class KindCount(View):
    """The number of events of a kind."""

    kind: str
    """The kind."""
    events: int
    """The number of events."""

    def format(self) -> str:
        """Number and kind."""
        return f"{self.events:,} {self.kind}"


class ErasureReport(View):
    """What an erasure has erased or, for a dry run, would erase."""

    space: str
    """The name of the space."""
    unit: str
    """What is erased as a whole: subject, entry or space."""
    names: tuple[str, ...]
    """The subject, or the ids of the entries; none for a space."""
    dry_run: bool
    """Whether it was a dry run: nothing is erased then."""
    erased: int
    """How many events are erased, including those made from others. 0 if nothing was left to erase."""
    kinds: tuple[KindCount, ...]
    """The erased events of the unit itself, by kind."""
    made_from: tuple[KindCount, ...]
    """The erased events that were made from them, by kind: facts, summaries, beliefs, compactions, lines of logs."""
    unsealed: tuple[KindCount, ...]
    """The events of the unit that are not sealed with a key of it, by kind. They stay readable in the ledger."""
    erased_before: int
    """How many events of the unit itself had been erased before. 0 if there is none: its name may be misspelt."""
    position: Position | None
    """The position of the event that records the erasure; None if nothing was written."""

    @property
    def ok(self) -> bool:
        """Whether nothing of the unit is left in the ledger."""
        return not self.unsealed

    @property
    def empty(self) -> bool:
        """Whether nothing was found to erase: the name of the space may be misspelt."""
        return not self.erased and not self.unsealed

    def format(self) -> str:
        """What is erased, what was made from it, and what stays, with advice."""
        place = one_line(self.space)
        what = f"{self.unit} {one_line(', '.join(self.names))} of {place}" if self.names else f"{self.unit} {place}"
        done = "would erase" if self.dry_run else "erased"
        lines = [f"{what}: {done} {count_noun(self.erased, 'event')}"]
        if self.empty and self.erased_before:
            lines[0] += f"; {count_noun(self.erased_before, 'event')} had been erased before"
        elif self.empty and self.names:
            lines[0] += f": no event of {place} names this {self.unit}; check its name with recallog search"
        lines += [f"  {each.format()}" for each in self.kinds]
        lines += [f"  {each.format()}, made from them" for each in self.made_from]
        if self.unsealed:
            kinds = ", ".join(each.format() for each in self.unsealed)
            why, remedy = _NO_OWN_KEY if self.unit == "entry" else _NOT_SEALED
            lines.append(f"{why}: {kinds}. To erase them too, {remedy}")
        return "\n".join(lines)
