"""Results of recall: whole memories with their scores."""

from collections.abc import Iterable
from datetime import datetime, time, timedelta
from typing import ClassVar, Protocol

from recallog_schemas import kinds
from recallog_schemas.event import Position
from recallog_schemas.shortening import MARK
from recallog_schemas.views.base import Bounded, EventLine, OfAgent, SourcedEvent, Standing, View, one_line
from recallog_schemas.views.grouping import Groupable, group_hits


class RecallHit(SourcedEvent, Standing):
    """A memory that matches a query, with its score and the parts of the score."""

    score: float
    """The sum of `parts`; comparable within one result only."""
    parts: dict[str, float]
    """The contribution of each channel, and of each term of conversation structure, to the score."""
    similarity: float | None
    """Cosine similarity of the query and the memory in its context, or the entry alone; None if it is not known."""
    source: str
    """"index", or "views" if only the words were compared."""
    passage: tuple[int, int] | None = None
    """The start and the end, in characters of `text`, of the passage that matches best; None if the text is one
    passage."""
    lines: tuple[int, int] | None = None
    """For a chunk of a document: its first and its last line, from 1. The text of the chunk begins with a line that
    says where it is from; `event.payload` has the key of the document. None for memories."""
    also: tuple[str, ...] = ()
    """The ids of further hits that it stands for: an entry made from it, or what it was made from."""
    near: str | None = None
    """The id of the better hit whose stretch of conversation it is a part of: at most 3 turns before or after it. None:
    there is no such hit."""
    weak: bool
    """Whether it probably has nothing to do with the query, by a measure that holds across results, unlike `score`."""

    @property
    def key(self) -> str:
        """The key by which `near` of another hit names it."""
        return self.event.id

    @property
    def is_entry(self) -> bool:
        """Whether it is an entry, and not an event."""
        return kinds.kind_of(self.event.kind).role == kinds.ENTRY

    def line_prefix(self, reader: str | None = None, *, dated: bool = False, label: str | None = None) -> str:
        """The part of `line` before the text; it ends with `note` if there is one."""
        source = self.source_label if label is None else label
        return super().line_prefix(reader, dated=dated, label=f"{source}{self.labels(self.event.id)}")

    @property
    def quote(self) -> str:
        """The text of its best passage, with "…" where more of the text precedes or follows; else the whole text."""
        if self.passage is None:
            return self.text
        start, end = self.passage
        before, after = MARK if start else "", MARK if end < len(self.text) else ""
        return f"{before}{self.text[start:end].strip()}{after}"


class NamedTime(View):
    """A time that a question names, such as "last week", and how it was understood."""

    words: str
    """The part of the question that names it."""
    ranges: tuple[tuple[datetime | None, datetime | None], ...]
    """Each from the first time to before the second, in UTC; None: without that limit. Several if the words have
    several readings. Empty if they name a conversation, or an event that no memory tells of."""
    sessions: tuple[str, ...]
    """The sessions that it names, such as "our last conversation"; "" stands for events without a session."""
    event: str | None
    """The id of the memory whose time words such as "since the move" refer to."""
    hits: int
    """How many hits of the answer are of this time, without weak ones."""
    has_memories: bool
    """Whether the agent may see any memory of this time that passes the filters of the query."""

    @property
    def note(self) -> str:
        """How it was understood, and whether the hits are of this time, in one line."""
        spans = [_span(since, until) for since, until in self.ranges] + [_session(each) for each in self.sessions[:1]]
        if not spans:
            return one_line(f'"{self.words}": no memory says when that was')
        by = "" if self.event is None else f", by {self.event}"
        what = "" if self.hits else f": no {'close hit' if self.has_memories else 'memory'} is of this time"
        return one_line(f'"{self.words}" is {" or ".join(spans)}{by}{what}')


def _span(since: datetime | None, until: datetime | None) -> str:
    """A range in words: whole days as dates, whose last one is included."""
    whole = not any(each.time() != time() for each in (since, until) if each is not None)
    first = None if since is None else f"{since:%Y-%m-%d}" if whole else f"{since:%Y-%m-%d %H:%M}"
    end = None if until is None else until - timedelta(days=1) if whole and since is not None else until
    last = None if end is None else f"{end:%Y-%m-%d}" if whole else f"{end:%Y-%m-%d %H:%M}"
    if first is None or last is None:
        return f"before {last}" if first is None else f"from {first} on"
    return first if first == last else f"{first} to {last}"


def _session(session: str) -> str:
    return f"the session {session}" if session else "what has no session"


class Recalled(OfAgent):
    """The fields that all results of recall have in common: the query, and how it was executed."""

    query: str
    """The question."""
    channels: tuple[str, ...]
    """The channels that were used."""
    fusion: str
    """How the channels were combined: "weighted" or "rrf"."""
    preset: str | None = None
    """The preset that ranked entries, "four_channel" or "hybrid"; None for the ranking of events and entries."""
    now: datetime | None = None
    """The time of the query, from which ages are measured: its `now` or `as_of`, else that of the newest event of the
    space."""
    times: tuple[NamedTime, ...] = ()
    """The times that the query names."""
    considered: int
    """The number of memories that were scored."""
    index: str | None
    """The index's generation; None if the index was not used."""
    index_checkpoint: Position | None
    """The last position that the index had processed."""
    index_behind: int
    """The number of positions that the views had processed and the index had not. For these, only words were
    compared."""
    degraded: str | None
    """Why the result is degraded; None if it is not."""

    @property
    def notes(self) -> list[str]:
        """Notes to show before the hits: the named times that no hit is from."""
        return [each.note for each in self.times if not each.hits]

    def format_hits(self, hits: "Iterable[GroupedLine]") -> str:
        """`notes` in brackets, then the lines of hits without weak ones: those of a group after its first, indented."""
        groups = group_hits(hit for hit in hits if not hit.weak)
        lines = iter(self.lines(hit for group in groups for hit in group))
        indents = ("  " if number else "" for group in groups for number in range(len(group)))
        notes = [f"({note})" for note in self.notes]
        return "\n".join([*notes, *(f"{indent}{line}" for indent, line in zip(indents, lines, strict=True))])


class GroupedLine(Groupable, EventLine, Protocol):
    """A hit that can be shown as one line: `RecallHit`, `SearchHit`."""

    @property
    def weak(self) -> bool: ...


class RecallView(Recalled, Bounded):
    """The memories of an agent that match a query, best first.

    If not all fit, the weakest are left out: `search` has previews, and `entries` whole memories.
    """

    list_field: ClassVar[str] = "hits"
    rest: ClassVar[str] = "`search` has previews of up to 100, and `entries` whole memories"

    top_k: int
    """The requested number of memories."""
    hits: tuple[RecallHit, ...]
    """The memories, best first."""

    @property
    def nothing_close(self) -> bool:
        """Whether all memories are weak, or there are none."""
        return all(hit.weak for hit in self.hits)

    def format(self) -> str:
        """The memories in the format of a prompt, one per line, without weak ones; see `format_hits`."""
        return self.format_hits(self.hits)
