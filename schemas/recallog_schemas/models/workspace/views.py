"""Documents of a workspace: what a search found in them, and what an import or an export of a folder did."""

from datetime import datetime
from typing import ClassVar

from recallog_schemas import limits
from recallog_schemas.event import Position
from recallog_schemas.shortening import cut
from recallog_schemas.views.base import Bounded, View, one_line
from recallog_schemas.views.recall import Recalled


class WorkspaceHit(View):
    """A part of a document that matches a query."""

    key: str
    """The key of the document, its path."""
    first: int
    """Its first line in the document; the first one of a document is 1."""
    last: int
    """Its last line."""
    title: str
    """Where it is from: the key, and the headings above it."""
    text: str
    """Its lines."""
    quote: str
    """The part of it that matches best."""
    score: float
    """Comparable within one result only."""
    similarity: float | None
    """Cosine similarity with the query; None if it is not known."""
    source: str
    """"index", or "views" if only the words were compared."""
    weak: bool
    """Whether it probably has nothing to do with the query."""
    at: datetime
    """When the document last changed, in UTC."""
    position: Position
    """The position of the event that last changed the document."""

    def format(self) -> str:
        """Key, lines, score and the beginning of the best part in one line: `ops.md:12-40 (0.83) # Backup …`."""
        quote = cut(one_line(self.quote), limits.PREVIEW_CHARS)
        return f"{one_line(self.key)}:{self.first}-{self.last} ({self.score:.2f}) {quote}"


class WorkspaceHits(Recalled, Bounded):
    """The parts of the documents of an agent that match a query, best first."""

    list_field: ClassVar[str] = "hits"

    mode: str
    """How documents were compared: "hybrid", "fts" or "semantic"."""
    limit: int
    """The requested number of hits."""
    hits: tuple[WorkspaceHit, ...]
    """The parts, best first."""

    @property
    def nothing_close(self) -> bool:
        """Whether all hits are weak, or there are none."""
        return all(hit.weak for hit in self.hits)

    def format(self) -> str:
        """One line for each part, without weak ones; "" if none is left."""
        return "\n".join(hit.format() for hit in self.hits if not hit.weak)


class FileLeftOut(View):
    """A file or a document that an import or an export left out."""

    path: str
    """Its path below the folder."""
    rule: str
    """Why, as a word: hidden, link, no_file, name, not_utf8, too_large, not_text, behind, conflict or failed."""
    reason: str
    """Why, in words."""

    def format(self) -> str:
        """Path and reason in one line."""
        return one_line(f"{self.path}: {self.reason}")


class _FolderExchange(View):
    """What an import or an export did, document by document."""

    space: str
    """The name of the space."""
    agent: str
    """The agent whose workspace it is."""
    folder: str
    """The folder."""
    new: tuple[str, ...]
    """The keys of the documents, or files, that did not exist before."""
    changed: tuple[str, ...]
    """The keys of the documents, or files, that have another text now."""
    unchanged: int
    """How many were already equal."""
    left_out: tuple[FileLeftOut, ...]
    """What was left out."""

    @property
    def ok(self) -> bool:
        """Whether nothing except hidden files was left out."""
        return all(each.rule == "hidden" for each in self.left_out)

    def format(self) -> str:
        """The numbers in one line, and what was left out in one line each."""
        numbers = f"{len(self.new):,} new, {len(self.changed):,} changed, {self.unchanged:,} unchanged"
        return "\n".join((numbers, *(f"left out {each.format()}" for each in self.left_out)))


class WorkspaceImport(_FolderExchange):
    """What an import of a folder made of its files."""

    position: Position | None
    """The position of the last event. None: nothing was written."""


class WorkspaceExport(_FolderExchange):
    """What an export made of the documents of a workspace."""

    known: bool
    """Whether any event of the space is by the agent or addressed to it. If not, a name may be misspelt."""
