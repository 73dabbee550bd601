"""The whole catalogue of kinds: payloads, bounds, roles, content, and no effect of entries on episodic memory."""

import asyncio
from typing import Any, get_args

import pytest

from recallog import Event, Memory
from recallog_schemas import codec, kinds, limits
from recallog_schemas.errors import InvalidEvent
from recallog_schemas.kinds.kind import EpisodeRole
from support.payloads import LEAST

ENTRIES = {
    "memory.retained", "experience.recorded",
    "item.put", "item.appended", "item.deleted", "item.moved", "item.drained",
}  # fmt: skip
BOOKKEEPING = {
    "agent.configured", "space.configured", "clock.ticked", "reflection.failed", "consensus.superseded",
    "memory.updated", "memory.retracted", "memory.archived", "memory.restored", "memory.erased", "memory.transferred",
    "memory.metered", "memory.accessed", "memory.outcome_reported", "memory.tier_changed", "memory.consolidated",
    "message.added", "message.part", "conversation.compacted", "message.removed", "turn.ended",
    "reaction.done", "reaction.failed", "unit.erased",
}  # fmt: skip
NOT_EPISODES = sorted(ENTRIES | BOOKKEEPING)
NEAREST = {"id": "e", "version": 1, "similarity": 1, "model": "m"}
MOVE = {"id": "e", "from": "fast", "to": "slow", "reason": "r"}
LONG = "x" * 129
TOO_MANY = [f"e-{number}" for number in range(201)]


def made(kind: str, payload: Any) -> Event:
    return codec.make({"space": "village", "agent": "baker", "kind": kind, "payload": payload})


def refused_at(kind: str, payload: Any) -> str | None:
    with pytest.raises(InvalidEvent) as raised:
        made(kind, payload)
    return raised.value.path


@pytest.mark.models("all")
def test_there_is_a_least_payload_for_each_kind() -> None:
    assert LEAST.keys() == kinds.CATALOGUE.keys()


@pytest.mark.parametrize("kind", sorted(kinds.CATALOGUE))
def test_the_least_payload_is_accepted_and_returns_from_the_ledger_as_it_was(kind: str) -> None:
    event = made(kind, dict(LEAST[kind]))
    assert codec.decode(codec.encode(event)) == event
    assert event.payload == LEAST[kind]


@pytest.mark.parametrize("kind", sorted(kinds.CATALOGUE))
def test_a_required_field_is_missed(kind: str) -> None:
    required = {name for name, field in kinds.kind_of(kind).payload.model_fields.items() if field.is_required()}
    assert required <= LEAST[kind].keys()
    for missing in required:
        payload = {name: value for name, value in LEAST[kind].items() if name != missing}
        assert refused_at(kind, payload) == f"payload.{missing}"


@pytest.mark.parametrize("kind", sorted(kinds.CATALOGUE))
def test_content_fields_are_fields_of_the_payload_and_the_others_are_structure(kind: str) -> None:
    known = kinds.CATALOGUE[kind]
    assert known.content is not None
    assert known.content <= known.payload.model_fields.keys()
    for field in known.payload.model_fields:
        assert known.is_content(field) == (field in known.content)
    assert known.is_content("a_field_of_nobody_s")


def test_all_of_an_unknown_or_declared_kind_is_content() -> None:
    assert kinds.kind_of("image.generated").is_content("width")
    assert kinds.declare_kind("order.placed", 0.5, False, None, kinds.MEMORY).is_content("text")


@pytest.mark.parametrize("kind", sorted(kinds.CATALOGUE))
def test_the_text_of_a_kind_consists_of_content(kind: str) -> None:
    known = kinds.CATALOGUE[kind]
    if kind != "tool.used":  # its tool is a name, which is structure
        named = {name for name in known.payload.model_fields if f"{{{name}}}" in known.text.__name__}
        assert named <= (known.content or frozenset())


@pytest.mark.models("beliefs", "consensus", "conversations", "tiers")
def test_each_kind_has_one_role() -> None:
    by_role: dict[str, set[str]] = {}
    for kind in kinds.CATALOGUE.values():
        by_role.setdefault(kind.role, set()).add(kind.name)
        assert kind.is_episode == (kind.role in get_args(EpisodeRole))
    assert by_role["entry"] == ENTRIES
    assert by_role["bookkeeping"] == BOOKKEEPING
    assert by_role["action"] == {"tool.used"}
    assert by_role["visitor"] == {"user.injected"}


@pytest.mark.models("long_term")
def test_entries_are_private_and_bookkeeping_has_no_text_and_is_not_recalled() -> None:
    for kind in kinds.CATALOGUE.values():
        if not kind.is_episode:
            assert not kind.shared
        if kind.role == kinds.BOOKKEEPING:
            assert not kind.recalled
            assert kind.text.__name__ == ""
    found = {name for name in ENTRIES if kinds.CATALOGUE[name].recalled}
    assert found == {"memory.retained", "experience.recorded"}


@pytest.mark.models("consensus", "long_term")
@pytest.mark.parametrize(
    ("kind", "payload", "text"),
    [
        ("memory.retained", {"text": "Bread is 3 coins."}, "Bread is 3 coins."),
        ("experience.recorded", {"action_type": "a", "summary": "Asked.", "outcome": "No."}, "Asked. → No."),
        ("experience.recorded", {"action_type": "a", "summary": "Asked."}, "Asked."),
        ("consensus.recorded", LEAST["consensus.recorded"], "the mill: it was arson"),
        ("dissent.recorded", LEAST["dissent.recorded"], "It was hot."),
        ("item.appended", LEAST["item.appended"] | {"text": "secret"}, ""),
        ("memory.updated", {"entry": "e-1", "text": "secret"}, ""),
    ],
)
def test_the_text_of_a_kind(kind: str, payload: dict[str, Any], text: str) -> None:
    assert made(kind, payload).text == text


@pytest.mark.models("consensus", "conversations", "tiers")
@pytest.mark.parametrize(
    ("kind", "fields", "path"),
    [
        ("memory.retained", {"text": " \n\t"}, "text"),
        ("memory.retained", {"type": "Fact"}, "type"),
        ("memory.retained", {"entity": LONG}, "entity"),
        ("memory.retained", {"importance": 1.01}, "importance"),
        ("memory.retained", {"importance": "0.5"}, "importance"),
        ("memory.retained", {"importance": True}, "importance"),
        ("memory.retained", {"confidence": -0.01}, "confidence"),
        ("memory.retained", {"tier": "FAST"}, "tier"),
        ("memory.retained", {"priority": "urgent"}, "priority"),
        ("memory.retained", {"metadata": []}, "metadata"),
        ("memory.retained", {"sources": [f"e-{n}" for n in range(65)]}, "sources"),
        ("memory.retained", {"cost": -1}, "cost"),
        ("memory.retained", {"nearest": NEAREST | {"version": 0}}, "nearest.version"),
        ("memory.retained", {"nearest": NEAREST | {"similarity": 1.01}}, "nearest.similarity"),
        ("memory.retained", {"nearest": NEAREST | {"model": None}}, "nearest.model"),
        ("memory.updated", {"text": ""}, "text"),
        ("memory.erased", {"entries": []}, "entries"),
        ("memory.erased", {"entries": TOO_MANY}, "entries"),
        ("memory.erased", {"entries": [""]}, "entries.0"),
        ("memory.erased", {"reason": "x" * 501}, "reason"),
        ("memory.transferred", {"entries": TOO_MANY}, "entries"),
        ("memory.transferred", {"to": "not a name "}, "to"),
        ("memory.accessed", {"counts": {f"e-{n}": 1 for n in range(257)}}, "counts"),
        ("memory.accessed", {"counts": {"e-1": 0}}, "counts.e-1"),
        ("memory.accessed", {"hits": -1}, "hits"),
        ("memory.outcome_reported", {"predicted": 2}, "predicted"),
        ("memory.consolidated", {"moves": [{"id": "e", "from": "fast", "to": "slow"}]}, "moves.0.reason"),
        ("memory.consolidated", {"moves": [{"id": "e", "reason": "r", "to": "slow"}]}, "moves.0.from"),
        ("memory.consolidated", {"archived": [{"id": "e", "reason": "r"}] * 201}, "archived"),
        ("memory.consolidated", {"moves": [MOVE]}, "moves.0.changes"),
        ("memory.consolidated", {"archived": [{"id": "e", "reason": "r"}]}, "archived.0.changes"),
        ("memory.consolidated", {"moves": [{**MOVE, "changes": -1}]}, "moves.0.changes"),
        ("memory.consolidated", {"now": "2026-03-01T12:00:00"}, "now"),
        ("item.put", {"namespace": []}, "namespace"),
        ("item.put", {"namespace": ["a"] * 9}, "namespace"),
        ("item.put", {"namespace": ["a", ""]}, "namespace.1"),
        ("item.put", {"namespace": "working"}, "namespace"),
        ("item.put", {"key": "k" * 257}, "key"),
        ("item.put", {"base": -1}, "base"),
        ("item.put", {"base": True}, "base"),
        ("item.put", {"base": 1.0}, "base"),
        ("item.put", {"base": "F" * 64}, "base"),
        ("item.appended", {"text": "x" * (64 * 1024)}, "text"),
        ("item.drained", {"upto": -1}, "upto"),
        ("consensus.recorded", {"strength": "absolute"}, "strength"),
        ("consensus.recorded", {"key_claims": ["c"] * 21}, "key_claims"),
        ("consensus.recorded", {"cruxes": ["c"] * 6}, "cruxes"),
        ("dissent.recorded", {"type": "anger"}, "type"),
        ("conversation.compacted", {"count": 0}, "count"),
        ("reaction.done", {"events": -1}, "events"),
        ("agent.configured", {"rag": {"limit": 0}}, "rag.limit"),
        ("agent.configured", {"rag": {"limits": 1}}, "rag.limits"),
        ("agent.configured", {"quality": {"min_terms": -1}}, "quality.min_terms"),
        ("agent.configured", {"working": {"labels": [""]}}, "working.labels.0"),
        ("agent.configured", {"tiers": {"max": {"fast": -1}}}, "tiers.max.fast"),
        ("agent.configured", {"tiers": {"surprise": {"fast": 1}}}, "tiers.surprise.fast"),
        ("agent.configured", {"capture": {"importance": 2}}, "capture.importance"),
    ],
)  # fmt: skip
def test_a_payload_out_of_bounds_is_refused_with_the_path(kind: str, fields: dict[str, Any], path: str) -> None:
    assert refused_at(kind, {**LEAST[kind], **fields}) == f"payload.{path}"


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("memory.retained", {"importance": 1, "confidence": 0, "cost": 0, "type": "tool_usage"}),
        ("memory.retained", {"sources": [f"e-{n}" for n in range(64)], "metadata": {"a": [1, {"b": None}]}}),
        ("memory.retained", {"nearest": NEAREST}),
        ("memory.updated", {"entity": None}),
        ("memory.erased", {"entries": TOO_MANY[:200]}),
        ("memory.accessed", {"counts": {f"e-{n}": 1 for n in range(256)}}),
        ("memory.consolidated", {"moves": [{**MOVE, "changes": 0}] * 200}),
        ("memory.consolidated", {"seen": 0, "moves": [MOVE]}),
        ("item.put", {"namespace": ["a"] * 8, "key": "k" * 256, "base": 0}),
        ("item.put", {"base": "f" * 64, "value": "x" * (64 * 1024 - 2)}),
        ("item.put", {"namespace": ["session", "trial of the 2nd\n"]}),
        ("agent.configured", {"rag": {}, "quality": {"enabled": True}, "tiers": {"ttl": {"fast": 1.5}}}),
        ("agent.configured", {"working": None, "quality": {"ask": True}}),
    ],
)
def test_a_payload_at_its_bounds_is_accepted(kind: str, fields: dict[str, Any]) -> None:
    payload = {**LEAST[kind], **fields}
    event = made(kind, payload)
    assert event.payload == payload
    assert codec.decode(codec.encode(event)) == event


@pytest.mark.models("items")
def test_the_value_of_an_item_is_measured_as_utf_8_json() -> None:
    text = "ä" * (32 * 1024 - 2)  # with brackets and quotes 64 KiB
    made("item.put", {**LEAST["item.put"], "value": [text]})
    assert refused_at("item.put", {**LEAST["item.put"], "value": [f"{text}x"]}) == "payload.value"


@pytest.mark.models("consensus", "long_term")
@pytest.mark.parametrize(
    ("kind", "payload", "message"),
    [
        ("memory.updated", {"entry": "e-1"}, "give at least one field to change"),
        ("memory.metered", {}, "give units (or eur)"),
        ("dissent.recorded", {"type": "abstention", "content": "c", "confidence": 1}, "give consensus (or topic)"),
        ("item.put", {**LEAST["item.put"], "value": "x" * 65_536}, "its JSON has 65538 bytes, the limit is 65536"),
    ],
)
def test_a_refusal_says_what_to_give(kind: str, payload: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidEvent, match=message.replace("(", r"\(").replace(")", r"\)")):
        made(kind, payload)


def test_settings_have_the_defaults_of_the_memory_model() -> None:
    tiers = kinds.TierSettings()
    assert (tiers.promotion_access, tiers.success.reports, tiers.success.rate) == (3, 3, 0.7)
    assert tiers.max.model_dump() == {"fast": 1000, "medium": 500, "slow": 200, "glacial": 100}
    assert tiers.ttl.model_dump() == {"fast": 60, "medium": 3600, "slow": 86_400, "glacial": 604_800}
    assert tiers.half_life.model_dump() == {"fast": 1, "medium": 24, "slow": 168, "glacial": 720}
    assert tiers.surprise.model_dump() == {"glacial": 0.5, "slow": 0.6, "medium": 0.7}
    assert tiers.consolidate_every == 3_600
    assert kinds.RagSettings().limit == limits.PROMPT_RECALLED == 7
    assert kinds.QualitySettings().model_dump() == {
        "enabled": False,
        "min_terms": 3,
        "deduplicate": False,
        "ask": False,
    }
    assert kinds.WorkingSettings().max_bytes == 4_000
    capture = kinds.CaptureSettings()
    assert (capture.enabled, capture.max_per_minute, capture.tier, capture.importance) == (False, 120, "fast", 0.4)


# Entries and bookkeeping are in nothing that episodic memory shows.


def history(*, with_others: bool) -> list[dict[str, Any]]:
    """Episodes of two agents; with others between any two of them, which all agents could see if they were episodes."""
    events: list[dict[str, Any]] = [
        {"agent": agent, "kind": "agent.configured", "payload": {"reflection_threshold": 20, "window": 10}}
        for agent in ("baker", "miller")
    ]
    for turn in range(12):
        if with_others:
            events += [
                {
                    "agent": "baker",
                    "kind": kind,
                    "payload": dict(LEAST[kind]),
                    "turn": turn,
                    "session": "s",
                    "audience": None if kinds.kind_of(kind).owned else ["baker", "miller"],
                }
                for kind in NOT_EPISODES
                if kind not in ("space.configured", "agent.configured", "reflection.failed")
            ]
        kind = ("world.observed", "agent.spoke", "user.injected", "tool.used")[turn % 4]
        payload = {"tool": "saw"} if kind == "tool.used" else {"text": f"Word {turn}."}
        events.append({"agent": "baker", "kind": kind, "payload": payload, "turn": turn, "session": "s"})
    return [
        {"id": f"{each['kind']}-{each.get('turn')}-{each['agent']}", "space": "village", "at": "2026-03-01T12:00:00Z"}
        | each
        for each in events
    ]


async def episodic_memory(events: list[dict[str, Any]]) -> dict[str, Any]:
    """What the questions about episodic memory answer, without positions."""
    async with Memory.in_memory() as memory:
        await memory.publish_many([codec.make(each) for each in events])
        found: dict[str, Any] = {"scene": [shown.event for shown in (await memory.scene("village")).events]}
        for agent in ("baker", "miller"):
            reflection = await memory.reflection("village", agent)
            salient = await memory.salient("village", agent, query="word")
            found[agent] = (
                [shown.event for shown in (await memory.episodic("village", agent)).memories],
                [(shown.event, shown.score) for shown in salient.memories],
                (reflection.events, reflection.threshold, reflection.due),
            )
        return found


@pytest.mark.models("beliefs", "consensus", "conversations", "tiers")
def test_entries_and_bookkeeping_change_no_window_salience_scene_or_count_of_reflections() -> None:
    without = asyncio.run(episodic_memory(history(with_others=False)))
    assert asyncio.run(episodic_memory(history(with_others=True))) == without


def test_a_setting_with_fields_is_replaced_as_a_whole_and_null_takes_it_back() -> None:
    async def work() -> list[tuple[int, bool, int]]:
        found = []
        async with Memory.in_memory() as memory:
            for payload in (
                {},
                {"rag": {"limit": 3}, "tiers": {"max": {"fast": 2}}},
                {"rag": {"enabled": False}},
                {"rag": None, "tiers": None},
            ):
                event = {"space": "village", "agent": "baker", "kind": "agent.configured", "payload": payload}
                await memory.publish(codec.make(event))
                view = await memory.agent_settings("village", "baker")
                found.append((view.rag.limit, view.rag.enabled, view.tiers.max.fast))
        return found

    assert asyncio.run(work()) == [(7, True, 1_000), (3, True, 2), (7, False, 2), (7, True, 1_000)]
