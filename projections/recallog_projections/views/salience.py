"""What matters to an agent now: of all that it may see, what is relevant, recent and important.

salience(e) = w_rel · relevance(e, query) + w_rec · recency(e, turn) + w_imp · importance(e)

Weights, the rate of decay and the importances are those of the ledger-view memory document. What scoring needs of an
event is worked out when the event is folded and lies ready in the logs of `episodic`; recency is computed when somebody
asks, so that no view ever changes by time passing.
"""

from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from math import exp
from typing import ClassVar, NamedTuple

import msgspec

from recallog_projections.rows import Rows
from recallog_projections.tables import RowKey, Table
from recallog_projections.views import words
from recallog_projections.views.episodic import RememberedEvent
from recallog_projections.views.words import Bag
from recallog_schemas import Record, codec

DECAY_PER_TURN = 0.1
"""λ of recency = exp(-λ · Δturn): half of it is gone after 6.93 turns."""

_ROUNDING = 1e-9
"""More than adding up in another order can make of a difference."""


class Weights(NamedTuple):
    """How much each term counts. The defaults are the document's."""

    relevance: float = 0.30
    recency: float = 0.40
    importance: float = 0.30


class Score(NamedTuple):
    """The terms of one event's salience, each from 0 to 1 before its weight."""

    total: float
    relevance: float
    recency: float
    importance: float


class Clock(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The highest turn that a space has seen: all its agents share one clock."""

    turn: int


CLOCK = Table("salience.clock", Clock)


class Salience:
    """Fold of every record, bookkeeping too, into the clock of its space."""

    name: ClassVar[str] = "salience"
    version: ClassVar[int] = 1
    tables = (CLOCK,)

    def needs(self, record: Record) -> Iterable[RowKey]:
        return (RowKey(CLOCK.name, record.event.space),)

    def apply(self, rows: Rows, record: Record) -> None:
        event = record.event
        clock = rows.get(CLOCK, event.space)
        if record.reached and (clock is None or event.turn > clock.turn):
            rows.put(CLOCK, Clock(event.turn), event.space)


def score(
    memory: RememberedEvent, query: str, now: int, weights: Weights, ranked: Mapping[int, float] | None = None
) -> Score:
    """One event's salience at turn `now` with its terms. `ranked` as for `strongest`."""
    related = relevance(_text(memory), query) if ranked is None else ranked.get(memory.offset, 0.0)
    terms = related, recency(memory.turn, now), memory.importance
    return Score(_weighted(*terms, weights), *terms)


def strongest(
    memories: Sequence[RememberedEvent],
    query: str,
    now: int,
    weights: Weights,
    count: int,
    ranked: Mapping[int, float] | None = None,
) -> list[tuple[float, int]]:
    """Salience and places of the strongest `count` of `memories`, strongest first; of equal ones the newer first.

    `memories` are in ledger order. The numbers are those of `score`. Relevance is what `ranked` says by offset, 0 where
    it says nothing; None: words are compared, only where a relevance of 1 could bring an event among the strongest.
    """
    relevance_weight, recency_weight, importance_weight = weights
    rates = [recency_weight * recency(memory.turn, now) for memory in memories]
    worths = [importance_weight * memory.importance for memory in memories]
    totals = [rate + worth for rate, worth in zip(rates, worths, strict=True)]
    if ranked is not None:
        totals = [
            relevance_weight * ranked.get(memory.offset, 0.0) + rate + worth
            for memory, rate, worth in zip(memories, rates, worths, strict=True)
        ]
    elif (asked := (vocabulary := words.vocabulary()).learn(query)).size:
        # So much an event has to have without its words; plain floats, since thousands of tuples wake the collector.
        enough = min(nlargest(count, totals), default=0.0) - relevance_weight - _ROUNDING
        totals = [
            total
            if total < enough
            else relevance_weight * _jaccard(vocabulary.compared(_text(memory)), asked) + rate + worth
            for memory, rate, worth, total in zip(memories, rates, worths, totals, strict=True)
        ]
    newest_first = range(len(memories) - 1, -1, -1)
    return [(totals[list_index], list_index) for list_index in nlargest(count, newest_first, key=totals.__getitem__)]


def relevance(text: str, query: str) -> float:
    """Jaccard similarity of the words of two texts, 0 where one of them has none."""
    vocabulary = words.vocabulary()
    asked = vocabulary.learn(query)
    return _jaccard(vocabulary.compared(text), asked)


def _jaccard(said: Bag, asked: Bag) -> float:
    both = (said.bits & asked.bits).bit_count()
    return both / (said.size + asked.size - both) if both else 0.0


def recency(turn: int, now: int) -> float:
    """How fresh an event of `turn` is at turn `now`, from 0 to 1; 1 for what lies ahead."""
    return exp(-DECAY_PER_TURN * max(0, now - turn))


def _text(memory: RememberedEvent) -> str:
    return memory.text if memory.text is not None else codec.decode(memory.data).text


def _weighted(relevance: float, recency: float, importance: float, weights: Weights) -> float:
    return weights.relevance * relevance + weights.recency * recency + weights.importance * importance


def by_rank(offsets: Sequence[int]) -> dict[int, float]:
    """Relevance of `n` events that were found, best first: (n - i) / n for the i-th from 0, so 1.0 down to 1/n.

    The ledger-view memory document's term for an index, whose own scores have no scale that others share.
    """
    return {offset: (len(offsets) - list_index) / len(offsets) for list_index, offset in enumerate(offsets)}
