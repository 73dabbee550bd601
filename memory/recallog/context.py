"""The prompt that an agent gets: who it is, what it sees, what it believes and remembers, and what it shall answer.

Sections come in the order of the memory model: from what never changes to what changes with every turn, the form of
the answer last. A budget takes away whole lines, of what is cheapest to lose first, and never who the agent is, what a
visitor said, or the form of the answer. All of it comes from one atomic look at the views.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Self

from recallog import reflections, salient
from recallog.index.asking import Asking
from recallog.reading import Look, Reading
from recallog.recall.question import Question
from recallog.recall.recall import recall
from recallog.salient import Asked, Related
from recallog.time_travel import AsOf
from recallog_projections import episodic, scene, settings
from recallog_projections.settings import AgentSettings
from recallog_schemas import Position, limits
from recallog_schemas.views import RecallHit, RecallView, ReflectionView, Remembered, SceneView, one_line

CHARS_PER_TOKEN = 4
"""Of the memory model: a token is estimated as four characters, rounded up."""

_NEXT_LINE, _NEXT_SECTION = "\n", "\n\n"
_ACTION_KIND = "tool.used"
_SHOWN_ELSEWHERE = limits.PROMPT_BELIEFS + limits.PROMPT_ACTIONS + limits.VISITOR_EVENTS + limits.SCENE_KINDS_MAX + 1
"""Events, the goal among them, that the prompt may show outside of its memory."""
_RECALLED_ELSEWHERE = 13
"""Of twenty memories that answer best, so many may stand in other sections already."""
_ACTIONS_AMONG = 100
"""Actions are looked for among so many of the newest events that the agent may see."""


class Context(str):
    """A prompt: plain text that knows what it was computed at."""

    generation: str
    checkpoint: Position | None
    tokens: int
    """Estimated, at four characters each."""
    dropped: int
    """Lines that the budget took away."""
    reflection: ReflectionView
    """Whether the agent owes a reflection: the prompt then asks for it, and `reflection.answer(...)` makes it."""
    degraded: str | None
    """Why what stands under RECALLED is not as good as it could be; None where it is, or where nothing is recalled."""

    @classmethod
    def of(cls, text: str, dropped: int, reflection: ReflectionView, degraded: str | None) -> Self:
        context = cls(text)
        context.generation, context.checkpoint = reflection.generation, reflection.checkpoint
        context.tokens = tokens(text)
        context.dropped = dropped
        context.reflection = reflection
        context.degraded = degraded
        return context


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the caller adds to a prompt. None is left to the views."""

    scene: str | None = None
    query: str | None = None
    extra: str | None = None
    output_format: str | None = None
    budget_tokens: int | None = None
    turn: int | None = None
    as_of: AsOf | None = None


@dataclass(frozen=True, slots=True)
class _Shown:
    """Of one prompt, what its other sections show, and what its memory is asked for."""

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
class _Memory:
    """The lines of what an agent remembers."""

    lines: list[str]
    cheapest_first: Sequence[int]
    """Which of them go first."""
    offsets: Collection[int]


@dataclass(slots=True)
class Section:
    """A heading and its lines. The budget takes lines by their numbers in `spare`, the first of them first."""

    heading: str
    lines: list[str]
    spare: Sequence[int] = ()


def tokens(text: str) -> int:
    """An estimate: one for every four characters, rounded up."""
    return math.ceil(len(text) / CHARS_PER_TOKEN)


async def scene_of(reading: Reading, space: str) -> SceneView:
    """The newest shared event of each of the space's scene kinds."""
    kinds: Sequence[str] = scene.DEFAULT_SCENE_KINDS
    while True:
        look = await reading.look(scene.rows(space, kinds))
        set_to = scene.scene_kinds(look.row(settings.SPACES, space))
        if set_to == kinds:
            shown = _scene(look, space, kinds)
            return SceneView(**look.computed_at, space=space, kinds=tuple(kinds), events=tuple(shown))
        kinds = set_to


async def context(
    reading: Reading, asking: Asking | None, space: str, agent: str, wanted: Wanted, candidates: int
) -> Context:
    """The prompt of `agent`; salience scores the newest `candidates` events. With an index, it recalls."""
    kinds: Sequence[str] = scene.DEFAULT_SCENE_KINDS
    newest = _ACTIONS_AMONG
    while True:
        look = await reading.look(
            [
                *salient.rows(space, agent),
                *reflections.rows(space, agent),
                *scene.rows(space, (*kinds, scene.GOAL_KIND)),
            ],
            [
                *episodic.logs(space, agent, newest),
                *scene.visitor_logs(space, agent),
                reflections.belief_log(space, agent, limits.PROMPT_BELIEFS),
            ],
        )
        own = look.row(settings.AGENTS, space, agent) or AgentSettings()
        set_to = scene.scene_kinds(look.row(settings.SPACES, space))
        # What the prompt shows elsewhere is no memory of its own: a window that is to be full looks further back.
        needed = candidates if own.use_salience else (own.window or limits.WINDOW_EVENTS) + _SHOWN_ELSEWHERE
        needed = min(max(needed, reflections.events_needed(look, space, agent, candidates)), candidates)
        if set_to == kinds and needed <= newest:
            shown = _shown(look, space, agent, wanted, kinds)
            asked = Asked(shown.query, turn=wanted.turn, as_of=wanted.as_of)
            related = await salient.related(look, asking if own.use_salience else None, space, agent, asked)
            memory = _memory(look, space, agent, own, asked, related, shown.offsets())
            recalled = await _recalled(reading, look, asking, space, agent, asked, candidates)
            known = {*shown.offsets(), *memory.offsets}
            hits = recalled.hits if recalled is not None else ()
            further = [hit for hit in hits if hit.position.offset not in known][: limits.PROMPT_RECALLED]
            degraded = recalled.degraded if recalled is not None else None
            return _composed(look, space, agent, own, wanted, shown, memory, further, degraded)
        kinds, newest = set_to, max(newest, needed)


def _shown(look: Look, space: str, agent: str, wanted: Wanted, kinds: Sequence[str]) -> _Shown:
    goals = [event for event in _scene(look, space, (scene.GOAL_KIND,)) if event.text]
    seen = [event for event in _scene(look, space, kinds) if event not in goals] if wanted.scene is None else []
    scene_text = wanted.scene if wanted.scene is not None else _texts(seen)
    return _Shown(
        goals,
        seen,
        reflections.believed(look, space, agent),
        _visitors(look, space, agent),
        _actions(look, space, agent),
        scene_text,
        wanted.query if wanted.query is not None else scene_text or _texts(goals),
    )


def _composed(
    look: Look,
    space: str,
    agent: str,
    own: AgentSettings,
    wanted: Wanted,
    shown: _Shown,
    memory: _Memory,
    recalled: Sequence[RecallHit],
    degraded: str | None,
) -> Context:
    reflection = reflections.view(look, space, agent)
    identity = Section("IDENTITY", _identity(agent, own))
    goal = Section("SHARED GOAL", [one_line(event.text) for event in shown.goals])
    sight = Section("CURRENT SCENE", [shown.scene] if shown.scene else [])
    believed = Section("YOUR BELIEFS", [event.line() for event in shown.beliefs], range(len(shown.beliefs)))
    remembered = Section("YOUR MEMORY", memory.lines or ["(no prior memory)"], memory.cheapest_first)
    in_order = sorted(recalled, key=lambda hit: hit.position.offset)
    weakest_first = [in_order.index(hit) for hit in reversed(recalled)]
    further = Section("RECALLED", [hit.line() for hit in in_order], weakest_first)
    done = Section("ACTION HISTORY", [event.line() for event in shown.actions], range(len(shown.actions)))
    visitor = Section("VISITOR", [event.line() for event in shown.visitors] or ["(quiet)"])
    extra = Section("", [wanted.extra] if wanted.extra else [])
    form = Section("OUTPUT FORMAT", _output_format(wanted.output_format, reflection))
    sections = [identity, goal, sight, believed, remembered, further, done, visitor, extra, form]
    dropped = _trim(sections, (further, done, remembered, believed), wanted.budget_tokens)
    return Context.of(_written(sections), dropped, reflection, degraded)


async def _recalled(
    reading: Reading, look: Look, asking: Asking | None, space: str, agent: str, asked: Asked, candidates: int
) -> RecallView | None:
    """What else is related to what the prompt is about, best first; None where the index is off."""
    if asking is None or look.decided < 0 or not asked.query.strip():
        return None
    # More than are shown: some of them stand elsewhere in the prompt.
    most = limits.PROMPT_RECALLED + _RECALLED_ELSEWHERE
    question = Question.about(space, agent, asked.query, asked.as_of, top_k=most)
    if question.offset_until is None:  # the prompt is of one moment, also where the views have moved on
        question = replace(question, offset_until=look.decided)
    return await recall(reading, asking, question, candidates)


def _scene(look: Look, space: str, kinds: Sequence[str]) -> list[Remembered]:
    """The newest shared event of each of `kinds`, in ledger order."""
    found = [look.row(scene.NEWEST, space, "", kind) for kind in kinds]
    shown = sorted((one for one in found if one is not None), key=lambda one: one.offset)
    return [look.remembered(one.offset, one.data) for one in shown]


def _texts(events: Sequence[Remembered]) -> str:
    return "\n".join(one_line(event.text) for event in events if event.text)


def _identity(agent: str, own: AgentSettings) -> list[str]:
    return [
        f"You are {agent}.",
        *([own.persona] if own.persona else []),
        *([f"Your goal: {own.goal}"] if own.goal else []),
    ]


def _visitors(look: Look, space: str, agent: str) -> list[Remembered]:
    """The last words of visitors that `agent` may see."""
    tails = look.tail(scene.OWN_VISITOR, space, agent), look.tail(scene.SHARED_VISITOR, space)
    said = [scene.SHARED_VISITOR.decode(data) for tail in tails for data in tail.entries]
    newest = sorted(said, key=lambda one: one.offset)[-limits.VISITOR_EVENTS :]
    return [look.remembered(one.offset, one.data) for one in newest]


def _actions(look: Look, space: str, agent: str) -> list[Remembered]:
    """The agent's own newest actions."""
    found: list[Remembered] = []
    for memory in reversed(look.memories(space, agent)[-_ACTIONS_AMONG:]):
        if _ACTION_KIND.encode() in memory.data:  # hardly any event needs to be decoded for this
            event = look.remembered(memory.offset, memory.data)
            if event.event.kind == _ACTION_KIND and event.event.agent == agent:
                found.append(event)
    return found[: limits.PROMPT_ACTIONS][::-1]


def _memory(
    look: Look, space: str, agent: str, own: AgentSettings, asked: Asked, related: Related, shown: Collection[int]
) -> _Memory:
    """What `agent` remembers and the prompt does not show elsewhere.

    The newest ones; or, where the agent is set to it, the most salient ones, of which the weakest go first.
    """
    if not own.use_salience:
        newest = [memory for memory in look.memories(space, agent) if memory.offset not in shown]
        window = episodic.window(newest, own.window or limits.WINDOW_EVENTS)
        lines = [look.remembered(memory.offset, memory.data).line() for memory in window]
        return _Memory(lines, range(len(lines)), {memory.offset for memory in window})
    ranking = salient.rank(look, space, agent, asked, related, more=len(shown))
    left = [place for _, place in ranking.order if ranking.memories[place].offset not in shown][: ranking.top_k]
    chosen = sorted(left)
    return _Memory(
        [ranking.salient(look, ranking.memories[place]).line() for place in chosen],
        [chosen.index(place) for place in reversed(left)],
        {ranking.memories[place].offset for place in chosen},
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


def _trim(sections: Sequence[Section], by_price: Sequence[Section], budget_tokens: int | None) -> int:
    """Take lines away until the prompt fits, or nothing may go any more; how many were taken."""
    if budget_tokens is None:
        return 0
    excess = len(_written(sections)) - budget_tokens * CHARS_PER_TOKEN
    dropped = 0
    for section in by_price:
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
