"""Progressive disclosure: previews, neighbours of an event, whole events."""

from datetime import datetime
from typing import ClassVar

from recallog_schemas import kinds
from recallog_schemas.event import Position
from recallog_schemas.views.base import (
    Bounded,
    OfAgent,
    Sourced,
    SourcedEvent,
    Standing,
    View,
    line_prefix,
    one_line,
    quote,
)
from recallog_schemas.views.recall import Recalled


class Preview(Sourced):
    """The beginning of one event that an agent may see. `Memory.entries` returns the whole event for its `id`."""

    id: str
    """The id of the event."""
    position: Position
    """Its position in the ledger."""
    at: datetime
    """When it happened, in UTC."""
    agent: str
    """The agent that acted."""
    kind: str
    """The kind of the event."""
    session: str | None
    """Its session; None if it has none."""
    turn: int
    """The turn in which it happened."""
    preview: str
    """The beginning of its text, with "..." at the end if the text is longer."""
    tokens: int
    """Estimated number of model tokens of the whole text: its characters divided by four, rounded up."""

    def format(self) -> str:
        """The preview as one line that names its author; see `line`."""
        return self.line()

    def line(self, reader: str | None = None, *, dated: bool = False) -> str:
        """The preview as one line of a prompt of `reader`, see `Remembered.line`: `[turn 003][kind] text`."""
        return f"{line_prefix(self, reader, dated=dated, label=self.source_label)}{self.quote_data(self.preview)}"


class SearchHit(Preview, Standing):
    """The preview of a memory that matches a query: the beginning of the passage that matches best."""

    score: float
    """Rounded to four decimals; comparable within one result only."""
    also: tuple[str, ...] = ()
    """The ids of further hits that it stands for: an entry made from it, or what it was made from."""
    near: str | None = None
    """The id of the better hit whose stretch of conversation it is a part of; see `RecallHit.near`."""
    weak: bool
    """Whether it probably has nothing to do with the query, by a measure that holds across results, unlike `score`."""

    @property
    def key(self) -> str:
        """The key by which `near` of another hit names it."""
        return self.id

    def line(self, reader: str | None = None, *, dated: bool = False) -> str:
        """The preview as one line of a prompt, with its note; see `Preview.line`."""
        labels = f"{self.source_label}{self.labels(self.id)}"
        return f"{line_prefix(self, reader, dated=dated, label=labels)}{self.quote_data(self.preview)}"

    @property
    def is_entry(self) -> bool:
        """Whether it is an entry, and not an event."""
        return kinds.kind_of(self.kind).role == kinds.ENTRY


class ExternalHit(View):
    """The beginning of a result of an external source."""

    source: str
    """The name of the source."""
    id: str | None
    """Its id there; None if the source does not have ids."""
    preview: str
    """The beginning of its text, with "..." at the end if the text is longer."""
    tokens: int
    """Estimated number of model tokens of the whole text."""
    score: float | None
    """As the source gives it; None without one."""

    def format(self) -> str:
        """The source and the preview, as data, in one line."""
        return f"[{one_line(self.source)}] {quote(self.preview)}"


class SearchPage(Recalled):
    """Previews of the memories of an agent that match a query, best first."""

    limit: int
    """The requested number of hits, limited to 1 to 100."""
    hits: tuple[SearchHit, ...]
    """The previews, best first."""
    external: tuple[ExternalHit, ...] = ()
    """The results of external sources, if they were requested, in the order of each source."""
    external_reason: str | None = None
    """Why results of external sources are missing; None if they are not, or were not requested."""

    @property
    def nothing_close(self) -> bool:
        """Whether all hits are weak, or there are none."""
        return all(hit.weak for hit in self.hits)

    def format(self) -> str:
        """The previews, one per line, without weak ones; see `format_hits`. Those of external sources follow."""
        reason = [f"({self.external_reason})"] if self.external_reason else []
        shown = (self.format_hits(self.hits), *(hit.format() for hit in self.external), *reason)
        return "\n".join(each for each in shown if each)


class AroundView(OfAgent):
    """Previews of one event and of the events just before and after it that the agent may see, oldest first."""

    before: tuple[Preview, ...]
    """The events before it, oldest first."""
    anchor: Preview
    """The requested event."""
    after: tuple[Preview, ...]
    """The events after it, oldest first."""

    @property
    def events(self) -> tuple[Preview, ...]:
        """All previews, in order."""
        return (*self.before, self.anchor, *self.after)

    def format(self) -> str:
        """The previews, one per line."""
        return "\n".join(self.lines(self.events))


class EntriesView(OfAgent, Bounded):
    """The events with the requested ids that an agent may see, in the order of the request.

    If not all fit, the last ones are left out: request again the ids that are in neither `entries` nor `missing`.
    """

    list_field: ClassVar[str] = "entries"
    rest: ClassVar[str] = "ask again for the last of the ids"

    entries: tuple[SourcedEvent, ...]
    """The events, in the order of the requested ids."""
    missing: tuple[str, ...]
    """The requested ids that are unknown, or of events that the agent may not see."""

    @property
    def ok(self) -> bool:
        """Whether any of the ids was found."""
        return bool(self.entries)

    def format(self) -> str:
        """The events in the format of a prompt, one per line; "" if there are none."""
        return "\n".join(self.lines(self.entries))
