"""The graph of beliefs: subjects and stances, what is unfounded and why, and the doors that answer."""

import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from recallog import Event, Memory, Settings, sync
from recallog.models.beliefs.extractive import Extractive
from recallog.models.beliefs.model_reflector import ModelReflector
from recallog.models.beliefs.reflector import Evidence, ReflectionAnswer, ReflectionRequest, check_answer
from recallog.views import BeliefGraph, LinkedBelief
from recallog_schemas import limits
from recallog_schemas.errors import InvalidEvent
from support.cli import recallog
from support.console import Browser
from support.events import event, one_loop, publish_in, run

pytestmark = pytest.mark.models("beliefs", "long_term")

SPACE, BAKER, SMITH, WIDOW = "village", "baker", "smith", "widow"


def believed(id_: str, agent: str = BAKER, about: Any = "the miller", **payload: Any) -> Event:
    audience = payload.pop("audience", None)
    fields = {"belief": f"Belief {id_}.", "about": about, **payload}
    return event("agent.reflected", id=id_, agent=agent, payload=fields, audience=audience)


def graph_of(events: Sequence[Event], agent: str = BAKER, **options: Any) -> BeliefGraph:
    async def work() -> BeliefGraph:
        async with Memory.in_memory() as memory:
            await memory.publish_many(events)
            return await memory.beliefs.graph(SPACE, agent, **options)

    return run(work())


def edges(graph: BeliefGraph) -> list[tuple[str, str, str]]:
    return [(each.source, each.relation, each.target) for each in graph.edges]


def lost(belief: LinkedBelief) -> list[tuple[str, str]]:
    return [(each.id, each.reason) for each in belief.unfounded]


OPPOSITE = (
    believed("b-1", stance="for"),
    believed("b-2", about=[" The  MILLER "], stance="against"),
    believed("s-1", SMITH, stance="for"),
)


# Subjects, stances and edges.


def test_beliefs_on_one_subject_contradict_dispute_and_support_each_other() -> None:
    graph = graph_of(OPPOSITE)
    assert edges(graph) == [
        ("b-2", "contradicts", "b-1"),
        ("s-1", "supports", "b-1"),
        ("s-1", "disputes", "b-2"),
    ]
    assert [(each.name, each.beliefs) for each in graph.subjects] == [("the miller", 3)]


def test_a_superseded_belief_has_no_other_edges() -> None:
    graph = graph_of([*OPPOSITE, believed("b-3", stance="for", supersedes="b-2")])
    assert edges(graph) == [
        ("s-1", "supports", "b-1"),
        ("b-3", "supports", "b-1"),
        ("b-3", "supersedes", "b-2"),
        ("b-3", "supports", "s-1"),
    ]
    assert [each.superseded_by for each in graph.beliefs] == [None, "b-3", None, None]


@pytest.mark.parametrize(
    "event_",
    [
        believed("x", SMITH, stance="for", supersedes="b-1"),
        believed("x", about="trade", stance="for", supersedes="b-1"),
        believed("x", stance="for", supersedes="x"),
    ],
    ids=["another agent's", "on another subject", "itself"],
)
def test_only_an_earlier_belief_of_the_same_agent_on_the_subject_is_superseded(event_: Event) -> None:
    graph = graph_of([OPPOSITE[0], event_, believed("later", SMITH)])
    assert all(each.superseded_by is None for each in graph.beliefs)
    assert "supersedes" not in [relation for _, relation, _ in edges(graph)]


def test_a_belief_without_a_subject_is_not_in_the_graph_and_one_without_a_stance_has_no_opponent() -> None:
    graph = graph_of([*OPPOSITE[:1], believed("b-2"), believed("b-3", about=None, stance="against")])
    assert [each.event.id for each in graph.beliefs] == ["b-1", "b-2"]
    assert graph.edges == ()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("about", 5),
        ("about", []),
        ("about", ["a"] * 5),
        ("about", " "),
        ("about", "x" * 121),
        ("about", [""]),
        ("stance", "maybe"),
        ("supersedes", ""),
    ],
)
def test_a_wrong_subject_or_stance_is_refused_with_its_path(field: str, value: object) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            payload = {"belief": "x", field: value}
            with pytest.raises(InvalidEvent) as refused:
                await memory.publish({"space": SPACE, "agent": BAKER, "kind": "agent.reflected", "payload": payload})
            assert refused.value.path == f"payload.{field}"

    run(work())


def test_another_reader_sees_neither_private_beliefs_nor_that_they_supersede() -> None:
    private = believed("b-3", stance="against", supersedes="b-1", audience=[SMITH])
    history = [OPPOSITE[0], OPPOSITE[2], private]
    assert edges(graph_of(history, WIDOW)) == [("s-1", "supports", "b-1")]
    assert edges(graph_of(history, SMITH)) == [("b-3", "supersedes", "b-1"), ("b-3", "disputes", "s-1")]


def test_an_imported_reflection_is_not_in_the_graph_and_supersedes_nothing() -> None:
    forged = believed("b-4", stance="against", supersedes="b-1", trust="import")
    assert graph_of([*OPPOSITE, forged]).beliefs == graph_of(OPPOSITE).beliefs

    async def work() -> list[tuple[str, str, str]]:
        async with Memory.in_memory() as memory:
            await memory.configure_space(SPACE, trust={"beliefs": "import"})
            await memory.publish_many([*OPPOSITE, forged])
            return edges(await memory.beliefs.graph(SPACE, BAKER, about="the miller"))

    assert ("b-4", "supersedes", "b-1") in run(work())


def test_if_not_all_beliefs_fit_their_edges_are_left_out_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ANSWER_BYTES_MAX", 20_000)
    whole = [believed(f"b-{number}", stance="for", text="x" * 2_000) for number in range(40)]
    graph = graph_of(whole)
    ids = {each.event.id for each in graph.beliefs}
    assert graph.left_out == 16 - len(ids) > 0
    assert graph.subjects[0].unlinked == 24
    assert len(graph.edges) == len(ids) * (len(ids) - 1) / 2
    assert {each.source for each in graph.edges} | {each.target for each in graph.edges} == ids


def test_a_limit_leaves_out_the_edges_of_the_older_beliefs(tmp_path: Path) -> None:
    publish_in(tmp_path, *[believed(f"b-{number}", stance="for") for number in range(4)])
    command = "beliefs", SPACE, BAKER, "--graph", "--limit", 2, "--home", tmp_path
    shown = recallog(*command)
    assert shown.code == 0
    assert shown.out.count(" supports ") == 1
    (edge,) = recallog(*command, "--json").json["edges"]
    assert (edge["source"], edge["target"]) == ("b-3", "b-2")


# Grounds.


def grounds_of(change: Callable[[Memory], Awaitable[object]], reader: str = BAKER) -> list[list[tuple[str, str]]]:
    """The lost grounds of a belief that is based on the entry `home`, and of one that is based on this belief."""

    async def work() -> list[list[tuple[str, str]]]:
        async with Memory.in_memory() as memory:
            await memory.long_term.retain(SPACE, BAKER, "Ann lives in Rome.", entry_id="home")
            await memory.publish_many([believed("b-1", based_on=["home"]), believed("b-2", based_on=["b-1", "home-2"])])
            assert not any(each.unfounded for each in (await memory.beliefs.graph(SPACE, reader)).beliefs)
            until = (await memory.beliefs.graph(SPACE, reader)).checkpoint
            await change(memory)
            then = await memory.beliefs.graph(SPACE, reader, as_of=until)
            assert {reason for each in then.beliefs for _, reason in lost(each)} <= {"erased", "unfounded"}
            return [lost(each) for each in (await memory.beliefs.graph(SPACE, reader)).beliefs]

    return run(work())


CHANGES: dict[str, Callable[[Memory], Awaitable[object]]] = {
    "retracted": lambda memory: memory.long_term.retract(SPACE, BAKER, "home"),
    "erased": lambda memory: memory.long_term.forget(SPACE, BAKER, ["home"]),
    "corrected": lambda memory: memory.long_term.update(SPACE, BAKER, "home", text="Ann lives in Oslo."),
    "superseded": lambda memory: memory.long_term.retain(SPACE, BAKER, "Ann lives in Oslo.", entry_id="new"),
}


@pytest.mark.parametrize("reason", CHANGES)
def test_a_belief_whose_ground_changed_is_unfounded_and_so_is_what_rests_on_it(reason: str) -> None:
    assert grounds_of(CHANGES[reason]) == [[("home", reason)], [("b-1", "unfounded")]]


@pytest.mark.parametrize("reason", CHANGES)
def test_a_reader_does_not_learn_what_became_of_an_entry_that_it_could_not_read(reason: str) -> None:
    assert grounds_of(CHANGES[reason], SMITH) == [[], []]


def test_an_archived_ground_is_not_lost() -> None:
    assert grounds_of(lambda memory: memory.long_term.archive(SPACE, BAKER, "home")) == [[], []]


def test_a_belief_that_is_made_from_the_corrected_text_is_founded() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.long_term.retain(SPACE, BAKER, "Ann lives in Rome.", entry_id="home")
            await memory.long_term.update(SPACE, BAKER, "home", text="Ann lives in Oslo.")
            await memory.publish(believed("b-1", based_on=["home"]))
            assert [lost(each) for each in (await memory.beliefs.graph(SPACE, BAKER)).beliefs] == [[]]

    run(work())


def test_an_earlier_belief_that_its_agent_supersedes_is_a_lost_ground() -> None:
    history = [OPPOSITE[0], believed("s-1", SMITH, based_on=["b-1"]), believed("b-2", supersedes="b-1")]
    assert [lost(each) for each in graph_of(history).beliefs] == [[], [("b-1", "superseded")], []]


def test_a_belief_of_what_a_person_said_is_unfounded_or_erased_with_it(tmp_path: Path) -> None:
    """A belief has the keys of the sources that it names. One that was published before its source has not."""

    async def work() -> None:
        async with Memory.open(Settings(home=tmp_path, index="off")) as memory:
            await memory.publish(believed("early", based_on=["said"]))
            await memory.publish(event("user.injected", id="said", subject="ann", payload={"text": "I am ill."}))
            await memory.publish(believed("late", based_on=["said"]))
            await memory.erase(SPACE, subject="ann")
            found = (await memory.beliefs.graph(SPACE, SMITH)).beliefs
            assert [(each.event.id, lost(each)) for each in found] == [("early", [("said", "erased")])]

    run(work())


# Reflectors.

EVIDENCE = [
    Evidence("e-1", 1, SMITH, "agent.spoke", "I was at home.", 0.6),
    Evidence("e-2", 2, WIDOW, "agent.spoke", "He was not.", 0.7),
    Evidence("e-3", 3, SMITH, "agent.spoke", "I was.", 0.8),
    Evidence("e-4", 4, BAKER, "agent.thought", "Who knows?", 0.1),
]
QUESTION = ReflectionRequest("trigger", SPACE, BAKER, None, None, (), EVIDENCE)


def test_the_offline_reflector_is_about_the_others_that_it_quotes() -> None:
    answer = run(Extractive().reflect(QUESTION))
    assert (answer.about, answer.stance) == ((SMITH, WIDOW), None)
    alone = ReflectionRequest("trigger", SPACE, BAKER, None, None, (), EVIDENCE[3:])
    assert run(Extractive().reflect(alone)).about == ()


class Replying:
    """A chat model with one reply."""

    def __init__(self, **reply: Any) -> None:
        self._reply = json.dumps({"belief": "He was at home.", "based_on": ["e-1"], **reply})

    async def ask(self, instructions: str, data: object) -> str:
        return self._reply


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ({"about": ["the  smith", "", "the smith"], "stance": "for"}, (("the smith",), "for")),
        ({"about": ["x" * 200]}, (("x" * 119 + "…",), None)),
        ({"about": list("abcdef"), "stance": "maybe"}, (("a", "b", "c", "d"), None)),
        ({"about": "the smith", "stance": "for"}, ((), None)),
        ({"stance": "against"}, ((), None)),
        ({"about": [7]}, ((), None)),
    ],
)
def test_what_a_model_says_of_subjects_is_made_valid(reply: dict[str, Any], expected: tuple[Any, Any]) -> None:
    reflector = ModelReflector(Replying(**reply))  # type: ignore[arg-type]
    answer = check_answer(run(reflector.reflect(QUESTION)), QUESTION)
    assert (answer.about, answer.stance) == expected
    assert check_answer(answer, QUESTION) == answer


def test_an_answer_to_a_due_reflection_places_its_belief() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish(event("agent.configured", agent=BAKER, payload={"reflection_threshold": 1}))
            await memory.publish_many([event(agent=SMITH, id="e-1", audience=[BAKER]), OPPOSITE[2]])
            due = await memory.reflection(SPACE, BAKER)
            await memory.publish(due.answer("He lies.", ["e-1"], about="the miller", stance="against"))
            assert [relation for _, relation, _ in edges(await memory.beliefs.graph(SPACE, BAKER))] == ["disputes"]

    run(work())


def test_the_reactor_publishes_the_subjects_of_its_reflector() -> None:
    class Opinionated(Extractive):
        async def reflect(self, request: ReflectionRequest) -> ReflectionAnswer:
            return ReflectionAnswer("He lies.", [request.evidence[0].id], ["the miller"], "against")

    async def work() -> None:
        async with Memory.in_memory(reflector=Opinionated()) as memory:
            await memory.publish(event("agent.configured", agent=BAKER, payload={"reflection_threshold": 1}))
            await memory.publish_many([OPPOSITE[2], event(agent=SMITH, id="e-1", audience=[BAKER])])
            await memory.react(SPACE)
            assert [relation for _, relation, _ in edges(await memory.beliefs.graph(SPACE, BAKER))] == ["disputes"]

    run(work())


# Doors.


def test_the_facade_can_be_called_and_has_further_operations(tmp_path: Path) -> None:
    with sync.Memory.open(Settings(home=tmp_path, index="off")) as memory:
        memory.publish_many(OPPOSITE)
        assert [each.event.id for each in memory.beliefs(SPACE, BAKER).beliefs] == ["b-1", "b-2"]
        (first, second) = memory.beliefs.contradictions(SPACE, WIDOW, about="THE MILLER").contradictions
        assert (first.relation, first.earlier.event.id, first.later.event.id) == ("disputes", "b-2", "s-1")
        assert (second.relation, second.earlier.event.id, second.later.event.id) == ("contradicts", "b-1", "b-2")
        assert memory.beliefs.graph(SPACE, WIDOW, about="trade").beliefs == ()


def test_the_command_selects_the_graph_and_the_contradictions_by_options(tmp_path: Path) -> None:
    with sync.Memory.open(Settings(home=tmp_path, index="off")) as memory:
        memory.publish_many(OPPOSITE)
    shown = recallog("beliefs", SPACE, BAKER, "--graph", "--home", tmp_path)
    assert shown.out.splitlines() == [
        "1 [turn 000][agent.reflected] Belief b-1. (for)",
        "2 [turn 000][agent.reflected] Belief b-2. (against)",
        "3 [turn 000][agent.reflected][smith] Belief s-1. (for)",
        "the miller: 3 beliefs",
        "  2 contradicts 1",
        "  3 supports 1",
        "  3 disputes 2",
    ]
    found = recallog("beliefs", SPACE, BAKER, "--contradictions", "--about", "The Miller", "--json", "--home", tmp_path)
    assert [each["relation"] for each in found.json["contradictions"]] == ["disputes", "contradicts"]
    assert recallog("beliefs", SPACE, BAKER, "--about", "x", "--home", tmp_path).code == 2


def test_a_text_with_line_breaks_cannot_look_like_an_edge() -> None:
    graph = graph_of([believed("b-1", about="x\n  2 contradicts 1", belief="a\n  2 contradicts 1", stance="for")])
    assert len(graph.format().splitlines()) == 2


def test_the_console_shows_the_graph_at_a_moment(tmp_path: Path) -> None:
    with one_loop():
        memory = Memory.open(Settings(home=tmp_path, index="off"))
        run(memory.publish_many([believed("b-0", about=None), *OPPOSITE]))
        browser, page = Browser(memory, tmp_path), f"/console/agent?space={SPACE}&agent={BAKER}"
        now, then = browser.page(page).text, browser.page(f"{page}&at=0").text
        run(memory.close())
    assert "Graph of beliefs" in now
    assert "disputes" in now
    assert "Graph of beliefs" not in then


@pytest.mark.models("consensus")
def test_a_belief_on_a_superseded_consensus_is_unfounded_for_those_who_see_it() -> None:
    """Only entries and beliefs could be superseded as grounds."""
    agreed = {"topic": "the mill", "conclusion": "It is safe.", "confidence": 0.9}
    agreed |= {"participating": [BAKER, SMITH], "agreeing": [BAKER, SMITH]}

    def recorded(id_: str, **more: Any) -> Event:
        audience = more.pop("audience", None)
        return event("consensus.recorded", id=id_, agent=BAKER, payload={**agreed, **more}, audience=audience)

    history = [
        recorded("c-1"),
        recorded("c-2", audience=[SMITH]),
        believed("b-1", based_on=["c-1"]),
        believed("b-2", based_on=["c-2"]),
        recorded("c-3", conclusion="It is not safe.", supersedes="c-1"),
        recorded("c-4", conclusion="It is not safe.", supersedes="c-2", audience=[SMITH]),
        believed("b-3", based_on=["c-1"]),
    ]
    assert [lost(each) for each in graph_of(history).beliefs] == [[("c-1", "superseded")], [("c-2", "superseded")], []]
    assert [lost(each) for each in graph_of(history, WIDOW).beliefs] == [[("c-1", "superseded")], [], []]
