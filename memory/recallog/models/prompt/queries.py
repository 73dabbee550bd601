"""The prompt of an agent: identity, goal, working memory, scene, beliefs, memory, recalled memories, actions, visitors,
the caller's sections, and the form of the answer.

Sections are ordered from those that never change to those that change with every turn (the memory model's order, which
suits prompt caches); the form of the answer comes last. All sections come from one atomic read of the views, RECALLED
from reads of the same position. `prompt` fits their lines to a budget.
"""

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass

from recallog.models.beliefs import queries as reflections
from recallog.models.prompt import identity, recalled
from recallog.models.prompt.fitting import CountTokens, Prompt, PromptLine, Section
from recallog.models.prompt.recalled import MessagesOfSession, RecalledSection
from recallog.models.working import queries as working
from recallog.queries import salient
from recallog.queries.salient import Related, SalienceQuery
from recallog.queries.scene import newest_of, notes_of
from recallog.reading.event_order import in_event_time
from recallog.reading.read_session import Snapshot
from recallog.reading.readings import AgentReading
from recallog.reading.time_travel import AsOf
from recallog_projections.tables import RowKey
from recallog_projections.views import episodic, scene, settings
from recallog_projections.views.settings import AgentSettings
from recallog_projections.views.trust import SourceClasses
from recallog_schemas import codec, limits
from recallog_schemas.event import ERASED_TEXT
from recallog_schemas.kinds import VISITORS
from recallog_schemas.models.beliefs import limits as beliefs_limits
from recallog_schemas.models.beliefs.views import ReflectionView
from recallog_schemas.models.prompt import limits as prompt_limits
from recallog_schemas.models.prompt.views import ContextView, PromptSection
from recallog_schemas.own_words import own_words
from recallog_schemas.shortening import cut
from recallog_schemas.token_estimate import estimate_tokens
from recallog_schemas.views import RecallHit, RecallView, Remembered, Sourced, are_dated, one_line

MEMORY_HEADING = "YOUR MEMORY"
"""The heading of the section with the window, or with the events chosen by salience."""

_RESULTS_HEADING = "RESULTS OF OTHER AGENTS"
_LESSON_QUESTION = (
    "Ask yourself: what did I just learn that my future self should know? If it is specific, keep it, for example "
    '"LESSON: the miller delivers only what is ordered before noon". Do not keep what anybody would expect, nor a log '
    'of actions such as "ACTION: I asked the miller".'
)
"""The question of the setting `quality.ask`, after the metacognitive prompt of the memory model."""
_PEOPLE_HEADINGS = {"visitors": "VISITOR", "users": "USER"}
"""The heading of people's words, by the agent's setting `people`."""
_SHOWN_ELSEWHERE = (
    beliefs_limits.PROMPT_BELIEFS + limits.PROMPT_ACTIONS + limits.VISITOR_EVENTS + limits.SCENE_KINDS_MAX + 1
)
"""Upper bound of the events that the prompt shows outside of its memory section, the goal included."""
_EVIDENCE_CHARS_LEAST = 40
"""The least number of characters of evidence that is shown, however long the names before it are."""
_AUTO_RECALL_EVENTS = 500
"""The number of newest events among which automatic recall searches for the messages of the user."""
_FIRST_READ_EVENTS = 100
"""The number of newest visible events that are read before the agent's settings, which may require more."""


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """The parts of a prompt that the caller sets. If they are None, they come from the views."""

    scene: str | None = None
    query: str | None = None
    extra: str | None = None
    output_format: str | None = None
    budget_tokens: int | None = None
    turn: int | None = None
    as_of: AsOf | None = None
    top_k: int | None = None
    """The number of salient events. None: the agent's setting."""
    step: str | None = None
    """What the agent does now."""
    components: Sequence[tuple[str, str]] = ()
    """Further sections: heading and text."""
    session: str | None = None
    """The session of automatic recall, and of `beside_messages`."""
    beside_messages: bool = False
    """Whether the caller passes the messages of `session` too, so that no section repeats them."""
    sections: Sequence[tuple[str, str]] = ()
    """Sections that further models add: heading and text."""


@dataclass(frozen=True, slots=True)
class _SectionContents:
    """The contents of all sections except the memory, and the query for the memory."""

    goals: Sequence[Remembered]
    seen: Sequence[Remembered]
    notes: Sequence[Remembered]
    """The notes of agents and judges that are in the scene."""
    beliefs: Sequence[Remembered]
    visitors: Sequence[Remembered]
    actions: Sequence[Remembered]
    scene: str | None
    """The scene that the caller gave; None: it is `seen`."""
    query: str
    identity: Sequence[str]
    working: str | None
    """The text of the agent's working memory, or a hint if it is empty; None if prompts do not show it."""
    results: Mapping[str, str]
    """What other agents have answered in the session, by the key of its scratchpad."""
    answered: Set[int]
    """The offset of the message to answer, if a section of the caller contains it. Other sections do not repeat it."""
    hidden: Set[int]
    """The offsets of memories that no section shows."""
    sources: SourceClasses

    def source_of(self, event: Remembered) -> Sourced:
        """The person or system from which the words of an event come."""
        return Sourced.model_construct(trust=self.sources.class_of(event.event))

    def offsets(self) -> set[int]:
        shown = (*self.goals, *self.seen, *self.notes, *self.beliefs, *self.visitors, *self.actions)
        return {*(event.position.offset for event in shown), *self.answered, *self.hidden}


@dataclass(frozen=True, slots=True)
class _MemorySection:
    """The memory section, and the events that it was chosen from."""

    events: Sequence[Remembered]
    cheapest_first: Sequence[int]
    """The list indexes of the events, in the order in which the budget removes them."""


@dataclass(frozen=True, slots=True)
class Composition:
    """A prompt before it is fitted to a budget, and its components."""

    snapshot: Snapshot
    own: AgentSettings
    prompt: Prompt
    recalled: Sequence[RecallHit]
    """The lines under RECALLED."""
    salience_query: SalienceQuery
    related: Related | None
    """The relevance of events to the query; None if the agent's memory is not chosen by salience."""
    reflection: ReflectionView
    degraded: str | None


async def context(reading: AgentReading, request: ContextRequest, count: CountTokens | None = None) -> ContextView:
    """The prompt of an agent; salience scores the newest events that the views retain. An index recalls older ones.

    `count` counts the tokens of a text; by default they are estimated.

    Raises `InvalidArgument` for a budget that is too small for the parts that are never left out.
    """
    composed = await compose(reading, request)
    count = count or estimate_tokens
    written, reflection = composed.prompt.fit(request.budget_tokens, count), composed.reflection
    return ContextView(
        generation=reflection.generation,
        checkpoint=reflection.checkpoint,
        space=reading.space,
        agent=reading.agent,
        known=reflection.known,
        dates=reflection.dates,
        text=written.text,
        sections=tuple(
            PromptSection(heading=heading, start=start, end=end, tokens=count(written.text[start:end]))
            for heading, start, end in written.sections
        ),
        tokens=count(written.text),
        budget_tokens=request.budget_tokens,
        dropped=written.dropped,
        shortened=written.shortened,
        entries=recalled.entries_of(composed.recalled, written.offsets),
        degraded=composed.degraded,
        reflection=reflection,
    )


async def compose(
    reading: AgentReading, request: ContextRequest, *, rows: Sequence[RowKey] = (), first_read: int = _FIRST_READ_EVENTS
) -> Composition:
    """The prompt of `agent` and the snapshot that it was read from, which also has `rows`.

    The snapshot has the newest `first_read` events that the agent may see, or more.
    """
    space, agent, candidates = reading.space, reading.agent, reading.log_events
    kinds: Sequence[str] = scene.DEFAULT_SCENE_KINDS
    newest = first_read
    labels: Sequence[str] = ()
    results: Sequence[str] = ()
    session = request.session if request.beside_messages else None
    while True:
        snapshot = await reading.snapshot(
            [
                *identity.rows(space, agent),
                *working.rows(space, agent, labels),
                *working.result_rows(space, agent, request.session, results),
                *salient.rows(space, agent),
                *reflections.rows(space, agent),
                *scene.rows(space, (*kinds, scene.GOAL_KIND)),
                *recalled.rows(space, agent),
                *([] if session is None else [MessagesOfSession.key(space, agent, session)]),
                *rows,
            ],
            [
                *episodic.logs(space, agent, newest),
                *scene.visitor_logs(space, agent),
                episodic.action_log(space, agent),
                *reflections.belief_logs(space, agent, beliefs_limits.PROMPT_BELIEFS),
            ],
        )
        own = snapshot.row(settings.AGENTS, space, agent) or AgentSettings()
        of_space = snapshot.row(settings.SPACES, space)
        set_to, notes = scene.scene_kinds(of_space), scene.scene_notes(of_space)
        # Events that other sections show are left out of the memory, so that a full window requires more events.
        passed = None if session is None else MessagesOfSession.read(snapshot, space, agent, session)
        hidden = _find_hidden(snapshot, space, agent, passed)
        window = (own.window or limits.WINDOW_EVENTS) + _SHOWN_ELSEWHERE + len(hidden)
        needed = candidates if own.use_salience else window
        needed = max(needed, _AUTO_RECALL_EVENTS) if own.auto_recall else needed
        needed = max(needed + sum(notes.values()), scene.NOTES_AMONG) if notes else needed
        needed = min(max(needed, reflections.events_needed(snapshot, space, agent, candidates)), candidates)
        blocks = working.labels_shown(snapshot, space, agent)
        answered = working.results_shown(snapshot, space, agent, request.session)
        if set_to == kinds and needed <= newest and blocks == labels and answered == results:
            shown = _read_sections(snapshot, reading, request, hidden, passed)
            salience_query = SalienceQuery(shown.query, request.top_k, request.turn, request.as_of)
            related = (
                await salient.find_related(snapshot, reading.searcher, space, agent, salience_query)
                if own.use_salience
                else None
            )
            memory = _memory(reading, snapshot, own, salience_query, related, shown.offsets())
            rag = recalled.settings_of(own)
            auto = await recalled.automatic(reading, snapshot, request.session) if own.auto_recall else None
            asked = recalled.RecalledRequest(
                salience_query.text, rag, request.query is not None, shown.actions, auto, passed
            )
            found = await recalled.recall_for_prompt(reading, snapshot, asked)
            elsewhere = {
                *shown.offsets(),
                *(event.position.offset for event in memory.events),
                *working.offsets_shown(snapshot, space, agent),
            }
            further = recalled.section_of(found, asked, elsewhere, request.query)
            reflection = await reflections.view(reading, snapshot)
            return Composition(
                snapshot,
                own,
                _prompt(own, request, reflection, shown, memory, further),
                further.hits,
                salience_query,
                related,
                reflection,
                _explain_degraded(found, related),
            )
        kinds, newest, labels, results = set_to, max(newest, needed), blocks, answered


def _explain_degraded(found: RecallView | None, related: Related | None) -> str | None:
    """The parts without which the prompt was composed, in words; None if it is complete."""
    reasons = [
        found.degraded if found is not None else None,
        f"relevance by {related.by}" if related is not None and related.failed else None,
    ]
    return "; ".join(reason for reason in reasons if reason) or None


def _read_sections(
    snapshot: Snapshot, reading: AgentReading, request: ContextRequest, hidden: Set[int], sent: MessagesOfSession | None
) -> _SectionContents:
    space, agent = reading.space, reading.agent

    def leave_out_hidden(events: Sequence[Remembered]) -> list[Remembered]:
        """The events that sections may show. They may be older than the memories among which `hidden` was found."""
        left = (each for each in events if not each.event.is_erased)
        return [each for each in left if sent is None or not sent.has(each.event, each.position.offset)]

    of_space = snapshot.row(settings.SPACES, space)
    goals = [event for event in leave_out_hidden(newest_of(snapshot, space, (scene.GOAL_KIND,))) if event.text]
    newest = newest_of(snapshot, space, scene.scene_kinds(of_space)) if request.scene is None else []
    seen = [event for event in leave_out_hidden(newest) if event.text and event not in goals]
    scene_text = request.scene if request.scene is not None else _texts(seen)
    notes = notes_of(snapshot, space) if request.scene is None else []
    own = snapshot.row(settings.AGENTS, space, agent) or AgentSettings()
    return _SectionContents(
        goals,
        seen,
        [event for event in leave_out_hidden(notes) if event.text and event not in (*goals, *seen)],
        leave_out_hidden(reflections.find_beliefs(snapshot, space, agent, newest=beliefs_limits.PROMPT_BELIEFS)),
        leave_out_hidden(_visitors(snapshot, space, agent)),
        leave_out_hidden(_actions(snapshot, space, agent)),
        request.scene,
        request.query if request.query is not None else scene_text or _texts(goals),
        identity.lines(snapshot, space, agent, own),
        working.section(snapshot, space, agent),
        working.results(snapshot, space, agent, request.session),
        _find_answered(snapshot, space, agent, request),
        hidden,
        SourceClasses(of_space),
    )


def _find_hidden(snapshot: Snapshot, space: str, agent: str, passed: MessagesOfSession | None) -> Set[int]:
    """The offsets of the memories that were erased, and of the messages that the caller passes."""
    memories = snapshot.memories(space, agent)
    if passed is None:  # only texts that look erased are decoded
        memories = [memory for memory in memories if memory.text == ERASED_TEXT]
    return {
        memory.offset
        for memory in memories
        if (event := codec.decode(memory.data)).is_erased or (passed is not None and passed.has(event, memory.offset))
    }


def _find_answered(snapshot: Snapshot, space: str, agent: str, request: ContextRequest) -> Set[int]:
    own = (request.scene, request.extra, request.step, *(text for _, text in request.components))
    message = recalled.plain(request.query or "")
    if not message or not any(message in recalled.plain(text) for text in own if text):
        return frozenset()
    newest_first = snapshot.memories(space, agent)[::-1]
    memories = (snapshot.make_remembered(each.offset, each.data, each.text) for each in newest_first)
    newest = next((event for event in memories if recalled.plain(event.text) == message), None)
    return frozenset() if newest is None else {newest.position.offset}


def _prompt(
    own: AgentSettings,
    request: ContextRequest,
    reflection: ReflectionView,
    shown: _SectionContents,
    memory: _MemorySection,
    asked_for: RecalledSection,
) -> Prompt:
    hits = asked_for.hits
    due = reflection.on if reflection.due else ()
    with_dates = (
        *shown.notes,
        *shown.beliefs,
        *memory.events,
        *(() if own.auto_recall else hits),
        *shown.actions,
        *shown.visitors,
        *due,
    )
    dated = are_dated((event.at for event in with_dates), reflection.dates)

    def line(event: Remembered) -> PromptLine:
        source = shown.source_of(event)
        prefix = event.line_prefix(reflection.agent, dated=dated, label=source.source_label)
        return PromptLine(source.quote_data(event.text), prefix, event.position.offset)

    def plain_line(event: Remembered) -> PromptLine:
        return PromptLine(shown.source_of(event).quote_data(event.text), offset=event.position.offset)

    who = [PromptLine(text) for text in shown.identity]
    goals = [plain_line(event) for event in shown.goals]
    working_memory = [] if shown.working is None else [PromptLine(shown.working)]
    seen = [plain_line(event) for event in shown.seen]
    said = [line(event) for event in shown.notes]
    given = [PromptLine(shown.scene)] if shown.scene else []
    beliefs = [line(event) for event in shown.beliefs]
    memories = [line(event) for event in memory.events]
    further = {
        hit.position.offset: recalled.line(
            hit, reflection.agent, dated=dated, auto=bool(own.auto_recall), follows=follows
        )
        for hit, follows in recalled.in_groups(hits)
    }
    notes = [PromptLine(f"({note})") for note in asked_for.notes]
    actions = [line(event) for event in shown.actions]
    visitors = [line(event) for event in shown.visitors if event.position.offset not in shown.answered]
    added = [Section(heading, [PromptLine(line) for line in text.splitlines()]) for heading, text in request.sections]
    answers = [PromptLine(text, f"{key} ") for key, text in shown.results.items()]
    added += [Section(_RESULTS_HEADING, answers)]
    components = [Section(heading, [PromptLine(text)]) for heading, text in request.components if text]
    extra = [PromptLine(request.extra)] if request.extra else []
    step = [PromptLine(request.step)] if request.step else []
    request_lines, evidence = _reflection_request(reflection, due, dated)
    form = [PromptLine(text) for text in ([request.output_format] if request.output_format else []) + request_lines]
    lesson = [PromptLine(_LESSON_QUESTION)] if own.quality and own.quality.get("ask") else []
    evidence_heading = [PromptLine("The newest of these events, by id:")] if evidence else []
    no_memory = [] if memories else [PromptLine("(no prior memory)")]
    quiet = [] if shown.visitors or request.beside_messages else [PromptLine("(quiet)")]
    weakest_first = [further[hit.position.offset] for hit in reversed(hits)]
    asked = weakest_first if request.query is not None or own.auto_recall else []
    by_section = [
        [] if asked else weakest_first,
        *(section.lines[::-1] for section in added),
        actions,
        [memories[number] for number in memory.cheapest_first],
        beliefs,
    ]
    surplus = [line for lines in by_section for line in lines[:-1]]
    floors = [line for lines in by_section for line in lines[-1:]]
    oldest_first = sorted([*seen[:-1], *said, *visitors[:-1]], key=lambda shown: shown.offset or 0)
    best_asked = -prompt_limits.PROMPT_ASKED_LINES_LEAST
    return Prompt(
        (
            Section("IDENTITY", who),
            Section("SHARED GOAL", goals),
            Section("WORKING MEMORY", working_memory),
            Section("CURRENT SCENE", [*(given or seen), *said]),
            Section("YOUR BELIEFS", beliefs),
            Section(MEMORY_HEADING, memories or no_memory),
            Section(recalled.HEADING, [*notes, *further.values()]),
            *added,
            Section("ACTION HISTORY", actions),
            Section(_PEOPLE_HEADINGS[own.people or VISITORS], visitors or quiet),
            *components,
            Section("", extra),
            Section("STEP", step),
            Section("WORTH KEEPING", lesson),
            Section("OUTPUT FORMAT", [*form, *evidence_heading, *evidence]),
        ),
        frozenset((*surplus, *floors)),
        (
            *(*surplus, *no_memory, *quiet, *oldest_first, *asked[:best_asked], *notes),
            *(*floors, *seen[-1:], *given, *extra, *goals, *asked[best_asked:]),
        ),
        frozenset(asked),
        visitors[-1] if visitors else None,
        evidence,
        evidence_heading[0] if evidence_heading else None,
    )


def _texts(events: Sequence[Remembered]) -> str:
    return "\n".join(one_line(event.text) for event in events if event.text)


def _visitors(snapshot: Snapshot, space: str, agent: str) -> list[Remembered]:
    """The newest events of visitors that `agent` may see."""
    tails = snapshot.tail(scene.OWN_VISITOR, space, agent), snapshot.tail(scene.SHARED_VISITOR, space)
    entries = [scene.SHARED_VISITOR.decode(data) for tail in tails for data in tail.entries]
    newest = sorted(entries, key=lambda one: one.offset)[-limits.VISITOR_EVENTS :]
    return in_event_time([snapshot.make_remembered(one.offset, one.data, one.text) for one in newest])


def _actions(snapshot: Snapshot, space: str, agent: str) -> list[Remembered]:
    """The agent's own newest actions."""
    actions = episodic.ACTIONS.decode_all(snapshot.tail(episodic.ACTIONS, space, agent).entries)
    return [snapshot.make_remembered(action.offset, action.data, action.text) for action in actions]


def _memory(
    reading: AgentReading,
    snapshot: Snapshot,
    own: AgentSettings,
    salience_query: SalienceQuery,
    related: Related | None,
    shown: Collection[int],
) -> _MemorySection:
    """The memories of `agent` that no other section shows.

    The newest ones or, if the agent is configured so, the most salient ones. The budget removes the weakest first.
    """
    space, agent = reading.space, reading.agent
    if related is None:
        newest = [memory for memory in snapshot.memories(space, agent) if memory.offset not in shown]
        window = episodic.window(newest, own.window or limits.WINDOW_EVENTS)
        events = [snapshot.make_remembered(memory.offset, memory.data, memory.text) for memory in window]
        return _MemorySection(events, range(len(events)))
    ranking = salient.rank(snapshot, space, agent, salience_query, related, more=len(shown))
    left = [list_index for _, list_index in ranking.order if ranking.memories[list_index].offset not in shown][
        : ranking.top_k
    ]
    chosen = sorted(left)
    return _MemorySection(
        [ranking.salient(snapshot, ranking.memories[list_index]) for list_index in chosen],
        [chosen.index(list_index) for list_index in reversed(left)],
    )


def _reflection_request(
    reflection: ReflectionView, due: Sequence[Remembered], dated: bool
) -> tuple[list[str], list[PromptLine]]:
    """The request of a due reflection, and its evidence; both empty if no reflection is due."""
    if not reflection.due:
        return [], []
    request = [
        f"A reflection is due: you have seen {reflection.events:,} events since your last one. Do not act this "
        "time. Say in one or two sentences what you have come to believe because of them, and answer with this "
        "JSON alone:",
        '{"kind": "agent.reflected", "payload": {"belief": "...", "based_on": ["ids of the events it rests on"]}}',
    ]
    evidence = []
    for event in due:
        own = own_words(event.text)
        if event.event.is_erased or (event.text and not own):
            continue
        prefix = event.line_prefix(reflection.agent, dated=dated)
        text = cut(one_line(own), max(prompt_limits.EVIDENCE_CHARS_MAX - len(prefix), _EVIDENCE_CHARS_LEAST))
        evidence.append(PromptLine(event.quote_data(text), prefix, event.position.offset, one_line(event.event.id)))
    return request, evidence
