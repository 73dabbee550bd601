"""The recall query: its filters and bounds, and the terms and names in its text."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import Any, Self

from recallog.reading.filters import Passes
from recallog.reading.read_session import Snapshot
from recallog.reading.time_travel import AsOf
from recallog.retrieval import dates, names
from recallog.retrieval.candidates import Candidate
from recallog.retrieval.channels import DEFAULT_CHANNELS, EVENT, WEIGHTED, Channel, Preset
from recallog_projections.index import documents, points, terms
from recallog_projections.index.engines.engine import EVERYBODY, Filter, apart_from
from recallog_projections.index.language.character_forms import find_other_forms
from recallog_schemas import Position, limits
from recallog_schemas.names import in_nfc, is_plain
from recallog_schemas.timestamps import micros

_AROUND_NAMES = ".,;:!?()[]{}<>\"'“”„«»「」，。？！：；"  # noqa: RUF001 - of any script
_ROUNDED = 10**-documents.IMPORTANCE_DECIMALS
"""The most by which the index may round an importance down."""


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """A query for memories: its text, the agent whose memories are searched, and filters."""

    space: str
    agent: str
    text: str
    top_k: int = limits.RECALL_HITS
    author: str | None = None
    kinds: Collection[str] | None = None
    session: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    min_similarity: float | None = None
    types: Collection[str] | None = None
    """The types of entries that are searched, `EVENT` for events; None for all."""
    memories: bool = True
    """Whether events and entries are searched."""
    documents: bool = False
    """Whether the documents of the agent's workspace are searched."""
    tiers: Collection[str] | None = None
    """The tiers to search. Only entries in these tiers are found, and no events. None means no restriction."""
    min_importance: float | None = None
    """The least importance of a memory: for an entry that of its row, for an event that of its kind."""
    has_fields: Passes | None = None
    """The filter of fields; None for all memories."""
    points: Collection[str] | None = None
    """The points of the memories that pass `has_fields`, set while an index is searched; None without a filter."""
    apart: Collection[str] = ()
    """The kinds of texts of models that are searched separately from events. In a common search they would displace
    events from the candidates."""
    hidden: Collection[str] = ()
    """The kinds in the index that are not searched."""
    fusion: str = WEIGHTED
    channels: frozenset[str] = DEFAULT_CHANNELS
    preset: Preset | None = None
    """The preset that ranks entries; None for the ranking of events and entries."""
    weights: Mapping[Channel, float] = field(default_factory=dict)
    """The weights of the channels of a preset."""
    offset_until: int | None = None
    """Time travel to a position: records with a higher offset are ignored."""
    at_until: datetime | None = None
    """Time travel to a time: events that happened later are ignored."""
    asked: bool = True
    """Whether the text is asked as a question. In other texts, such as a scene, "you" and "today" refer to something
    else."""
    now: datetime | None = None
    """The time of the question, from which "yesterday" is measured; None means `at_until` or the agent's time."""

    @classmethod
    def from_text(cls, space: str, agent: str, text: str, as_of: AsOf | None, **more: Any) -> Self:
        """A query from a text of any length, such as a scene; it is cut to the longest allowed query."""
        return cls.create(space, agent, documents.clean(text)[: limits.RECALL_QUERY_CHARS_MAX], as_of, **more)

    @classmethod
    def create(cls, space: str, agent: str, query: str, as_of: AsOf | None, **more: Any) -> Self:
        """A query about the present, or about the past if `as_of` is given."""
        return cls(
            space,
            agent,
            query,
            offset_until=as_of.offset if isinstance(as_of, Position) else None,
            at_until=as_of if isinstance(as_of, datetime) else None,
            **more,
        )

    @property
    def is_filtered(self) -> bool:
        """Whether only some of the visible memories may answer."""
        filters = (self.author, self.kinds, self.session, self.since, self.until, self.has_fields)
        return any(each is not None for each in (*filters, self.types, self.tiers, self.min_importance))

    @property
    def is_of_past(self) -> bool:
        """Whether the query is about the past: the index lacks the tiers and importances that entries had then."""
        return self.offset_until is not None or self.at_until is not None

    def in_space_apart(self) -> Self:
        """The query for texts that are in a separate space of the index."""
        return replace(self, space=apart_from(self.space), kinds=None, types=None, apart=(), points=None)

    def visible(self) -> Filter:
        """The engine's filter for the memories that the agent may see."""
        return Filter(
            self.space,
            (self.agent, EVERYBODY),
            offset_until=self.offset_until,
            at_until=None if self.at_until is None else micros(self.at_until),
        )

    def make_filter(self) -> Filter:
        """The engine's filter for the memories that may answer."""
        return replace(
            self.visible(),
            agents=None if self.author is None else [self.author],
            kinds=self.kinds,
            kinds_except=self.hidden,
            session=self.session,
            since=None if self.since is None else micros(self.since),
            until=None if self.until is None else micros(self.until),
            importance_min=None if self.is_of_past or self.min_importance is None else self.min_importance - _ROUNDED,
            ids=self.points,
        )

    def make_filters(self) -> list[Filter]:
        """The engine's filters for the memories that may answer, with a separate one for texts of models."""
        wanted = self.make_filter()
        if not self.apart:
            return [wanted]
        kinds = [kind for kind in self.apart if wanted.kinds is None or kind in wanted.kinds]
        texts = replace(wanted, kinds=kinds, types=self.types, tiers=None if self.is_of_past else self.tiers)
        with_events = self.tiers is None and (self.types is None or EVENT in self.types)
        return [replace(wanted, kinds_except=[*self.apart, *self.hidden]), texts] if with_events else [texts]

    def wants(self, candidate: Candidate) -> bool:
        """Whether a visible memory passes the filters, except those of tiers and fields. A memory that does not pass
        still counts as a neighbour."""
        return (
            (self.kinds is None or candidate.kind in self.kinds)
            and (self.types is None or candidate.type in self.types)
            and (self.min_importance is None or candidate.importance >= self.min_importance)
            and self.is_within(candidate.agent, candidate.session, candidate.at)
        )

    def is_within(self, author: str, session: str | None, at: int) -> bool:
        """Whether a memory passes the filters by author, session and time."""
        return (
            (self.author is None or author == self.author)
            and (self.session is None or session == self.session)
            and (self.since is None or at >= micros(self.since))
            and (self.until is None or at < micros(self.until))
        )


def now_of(snapshot: Snapshot, query: RecallQuery) -> datetime | None:
    """The time of the query: `now` or `as_of`, or else the agent's time; None if there is none.

    The snapshot has the rows of `clock.keys`.
    """
    if query.now is not None or query.at_until is not None:
        return query.now or query.at_until
    return snapshot.time_of(query.space, query.agent)


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """The terms of a query and the agents that it names."""

    authors: frozenset[str]
    """Agents of the space that the query names."""
    terms: tuple[str, ...]
    """Its distinct content terms, without those names, and the other forms of Chinese ones."""
    term_spans: tuple[tuple[int, int, str], ...]
    """(start, end, term) for each occurrence: `end` is exclusive, both count characters."""


def query_terms(query: str, agents: Iterable[str], nicknames: Iterable[tuple[str, str]] = ()) -> QueryTerms:
    """The terms of `query`; `agents` are the agents of the space, which it may name, also by one of their `nicknames`.

    A date in figures has the terms of the stored dates.
    """
    found = names.find_named(query, agents, nicknames)
    spans = [span for of_agent in found.values() for span in of_agent]
    term_spans = [
        (start, end, term)
        for start, end, term in terms.occurrences(query)
        if not any(first < end and start < last for first, last in spans)
    ]
    for expression in dates.in_figures(query):
        (day, _), *_ = expression.days(None)
        inside = expression.start, expression.end
        term_spans = [each for each in term_spans if each[1] <= inside[0] or inside[1] <= each[0]]
        term_spans += [(*inside, term) for term in points.date_terms(day)]
    searched = dict.fromkeys(_first(dict.fromkeys(term for _, _, term in term_spans)))
    if not query.isascii():
        searched |= dict.fromkeys(chain.from_iterable(map(find_other_forms, searched)))
        term_spans += [(start, end, form) for start, end, term in term_spans for form in find_other_forms(term)]
    return QueryTerms(frozenset(found), tuple(searched)[: 4 * limits.RECALL_TERMS_MAX], tuple(term_spans))


def _first(distinct: Iterable[str]) -> Iterator[str]:
    """The first terms of a query, `limits.RECALL_TERMS_MAX` words or twice as many parts of words.

    Single characters come last: in the pairs of a long query they are repeated.
    """
    room = 2 * limits.RECALL_TERMS_MAX
    for term in sorted(distinct, key=terms.is_character):  # stable
        room -= 1 if terms.is_ngram(term) else 2
        if room < 0:
            return
        yield term


def possible_names(query: str) -> list[str]:
    """Words of `query` that may be an agent's name, in the spellings that names have."""
    words = re.findall(r"[A-Za-z0-9][A-Za-z0-9._@/-]*", query)
    others = (in_nfc(word.strip(_AROUND_NAMES)) for word in query.split())
    bare = [word.rstrip("._@/-") for word in (*words, *(each for each in others if each and not is_plain(each)))]
    spellings = chain.from_iterable([(one, one.lower(), one.capitalize(), one.upper()) for one in bare])
    return list(dict.fromkeys(spellings))[: 4 * limits.RECALL_TERMS_MAX]
