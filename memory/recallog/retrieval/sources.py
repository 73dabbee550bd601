"""What memory models add to recall: texts that they keep, which are found beside events."""

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
    """A text that a model keeps. A row of a model may be one as it is."""

    @property
    def offset(self) -> int:
        """The offset of its event; if several texts have one event, a negative number that is unique."""

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
        """The kind of the event that is shown for it."""

    @property
    def type(self) -> str:
        """What the option `types` calls it."""

    @property
    def text(self) -> str: ...
    @property
    def importance(self) -> float: ...
    @property
    def version(self) -> int:
        """Another one for another text at the same offset."""


@dataclass(frozen=True, slots=True)
class PlainText:
    """A text of a model whose rows are not texts as they are."""

    space: str
    owner: str
    offset: int
    at: int
    kind: str
    type: str
    text: str
    version: int
    details: Any
    """What its source needs besides to show it."""
    session: None = None
    turn: int = 0
    importance: float = kinds.DEFAULT_IMPORTANCE


class ShownText(NamedTuple):
    """A text as a hit shows it."""

    event: Event
    text: str
    offset: int
    """The offset of its position."""
    lines: tuple[int, int] | None = None
    """Of a part of a longer text: its first and its last line, from 1."""


@dataclass(frozen=True, slots=True)
class SourceQuery:
    """A query, and what answers it."""

    query: RecallQuery
    reading: AgentReading
    snapshot: Snapshot
    """Has the rows that the sources have named."""
    index: IndexSnapshot | None
    """The generation of the index that answers; None if none does."""
    cache: TermCache

    @property
    def index_checkpoint(self) -> int:
        """The last offset that the index has processed; -1 if it does not answer."""
        return -1 if self.index is None else self.index.checkpoint


@dataclass(frozen=True, slots=True)
class SourceResult:
    """What a source has found by itself."""

    candidates: Sequence[Candidate] = ()
    texts: Sequence[Any] = ()
    """The texts of the candidates, and of others."""
    idf: Mapping[str, float] = field(default_factory=dict)
    """By term of the query."""


class CandidateSource:
    """What one memory model adds to recall. A model overrides what it needs.

    Its documents of `kind` in the index are searched in the same calls as events. What the index has found is compared
    with the texts of the views, which alone say what a text is now and who may read it.
    """

    kind: str = ""
    """The kind of its documents in the index that are searched together with events; "" if there are none."""
    hidden: Collection[str] = ()
    """The kinds of its other documents in the index, which recall does not find."""
    presets: Collection[str] = ()
    """The presets that it answers."""

    def rows(self, query: RecallQuery) -> Iterable[RowKey]:
        """The rows that it needs in the snapshot of the query."""
        return ()

    def has_texts(self, snapshot: Snapshot, space: str) -> bool:
        """Whether there may be texts of `kind` in a space. If so, they are searched apart from events, which would take
        their places among the candidates."""
        return False

    async def read(self, asked: SourceQuery, found: Sequence[Candidate]) -> Mapping[int, Any]:
        """By offset: the texts of candidates of `kind` that the index has found, as they are now, without those that
        the agent may not read."""
        return {}

    def point_of(self, text: Any) -> str:
        """The id of the point of a text that `read` has returned. A candidate of another point has a former text."""
        raise NotImplementedError

    async def points(self, asked: SourceQuery, has_fields: Passes) -> Collection[str]:
        """The ids of the points of its texts that pass a filter: those which the agent may read, as they are now."""
        return ()

    async def newer(self, asked: SourceQuery, known: Collection[int]) -> Sequence[Any]:
        """The texts that the index does not have as they are, or were then: their words are compared.

        `known` are the offsets that it has.
        """
        return ()

    async def find(self, asked: SourceQuery, idf: Mapping[str, float]) -> SourceResult:
        """What is not searched together with events. `idf` is that of terms of the query among other memories."""
        return SourceResult(idf=idf)

    async def in_tiers(self, asked: SourceQuery, texts: Sequence[Any]) -> Collection[int]:
        """The offsets of its texts that are in one of the tiers of the query."""
        return ()

    def show(self, text: Any) -> ShownText:
        """A text as a hit."""
        raise NotImplementedError

    async def mark(
        self, reading: AgentReading, query: RecallQuery, hits: Sequence[RecallHit], texts: Mapping[int, Any]
    ) -> Sequence[RecallHit]:
        """`hits`, best first, with notes about hits that show its `texts`, which are by offset."""
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
    """All kinds in the index that are not those of events."""
    return [kind for source in sources for kind in (source.kind, *source.hidden) if kind]
