"""Salience: the score of an event for an agent, and the projection of the clock of each space.

salience(e) = w_rel · relevance(e, query) + w_rec · recency(e, turn) + w_imp · importance(e)

Weights, decay and importances are those of the ledger-view memory document. The fields of an event that scoring needs
are computed when it is folded, and stored in the logs of `episodic`. Recency is computed at query time, so that no view
changes as time passes.
"""

from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from math import exp
from typing import ClassVar, NamedTuple

import msgspec

from recallog_projections.rows import Rows
from recallog_projections.tables import Table
from recallog_projections.views import words
from recallog_projections.views.episodic import RememberedEvent
from recallog_projections.views.words import Bag
from recallog_schemas import Record, codec

DECAY_PER_TURN = 0.1
"""λ of recency = exp(-λ · Δturn), per turn: a half-life of 6.93 turns."""

_ROUNDING = 1e-9
"""An upper bound of rounding errors that depend on the order of additions."""


class Weights(NamedTuple):
    """The weight of each term. The defaults are those of the ledger-view memory document."""

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
    """The highest turn of a space. All its agents share it."""

    turn: int


CLOCK = Table("salience.clock", Clock)


class Salience:
    """Fold of every record, including bookkeeping, into the clock of its space."""

    name: ClassVar[str] = "salience"
    version: ClassVar[int] = 1
    ends_runs: ClassVar[Sequence[str]] = ()
    independent = True
    tables = (CLOCK,)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        space = run[0].event.space
        turns = [record.event.turn for record in run if record.reached]
        clock = rows.get(CLOCK, space)
        if turns and (clock is None or max(turns) > clock.turn):
            rows.put(CLOCK, Clock(max(turns)), space)


def score(
    memory: RememberedEvent, query: str, now: int, weights: Weights, ranked: Mapping[int, float] | None = None
) -> Score:
    """The salience of one event at turn `now`, with its terms. `ranked` as in `strongest`."""
    related = relevance(_text(memory), query) if ranked is None else ranked.get(memory.offset, 0.0)
    terms = related, recency(memory.turn, now), memory.importance
    return Score(_weigh_salience(*terms, weights), *terms)


def strongest(
    memories: Sequence[RememberedEvent],
    query: str,
    now: int,
    weights: Weights,
    count: int,
    ranked: Mapping[int, float] | None = None,
) -> list[tuple[float, int]]:
    """Salience and list index of the strongest `count` of `memories`, strongest first; of equal ones the newer first.

    `memories` are in ledger order, and the salience is that of `score`. `ranked` is the relevance by offset, 0 for
    others. Without it words are compared, but only for events that a relevance of 1 could bring among the strongest.
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
    elif (query_words := (vocabulary := words.vocabulary()).learn(query)).size:
        # The score that an event needs without its words. Plain floats: thousands of tuples start a garbage collection.
        enough = min(nlargest(count, totals), default=0.0) - relevance_weight - _ROUNDING
        totals = [
            total
            if total < enough
            else relevance_weight * _jaccard(vocabulary.make_bag(_text(memory)), query_words) + rate + worth
            for memory, rate, worth, total in zip(memories, rates, worths, totals, strict=True)
        ]
    newest_first = range(len(memories) - 1, -1, -1)
    return [(totals[list_index], list_index) for list_index in nlargest(count, newest_first, key=totals.__getitem__)]


def relevance(text: str, query: str) -> float:
    """The Jaccard similarity of the words of two texts, 0 if one of them has no words."""
    vocabulary = words.vocabulary()
    query_words = vocabulary.learn(query)
    return _jaccard(vocabulary.make_bag(text), query_words)


def _jaccard(one: Bag, other: Bag) -> float:
    both = (one.bits & other.bits).bit_count()
    return both / (one.size + other.size - both) if both else 0.0


def recency(turn: int, now: int) -> float:
    """exp(-λ · Δturn) of an event of `turn` at turn `now`, from 0 to 1; 1 for later turns."""
    return exp(-DECAY_PER_TURN * max(0, now - turn))


def _text(memory: RememberedEvent) -> str:
    return memory.text if memory.text is not None else codec.decode(memory.data).text


def _weigh_salience(relevance: float, recency: float, importance: float, weights: Weights) -> float:
    return weights.relevance * relevance + weights.recency * recency + weights.importance * importance


def by_rank(offsets: Sequence[int], memories: Iterable[RememberedEvent]) -> dict[int, float]:
    """The relevance by offset of the `memories` that are search results (`offsets`, best first).

    It is (n - i) / n for index i, so from 1.0 down to 1/n: the ledger-view memory document's relevance for an index,
    since scores of an index have no common scale. Equal texts have one rank, that of the best of them, and n counts
    them once: a vector depends on the text before its own too, and must not place an older event above its repetition.
    """
    wanted = frozenset(offsets)
    texts: dict[int, str] = {}
    short: list[tuple[int, str]] = []
    for memory in memories:
        if memory.offset in wanted:
            texts[memory.offset] = _text(memory)
        elif memory.text is not None:
            short.append((memory.offset, memory.text))
    ranks: dict[str, int] = {}
    for offset in offsets:
        if offset in texts:
            ranks.setdefault(texts[offset], len(ranks))
    found = (*texts.items(), *(pair for pair in short if pair[1] in ranks))
    return {offset: (len(ranks) - ranks[text]) / len(ranks) for offset, text in found}
