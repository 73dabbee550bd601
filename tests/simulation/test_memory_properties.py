"""Answers of a memory compared with a brute-force search of the ledger's bytes."""

import random
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog.models.beliefs import due as due_reflections
from recallog.models.beliefs import queries as reflections
from recallog.models.prompt import explain
from recallog.models.prompt import queries as context
from recallog.models.prompt.queries import ContextRequest
from recallog.queries import salient, scene
from recallog.queries.salient import SalienceQuery
from recallog.reading.read_session import ReadSession
from recallog.reading.readings import SpaceReading
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.views import builtin
from recallog_schemas import Event, Position, codec, limits
from recallog_schemas.errors import InvalidEvent
from recallog_schemas.models.beliefs.views import ReflectionView
from recallog_schemas.models.prompt.views import Explanation
from recallog_schemas.views import Remembered
from recallog_streams import generations
from recallog_streams.ledgers.memory import MemoryLedger
from recallog_streams.projector import Projector
from support.events import MOMENT, event
from support.folding import NEVER_SEEN, about, all_rows, finish, folded, ledger_at, reading_of
from support.oracle import BOOKKEEPING, Expected, ExpectedEvent, ExpectedReflection, expect, trigger_of
from support.random_events import AGENTS, SPACES, random_ledger

pytestmark = pytest.mark.models("all")

SEEDS = st.integers(0, 2**32)
BATCHES = st.sampled_from((1, 2, 7, 1000))
QUERIES = st.sampled_from(
    ("", " \t", "bread", "the BREAD of the mill", "\u00a0bäcker\u3000straße\n", "i̇stanbul", "μύλοσ", "word 7", "nobody")
)
QUERIES_OF_SALIENCE = st.builds(
    SalienceQuery, QUERIES, st.none() | st.integers(1, 40), st.none() | st.none() | st.integers(0, 120) | st.just(2**50)
)
REQUESTS = st.builds(
    ContextRequest,
    query=st.none() | QUERIES,
    turn=st.none() | st.integers(0, 120),
    top_k=st.none() | st.integers(1, 40),
)
READERS = (*AGENTS, "ghost", NEVER_SEEN)
KEPT = limits.LOG_EVENTS_KEPT


@dataclass(frozen=True)
class Recorded:
    """A ledger, folded in batches of some size."""

    values: Sequence[bytes]
    unique_ids: bool
    batch_records: int
    happened_by: datetime | None = None

    @cached_property
    def ledger(self) -> MemoryLedger:
        return ledger_at(self.values, unique_ids=self.unique_ids, batch_records=self.batch_records)

    @cached_property
    def reading(self) -> SpaceReading:
        return reading_of(*folded(self.ledger, remember_until=self.happened_by), as_of=self.happened_by)

    @cached_property
    def expected(self) -> Expected:
        return expect(self.values, unique_ids=self.unique_ids, happened_by=self.happened_by)

    def explain(self, space: str, event_id: str, agent: str, query: SalienceQuery) -> Explanation:
        request = ContextRequest(query=query.text, top_k=query.top_k, turn=query.turn, as_of=self.happened_by)
        return self.explained(space, event_id, agent, request)

    def explained(self, space: str, event_id: str, agent: str, request: ContextRequest) -> Explanation:
        return finish(explain.explain(about(self.reading, space, agent), event_id, request))


@st.composite
def recordings(draw: st.DrawFn, size_max: int = 120) -> Recorded:
    """Recordings made from a seed, which a failure reports."""
    dice = random.Random(draw(SEEDS))
    unique_ids = dice.random() < 0.5
    values = random_ledger(dice, draw(st.integers(1, size_max)), unique_ids=unique_ids)
    return Recorded(values, unique_ids, draw(BATCHES))


def shown_at(found: Sequence[Remembered]) -> list[tuple[int, str]]:
    return [(shown.position.offset, shown.text) for shown in found]


def expected_at(wanted: Sequence[ExpectedEvent]) -> list[tuple[int, str]]:
    return [(each.offset, each.text) for each in wanted]


def check_salience(recorded: Recorded, space: str, agent: str, query: SalienceQuery) -> None:
    view = finish(salient.salient(about(recorded.reading, space, agent), query))
    wanted = recorded.expected.salient(space, agent, query.text, query.turn, query.top_k)
    assert shown_at(view.memories) == expected_at([one.event for one in wanted])
    for found, one in zip(view.memories, wanted, strict=True):
        terms = (found.score, found.relevance, found.recency, found.importance)
        assert terms == pytest.approx((one.score, one.relevance, one.recency, one.importance), rel=0, abs=1e-12)
    assert view.considered == min(KEPT, len(recorded.expected.memories(space, agent)))
    assert view.turn == (recorded.expected.clock(space) if query.turn is None else query.turn)


def check_reflection(view: ReflectionView, reflection: ExpectedReflection, turn: int) -> None:
    since, last = view.since and view.since.offset, view.last and view.last.offset
    assert (view.due, view.threshold, view.events) == (reflection.due, reflection.threshold, len(reflection.counted))
    assert (since, last, view.trigger, view.turn) == (reflection.since, reflection.last, reflection.trigger, turn)
    assert shown_at(view.on) == expected_at(reflection.evidence)


def check_all_reflections(recorded: Recorded) -> None:
    pending = []
    for space in sorted(SPACES):
        for agent in sorted(READERS):
            reflection = recorded.expected.reflection(space, agent)
            view = finish(reflections.reflection_of(about(recorded.reading, space, agent)))
            check_reflection(view, reflection, recorded.expected.clock(space))
            if reflection.due:
                pending.append((space, agent, reflection.trigger, len(reflection.counted), reflection.threshold))
    assert finish(all_pending(recorded.reading)) == pending
    of_the_city = [trigger for trigger in pending if trigger[0] == "city"]
    assert finish(all_pending(recorded.reading, "city")) == of_the_city


async def all_pending(reading: ReadSession, space: str | None = None) -> list[tuple[str, str, str, int, int]]:
    return [
        (found.space, found.agent, found.trigger, found.events, found.threshold)
        async for found in due_reflections.pending(reading, None if space is None else [space])
    ]


# Salience.


@settings(max_examples=100)
@given(
    recordings(),
    st.sampled_from(SPACES),
    st.lists(st.tuples(st.sampled_from(READERS), QUERIES_OF_SALIENCE), min_size=4),
)
def test_salient_events_equal_those_of_a_brute_force_search(
    recorded: Recorded, space: str, questions: list[tuple[str, SalienceQuery]]
) -> None:
    for agent, query in questions:
        check_salience(recorded, space, agent, query)


# Reflection.


@settings(max_examples=150)
@given(recordings())
def test_one_trigger_is_pending_for_each_agent_whose_reflection_is_due_and_for_no_other(recorded: Recorded) -> None:
    check_all_reflections(recorded)


@settings(max_examples=20)
@given(recordings(size_max=40))
def test_at_every_position_a_reflection_is_due_exactly_if_a_tally_finds_it_due(recorded: Recorded) -> None:
    for until in range(len(recorded.values)):
        check_all_reflections(Recorded(recorded.values[:until], recorded.unique_ids, recorded.batch_records))


@pytest.mark.parametrize("spelling", ["{}0", "{}00", "{}٠", "{}0 ", "{}", "{}-0", "0{}0"])  # noqa: RUF001
def test_a_trigger_is_answered_only_by_its_own_id(spelling: str) -> None:
    """A cause that names the older trigger answers nothing; no cause answers the present one."""
    trigger = trigger_of("village", "baker", 0)
    cause = spelling.format(trigger[:-1])
    reflected = [event("agent.reflected"), event("agent.reflected", causation_id=cause)]
    recorded = Recorded([codec.encode(each) for each in reflected], True, 1000)
    view = finish(reflections.reflection_of(about(recorded.reading, "village", "baker")))
    assert view.last == Position(0, 0 if cause == trigger else 1)
    check_reflection(view, recorded.expected.reflection("village", "baker"), 0)


# Beliefs and scene.


@settings(max_examples=60)
@given(recordings())
def test_beliefs_are_an_agent_s_reflections_that_the_reader_could_see_when_they_were_published(
    recorded: Recorded,
) -> None:
    for space in SPACES:
        for agent in AGENTS:
            for reader in (None, *READERS):
                view = finish(reflections.beliefs_of(about(recorded.reading, space, agent), reader))
                assert shown_at(view.beliefs) == expected_at(recorded.expected.beliefs(space, agent, reader))


@settings(max_examples=60)
@given(recordings())
def test_the_scene_is_the_newest_shared_event_of_each_of_its_kinds(recorded: Recorded) -> None:
    for space in SPACES:
        view = finish(scene.scene_of(about(recorded.reading, space)))
        assert list(view.kinds) == recorded.expected.scene_kinds(space)
        assert shown_at(view.events) == expected_at(recorded.expected.scene(space))


@settings(max_examples=40)
@given(recordings())
def test_a_prompt_shows_the_last_events_of_visitors(recorded: Recorded) -> None:
    for space in SPACES:
        for agent in READERS:
            prompt = finish(context.context(about(recorded.reading, space, agent), ContextRequest(extra="END")))
            heard = recorded.expected.visitors(space, agent)
            lines = "\n".join(
                ["VISITOR", *lines_of(recorded, space, heard, agent)] if heard else ["VISITOR", "(quiet)"]
            )
            assert undated(prompt.text).partition("\n\nEND")[0].endswith(f"\n\n{lines}")


@settings(max_examples=40)
@given(recordings())
def test_a_prompt_shows_the_last_actions_of_its_agent(recorded: Recorded) -> None:
    for space in SPACES:
        for agent in READERS:
            prompt = finish(context.context(about(recorded.reading, space, agent), ContextRequest()))
            done = recorded.expected.actions(space, agent)
            history = "\n".join(["", "ACTION HISTORY", *lines_of(recorded, space, done, agent), "", "VISITOR", ""])
            assert history in undated(prompt.text) if done else "ACTION HISTORY" not in prompt.text


def lines_of(recorded: Recorded, space: str, events: Sequence[ExpectedEvent], reader: str) -> list[str]:
    outside = recorded.expected.outside(space)
    lines = [(one, prefix_of(one, reader), " ".join(one.text.splitlines())) for one in events]
    return [
        f"{prefix[:-1]}[tool] «{text}»" if one.kind in outside else f"{prefix}{text}" for one, prefix, text in lines
    ]


def undated(text: str) -> str:
    return re.sub(r"(\[turn \d+), \d{4}-\d\d-\d\d\]", r"\1]", text)


def prefix_of(one: ExpectedEvent, reader: str) -> str:
    return f"[turn {one.turn:03d}][{one.kind}]{'' if one.agent == reader else f'[{one.agent}]'} "


# Explanations.


@settings(max_examples=60)
@given(
    recordings(), QUERIES_OF_SALIENCE, st.lists(st.tuples(st.sampled_from(READERS), st.integers(0, 119)), min_size=5)
)
def test_explanations_agree_with_brute_force(
    recorded: Recorded, query: SalienceQuery, targets: list[tuple[str, int]]
) -> None:
    for agent, offset in targets:
        with suppress(InvalidEvent):
            check_reason(recorded, codec.decode(recorded.values[offset % len(recorded.values)]), agent, query)


def check_reason(recorded: Recorded, target: Event, agent: str, query: SalienceQuery) -> None:
    expected, space = recorded.expected, target.space
    found = recorded.explain(space, target.id, agent, query)
    assert found.position is not None
    offset = found.position.offset
    ranked = expected.ranked(space, agent, query.text, query.turn)
    seen = [each.offset for each in expected.memories(space, agent)]
    if offset not in seen:
        check_nothing_is_shown(found, [each for each in expected.counted if each.offset == offset])
        return
    rank = 1 + [one.event.offset for one in ranked].index(offset)
    newer = len([other for other in seen if other > offset])
    in_episodic = newer < (expected.setting(space, agent, "window") or 8)
    in_salient = rank <= (query.top_k or expected.top_k(space, agent))
    assert (found.rank, found.newer, found.considered) == (rank, newer, len(seen))
    assert (found.in_episodic, found.in_salient) == (in_episodic, in_salient)
    by_salience = expected.setting(space, agent, "use_salience")
    assert found.verdict == ("remembered" if found.sections else "outscored" if by_salience else "out_of_window")
    assert found.sections or not (in_salient if by_salience else in_episodic)
    assert found.memory is not None
    assert found.memory.score == pytest.approx(ranked[rank - 1].score, rel=0, abs=1e-12)


def check_nothing_is_shown(found: Explanation, counted: Sequence[ExpectedEvent]) -> None:
    if not counted:
        assert found.verdict == "dead_letter"
    else:
        assert found.verdict == ("bookkeeping" if counted[0].kind in BOOKKEEPING else "not_visible")
        assert not counted[0].text or counted[0].text not in found.model_copy(update={"query": ""}).model_dump_json()
    assert (found.memory, found.rank, found.newer) == (None, None, None)
    assert (found.sections, found.in_episodic, found.in_salient) == ((), False, False)


@settings(max_examples=40)
@given(recordings(size_max=60), st.sampled_from(SPACES), st.sampled_from(READERS), REQUESTS)
def test_explanations_name_the_section_of_every_event_that_the_prompt_shows_and_of_no_other(
    recorded: Recorded, space: str, agent: str, request: ContextRequest
) -> None:
    answer = context.context(about(recorded.reading, space, agent), request)
    prompt = sections_of(finish(answer).text)
    shown: dict[str, list[str]] = {heading: [] for heading in prompt}
    for each in recorded.expected.counted:
        if each.space == space:
            found = recorded.explained(space, str(each.fields["id"]), agent, request)
            assert bool(found.sections) == (found.verdict == "remembered")
            for heading in found.sections:
                shown[heading].append(" ".join(each.text.splitlines()))
    assert {heading: sorted(texts) for heading, texts in shown.items() if heading != EVIDENCE} == {
        heading: sorted(texts) for heading, texts in prompt.items() if heading != EVIDENCE
    }
    assert len(shown.get(EVIDENCE, [])) == len(prompt.get(EVIDENCE, []))


EVIDENCE = "OUTPUT FORMAT"


def sections_of(prompt: str) -> dict[str, list[str]]:
    """The texts of the events in each section of a prompt."""
    found = {}
    for heading, *lines in (section.split("\n") for section in prompt.split("\n\n")):
        if heading == EVIDENCE:
            lines = lines[3:]
        if heading != "IDENTITY":
            texts = [re.sub(r"^\[turn [^\]]*\](\[[^\] ]*\])+ ", "", line) for line in lines]
            texts = [re.sub(r"^«(.*)»$", r"\1", text) for text in texts]
            found[heading] = [text for text in texts if text not in ("(no prior memory)", "(quiet)")]
    return found


@settings(max_examples=20)
@given(recordings(), st.sampled_from(SPACES), st.sampled_from(READERS))
def test_an_unknown_id_has_the_verdict_unknown(recorded: Recorded, space: str, agent: str) -> None:
    assert recorded.explain(space, "no such id", agent, SalienceQuery()).verdict == "unknown"


# The past, and rebuilds.


@settings(max_examples=60)
@given(recordings(), st.integers(-1, 60), QUERIES_OF_SALIENCE)
def test_an_answer_as_of_a_time_contains_no_later_events(
    recorded: Recorded, minutes: int, query: SalienceQuery
) -> None:
    by = datetime.fromisoformat(MOMENT) + timedelta(minutes=minutes)
    then = Recorded(recorded.values, recorded.unique_ids, recorded.batch_records, happened_by=by)
    check_all_reflections(then)
    for space in SPACES:
        assert shown_at(finish(scene.scene_of(about(then.reading, space))).events) == expected_at(
            then.expected.scene(space)
        )
        for agent in READERS:
            check_salience(then, space, agent, query)
            beliefs = finish(reflections.beliefs_of(about(then.reading, space, agent), None)).beliefs
            assert shown_at(beliefs) == expected_at(then.expected.beliefs(space, agent))


@settings(max_examples=60)
@given(recordings(), st.integers(0, 120))
def test_a_rebuild_at_any_point_gives_the_same_rows_and_publishes_nothing(recorded: Recorded, point: int) -> None:
    """Each step runs in a new process, which knows the rows from the store only."""
    ledger, store = ledger_at(recorded.values[:point], unique_ids=recorded.unique_ids), MemoryStore()
    before = finish(generations.current(Projector(ledger, store, builtin.projections()), 0))
    rows_before = all_rows(Projector(ledger, store, builtin.projections()), before)
    rebuilt = finish(generations.rebuild(Projector(ledger, store, builtin.projections()), 0)).active
    assert all_rows(Projector(ledger, store, builtin.projections()), rebuilt) == rows_before
    assert ledger.values() == recorded.values[:point]
    for value in recorded.values[point:]:
        ledger.append_bytes(value)
    projector = Projector(ledger, store, builtin.projections())
    assert all_rows(projector, finish(generations.current(projector, 0))) == all_rows(*folded(recorded.ledger))
    assert ledger.values() == recorded.values


# Beyond the retention of the views.


@pytest.fixture(scope="module")
def long_run() -> Recorded:
    """Some 2,600 events that the baker may see: its own, addressed to it, and shared; the oldest are the strongest."""
    dice = random.Random(7)
    events = [event("agent.configured", payload={"reflection_threshold": 3, "salience_top_k": 40})]
    for number in range(3_000):
        kind = dice.choice(("agent.spoke", "world.observed", "user.injected", "agent.thought"))
        agent = dice.choice(("baker", "baker", "miller"))
        audience = dice.choice((None, None, None, ["baker"]))
        text = " ".join(dice.choices(["bread", "flour", "mill", "river", "the", "of", "night"], k=6))
        turn = dice.choice((number // 10, 300 - number // 10))
        events.append(event(kind, agent=agent, audience=audience, turn=turn, payload={"text": text}))
    return Recorded([codec.encode(each) for each in events], True, 2_000)


@pytest.mark.parametrize("query", ["", "bread of the mill", "river at night"])
@pytest.mark.parametrize("turn", [None, 10])
def test_beyond_the_retention_of_the_views_the_newest_events_are_ranked(
    long_run: Recorded, query: str, turn: int | None
) -> None:
    assert len(long_run.expected.memories("village", "baker")) > 2_400
    check_salience(long_run, "village", "baker", SalienceQuery(query, turn=turn))


def test_beyond_the_retention_of_the_views_all_events_are_counted_without_the_first(
    long_run: Recorded,
) -> None:
    reflection = long_run.expected.reflection("village", "baker")
    view = finish(reflections.reflection_of(about(long_run.reading, "village", "baker")))
    assert (view.due, view.events, view.trigger) == (True, len(reflection.counted), reflection.trigger)
    assert (reflection.since, view.since) == (reflection.counted[2].offset, None)
    assert shown_at(view.on) == expected_at(reflection.counted[-20:])
