"""Candidate sources: how memory models add to recall the texts that they keep, which are found beside events."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from recallog.index.indexer import IndexSnapshot
from recallog.reading.filters import Passes
from recallog.reading.read_session import Snapshot
from recallog.reading.readings import AgentReading
from recallog.retrieval.candidates import Candidate
from recallog.retrieval.query import RecallQuery
from recallog.retrieval.term_cache import TermCache
from recallog_projections.tables import RowKey
from recallog_schemas import Event, kinds, models
from recallog_schemas.views import RecallHit, RecallView


class SourceText(Protocol):
    """A text that a model keeps. A row of a model can implement this protocol itself."""

    @property
    def offset(self) -> int:
        """The offset of its event. If several texts share one event, a unique negative number."""

    @property
    def owner(self) -> str: ...
    @property
    def session(self) -> str | None: ...
    @property
    def turn(self) -> int: ...
    @property
    def at(self) -> int:
        """Microseconds since 1970."""

    @property
    def kind(self) -> str:
        """The kind of the event that a hit shows for it."""

    @property
    def type(self) -> str:
        """The name of its type in the option `types`."""

    @property
    def text(self) -> str: ...
    @property
    def importance(self) -> float: ...
    @property
    def version(self) -> int:
        """A number that changes when the text at this offset changes."""


@dataclass(frozen=True, slots=True)
class PlainText:
    """A text of a model whose rows do not implement `SourceText`."""

    space: str
    owner: str
    offset: int
    at: int
    kind: str
    type: str
    text: str
    version: int
    details: Any
    """Anything else that its source needs to show it."""
    session: None = None
    turn: int = 0
    importance: float = kinds.DEFAULT_IMPORTANCE


class ShownText(NamedTuple):
    """A text as a hit shows it."""

    event: Event
    text: str
    offset: int
    """The offset of the hit's position."""
    lines: tuple[int, int] | None = None
    """For a part of a longer text, its first and its last line, from 1."""


@dataclass(frozen=True, slots=True)
class SourceQuery:
    """A query, and the parts that answer it."""

    query: RecallQuery
    reading: AgentReading
    snapshot: Snapshot
    """It has the rows that the sources requested."""
    index: IndexSnapshot | None
    """The generation of the index that answers; None if there is none."""
    cache: TermCache

    @property
    def index_checkpoint(self) -> int:
        """The last offset that the index has processed; -1 if it does not answer."""
        return -1 if self.index is None else self.index.checkpoint


@dataclass(frozen=True, slots=True)
class SourceResult:
    """The candidates that a source has found itself."""

    candidates: Sequence[Candidate] = ()
    texts: Sequence[Any] = ()
    """The texts of the candidates, and possibly other texts."""
    idf: Mapping[str, float] = field(default_factory=dict)
    """By term of the query."""


class CandidateSource:
    """The contribution of one memory model to recall. A model overrides the methods that it needs.

    Its documents of `kind` in the index are searched together with events. Hits of the index are then compared with the
    texts in the views, which alone determine what a text is now and who may read it.
    """

    kind: str = ""
    """The kind of its documents in the index that are searched together with events; "" without such documents."""
    hidden: Collection[str] = ()
    """The kinds of its other documents in the index, which recall does not find."""
    presets: Collection[str] = ()
    """The presets that this source answers."""

    def rows(self, query: RecallQuery) -> Iterable[RowKey]:
        """The rows that it needs in the snapshot of the query."""
        return ()

    def has_texts(self, snapshot: Snapshot, space: str) -> bool:
        """Whether a space may have texts of `kind`. If so, they are searched separately from events, which they would
        displace from the candidates."""
        return False

    async def read(self, asked: SourceQuery, found: Sequence[Candidate]) -> Mapping[int, Any]:
        """By offset: the current texts of candidates of `kind` that the index has found. Texts that the agent may not
        read are left out."""
        return {}

    def point_of(self, text: Any) -> str:
        """The id of the point of a text that `read` has returned. If a candidate has another point, its text is
        outdated."""
        raise NotImplementedError

    async def points(self, asked: SourceQuery, has_fields: Passes) -> Collection[str]:
        """The ids of the points of its current texts that pass a filter and that the agent may read."""
        return ()

    async def newer(self, asked: SourceQuery, known: Collection[int]) -> Sequence[Any]:
        """The texts, as of the time of the query, that the index does not have: their words are compared.

        `known` are the offsets of the texts that it has.
        """
        return ()

    async def find(self, asked: SourceQuery, idf: Mapping[str, float]) -> SourceResult:
        """The candidates that are not searched together with events. `idf` has the idf of terms of the query among
        other memories."""
        return SourceResult(idf=idf)

    async def in_tiers(self, asked: SourceQuery, texts: Sequence[Any]) -> Collection[int]:
        """The offsets of its texts that are in one of the tiers of the query."""
        return ()

    def show(self, text: Any) -> ShownText:
        """The text as a hit shows it."""
        raise NotImplementedError

    async def mark(
        self, reading: AgentReading, query: RecallQuery, hits: Sequence[RecallHit], texts: Mapping[int, Any]
    ) -> Sequence[RecallHit]:
        """`hits`, best first, with notes on the hits that show its `texts`. `texts` are by offset."""
        return hits

    async def recall(self, reading: AgentReading, query: RecallQuery) -> RecallView:
        """The answer to a query with one of `presets`."""
        raise NotImplementedError


class Kept(NamedTuple):
    """A text, and the source that shows it."""

    source: CandidateSource
    text: SourceText


def built_in() -> Sequence[CandidateSource]:
    """The sources of the built-in models."""
    return [module.SOURCE for module in models.import_parts("recallog", "candidates")]


def hidden_kinds(sources: Iterable[CandidateSource]) -> Sequence[str]:
    """The kinds in the index that recall does not find."""
    return [kind for source in sources for kind in source.hidden]


def kinds_of_texts(sources: Iterable[CandidateSource]) -> Sequence[str]:
    """All kinds in the index except those of events."""
    return [kind for source in sources for kind in (source.kind, *source.hidden) if kind]
