"""What an agent knows at one moment and did not at another."""

from collections.abc import Sequence
from itertools import groupby
from typing import ClassVar, Literal

from recallog_schemas.event import Position
from recallog_schemas.views.base import Bounded, OfAgent, View, one_line

_SIGNS = {"entered": "+", "left": "-", "changed": "~"}


class KnownChange(View):
    """One thing that entered the memory of an agent, left it, or changed."""

    section: str
    """What it is part of: `window` (recent events), `entries`, `blocks`, `beliefs`, `prompt`, or another model's."""
    id: str
    """Its id within the section: of an event or entry, the label of a block, or the heading of a prompt's section."""
    change: Literal["entered", "left", "changed"]
    """Whether it entered the memory, left it, or changed."""
    before: str | None
    """Its text at the earlier moment; None if it was not there."""
    after: str | None
    """Its text at the later moment; None if it was not there."""
    state_before: str = ""
    """Its other properties at the earlier moment, such as its tier."""
    state_after: str = ""
    """The same at the later moment."""
    why: str | None = None
    """Why it left, if it did."""

    def format(self) -> str:
        """The change in one line, marked with "+", "-" or "~"."""
        texts = [text for text in (self.before, self.after) if text is not None]
        states = [state for state in (self.state_before, self.state_after) if state]
        shown = [*dict.fromkeys(texts)]
        told = self.why or " → ".join(dict.fromkeys(states))
        return one_line(f"{_SIGNS[self.change]} {self.id}: {' → '.join(shown)}{f' ({told})' if told else ''}")


class MemoryDifference(OfAgent, Bounded):
    """What entered the memory of an agent between two moments, what left it and why, and what changed."""

    list_field: ClassVar[str] = "changes"
    rest: ClassVar[str] = "compare moments that are closer together"

    since_checkpoint: Position | None
    """The last position that the views had processed at the earlier moment; None: nothing yet. `checkpoint` is that
    of the later moment."""
    changes: tuple[KnownChange, ...]
    """The changes, by section."""
    unchanged: int
    """How many things have not changed."""

    def format(self) -> str:
        """The changes, one per line, under the names of their sections; `(no changes)` if there are none."""
        sections: list[Sequence[str]] = [
            [f"{section}:", *(f"  {each.format()}" for each in changes)]
            for section, changes in groupby(self.changes, key=lambda change: change.section)
        ]
        return "\n".join(line for lines in sections for line in lines) or "(no changes)"
