"""Rollouts of Codex: the items of the Responses API; everything else is counted."""

import json
from collections import Counter
from typing import Any

import pytest

from recallog_schemas import Event
from recallog_service.formats import Item, codex
from support import formats

Record = dict[str, Any]

SESSION = "019b64e5-57fa-7463-b644-fba7e456f905"
META = {
    "timestamp": "2026-03-01T12:00:00.500Z",
    "type": "session_meta",
    "payload": {
        "id": SESSION, "timestamp": "2026-03-01T12:00:00.000Z", "cwd": "/home/alice/bakery",
        "originator": "codex_cli_rs", "cli_version": "0.77.0", "instructions": None, "source": "cli",
    },
}  # fmt: skip


def line(n: int, kind: str, **payload: Any) -> Record:
    return {"timestamp": f"2026-03-01T12:00:{n:02}.000Z", "type": kind, "payload": payload}


def item(n: int, kind: str, **payload: Any) -> Record:
    return line(n, "response_item", **{"type": kind, **payload})


def user(n: int, words: str) -> Record:
    return item(n, "message", role="user", content=[{"type": "input_text", "text": words}])


def assistant(n: int, words: str) -> Record:
    return item(n, "message", role="assistant", content=[{"type": "output_text", "text": words}])


def call(n: int, id_: str, name: str = "shell", **arguments: Any) -> Record:
    return item(n, "function_call", name=name, arguments=json.dumps(arguments), call_id=id_)


def output(n: int, id_: str, text: object) -> Record:
    return item(n, "function_call_output", call_id=id_, output=text)


def lines(*records: object) -> bytes:
    return "".join(json.dumps(each) + "\n" for each in records).encode()


def items(*records: object) -> list[Item]:
    return formats.items(codex.FORMAT, lines(*records))


def events(*records: object) -> list[Event]:
    return formats.events(items(*records))


def left_out(*records: object) -> dict[str, int]:
    return Counter(item.left_out for item in items(*records) if item.left_out is not None)


TALK = [
    META,
    item(1, "message", role="developer", content=[{"type": "input_text", "text": "<permissions instructions>"}]),
    user(1, "# AGENTS.md instructions for /home/alice/bakery\n\n<INSTRUCTIONS>"),
    user(1, "<environment_context>\n  <cwd>/home/alice/bakery</cwd>\n</environment_context>"),
    line(2, "event_msg", type="user_message", message="Why is the oven cold?", images=[]),
    user(2, "Why is the oven cold?"),
    line(2, "turn_context", cwd="/home/alice/bakery", model="m"),
    item(3, "reasoning", summary=[{"type": "summary_text", "text": "Look at it."}], encrypted_content="x"),
    item(3, "reasoning", summary=[], encrypted_content="x"),
    call(4, "call_1", command=["bash", "-lc", "oven"]),
    item(4, "custom_tool_call", status="completed", call_id="call_2", name="apply_patch", input="*** Begin Patch"),
    line(5, "event_msg", type="exec_command_end", call_id="call_1", exit_code=127),
    output(5, "call_1", json.dumps({"output": "oven: not found", "metadata": {"exit_code": 127}})),
    item(6, "custom_tool_call_output", call_id="call_2", output="Done."),
    item(7, "web_search_call", status="completed", action={"type": "search", "query": "ovens"}),
    assistant(8, "HEAT is 0."),
    line(8, "event_msg", type="token_count", info=None),
]


def test_a_session_is_read_with_its_calls_and_results_in_the_space_of_its_project() -> None:
    found = events(*TALK)
    assert [(event.agent, event.kind) for event in found] == [
        ("user", "user.injected"), ("codex", "agent.thought"), ("codex", "tool.used"), ("codex", "tool.used"),
        ("codex", "tool.used"), ("codex", "agent.spoke"),
    ]  # fmt: skip
    assert [event.payload for event in found if event.kind == "tool.used"] == [
        {"tool": "shell", "arguments": {"command": ["bash", "-lc", "oven"]}, "ok": False,
         "result": "oven: not found"},
        {"tool": "apply_patch", "arguments": "*** Begin Patch", "result": "Done.", "ok": True},
        {"tool": "web_search", "arguments": {"type": "search", "query": "ovens"}, "result": "completed", "ok": True},
    ]  # fmt: skip
    assert {(event.space, event.session) for event in found} == {("project/home/alice/bakery", SESSION)}
    assert [event.at.second for event in found] == [2, 3, 5, 6, 7, 8]
    assert left_out(*TALK) == {
        "session_meta": 1, "instructions": 3, "event_msg/user_message": 1, "turn_context": 1, "reasoning": 1,
        "event_msg/exec_command_end": 1, "event_msg/token_count": 1,
    }  # fmt: skip


@pytest.mark.parametrize("length", range(1, len(TALK) + 1))
def test_a_grown_rollout_adds_its_tail(length: int) -> None:
    before, after = events(*TALK[:length]), {event.id: event for event in events(*TALK)}
    for event in before:
        assert after.get(event.id, event) == event
        assert event.id in after or event.payload.get("error") == "no result"


def test_a_result_of_a_server_is_not_given_to_a_call_that_waits() -> None:
    search = item(2, "web_search_call", action={"query": "ovens"})
    found = events(META, user(1, "Look."), call(2, "call_1"), search, output(3, "call_1", "hot"))
    assert [(event.payload["tool"], event.payload["result"]) for event in found[1:]] == [
        ("web_search", "completed"),
        ("shell", "hot"),
    ]


@pytest.mark.parametrize(
    ("given", "result", "ok"),
    [
        ("fine", "fine", True),
        ({"content": "no", "success": False}, "no", False),
        ([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}], "a\nb", True),
    ],
)
def test_an_output_may_be_a_text_an_object_or_a_list(given: object, result: str, ok: bool) -> None:
    (_, used) = events(META, user(1, "Look."), call(2, "c"), output(3, "c", given))
    assert (used.payload["result"], used.payload["ok"]) == (result, ok)


def test_a_shell_call_of_the_model_is_paired_with_its_output() -> None:
    shell = item(2, "local_shell_call", call_id="c", status="completed", action={"type": "exec", "command": ["ls"]})
    (_, used) = events(META, user(1, "Look."), shell, output(3, "c", "a.py"))
    assert used.payload == {
        "tool": "local_shell", "arguments": {"type": "exec", "command": ["ls"]}, "result": "a.py", "ok": True,
    }  # fmt: skip


def test_a_rollout_without_envelopes_is_read_too() -> None:
    first = {"id": SESSION, "timestamp": "2025-07-01T10:00:00Z", "instructions": None, "git": {}}
    bare = [each["payload"] for each in TALK if each["type"] == "response_item"]
    state = {"record_type": "state"}
    found = events(first, state, *bare)
    assert [event.text for event in found] == [event.text for event in events(*TALK)]
    assert {(event.space, event.session) for event in found} == {(f"chat/{SESSION}", "1")}
    assert left_out(first, state, *bare)["state"] == 1


def test_a_broken_line_is_an_error_with_its_number() -> None:
    found = formats.items(codex.FORMAT, lines(META, user(1, "Hello.")) + b"{\n" + lines(assistant(2, "Hi.")))
    assert [str(each.error).split(": not")[0] for each in found if each.error] == ["conversation 1: line 3"]
    assert sum(each.event is not None for each in found) == 2


def test_a_rollout_of_bookkeeping_alone_has_no_events() -> None:
    assert (events(META), left_out(META)) == ([], {"session_meta": 1})
