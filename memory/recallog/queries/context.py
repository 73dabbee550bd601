"""The prompt of an agent: identity, goal, scene, beliefs, memory, actions, visitors and the form of the answer.

Sections are ordered from what never changes to what changes with every turn (the memory model's order, which suits
prompt caches); the form of the answer comes last. A budget removes whole lines, the least important first, and never
the identity, a visitor's words or the form of the answer. All sections come from one atomic read of the views.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from recallog import retrieval
from recallog.index.semantic_index import SemanticIndex
from recallog.queries import reflections, salient
from recallog.queries.salient import Related, SalienceQuery
from recallog.reading.read_session import ReadSession, Snapshot
from recallog.reading.time_travel import AsOf
from recallog.retrieval.term_cache import TermCache
from recallog_projections.tables import RowKey
from recallog_projections.views import activity, episodic, scene, settings
from recallog_projections.views.settings import AgentSettings
from recallog_schemas import limits
from recallog_schemas.views import ContextView, RecallHit, RecallView, ReflectionView, Remembered, SceneView, one_line

CHARS_PER_TOKEN = 4
"""The memory model's estimate: a token is four characters, rounded up."""

_NEXT_LINE, _NEXT_SECTION = "\n", "\n\n"
_SHOWN_ELSEWHERE = limits.PROMPT_BELIEFS + limits.PROMPT_ACTIONS + limits.VISITOR_EVENTS + limits.SCENE_KINDS_MAX + 1
"""Upper bound of the events that the prompt shows outside of its memory section, the goal included."""
_RECALLED_ELSEWHERE = 13
"""How many hits are requested beyond those shown, since other sections may show some of them already."""
_FIRST_READ_EVENTS = 100
"""How many of the newest events that the agent may see are read before its settings, which may ask for more."""


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """The parts of a prompt that the caller sets. None: they come from the views."""

    scene: str | None = None
    query: str | None = None
    extra: str | None = None
    output_format: str | None = None
    budget_tokens: int | None = None
    turn: int | None = None
    as_of: AsOf | None = None


@dataclass(frozen=True, slots=True)
class _SectionContents:
    """The contents of all sections but the memory, and the query for the memory."""

    goals: Sequence[Remembered]
    seen: Sequence[Remembered]
    beliefs: Sequence[Remembered]
    visitors: Sequence[Remembered]
    actions: Sequence[Remembered]
    scene: str
    query: str

    def offsets(self) -> set[int]:
        shown = (*self.goals, *self.seen, *self.beliefs, *self.visitors, *self.actions)
        return {event.position.offset for event in shown}


@dataclass(frozen=True, slots=True)
class _MemorySection:
    """The lines of the memory section."""

    lines: list[str]
    cheapest_first: Sequence[int]
    """List indexes of the lines, in the order in which the budget removes them."""
    offsets: Collection[int]


@dataclass(slots=True)
class Section:
    """A heading and its lines. `spare` lists the lines that the budget may remove, in order of removal."""

    heading: str
    lines: list[str]
    spare: Sequence[int] = ()


def tokens(text: str) -> int:
    """The estimated number of tokens of a text: one for every four characters, rounded up."""
    return math.ceil(len(text) / CHARS_PER_TOKEN)


async def scene_of(reading: ReadSession, space: str) -> SceneView:
    """The newest shared event of each of the space's scene kinds."""
    kinds: Sequence[str] = scene.DEFAULT_SCENE_KINDS
    while True:
        snapshot = await reading.snapshot([*scene.rows(space, kinds), RowKey(activity.SPACES.name, space)])
        set_to = scene.scene_kinds(snapshot.row(settings.SPACES, space))
        if set_to == kinds:
            shown = _scene(snapshot, space, kinds)
            return SceneView(
                **snapshot.computed_at,
                space=space,
                known=snapshot.row(activity.SPACES, space) is not None,
                kinds=tuple(kinds),
                events=tuple(shown),
            )
        kinds = set_to


async def context(
    reading: ReadSession,
    index: SemanticIndex | None,
    cache: TermCache,
    space: str,
    agent: str,
    request: ContextRequest,
    candidates: int,
) -> ContextView:
    """The prompt of `agent`; salience scores the newest `candidates` events. An index recalls older memories."""
    kinds: Sequence[str] = scene.DEFAULT_SCENE_KINDS
    newest = _FIRST_READ_EVENTS
    while True:
        snapshot = await reading.snapshot(
            [
                *salient.rows(space, agent),
                *reflections.rows(space, agent),
                *scene.rows(space, (*kinds, scene.GOAL_KIND)),
            ],
            [
                *episodic.logs(space, agent, newest),
                *scene.visitor_logs(space, agent),
                episodic.action_log(space, agent),
                reflections.belief_log(space, agent, limits.PROMPT_BELIEFS),
            ],
        )
        own = snapshot.row(settings.AGENTS, space, agent) or AgentSettings()
        set_to = scene.scene_kinds(snapshot.row(settings.SPACES, space))
        # Events that other sections show are left out of the memory, so a full window needs more events.
        needed = candidates if own.use_salience else (own.window or limits.WINDOW_EVENTS) + _SHOWN_ELSEWHERE
        needed = min(max(needed, reflections.events_needed(snapshot, space, agent, candidates)), candidates)
        if set_to == kinds and needed <= newest:
            shown = _shown(snapshot, space, agent, request, kinds)
            salience_query = SalienceQuery(shown.query, turn=request.turn, as_of=request.as_of)
            related = await salient.related(snapshot, index if own.use_salience else None, space, agent, salience_query)
            memory = _memory(snapshot, space, agent, own, salience_query, related, shown.offsets())
            recalled = await _recalled(reading, snapshot, index, cache, space, agent, salience_query, candidates)
            known = {*shown.offsets(), *memory.offsets}
            hits = recalled.hits if recalled is not None else ()
            further = [hit for hit in hits if not hit.weak and hit.position.offset not in known]
            further = further[: limits.PROMPT_RECALLED]
            degraded = recalled.degraded if recalled is not None else None
            reflection = await reflections.view(reading, snapshot, space, agent)
            return _composed(own, request, reflection, shown, memory, further, degraded)
        kinds, newest = set_to, max(newest, needed)


def _shown(
    snapshot: Snapshot, space: str, agent: str, request: ContextRequest, kinds: Sequence[str]
) -> _SectionContents:
    goals = [event for event in _scene(snapshot, space, (scene.GOAL_KIND,)) if event.text]
    seen = [event for event in _scene(snapshot, space, kinds) if event not in goals] if request.scene is None else []
    scene_text = request.scene if request.scene is not None else _texts(seen)
    return _SectionContents(
        goals,
        seen,
        reflections.believed(snapshot, space, agent),
        _visitors(snapshot, space, agent),
        _actions(snapshot, space, agent),
        scene_text,
        request.query if request.query is not None else scene_text or _texts(goals),
    )


def _composed(
    own: AgentSettings,
    request: ContextRequest,
    reflection: ReflectionView,
    shown: _SectionContents,
    memory: _MemorySection,
    recalled: Sequence[RecallHit],
    degraded: str | None,
) -> ContextView:
    identity = Section("IDENTITY", _identity(reflection.agent, own))
    goal = Section("SHARED GOAL", [one_line(event.text) for event in shown.goals])
    sight = Section("CURRENT SCENE", [shown.scene] if shown.scene else [])
    believed = Section("YOUR BELIEFS", [event.line() for event in shown.beliefs], range(len(shown.beliefs)))
    remembered = Section("YOUR MEMORY", memory.lines or ["(no prior memory)"], memory.cheapest_first)
    in_order = sorted(recalled, key=lambda hit: hit.position.offset)
    weakest_first = [in_order.index(hit) for hit in reversed(recalled)]
    further = Section("RECALLED", [hit.line() for hit in in_order], weakest_first)
    done = Section("ACTION HISTORY", [event.line() for event in shown.actions], range(len(shown.actions)))
    visitor = Section("VISITOR", [event.line() for event in shown.visitors] or ["(quiet)"])
    extra = Section("", [request.extra] if request.extra else [])
    form = Section("OUTPUT FORMAT", _output_format(request.output_format, reflection))
    sections = [identity, goal, sight, believed, remembered, further, done, visitor, extra, form]
    dropped = _trim(sections, (further, done, remembered, believed), request.budget_tokens)
    text = _written(sections)
    return ContextView(
        generation=reflection.generation,
        checkpoint=reflection.checkpoint,
        space=reflection.space,
        agent=reflection.agent,
        known=reflection.known,
        text=text,
        tokens=tokens(text),
        budget_tokens=request.budget_tokens,
        dropped=dropped,
        degraded=degraded,
        reflection=reflection,
    )


async def _recalled(
    reading: ReadSession,
    snapshot: Snapshot,
    index: SemanticIndex | None,
    cache: TermCache,
    space: str,
    agent: str,
    salience_query: SalienceQuery,
    candidates: int,
) -> RecallView | None:
    """Further memories related to the prompt's query, best first; None if the index is off."""
    if index is None or snapshot.processed < 0 or not salience_query.text.strip():
        return None
    # More than are shown: other sections of the prompt may show some of them.
    most = limits.PROMPT_RECALLED + _RECALLED_ELSEWHERE
    question = retrieval.query.RecallQuery.from_text(
        space, agent, salience_query.text, salience_query.as_of, top_k=most
    )
    if question.offset_until is None:  # one prompt, one checkpoint: the views may have moved on
        question = replace(question, offset_until=snapshot.processed)
    return await retrieval.recall.recall(reading, index, cache, question, candidates)


def _scene(snapshot: Snapshot, space: str, kinds: Sequence[str]) -> list[Remembered]:
    """The newest shared event of each of `kinds`, in ledger order."""
    found = [snapshot.row(scene.NEWEST, space, "", kind) for kind in kinds]
    shown = sorted((one for one in found if one is not None), key=lambda one: one.offset)
    return [snapshot.remembered(one.offset, one.data, one.text) for one in shown]


def _texts(events: Sequence[Remembered]) -> str:
    return "\n".join(one_line(event.text) for event in events if event.text)


def _identity(agent: str, own: AgentSettings) -> list[str]:
    return [
        f"You are {agent}.",
        *([own.persona] if own.persona else []),
        *([f"Your goal: {own.goal}"] if own.goal else []),
    ]


def _visitors(snapshot: Snapshot, space: str, agent: str) -> list[Remembered]:
    """The newest events of visitors that `agent` may see."""
    tails = snapshot.tail(scene.OWN_VISITOR, space, agent), snapshot.tail(scene.SHARED_VISITOR, space)
    entries = [scene.SHARED_VISITOR.decode(data) for tail in tails for data in tail.entries]
    newest = sorted(entries, key=lambda one: one.offset)[-limits.VISITOR_EVENTS :]
    return [snapshot.remembered(one.offset, one.data, one.text) for one in newest]


def _actions(snapshot: Snapshot, space: str, agent: str) -> list[Remembered]:
    """The agent's own newest actions."""
    actions = episodic.ACTIONS.decode_all(snapshot.tail(episodic.ACTIONS, space, agent).entries)
    return [snapshot.remembered(action.offset, action.data, action.text) for action in actions]


def _memory(
    snapshot: Snapshot,
    space: str,
    agent: str,
    own: AgentSettings,
    salience_query: SalienceQuery,
    related: Related,
    shown: Collection[int],
) -> _MemorySection:
    """The memories of `agent` that no other section shows.

    The newest ones or, where the agent is configured so, the most salient ones; the budget removes the weakest first.
    """
    if not own.use_salience:
        newest = [memory for memory in snapshot.memories(space, agent) if memory.offset not in shown]
        window = episodic.window(newest, own.window or limits.WINDOW_EVENTS)
        lines = [snapshot.remembered(memory.offset, memory.data, memory.text).line() for memory in window]
        return _MemorySection(lines, range(len(lines)), {memory.offset for memory in window})
    ranking = salient.rank(snapshot, space, agent, salience_query, related, more=len(shown))
    left = [list_index for _, list_index in ranking.order if ranking.memories[list_index].offset not in shown][
        : ranking.top_k
    ]
    chosen = sorted(left)
    return _MemorySection(
        [ranking.salient(snapshot, ranking.memories[list_index]).line() for list_index in chosen],
        [chosen.index(list_index) for list_index in reversed(left)],
        {ranking.memories[list_index].offset for list_index in chosen},
    )


def _output_format(given: str | None, reflection: ReflectionView) -> list[str]:
    lines = [given] if given else []
    if reflection.due:
        lines += [
            f"A reflection is due: you have seen {reflection.events:,} events since your last one. Do not act this "
            "time. Say in one or two sentences what you have come to believe because of them, and answer with this "
            "JSON alone:",
            '{"kind": "agent.reflected", "payload": {"belief": "...", "based_on": ["ids of the events it rests on"]}}',
            "The newest of these events, by id:",
            *(f"{event.event.id} {_cut(event.line())}" for event in reflection.on),
        ]
    return lines


def _cut(line: str) -> str:
    return line if len(line) <= limits.EVIDENCE_CHARS_MAX else line[: limits.EVIDENCE_CHARS_MAX - 1] + "…"


def _trim(sections: Sequence[Section], cheapest_first: Sequence[Section], budget_tokens: int | None) -> int:
    """Remove lines until the prompt fits or no more may be removed; return the number of lines removed."""
    if budget_tokens is None:
        return 0
    excess = len(_written(sections)) - budget_tokens * CHARS_PER_TOKEN
    dropped = 0
    for section in cheapest_first:
        gone: set[int] = set()
        for number in section.spare:
            if excess <= 0:
                break
            gone.add(number)
            excess -= len(section.lines[number]) + len(_NEXT_LINE)
        section.lines = [line for number, line in enumerate(section.lines) if number not in gone]
        if gone and not section.lines:
            excess -= len(section.heading) + len(_NEXT_SECTION)
        dropped += len(gone)
    return dropped


def _written(sections: Sequence[Section]) -> str:
    """All sections that have lines."""
    return _NEXT_SECTION.join(
        _NEXT_LINE.join((section.heading, *section.lines) if section.heading else section.lines)
        for section in sections
        if section.lines
    )
