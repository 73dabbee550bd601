"""What a grant hides: through no operation of the registry comes a word of another space or of a private memory."""

import json
import re
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recallog import (
    DeadLettered,
    Forbidden,
    IdConflict,
    IndexUnavailable,
    InvalidArgument,
    Memory,
    ModelFailed,
    RecallogError,
    StorageCorrupt,
    StorageUnavailable,
)
from recallog.access import FacadePart
from recallog.extending import MemoryLedger, MemoryStore, assemble
from recallog.models.long_term import parameters as long_term_parameters
from recallog.operations import parameters, pipeline
from recallog.operations.facade import all_operations, operation
from recallog.operations.operation import Operation, Scope
from recallog.operations.parameters import At
from recallog.queries.timeline import window
from recallog_schemas.views import EpisodicView
from recallog_service.access import Grant, Guarded, Verb
from support import guarded_world as world
from support.events import one_loop, run
from support.guarded_world import ANNA, AS_ANNA, BERT, HIDDEN, IN_ACME, OTHER_SPACE, SECOND_SPACE, SPACE

pytestmark = pytest.mark.models("all")

OPERATIONS = all_operations(Memory)
PROPERTY = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module", autouse=True)
def loop() -> Iterator[None]:
    with one_loop():
        yield


@pytest.fixture(scope="module")
def memory(loop: None) -> Iterator[Memory]:
    yield from _populated()


@pytest.fixture(scope="module")
def untouched(loop: None) -> Iterator[Memory]:
    """A memory in which nobody but anna does anything: an id that was erased is refused as a source to everybody."""
    yield from _populated()


def _populated() -> Iterator[Memory]:
    opened = Memory.in_memory()
    run(world.populate(opened))
    yield opened
    run(opened.close())


def outcome(memory: Memory, grant: Grant, name: str, given: dict[str, Any]) -> tuple[str, str]:
    """What a door can show of a call: the class of the error and its message and fields, or the answer as JSON."""
    declared = OPERATIONS[name]
    try:
        answer = run(Guarded(memory, grant).call(declared, given))
    except RecallogError as error:
        return type(error).__name__, f"{error} {vars(error)}"
    return "", declared.to_json(answer).decode()


# Leaks.


@pytest.mark.parametrize("name", OPERATIONS)
@given(data=st.data())
@PROPERTY
def test_no_answer_has_a_word_that_is_hidden_from_the_agent(memory: Memory, name: str, data: st.DataObject) -> None:
    arguments = data.draw(world.arguments(OPERATIONS[name]))
    _, shown = outcome(memory, AS_ANNA, name, arguments)
    assert HIDDEN not in shown
    assert OTHER_SPACE not in shown or OTHER_SPACE in json.dumps(arguments)


@pytest.mark.parametrize("name", OPERATIONS)
@given(data=st.data())
@PROPERTY
def test_no_answer_has_a_word_of_a_space_that_the_grant_does_not_cover(
    memory: Memory, name: str, data: st.DataObject
) -> None:
    arguments = data.draw(world.arguments(OPERATIONS[name]).filter(lambda given: given.get("space") != SPACE))
    if OPERATIONS[name].parameters.keys() >= {"space"} and arguments.get("space") is None:
        arguments["space"] = OTHER_SPACE
    _, shown = outcome(memory, IN_ACME, name, arguments)
    assert "rival" not in shown or "rival" in json.dumps(arguments)
    assert HIDDEN not in shown or arguments.get("space") is None, shown


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("verb", list(Verb))
def test_an_operation_needs_its_verb(memory: Memory, name: str, verb: Verb) -> None:
    grant = Grant(spaces=("*",), agent="*", verbs=frozenset(Verb) - {verb})
    if OPERATIONS[name].scope.value == verb:
        assert outcome(memory, grant, name, {"no": "arguments"})[0] == "Forbidden"


# Unknown and forbidden.


@pytest.mark.parametrize("name", OPERATIONS)
@given(data=st.data())
@PROPERTY
def test_a_forbidden_space_or_agent_cannot_be_told_from_an_unknown_one(
    memory: Memory, name: str, data: st.DataObject
) -> None:
    arguments = data.draw(world.arguments(OPERATIONS[name]))
    for parameter, hidden, unknown in (
        ("space", OTHER_SPACE, world.UNKNOWN_SPACE),
        ("agent", BERT, world.UNKNOWN_AGENT),
    ):
        if parameter in OPERATIONS[name].parameters:
            kind, shown = outcome(memory, AS_ANNA, name, arguments | {parameter: hidden})
            expected = kind, shown.replace(hidden, unknown)
            assert outcome(memory, AS_ANNA, name, arguments | {parameter: unknown}) == expected


NEW_IDS = {long_term_parameters.NewEntryId, parameters.NewEventId}
LISTS_OF_IDS = {"ids", "entry_ids", "based_on"}


CHANGING = re.compile(
    r"[0-9a-f]{8}-[0-9a-f-]{27}|\"offset\":\d+|T\d\d:[\d:.]+Z|\"outcome\":\"\w+\"|\"similarity\":[^,]+"
)
"""What differs between two calls that write: ids, positions, times, and whether there is such an entry by now."""


def _takes_ids(declared: Operation) -> list[str]:
    """The parameters that name events or entries which exist, of operations that do not publish a given id."""
    names = {"event_id", "entry_id", "consensus_id", "by", "supersedes", *LISTS_OF_IDS}
    return [
        name
        for name, each in declared.signature.parameters.items()
        if name in names and each.annotation not in NEW_IDS and declared.scope is not Scope.OPERATE
    ]


@pytest.mark.parametrize(
    ("name", "parameter"), [(name, parameter) for name, each in OPERATIONS.items() for parameter in _takes_ids(each)]
)
@pytest.mark.parametrize("hidden", world.FORBIDDEN_IDS)
def test_the_id_of_a_hidden_memory_cannot_be_told_from_an_unknown_one(
    untouched: Memory, name: str, parameter: str, hidden: str
) -> None:
    least = {
        each: world.POOLS[each][0] for each, field in OPERATIONS[name].arguments.model_fields.items()
        if field.is_required()
    }  # fmt: skip

    def asked(id_: str) -> tuple[str, str]:
        given = [id_] if parameter in LISTS_OF_IDS else id_
        kind, shown = outcome(untouched, AS_ANNA, name, least | {"space": SPACE, "agent": ANNA, parameter: given})
        return kind, CHANGING.sub("…", shown.replace(id_, "ID"))

    assert asked(hidden) == asked("unused-0")


def test_an_id_that_another_agent_has_used_says_nothing_about_its_event(memory: Memory) -> None:
    event = {"kind": "agent.spoke", "id": "secret-0", "payload": {"text": "?"}, "space": SPACE}
    with pytest.raises(IdConflict) as caught:
        run(Guarded(memory, AS_ANNA).call(OPERATIONS["publish"], {"event": event}))
    assert (caught.value.path, caught.value.position) == ("id", "")


# What the grant fixes.


def test_the_agent_and_the_space_of_an_event_are_those_of_the_grant(memory: Memory) -> None:
    grant = Grant(spaces=(SECOND_SPACE,), agent="dora", verbs=frozenset({Verb.PUBLISH, Verb.READ}))
    guarded = Guarded(memory, grant)
    run(guarded.call(OPERATIONS["publish"], {"event": {"kind": "agent.spoke", "payload": {"text": "Moo."}}}))
    run(guarded.call(OPERATIONS["publish_many"], {"events": [{"kind": "agent.spoke", "payload": {"text": "Moo!"}}]}))
    found = run(guarded.call(OPERATIONS["episodic"], {}))
    assert [each.text for each in found.memories if each.event.agent == "dora"] == ["Moo.", "Moo!"]


@pytest.mark.parametrize("changed", [{"agent": BERT}, {"space": OTHER_SPACE}])
def test_an_event_of_another_agent_or_space_is_refused(memory: Memory, changed: dict[str, str]) -> None:
    event = {"space": SPACE, "agent": ANNA, "kind": "agent.spoke", "payload": {"text": "?"}}
    before = run(memory.admin.ledger_ends())
    calls = {"publish": {"event": event | changed}, "publish_many": {"events": [event, event | changed]}}
    for name, arguments in calls.items():
        with pytest.raises(Forbidden):
            run(Guarded(memory, AS_ANNA).call(OPERATIONS[name], arguments))
    assert run(memory.admin.ledger_ends()) == before


@pytest.mark.parametrize(
    ("kind", "payload", "missing"),
    [
        ("memory.erased", {"entries": ["seen-entry"]}, Verb.FORGET),
        ("space.configured", {"shared_kinds": ["agent.thought"]}, Verb.OPERATE),
        ("memory.metered", {"units": 100}, Verb.OPERATE),
        ("run.started", {"shared_kinds": ["agent.thought"]}, Verb.OPERATE),
    ],
)
def test_an_event_that_does_more_than_tell_needs_the_verb_of_what_it_does(
    memory: Memory, kind: str, payload: dict[str, Any], missing: Verb
) -> None:
    grant = Grant(spaces=("*",), agent=ANNA, verbs=frozenset(Verb) - {missing})
    event = {"space": SPACE, "kind": kind, "payload": payload}
    with pytest.raises(Forbidden):
        run(Guarded(memory, grant).call(OPERATIONS["publish"], {"event": event}))


def test_a_run_that_shares_nothing_needs_no_operator(memory: Memory) -> None:
    grant = Grant(spaces=(SECOND_SPACE,), agent="dora", verbs=frozenset({Verb.PUBLISH}))
    event = {"kind": "run.started", "payload": {"goal": "To get the cows in."}}
    run(Guarded(memory, grant).call(OPERATIONS["publish"], {"event": event}))


@pytest.mark.parametrize("messages", [[{}, {"name": BERT}], {"name": BERT}, json.dumps([{"name": f"{BERT}!"}])])
def test_a_message_of_another_agent_is_refused(memory: Memory, messages: Any) -> None:
    """It would be an event of that agent, which would remember it as its own words."""
    said = {"role": "user", "content": "I owe anna 100 crowns."}
    match messages:
        case str():
            sent: Any = json.dumps([said | each for each in json.loads(messages)])
        case list():
            sent = [said | each for each in messages]
        case _:
            sent = said | messages
    before = run(memory.admin.ledger_ends())
    given = {"space": SPACE, "session": "s-9", "messages": sent}
    with pytest.raises(InvalidArgument, match="name: with a key of one agent"):
        run(Guarded(memory, AS_ANNA).call(OPERATIONS["conversation.add"], given))
    assert run(memory.admin.ledger_ends()) == before


def test_messages_of_users_and_of_its_own_are_an_agents_to_add() -> None:
    messages = [
        {"role": "user", "content": "Who owes the miller?"},
        {"role": "assistant", "name": BERT, "content": "So do I."},
    ]

    async def work() -> None:
        async with Memory.in_memory() as memory:
            given = {"space": SPACE, "session": "s-1", "messages": messages}
            await Guarded(memory, AS_ANNA).call(OPERATIONS["conversation.add"], given)
            assert not (await memory.episodic(SPACE, BERT)).known

    run(work())


def test_beliefs_of_another_agent_are_those_that_the_agent_may_see(memory: Memory) -> None:
    found = run(Guarded(memory, AS_ANNA).call(OPERATIONS["beliefs"], {"space": SPACE, "agent": BERT}))
    assert found.agent == BERT
    with pytest.raises(Forbidden):
        run(Guarded(memory, AS_ANNA).call(OPERATIONS["beliefs"], {"space": SPACE, "agent": BERT, "reader": BERT}))


def test_answers_that_span_spaces_have_those_of_the_grant(memory: Memory) -> None:
    spaces = run(Guarded(memory, IN_ACME).call(OPERATIONS["spaces"], {}))
    assert [each.space for each in spaces] == [SECOND_SPACE, SPACE]
    kinds = run(Guarded(memory, IN_ACME).call(OPERATIONS["catalogue"], {})).kinds
    assert {each.space for each in kinds} == {None}
    everything = run(Guarded(memory, Grant.everything()).call(OPERATIONS["spaces"], {}))
    assert OTHER_SPACE in [each.space for each in everything]


def test_operators_of_some_spaces_do_not_operate_the_whole_memory(memory: Memory) -> None:
    for name, each in OPERATIONS.items():
        if each.group == "admin":
            assert outcome(memory, IN_ACME, name, {})[0] in ("Forbidden", "InvalidArgument")


def test_what_is_allowed_is_answered_as_the_memory_answers_it(memory: Memory) -> None:
    given = {"space": SPACE, "agent": ANNA, "query": "bread"}
    guarded = run(Guarded(memory, AS_ANNA).call(OPERATIONS["recall"], given))
    assert guarded == run(memory.recall(**given))
    assert [hit.event.id for hit in guarded.hits]


class Toy(FacadePart):
    """A further facade."""

    @operation(example="recallog toy loud village baker")
    async def loud(self, space: parameters.Space, agent: parameters.Agent) -> EpisodicView:
        """What an agent sees."""
        return await self._access.of_agent(space, agent, At(), window, None)

    @operation(example="recallog toy all village")
    async def all(self, space: parameters.Space) -> EpisodicView:
        """What bert sees."""
        return await self.loud(space, BERT)


class WithToy(Memory):
    """A memory with one more facade."""

    facades: ClassVar = {**Memory.facades, "toy": Toy}

    @property
    def toy(self) -> Toy:
        return Toy(self._access)


def test_a_new_operation_is_guarded_by_its_declaration() -> None:
    operations = all_operations(WithToy)

    async def work() -> None:
        async with WithToy.in_memory() as memory:
            await world.populate(memory)
            guarded = Guarded(memory, AS_ANNA)
            assert (await guarded.call(operations["toy.loud"], {"space": SPACE})).agent == ANNA
            for name, arguments in (
                ("toy.loud", {"space": SPACE, "agent": BERT}),
                ("toy.loud", {"space": OTHER_SPACE}),
                ("toy.all", {"space": SPACE}),
            ):
                with pytest.raises(Forbidden):
                    await guarded.call(operations[name], arguments)
            assert (await Guarded(memory, IN_ACME).call(operations["toy.all"], {"space": SPACE})).agent == BERT

    run(work())


# Patterns of spaces.


@pytest.mark.parametrize(
    ("pattern", "space", "expected"),
    [
        ("*", "acme", True),
        ("acme/*", "acme/shop", True),
        ("acme/*", "acme/shop/till", True),
        ("acme/*", "acme", False),
        ("acme/*", "acme2/shop", False),
        ("acme", "acme", True),
        ("acme", "acme/shop", False),
    ],
)
def test_a_pattern_covers_the_names_that_begin_with_its_name_and_a_slash(
    pattern: str, space: str, expected: bool
) -> None:
    assert Grant(spaces=(pattern,), agent="*", verbs=frozenset({Verb.READ})).covers(space) is expected


@pytest.mark.parametrize(
    "wrong",
    [
        {"spaces": []},
        {"spaces": ["acme*"]},
        {"spaces": ["/*"]},
        {"spaces": ["acme/*\n"]},
        {"agent": "a "},
        {"agent": ""},
        {"verbs": []},
        {"verbs": ["rule"]},
        {"more": 1},
    ],
)
def test_a_grant_is_checked_when_it_is_made(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        Grant.model_validate({"spaces": ["acme/*"], "agent": "anna", "verbs": ["read"]} | wrong)


@pytest.mark.parametrize("missing", ["spaces", "agent", "verbs"])
def test_no_field_of_a_grant_has_a_default(missing: str) -> None:
    fields = {"spaces": ["acme/*"], "agent": "anna", "verbs": ["read"]}
    with pytest.raises(ValueError, match="Field required"):
        Grant.model_validate({name: value for name, value in fields.items() if name != missing})


def test_a_dead_letter_of_another_space_is_not_described() -> None:
    async def work(grant: Grant) -> str:
        ledger = MemoryLedger(unique_ids=False)
        async with Memory(assemble(ledger, lambda namespace: MemoryStore())) as memory:
            kept = {"space": OTHER_SPACE, "agent": BERT, "kind": "agent.spoke", "id": "secret"}
            for text in ("first", HIDDEN):
                await memory.publish({**kept, "payload": {"text": text, HIDDEN: text}})
            given = {"space": OTHER_SPACE if grant.is_of_all_spaces else SPACE, "agent": ANNA, "after": "0:1"}
            with pytest.raises(DeadLettered) as caught:
                await Guarded(memory, grant).call(OPERATIONS["episodic"], given)
            return str(caught.value)

    assert run(work(AS_ANNA)) == run(work(IN_ACME)) == "the record at 0:1 will show in no view"
    assert "conflict" in run(work(Grant.everything()))


FAILURES = [
    StorageUnavailable("cannot connect to redis://10.0.0.7:6379"),
    StorageCorrupt("the record at /var/recallog/ledger.db", position="0:57", until=58),
    IndexUnavailable("no answer of http://10.0.0.7:8000"),
    ModelFailed("model.internal does not accept: what an agent said", retryable=True),
]


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
def test_only_operators_are_told_where_a_failure_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, memory: Memory, error: RecallogError
) -> None:
    async def fail(*given: object) -> None:
        raise error

    monkeypatch.setattr(pipeline.Call, "execute", fail)
    for grant in (AS_ANNA, IN_ACME, Grant(spaces=("*",), agent="*", verbs=frozenset({Verb.READ}))):
        with pytest.raises(type(error)) as caught:
            run(Guarded(memory, grant).call(OPERATIONS["episodic"], {"space": SPACE, "agent": ANNA}))
        name = type(error).__name__
        assert str(caught.value).startswith(f"the memory cannot answer now: {name}; ")
        assert str(error) not in str(caught.value)
        assert vars(caught.value).keys() <= {"retryable"}
        assert caught.value.retryable is error.retryable
    assert [each.exc_info[1] for each in caplog.records if each.exc_info] == [error] * 3
    with pytest.raises(type(error), match=re.escape(str(error))):
        run(Guarded(memory, Grant.everything()).call(OPERATIONS["episodic"], {"space": SPACE, "agent": ANNA}))


@pytest.mark.parametrize("name", OPERATIONS)
@given(data=st.data())
@settings(max_examples=5, deadline=None)
def test_what_is_forbidden_is_refused_before_the_memory_does_anything(name: str, data: st.DataObject) -> None:
    """So that the time that it takes does not tell whether there is such a space or agent."""
    closed = Memory.in_memory()
    run(closed.close())
    arguments = world.moved(data.draw(world.arguments(OPERATIONS[name])), OPERATIONS[name], OTHER_SPACE)
    kind, _ = outcome(closed, AS_ANNA, name, arguments)
    assert kind in ("Forbidden", "InvalidArgument") or name == "catalogue" or arguments == {"events": []}
