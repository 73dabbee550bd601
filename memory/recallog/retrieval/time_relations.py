"""How a question relates to the times that it names: "since March", "before the move", "between May and July".

A relation precedes its time in European languages, and follows it in Chinese, Japanese and Korean. The time is a date,
or the time of an event that the question names by words: "since the migration".
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from recallog.retrieval import dates, time_forms
from recallog.retrieval.dates import Expression
from recallog_projections.index import terms

Relation = Literal["within", "since", "before", "after", "until", "during"]

_BEGINS, _ENDS = ("since", "after"), ("until", "before")

_ARTICLE = r"(?:the|our|el|la|nuestr[oa]|le|notre|dem|der|den|am|unser\w*)"

TIMES_MAX = 8
"""The most times of one question: each requires searches, and an event requires a separate recall."""
EVENT_CHARS_MAX = 80
"""Longer words for an event are not a name, but a part of a sentence that says something else too."""


@dataclass(frozen=True, slots=True)
class RelatedTime:
    """A time of a question, and what is asked about it."""

    words: str
    """The part of the question that names it."""
    start: int
    """Where it begins in the question, in characters."""
    relation: Relation
    expressions: Sequence[Expression] = ()
    """The expressions that name it: one, or two if a time is counted back from another ("two weeks before 3 May").
    Empty for an event."""
    event: str = ""
    """The words that name an event."""
    end: "RelatedTime | None" = None
    """The end of a range that begins here: "since March until July", "from May to July"."""

    @property
    def events(self) -> Sequence[str]:
        """The words that name events, of this time and of its end."""
        return [each.event for each in (self, self.end) if each is not None and each.event]


def find(question: str) -> list[RelatedTime]:
    """The first `TIMES_MAX` times that a question names. Words are an event only if no date follows the relation."""
    folded = dates.fold_case(question)
    if not time_forms.may_name_a_time(folded):
        return []
    expressions = dates.find(question)
    relations = list(_relations(folded, expressions))
    found, left = list[RelatedTime](), list(expressions)
    ends = [start for start, _, relation in relations if relation == "until"]
    while left:
        each = left.pop(0)
        start, end = each.start, each.end
        relation: Relation = "within"
        own = _relation_of(relations, folded, each)
        if own is not None:
            relations.remove(own)
            relation, start, end = own[2], min(start, own[0]), max(end, own[1])
        if each.form == "recent" and relation == "until":
            relation = "before"
        together, to = [each], None
        if relation == "before" and (earlier := _earlier(folded, start, found)) is not None:
            together, start = [earlier, each], earlier.start
            found = [one for one in found if earlier not in one.expressions]
        elif left and _are_range(folded, relation, each, left[0]):
            own = _relation_of(relations, folded, left[0])
            if own is None or own[2] == "until":
                other = left.pop(0)
                relation, end = "since", other.end
                if own is not None:
                    relations.remove(own)
                    end = max(end, own[1])
                to = RelatedTime(question[other.start : end], other.start, "until", [other])
        found.append(RelatedTime(question[start:end], start, relation, together, end=to))
    for start, end, relation in relations:
        until = next((each for each in ends if each >= end and relation in _BEGINS), None)
        if (span := _event(folded[:until], start, end)) is not None:
            named = question[slice(*span)].strip()
            first, last = min(start, span[0]), max(end, span[1])
            if not any(first < one.end and one.start < last for one in expressions):
                found.append(RelatedTime(question[first:last].rstrip(), first, relation, event=named))
    return _join_ends(question, sorted(found, key=lambda one: one.start)[:TIMES_MAX])


def _join_ends(question: str, found: Sequence[RelatedTime]) -> list[RelatedTime]:
    """The times, with adjacent ones that begin and end a range joined into one: "since March and before May"."""
    joined = list[RelatedTime]()
    for one in found:
        before = joined[-1] if joined else None
        if before is not None and before.end is None and one.end is None:
            first, last = (before, one) if one.relation in _ENDS else (one, before)
            between = question[before.start + len(before.words) : one.start].casefold()
            is_range = first.relation in _BEGINS and last.relation in _ENDS
            if is_range and time_forms.pattern("both ends").fullmatch(between):
                words = question[before.start : one.start + len(one.words)]
                joined[-1] = replace(first, words=words, start=before.start, end=last)
                continue
        joined.append(one)
    return joined


def without_times(question: str, times: Sequence[RelatedTime]) -> str:
    """The question with spaces in place of its times."""
    for one in times:
        question = question[: one.start] + " " * len(one.words) + question[one.start + len(one.words) :]
    return question


def beyond_times(question: str, times: Sequence[RelatedTime]) -> str:
    """The rest of a question without its times and the words of asking, as in "What did we talk about yesterday?"."""
    return time_forms.pattern("asking").sub(" ", without_times(dates.fold_case(question), times))


def _relations(folded: str, expressions: Sequence[Expression]) -> Iterator[tuple[int, int, Relation]]:
    """(start, end, relation) of each relation's words, except words that are parts of times: "vor zwei Tagen"."""
    for name in ("relation before", "relation after"):
        for match in time_forms.pattern(name).finditer(folded):
            start, end = match.span()
            inside = [one for one in expressions if one.start <= start and end <= one.end]
            if all(one.start == start and one.form in ("month", "season", "year") for one in inside):
                yield start, end, next(each for each in get_args(Relation) if match.groupdict().get(each))


def _relation_of(
    relations: Sequence[tuple[int, int, Relation]], folded: str, expression: Expression
) -> tuple[int, int, Relation] | None:
    """The relation next to an expression, or at its beginning."""
    for start, end, relation in relations:
        is_after = _follows(folded[start])
        between = folded[expression.end : start] if is_after else folded[end : expression.start]
        near = expression.end <= start if is_after else start <= expression.start <= expression.end >= end
        if near and re.fullmatch(rf"\s*(?:{_ARTICLE}\s+)?", between):
            return start, end, relation
    return None


def _follows(letter: str) -> bool:
    """Whether a relation that begins with this letter comes after the time that it relates to."""
    return letter >= "\u3000"


def _earlier(folded: str, start: int, found: Sequence[RelatedTime]) -> Expression | None:
    """The time that is counted back from a date: "two weeks" before it, "last weekend" before it."""
    for one in found:
        if one.expressions and one.relation == "within" and not folded[one.expressions[-1].end : start].strip():
            return one.expressions[-1]
    match = time_forms.pattern("earlier").search(folded[:start])
    if match is None:
        return None
    words = {"number": match["number"] or "one", "unit": match["unit"]}
    return Expression("ago", match.start(), match.end(), words)


def _are_range(folded: str, relation: Relation, first: Expression, last: Expression) -> bool:
    between = folded[first.end : last.start]
    if time_forms.pattern("to").fullmatch(between) is None:
        return False
    if relation == "since":
        return time_forms.pattern("and").match(between) is None
    is_from = time_forms.pattern("from").search(folded[: first.start]) is not None
    return relation == "within" and (is_from or _follows(between.strip()[:1] or " "))


def _event(folded: str, start: int, end: int) -> tuple[int, int] | None:
    """The start and the end of the words of the event that a relation is about; None if there are none."""
    if _follows(folded[start]):
        begin = max((each.end() for each in time_forms.pattern("clause").finditer(folded[:start])), default=0)
        begin += 2 if folded[begin:].startswith("自从") else 0
        span = begin, start + (folded[start] in "るた")
    else:
        stop = time_forms.pattern("clause").search(folded, end)
        match = time_forms.pattern("event").match(folded[: stop.start() if stop else len(folded)], end)
        if match is None:
            return None
        span = match.span("event")
    named = folded[slice(*span)].strip()
    return span if len(named) <= EVENT_CHARS_MAX and any(terms.occurrences(named)) else None
