"""The catalogue of kinds: required fields, text, importance and visibility of each kind."""

from typing import Any

import pytest

from recallog_schemas import Event, codec, kinds
from recallog_schemas.errors import InvalidEvent
from support.payloads import LEAST

# The importances of the ledger-view memory document, and those of its code.
IMPORTANCE = {
    "verdict.final": 1.00,
    "user.injected": 0.95,
    "judge.verdict": 0.90,
    "agent.reflected": 0.85,
    "clue.found": 0.80,
    "hypothesis.proposed": 0.75,
    "world.observed": 0.70,
    "agent.spoke": 0.50,
    "oracle.spoke": 0.50,
    "agent.thought": 0.40,
    "run.started": 0.30,
}

TEXT_KINDS = [
    "world.observed", "agent.spoke", "agent.thought", "oracle.spoke", "hypothesis.proposed", "clue.found",
    "user.injected", "judge.verdict", "verdict.final",
]  # fmt: skip


def made(kind: str, **payload: Any) -> Event:
    return codec.make({"space": "village", "agent": "baker", "kind": kind, "payload": payload})


@pytest.mark.models("beliefs")
@pytest.mark.parametrize(("kind", "importance"), IMPORTANCE.items())
def test_a_known_kind_has_the_importance_of_the_memory_model(kind: str, importance: float) -> None:
    assert kinds.kind_of(kind).importance == importance


def test_an_unknown_kind_has_importance_one_half_is_private_and_is_remembered() -> None:
    unknown = kinds.kind_of("image.generated")
    assert unknown.importance == 0.5
    assert not unknown.shared
    assert unknown.is_episode


@pytest.mark.models("beliefs", "consensus")
def test_seven_kinds_are_shared_by_default() -> None:
    assert sorted(kinds.shared_kinds()) == [
        "agent.reflected", "consensus.recorded", "dissent.recorded", "judge.verdict", "run.started", "user.injected",
        "world.observed",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", TEXT_KINDS)
def test_the_text_of_most_kinds_is_their_text_field(kind: str) -> None:
    assert made(kind, text="The mill burned.").text == "The mill burned."


@pytest.mark.parametrize("kind", TEXT_KINDS)
@pytest.mark.parametrize("payload", [{}, {"text": None}, {"text": 7}, {"text": ["a"]}])
def test_most_kinds_are_refused_without_a_text_field(kind: str, payload: dict[str, Any]) -> None:
    with pytest.raises(InvalidEvent) as raised:
        made(kind, **payload)
    assert raised.value.path == "payload.text"


@pytest.mark.models("beliefs")
@pytest.mark.parametrize(
    ("kind", "payload", "text"),
    [
        ("run.started", {"goal": "Find the chest."}, "Find the chest."),
        ("run.started", {}, ""),
        ("agent.reflected", {"belief": "The smith did it.", "text": "other"}, "The smith did it."),
        ("agent.reflected", {"text": "The smith did it."}, "The smith did it."),
        ("session.started", {"title": "Day one"}, "Day one"),
        ("session.started", {}, ""),
        ("session.ended", {"outcome": "solved", "reward": 1}, "solved"),
        ("session.ended", {}, ""),
        ("tool.used", {"tool": "search", "result": "nothing found"}, "search: nothing found"),
        ("tool.used", {"tool": "search", "result": {"hits": ["ä"]}}, 'search: {"hits": ["ä"]}'),
        ("tool.used", {"tool": "search"}, "search"),
        ("tool.used", {"tool": "search", "result": " \n"}, "search"),
        ("tool.used", {"tool": "search", "ok": True}, "search: ok"),
        ("tool.used", {"tool": "submit", "arguments": {}, "ok": True, "result": ""}, "submit(): ok"),
        ("agent.configured", {"persona": "Proud."}, ""),
        ("space.configured", {"shared_kinds": []}, ""),
        ("reflection.failed", {"trigger": "t-1", "reason": "the model was down"}, ""),
        ("clock.ticked", {"text": "noon"}, ""),
    ],
)
def test_other_kinds_have_the_text_that_the_catalogue_defines(kind: str, payload: dict[str, Any], text: str) -> None:
    assert made(kind, **payload).text == text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"command": "grep -rn 'a b' src"}, "bash(grep -rn 'a b' src): ok"),
        ({"command": ["bash", "-lc", "ls"]}, "bash(bash -lc ls): ok"),
        ({"command": "view", "path": "/a b.py"}, "bash(command=view, path=/a b.py): ok"),
        ('{"command": "cat \\"a\\"\\nls"}', 'bash(cat "a"\nls): ok'),
        ("ls -la", "bash(ls -la): ok"),
        ("1e5", "bash(1e5): ok"),
        ('{"command": "\\ud800"}', 'bash({"command": "\\ud800"}): ok'),
        ("[" * 1000, f"bash({'[' * 789}…): ok"),
        (["a", 1, None], "bash(a, 1, null): ok"),
        ({"edits": [{"new": 'x = "\\d"\ny'}], "all": True}, 'bash(edits=[{"new": "x = "\\d"\ny"}], all=true): ok'),
        (7, "bash(7): ok"),
        ("", "bash(): ok"),
    ],
)
def test_the_text_of_a_tool_call_has_its_arguments_readable(arguments: object, text: str) -> None:
    assert made("tool.used", tool="bash", arguments=arguments, ok=True).text == text


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"ok": False}, "bash(ls): failed"),
        ({"ok": False, "result": "no such file"}, "bash(ls): failed: no such file"),
        ({"ok": False, "error": "timed out", "result": "a.txt"}, "bash(ls): failed: timed out\na.txt"),
        ({"error": {"code": 7}}, 'bash(ls): failed: {"code": 7}'),
        ({"error": "", "result": "a.txt"}, "bash(ls): a.txt"),
        ({"ok": True, "result": "a.txt"}, "bash(ls): a.txt"),
        ({"ok": True, "error": "a warning"}, "bash(ls): a warning"),
    ],
)
def test_the_text_of_a_tool_call_says_whether_it_failed(fields: dict[str, Any], text: str) -> None:
    assert made("tool.used", tool="bash", arguments={"command": "ls"}, **fields).text == text


def test_a_long_tool_call_has_800_characters_half_of_them_arguments() -> None:
    text = made("tool.used", tool="bash", arguments={"command": "a" * 5000}, result="x" * 1000 + "y" * 1000).text
    assert len(text) == 800
    assert text.startswith(f"bash({'a' * 399}…): {'x' * 100}")
    assert " … y" in text
    assert text.endswith("y" * 100)


def test_arguments_and_outcome_use_what_the_other_leaves() -> None:
    long_result = made("tool.used", tool="bash", arguments={"command": "ls"}, result="x" * 1000).text
    assert len(long_result) == 800
    assert long_result.count("x") == 800 - len("bash(ls):  … ")
    long_command = made("tool.used", tool="bash", arguments={"command": "a" * 1000}, result="done").text
    assert len(long_command) == 800
    assert long_command == f"bash({'a' * 787}…): done"


def test_a_long_tool_name_leaves_room_for_arguments_and_outcome() -> None:
    text = made("tool.used", tool="t" * 1000, arguments="a" * 1000, ok=False, result="x" * 1000).text
    assert len(text) == 800
    assert text.startswith(f"{'t' * 99}…({'a' * 399}…): failed: x")


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ({"goal": "g", "summary": "s", "belief": "b", "text": "t"}, "t"),
        ({"goal": "g", "summary": "s", "belief": "b"}, "b"),
        ({"goal": "g", "summary": "s"}, "s"),
        ({"goal": "g"}, "g"),
        ({"text": 7, "goal": "g"}, "g"),
        ({"secret": "never shown"}, ""),
        ({}, ""),
    ],
)
def test_the_text_of_an_unknown_kind_is_its_first_text_field_and_never_its_raw_payload(
    payload: dict[str, Any], text: str
) -> None:
    assert made("image.generated", **payload).text == text


@pytest.mark.models("beliefs")
@pytest.mark.parametrize(
    ("kind", "payload", "path"),
    [
        ("agent.configured", {"window": 0}, "payload.window"),
        ("agent.configured", {"window": 2001}, "payload.window"),
        ("agent.configured", {"window": "8"}, "payload.window"),
        ("agent.configured", {"salience_weights": {"recency": -1.0}}, "payload.salience_weights.recency"),
        ("agent.configured", {"salience_weights": {"novelty": 1.0}}, "payload.salience_weights.novelty"),
        ("space.configured", {"shared_kinds": ["agent.spoke", "Bad.Kind"]}, "payload.shared_kinds.1"),
        ("space.configured", {"shared_kinds": ["a.b"] * 65}, "payload.shared_kinds"),
        ("run.started", {"shared_kinds": "agent.spoke"}, "payload.shared_kinds"),
        ("agent.reflected", {"belief": "b", "based_on": [1]}, "payload.based_on.0"),
        ("agent.reflected", {"based_on": []}, "payload"),
        ("tool.used", {}, "payload.tool"),
        ("reflection.failed", {"trigger": "t-1"}, "payload.reason"),
        ("session.ended", {"reward": "1"}, "payload.reward"),
    ],
)
def test_an_invalid_payload_of_a_known_kind_is_refused_with_a_path(
    kind: str, payload: dict[str, Any], path: str
) -> None:
    with pytest.raises(InvalidEvent) as raised:
        made(kind, **payload)
    assert raised.value.path == path


@pytest.mark.parametrize("kind", sorted(kinds.CATALOGUE))
def test_unknown_payload_fields_are_preserved(kind: str) -> None:
    payload = {**LEAST[kind], "mood": ["dark", {"x": 1.5}]}
    assert made(kind, **payload).payload == payload


def test_a_payload_is_stored_unchanged_without_defaults() -> None:
    assert made("agent.reflected", belief="b").payload == {"belief": "b"}
    assert made("session.ended", reward=1).payload == {"reward": 1}
