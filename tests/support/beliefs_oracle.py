"""The graph of beliefs as it follows from the events of a space, recomputed naively for a reader."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from recallog import Event
from recallog.views import BeliefGraph

KEPT, PER_SUBJECT = 256, 16
SHARED_BY_DEFAULT = True

Edge = tuple[str, str, str, str]


class ExpectedGraph(NamedTuple):
    """What the answer has, in plain values."""

    subjects: list[tuple[str, int, int]]
    """Name, number of beliefs, and how many of them are not linked."""
    beliefs: list[tuple[str, str | None, dict[str, str]]]
    """Id, the one that supersedes it, and the reason by lost ground."""
    edges: list[Edge]
    """Relation, subject, source, target."""


def observed(graph: BeliefGraph) -> ExpectedGraph:
    """The answer in the form of the oracle."""
    return ExpectedGraph(
        [(each.name, each.beliefs, each.unlinked) for each in graph.subjects],
        [
            (each.event.id, each.superseded_by, {lost.id: lost.reason for lost in each.unfounded})
            for each in graph.beliefs
        ],
        [(each.relation, each.subject, each.source, each.target) for each in graph.edges],
    )


def expect_graph(
    history: Sequence[tuple[int, Event]], reader: str, about: str | None = None, until: int | None = None
) -> ExpectedGraph:
    """`history` are the events of one space with their offsets. Entries are those whose types make no statements."""
    past = [(offset, event) for offset, event in history if until is None or offset <= until]
    seen = _seen(past, reader)
    subjects_of = {event.id: {_same(name) for name in _about(event)} for _, event in seen}
    superseded: dict[str, tuple[int, str]] = {}
    for later_at, later in seen:
        for earlier_at, earlier in seen:
            if (
                later.payload.get("supersedes") == earlier.id
                and earlier_at < later_at
                and earlier.agent == later.agent
                and subjects_of[earlier.id] & subjects_of[later.id]
            ):
                superseded[earlier.id] = (later_at, later.id)
    names: list[tuple[str, str]] = []
    for _, event in reversed(seen):
        for name in _about(event):
            if _same(name) not in [form for form, _ in names] and about in (None, _same(name)):
                names.append((_same(name), name))
    on = {form: [each for each in seen if form in subjects_of[each[1].id]] for form, _ in names}
    shown = {event.id for found in on.values() for _, event in found[-PER_SUBJECT:]}
    lost = {event.id: _lost(history, past, reader, seen, superseded, at, event) for at, event in seen}
    edges: list[tuple[int, int, str, Edge]] = []
    for form, name in names:
        linked = on[form][-PER_SUBJECT:]
        for at, event in linked:
            for before, other in linked:
                relation = _relation(other, event, superseded) if before < at else None
                if relation is not None:
                    edges.append((at, before, name, (relation, name, event.id, other.id)))
    return ExpectedGraph(
        [(name, len(on[form]), max(0, len(on[form]) - PER_SUBJECT)) for form, name in names],
        [
            (event.id, superseded[event.id][1] if event.id in superseded else None, lost[event.id])
            for _, event in seen
            if event.id in shown
        ],
        [edge for *_, edge in sorted(edges)],
    )


def _seen(past: Sequence[tuple[int, Event]], reader: str) -> list[tuple[int, Event]]:
    shared: list[tuple[int, Event]] = []
    own: list[tuple[int, Event]] = []
    is_shared = SHARED_BY_DEFAULT
    for offset, event in past:
        if event.kind == "space.configured":
            is_shared = "agent.reflected" in event.payload["shared_kinds"]
        elif event.kind == "agent.reflected" and _about(event):
            if event.audience is None and is_shared:
                shared.append((offset, event))
            elif reader == event.agent or reader in (event.audience or ()):
                own.append((offset, event))
    complete_from = max([found[-KEPT][0] for found in (shared, own) if len(found) > KEPT], default=0)
    kept = [*shared[-KEPT:], *own[-KEPT:]]
    return sorted([each for each in kept if each[0] >= complete_from], key=lambda each: each[0])


def _about(event: Event) -> list[str]:
    about = event.payload.get("about")
    return [about] if isinstance(about, str) else list(about or ())


def _same(subject: str) -> str:
    return " ".join(subject.split()).casefold()


def _relation(earlier: Event, later: Event, superseded: Mapping[str, Any]) -> str | None:
    if later.agent == earlier.agent and later.payload.get("supersedes") == earlier.id:
        return "supersedes"
    stances = {earlier.payload.get("stance"), later.payload.get("stance")}
    if earlier.id in superseded or later.id in superseded or None in stances:
        return None
    if len(stances) == 1:
        return "supports"
    return "contradicts" if earlier.agent == later.agent else "disputes"


def _lost(
    history: Sequence[tuple[int, Event]],
    past: Sequence[tuple[int, Event]],
    reader: str,
    seen: Sequence[tuple[int, Event]],
    superseded: Mapping[str, tuple[int, str]],
    at: int,
    belief: Event,
) -> dict[str, str]:
    """By id of a ground of the belief at the offset `at`: why it is lost."""
    found: dict[str, str] = {}
    for id_ in belief.payload.get("based_on", ()):
        reason = _entry_loss(history, past, reader, id_, at)
        if reason is None and id_ in superseded and superseded[id_][0] > at:
            reason = "superseded"
        for before, other in seen:
            if reason is None and other.id == id_ and before < at:
                reason = "unfounded" if _lost(history, past, reader, seen, superseded, before, other) else None
        if reason is not None:
            found[id_] = reason
    return found


def _entry_loss(
    history: Sequence[tuple[int, Event]], past: Sequence[tuple[int, Event]], reader: str, id_: str, at: int
) -> str | None:
    """What is erased now is erased in every past."""
    retained = next((event for _, event in past if event.id == id_ and event.kind == "memory.retained"), None)
    if retained is None:
        return None
    text, corrected, is_retracted = retained.payload["text"], -1, False
    for offset, event in past:
        if event.agent != retained.agent or is_retracted:
            continue
        if event.kind == "memory.updated" and event.payload["entry"] == id_ and event.payload["text"] != text:
            text, corrected = event.payload["text"], offset
        is_retracted = event.kind == "memory.retracted" and event.payload["entry"] == id_
    if any(
        event.kind == "memory.erased" and id_ in event.payload["entries"] and event.agent == retained.agent
        for _, event in history
    ):
        return "erased" if reader == retained.agent else None
    if reader != retained.agent and reader not in (retained.audience or ()):
        return None
    if is_retracted:
        return "retracted"
    return "corrected" if corrected > at else None
