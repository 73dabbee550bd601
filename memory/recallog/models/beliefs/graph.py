"""The graph of beliefs: how the beliefs that an agent may see relate to each other. It is computed on request.

Every step uses only beliefs that the agent may see. So neither an edge, nor its absence, nor a number reveals others.
"""

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product

from recallog.queries import grounds
from recallog.reading.read_session import Snapshot
from recallog.reading.readings import AgentReading
from recallog.reading.subject import of_agent, own_log
from recallog_projections.models.beliefs import beliefs
from recallog_projections.tables import LogName, RowKey
from recallog_projections.views import settings
from recallog_projections.views.trust import SourceClasses
from recallog_schemas.models.beliefs import limits as beliefs_limits
from recallog_schemas.models.beliefs.views import (
    BeliefEdge,
    BeliefGraph,
    BeliefRelation,
    BeliefSubject,
    Contradiction,
    ContradictionsView,
    LinkedBelief,
    LostGround,
)


async def show_graph(reading: AgentReading, about: str | None) -> BeliefGraph:
    """The beliefs that the agent may see, on all subjects or on one, and how they relate."""
    return await reading.steady(lambda session: _read_graph(session, about))


async def list_contradictions(reading: AgentReading, about: str | None) -> ContradictionsView:
    """The pairs of beliefs with opposite stances on one subject, newest first."""
    graph = await show_graph(reading, about)
    by_id = {each.event.id: each for each in graph.beliefs}
    shared = {
        name: getattr(graph, name) for name in ContradictionsView.model_fields if name in BeliefGraph.model_fields
    }
    found = [
        Contradiction(
            relation=edge.relation, subject=edge.subject, earlier=by_id[edge.target], later=by_id[edge.source]
        )
        for edge in reversed(graph.edges)
        if edge.relation in ("contradicts", "disputes")
    ]
    return ContradictionsView(**shared, contradictions=tuple(found))


def normal_form(subject: str) -> str:
    """A form that is equal for texts that name one subject: case, white space and the spelling of characters do not
    count."""
    return " ".join(unicodedata.normalize("NFC", subject).casefold().split())


async def _read_graph(reading: AgentReading, about: str | None) -> BeliefGraph:
    space, agent = reading.space, reading.agent
    logs = [
        (LogName(log.name, space, reader), beliefs_limits.ABOUT_KEPT)
        for log in (beliefs.ABOUT, beliefs.UNTRUSTED_ABOUT)
        for reader in ("", agent)
    ]
    rows = [RowKey(settings.AGENTS.name, space, agent), RowKey(settings.SPACES.name, space)]
    snapshot = await reading.snapshot(rows, [*logs, own_log(space, agent)])
    seen = _decode_beliefs(snapshot, space, agent)
    by = _find_superseding(seen)
    on_subject = _group_by_subject(seen)
    if about is not None:
        on_subject = {form: found for form, found in on_subject.items() if form == normal_form(about)}
    linked = {name: found[-beliefs_limits.SUBJECT_BELIEFS :] for name, found in on_subject.values()}
    shown = {each.event.id for found in linked.values() for each in found}
    lost = await _find_lost(reading, seen, shown, by)
    return BeliefGraph(
        **await of_agent(reading, snapshot),
        about=about,
        subjects=tuple(
            BeliefSubject(name=name, beliefs=len(found), unlinked=len(found) - len(linked[name]))
            for name, found in on_subject.values()
        ),
        beliefs=tuple(
            each.model_copy(
                update={
                    "superseded_by": by[each.event.id].event.id if each.event.id in by else None,
                    "unfounded": lost.get(each.event.id, ()),
                }
            )
            for each in seen
            if each.event.id in shown
        ),
        edges=tuple(_link(linked, by)),
    )


def _decode_beliefs(snapshot: Snapshot, space: str, agent: str) -> list[LinkedBelief]:
    """The beliefs that the logs retain completely, oldest first. Older ones are left out, because a belief that a log
    has dropped may supersede another one.

    One that comes from a source from which the space makes no beliefs is left out, as in `queries.find_beliefs`. A log
    with no belief that the space allows now may be incomplete; the settings may have changed since.
    """
    sources = SourceClasses(snapshot.row(settings.SPACES, space))
    found: dict[int, LinkedBelief] = {}
    kept_from = 0
    for log, reader in product((beliefs.ABOUT, beliefs.UNTRUSTED_ABOUT), ("", agent)):
        tail = snapshot.tail(log, space, reader)
        rows = log.decode_all(tail.entries)
        decoded = ((row, snapshot.make_remembered(row.offset, row.data, None)) for row in rows)
        allowed = [(row, shown) for row, shown in decoded if sources.allows("beliefs", shown.event)]
        is_used = log is beliefs.ABOUT or sources.takes_untrusted("beliefs") or bool(allowed)
        if is_used and tail.total > len(rows):
            kept_from = max(kept_from, rows[0].offset)
        for row, shown in allowed:
            payload = shown.event.payload
            about = payload["about"]
            found[row.offset] = LinkedBelief.model_construct(
                position=shown.position,
                event=shown.event,
                text=shown.text,
                based_on=tuple(payload.get("based_on", ())),
                subjects=(about,) if isinstance(about, str) else tuple(about),
                stance=payload.get("stance"),
                superseded_by=None,
                unfounded=(),
            )
    return [found[offset] for offset in sorted(found) if offset >= kept_from]


def _group_by_subject(seen: Sequence[LinkedBelief]) -> Mapping[str, tuple[str, list[LinkedBelief]]]:
    """By normal form of a subject: its name in the newest belief on it, and its beliefs, oldest first. The first
    subject is that of the newest belief."""
    names: dict[str, str] = {}
    on: defaultdict[str, list[LinkedBelief]] = defaultdict(list)
    for each in reversed(seen):
        for name in each.subjects:
            names.setdefault(normal_form(name), name)
    for each in seen:
        for form in _forms(each):
            on[form].append(each)
    return {form: (name, on[form]) for form, name in names.items()}


def _forms(belief: LinkedBelief) -> set[str]:
    return set(map(normal_form, belief.subjects))


def _find_superseding(seen: Sequence[LinkedBelief]) -> Mapping[str, LinkedBelief]:
    """By id of a superseded belief: the newest one that supersedes it."""
    found: dict[str, LinkedBelief] = {}
    earlier: dict[str, LinkedBelief] = {}
    for each in seen:
        target = earlier.get(each.event.payload.get("supersedes", ""))
        if target is not None and target.event.agent == each.event.agent and _forms(target) & _forms(each):
            found[target.event.id] = each
        earlier[each.event.id] = each
    return found


async def _find_lost(
    reading: AgentReading, seen: Sequence[LinkedBelief], shown: Iterable[str], by: Mapping[str, LinkedBelief]
) -> Mapping[str, tuple[LostGround, ...]]:
    """By id: the grounds that a belief has lost. If a belief has lost a ground, beliefs that are based on it are
    unfounded too."""
    needed = set(shown)
    for each in reversed(seen):
        if each.event.id in needed:
            needed.update(each.based_on)
    losses = await grounds.find_losses(reading, sorted(needed - {each.event.id for each in seen}))
    found: dict[str, tuple[LostGround, ...]] = {}

    def reasons(belief: LinkedBelief) -> Iterator[LostGround]:
        for id_ in dict.fromkeys(belief.based_on):
            loss = losses.get(id_)
            if loss is not None and (loss.since is None or loss.since > belief.position.offset):
                yield LostGround(id=id_, reason=loss.reason)
            elif id_ in by and by[id_].position.offset > belief.position.offset:
                yield LostGround(id=id_, reason="superseded")
            elif id_ in found:
                yield LostGround(id=id_, reason="unfounded")

    for each in seen:
        if each.event.id in needed and (lost := tuple(reasons(each))):
            found[each.event.id] = lost
    return found


def _link(linked: Mapping[str, Sequence[LinkedBelief]], by: Mapping[str, LinkedBelief]) -> list[BeliefEdge]:
    """The edges among the beliefs on each subject."""
    found = [
        (later.position, earlier.position, name, relation, later.event.id, earlier.event.id)
        for name, on in linked.items()
        for earlier, later in combinations(on, 2)
        if (relation := _relate(earlier, later, by)) is not None
    ]
    return [
        BeliefEdge(relation=relation, subject=name, source=source, target=target)
        for *_, name, relation, source, target in sorted(found)
    ]


def _relate(earlier: LinkedBelief, later: LinkedBelief, by: Mapping[str, LinkedBelief]) -> BeliefRelation | None:
    """How `later` relates to `earlier` on a common subject. A superseded belief has only the edge from the belief that
    supersedes it."""
    is_own = earlier.event.agent == later.event.agent
    if is_own and later.event.payload.get("supersedes") == earlier.event.id:
        return "supersedes"
    if {earlier.event.id, later.event.id} & by.keys() or earlier.stance is None or later.stance is None:
        return None
    if earlier.stance == later.stance:
        return "supports"
    return "contradicts" if is_own else "disputes"
