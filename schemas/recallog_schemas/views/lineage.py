"""Lineage: what an event or entry was made from, and what was made from it."""

from typing import Literal, Self

from pydantic import Field

from recallog_schemas.views.base import OfEvent, View, one_line
from recallog_schemas.views.previews import Preview

Relation = Literal["cause", "source"]


class LineageLink(View):
    """An event or entry that another one was made from, or that was made from it."""

    id: str
    """Its id. A cause may be a trigger, which is not an event."""
    relation: Relation
    """"cause": the later one names the earlier one as its `causation_id`. "source": as one of its sources, such as
    `based_on` of a belief."""
    memory: Preview | None
    """None: it is not an event or entry that the agent may see."""

    def format(self) -> str:
        """The relation, the id and the beginning of the text in one line."""
        shown = "" if self.memory is None else f" {self.memory.line()}"
        return one_line(f"{self.relation} {self.id}{shown}")


class Lineage(OfEvent):
    """What an event or entry was made from, and what was made from it."""

    memory: Preview | None
    """The event or entry itself. None: there is none, or the agent may not see it."""
    sources: tuple[LineageLink, ...]
    """What it was made from: its cause, then its sources in its own order."""
    products: tuple[LineageLink, ...]
    """What was made from it and the agent may see: of the events that the views retain, oldest first, then live
    entries."""
    left_out: int = Field(default=0, repr=False, exclude_if=lambda count: count == 0)
    """How many more there are than the first 100 sources and the last 100 products. Left out if there are none."""

    @property
    def ok(self) -> bool:
        return self.memory is not None

    @property
    def shows_event(self) -> bool:
        return self.memory is not None

    def conceal(self) -> Self:
        """The lineage of an unknown event: the answer reveals nothing else about an event that the agent may not
        see."""
        return self

    def format(self) -> str:
        """The event, what it was made from, and what was made from it, one per line."""
        if self.memory is None:
            return "(nothing)"
        parts = (("made from", self.sources), ("made from it", self.products))
        lines = [line for title, links in parts for line in (f"{title}:", *(f"  {each.format()}" for each in links))]
        return "\n".join([self.memory.line(), *lines])
