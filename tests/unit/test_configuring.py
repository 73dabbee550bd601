"""Settings, sessions and turns by operations: what they write, what they answer, and who may call them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from recallog import Forbidden, InvalidArgument, InvalidEvent, Memory, Refused
from recallog.operations.facade import all_operations
from recallog_schemas import Event, codec
from recallog_service.access import Grant, Guarded, Verb
from support.cli import recallog
from support.events import event, run
from support.payloads import LEAST

V = ("village", "baker")


async def written(memory: Memory) -> list[Event]:
    """The events of the ledger."""
    return [codec.decode(data) async for batch in memory.admin.records() for _, data in batch.records]


def test_settings_that_are_given_change_and_the_others_stay() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            first = await memory.configure_agent(
                *V, window=20, persona="You bake.", rag={"limit": 3}, extract_facts=True
            )
            assert (first.window, first.persona, first.rag.limit, first.extract_facts) == (20, "You bake.", 3, True)
            second = await memory.configure_agent(*V, window=None, rag='{"enabled": false}')
            assert (second.window, second.persona, second.rag.limit, second.rag.enabled) == (8, "You bake.", 7, False)
            assert (await memory.agent_settings(*V)).rag.enabled is False
            assert [each.kind for each in await written(memory)] == ["agent.configured"] * 2

    run(work())


def test_a_space_shares_the_kinds_that_it_is_set_to() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            before = await memory.configure_space("village", scene_kinds=["order.placed"])
            assert (before.scene_kinds, "world.observed" in before.shared_kinds) == (("order.placed",), True)
            declared = {"order.placed": {"importance": 0.8, "shared": True, "text": "{customer} ordered"}}
            after = await memory.configure_space("village", by="narrator", shared_kinds=["agent.spoke"], kinds=declared)
            assert (after.shared_kinds, after.scene_kinds) == (("agent.spoke",), ("order.placed",))
            assert [(kind.name, kind.importance) for kind in after.kinds] == [("order.placed", 0.8)]
            await memory.publish(event("order.placed", payload={"customer": "Ann"}))
            assert [shown.text for shown in (await memory.scene("village")).events] == ["Ann ordered"]
            taken_back = await memory.configure_space("village", kinds={"order.placed": None}, scene_kinds=None)
            assert (taken_back.kinds, "world.observed" in taken_back.scene_kinds) == ((), True)
            assert [each.agent for each in await written(memory)] == ["operator", "narrator", "baker", "operator"]

    run(work())


def test_too_many_declared_kinds_are_refused_and_nothing_is_written() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.configure_space("village", kinds={f"order.k{n}": {} for n in range(60)})
            with pytest.raises(Refused, match="take others back") as caught:
                await memory.configure_space("village", kinds={f"order.more{n}": {} for n in range(5)})
            assert caught.value.reason == "full"
            assert len(await written(memory)) == 1

    run(work())


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({}, "options"),
        ({"window": 0}, "window"),
        ({"rag": {"limit": 0}}, "rag.limit"),
        ({"working": {"label": []}}, "working.label"),
        ({"tiers": "no json"}, "tiers"),
        ({"dates": "sometimes"}, "dates"),
    ],
)
def test_an_invalid_setting_is_named(options: Mapping[str, Any], path: str) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            with pytest.raises(InvalidArgument) as caught:
                await memory.configure_agent(*V, **options)
            assert caught.value.path == path
            assert await written(memory) == []

    run(work())


@pytest.mark.models("conversations")
def test_a_session_begins_has_turns_and_ends() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.start_session(*V, "monday", title="Monday", turn=1, event_id="s-1")
            again = await memory.start_session(*V, "monday", title="Monday", turn=1, event_id="s-1")
            assert (again.id, str(again.position)) == ("s-1", "0:0")
            await memory.conversation.end_turn(*V, "monday", turn=2)
            ended = await memory.end_session(*V, "monday", outcome="sold", reward=1, audience=["miller"], turn=2)
            assert str(ended.position) == "0:2"
            found = [
                (each.kind, each.session, each.turn, each.payload, each.audience) for each in await written(memory)
            ]
            assert found == [
                ("session.started", "monday", 1, {"title": "Monday"}, None),
                ("turn.ended", "monday", 2, {}, None),
                ("session.ended", "monday", 2, {"outcome": "sold", "reward": 1}, ("miller",)),
            ]

    run(work())


@pytest.mark.models("working")
def test_what_an_agent_marked_becomes_entries_when_its_session_ends() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.working.set(*V, "tip", "LESSON: Rye rests for an hour.", session="monday")
            await memory.end_session(*V, "monday")
            await memory.react()
            assert [each.type for each in (await memory.long_term.list(*V)).entries] == ["lesson"]

    run(work())


# Who may


OPERATIONS = all_operations(Memory)
CALLS: Mapping[str, Mapping[str, Any]] = {
    "configure_space": {"space": "village", "shared_kinds": ["agent.thought"]},
    "long_term.grant": {"space": "village", "agent": "baker", "units": 100},
}


@pytest.mark.models("long_term")
@pytest.mark.parametrize("name", CALLS)
def test_what_operators_do_needs_their_verb(name: str) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            grant = Grant(spaces=("*",), agent="*", verbs=frozenset(Verb) - {Verb.OPERATE})
            with pytest.raises(Forbidden):
                await Guarded(memory, grant).call(OPERATIONS[name], CALLS[name])
            assert await written(memory) == []

    run(work())


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("configure_space", {"space": "village", "by": "baker", "shared_kinds": ["agent.thought"]}),
        ("configure_agent", {"space": "village", "agent": "miller", "window": 1}),
        ("end_session", {"space": "village", "agent": "miller", "session": "monday"}),
        ("configure_agent", {"space": "city", "agent": "baker", "window": 1}),
    ],
)
def test_a_key_of_one_agent_configures_neither_its_space_nor_others(name: str, given: Mapping[str, Any]) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            guarded = Guarded(memory, Grant(spaces=("village",), agent="baker", verbs=frozenset(Verb)))
            with pytest.raises(Forbidden):
                await guarded.call(OPERATIONS[name], given)
            await guarded.call(OPERATIONS["configure_agent"], {"window": 3})
            assert [(each.agent, each.payload) for each in await written(memory)] == [("baker", {"window": 3})]

    run(work())


# Items belong to their agent


@pytest.mark.models("working")
@pytest.mark.parametrize("kind", ["item.put", "item.appended", "item.deleted", "item.moved", "item.drained"])
def test_an_event_of_items_with_an_audience_is_refused_with_what_to_do(kind: str) -> None:
    payload = {**LEAST[kind], "namespace": ["session", "s"], "key": "subagent_result::7"}
    fields: dict[str, Any] = {"space": "village", "agent": "baker", "kind": kind, "payload": payload}
    fields["audience"] = ["miller"]

    async def work() -> None:
        async with Memory.in_memory() as memory:
            with pytest.raises(InvalidEvent, match=f"or {kind} as that agent") as caught:
                await memory.publish(fields)
            assert (caught.value.path, caught.value.rule) == ("audience", "owned")
            with pytest.raises(InvalidEvent) as caught:
                await memory.publish_many([event(), codec.make(fields)])
            assert caught.value.path == "1.audience"
            assert await written(memory) == []
            await memory.publish(fields | {"audience": ["baker"]})
            await memory.publish(fields | {"audience": None, "agent": "miller"})

    run(work())


# The command line


def test_the_commands_of_settings_and_sessions(tmp_path: Path) -> None:
    home = {"RECALLOG_HOME": str(tmp_path / "home")}
    assert "window: 20" in recallog("configure-agent", *V, "--window", "20", "--use-salience", **home).out
    quality = recallog("configure-agent", *V, "--quality", '{"enabled": true}', "--json", **home).json["quality"]
    assert quality == {"enabled": True, "min_terms": 3, "deduplicate": False, "ask": False}
    assert recallog("configure-agent", *V, **home).code == 2
    shared = recallog(
        "configure-space", "village", "--shared-kind", "agent.spoke", "--scene-kind", "run.started", **home
    )
    assert shared.out == "shared_kinds: agent.spoke\nscene_kinds: run.started\n"
    assert recallog("start-session", *V, "monday", "--title", "Monday", "--event-id", "s-1", **home).code == 0
    assert recallog("end-session", *V, "monday", "--reward", "0.5", "--outcome", "sold", **home).code == 0
    assert recallog("timeline", *V, "--kind", "session.ended", **home).out.endswith("sold\n")
