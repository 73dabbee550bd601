"""Results of recall: whole memories with their scores."""

from datetime import datetime
from typing import ClassVar

from recallog_schemas import kinds
from recallog_schemas.event import Position
from recallog_schemas.shortening import MARK
from recallog_schemas.views.base import Bounded, OfAgent, Remembered, Standing


class RecallHit(Remembered, Standing):
    """A memory that matches a query, with its score and the parts of it."""

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
    """Of a chunk of a document: its first and its last line, from 1. Its text begins with a line that says where it is
    from; `event.payload` has the key of the document. None for memories."""
    also: tuple[str, ...] = ()
    """The ids of further hits that it stands for: an entry made from it, or what it was made from."""
    weak: bool
    """Whether it probably has nothing to do with the query, by a measure that holds across results, unlike `score`."""

    @property
    def is_entry(self) -> bool:
        """Whether it is an entry, and not an event."""
        return kinds.kind_of(self.event.kind).role == kinds.ENTRY

    def line_prefix(self, reader: str | None = None, *, dated: bool = False) -> str:
        """The part of `line` before the text; it ends with `note` if there is one."""
        return f"{super().line_prefix(reader, dated=dated)[:-1]}{self.labels(self.event.id)} "

    @property
    def quote(self) -> str:
        """The text of its best passage, with "…" where more of the text precedes or follows; else the whole text."""
        if self.passage is None:
            return self.text
        start, end = self.passage
        before, after = MARK if start else "", MARK if end < len(self.text) else ""
        return f"{before}{self.text[start:end].strip()}{after}"


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
        """The memories in the format of a prompt, best first, one per line, without weak ones; "" if none is left."""
        return "\n".join(self.lines(hit for hit in self.hits if not hit.weak))
