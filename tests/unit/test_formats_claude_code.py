"""Transcripts of Claude Code: sessions of a project, subagents, and what nobody said."""

import json
import time
from collections import Counter
from typing import Any

import pytest

from recallog_schemas import Event
from recallog_service.formats import Item, claude_code
from support import formats

Record = dict[str, Any]

SESSION = "4b1c0f4e-8f57-4a46-9a52-0d5f3f2f0a11"
OTHER = "9d2e1a7c-1111-4b6d-8c1e-7f3a5b9c2d44"


def record(kind: str, n: int, message: Record | None = None, **fields: Any) -> Record:
    known = {
        "type": kind, "uuid": f"uuid-{n}", "parentUuid": f"uuid-{n - 1}" if n else None, "sessionId": SESSION,
        "timestamp": f"2026-03-01T12:00:{n:02}.000Z", "cwd": "/home/alice/bakery", "gitBranch": "main",
        "version": "2.1.12", "isSidechain": False, "userType": "external",
    }  # fmt: skip
    return known | ({"message": message} if message is not None else {}) | fields


def user(n: int, content: object, **fields: Any) -> Record:
    return record("user", n, {"role": "user", "content": content}, **fields)


def assistant(n: int, *blocks: Record, **fields: Any) -> Record:
    message = {"id": f"msg_{n}", "type": "message", "role": "assistant", "model": "m", "content": list(blocks)}
    return record("assistant", n, message, requestId=f"req_{n}", **fields)


def text(words: str) -> Record:
    return {"type": "text", "text": words}


def call(id_: str, name: str, **arguments: Any) -> Record:
    return {"type": "tool_use", "id": id_, "name": name, "input": arguments}


def result(id_: str, content: object, **fields: Any) -> Record:
    return {"type": "tool_result", "tool_use_id": id_, "content": content, **fields}


def lines(*records: object) -> bytes:
    return "".join(json.dumps(each) + "\n" for each in records).encode()


def items(*records: object, **options: Any) -> list[Item]:
    return formats.items(claude_code.FORMAT, lines(*records), **options)


def events(*records: object, **options: Any) -> list[Event]:
    return formats.events(items(*records, **options))


def left_out(*records: object) -> dict[str, int]:
    return Counter(item.left_out for item in items(*records) if item.left_out is not None)


SUMMARY = {"type": "summary", "summary": "Bread", "leafUuid": "uuid-5"}
SNAPSHOT = {"type": "file-history-snapshot", "messageId": "uuid-1", "snapshot": {}, "isSnapshotUpdate": False}
TALK = [
    SUMMARY,
    SNAPSHOT,
    user(1, "Why is the oven cold?"),
    assistant(2, {"type": "thinking", "thinking": "Look at it.", "signature": "x"}),
    assistant(3, text("I look.")),
    assistant(4, call("toolu_1", "Bash", command="oven --status", description="Status")),
    assistant(5, call("toolu_2", "Read", file_path="/home/alice/bakery/oven.py")),
    user(6, [result("toolu_2", [text("1\tHEAT = 0")])], toolUseResult={"type": "text"}),
    user(7, [result("toolu_1", "Exit code 1\noven: not found", is_error=True)], toolUseResult="Error"),
    assistant(8, text("HEAT is 0.")),
]


def test_a_session_is_read_with_its_calls_and_results_in_the_space_of_its_project() -> None:
    found = events(*TALK)
    assert [(event.agent, event.kind, event.text) for event in found] == [
        ("user", "user.injected", "Why is the oven cold?"),
        ("claude-code", "agent.thought", "Look at it."),
        ("claude-code", "agent.spoke", "I look."),
        ("claude-code", "tool.used", "Read(file_path=/home/alice/bakery/oven.py): 1\tHEAT = 0"),
        ("claude-code", "tool.used", found[4].text),
        ("claude-code", "agent.spoke", "HEAT is 0."),
    ]
    assert [event.payload["ok"] for event in found if event.kind == "tool.used"] == [True, False]
    assert {(event.space, event.session) for event in found} == {("project/home/alice/bakery", SESSION)}
    assert [event.turn for event in found] == [1] * 6
    assert [event.at.second for event in found] == [1, 2, 3, 6, 7, 8]
    assert left_out(*TALK) == {"summary": 1, "file-history-snapshot": 1}


def test_a_given_space_is_used() -> None:
    assert {(event.space, event.session) for event in events(*TALK, space="bread")} == {("bread", SESSION)}


@pytest.mark.parametrize("length", range(1, len(TALK) + 1))
def test_a_grown_transcript_adds_its_tail(length: int) -> None:
    before, after = events(*TALK[:length]), events(*TALK)
    known = {event.id: event for event in after}
    for event in before:
        assert known.get(event.id, event) == event
        assert event.id in known or event.payload.get("error") == "no result"


def test_messages_that_a_continued_session_repeats_have_the_same_ids() -> None:
    continued = [*TALK, user(9, "Thanks.", sessionId=OTHER), assistant(10, text("Gladly."), sessionId=OTHER)]
    found = events(*continued)
    assert [event.id for event in found[:6]] == [event.id for event in events(*TALK)]
    assert [(event.session, event.turn) for event in found[6:]] == [(OTHER, 1), (OTHER, 1)]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("<command-name>/clear</command-name>\n<command-message>clear</command-message>\n<command-args></command-args>",
         "/clear"),
        ("<command-message>review is running</command-message>\n<command-name>/review</command-name>\n"
         "<command-args>17</command-args>", "/review 17"),
        ("<bash-input>git status</bash-input>", "! git status"),
        ("Fix it.\n<system-reminder>\nThe list is empty.\n</system-reminder>", "Fix it.\n"),
        ("What does <command-name> mean?", "What does <command-name> mean?"),
    ],
)  # fmt: skip
def test_what_the_user_typed_is_read_as_it_was_typed(typed: str, said: str) -> None:
    for content in (typed, [text(typed)]):
        assert [event.payload["text"] for event in events(user(1, content))] == [said]


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        (user(1, "Caveat.", isMeta=True), "meta"),
        (user(1, "This session continues.", isCompactSummary=True, isVisibleInTranscriptOnly=True), "compact_summary"),
        (assistant(1, text("API Error: 529"), isApiErrorMessage=True), "api_error"),
        (user(1, "<local-command-stdout>done</local-command-stdout>"), "local_command_stdout"),
        (user(1, "<bash-stdout>a.py</bash-stdout><bash-stderr></bash-stderr>"), "bash_stdout"),
        (user(1, "<system-reminder>Mind the list.</system-reminder>"), "system_reminder"),
        (user(1, [text("Caveat: The messages below were generated by the user while running local commands. DO NOT")]),
         "caveat"),
        (record("system", 1, subtype="compact_boundary", content="Conversation compacted"), "system/compact_boundary"),
        (record("queue-operation", 1, operation="enqueue"), "queue-operation"),
        (user(1, ""), "empty_message"),
        (assistant(1, {"type": "thinking", "thinking": "", "signature": "x"}), "thinking"),
    ],
)  # fmt: skip
def test_what_nobody_said_is_counted_and_begins_no_turn(own: Record, reason: str) -> None:
    found = items(user(0, "Hello."), own, assistant(2, text("Hi.")))
    assert [item.left_out for item in found if item.left_out] == [reason]
    expected = 2 if reason == "empty_message" else 1
    assert [item.event.turn for item in found if item.event] == [1, expected]


@pytest.mark.parametrize(("agent", "name"), [({"agentId": "a748733"}, "a748733"), ({}, "subagent")])
def test_a_subagent_has_a_session_of_its_own_in_which_the_agent_speaks_to_it(agent: Record, name: str) -> None:
    side = {"isSidechain": True, **agent}
    task = assistant(2, call("toolu_1", "Task", prompt="Count the sacks."))
    done = user(5, [result("toolu_1", "Nine.")])
    found = events(
        user(1, "How many?"), task, user(3, "Count the sacks.", **side), assistant(4, text("Nine."), **side), done
    )
    assert [(event.session, event.agent, event.kind, event.audience) for event in found] == [
        (SESSION, "user", "user.injected", None),
        (SESSION, "claude-code", "tool.used", None),
        (f"{SESSION}/{name}", "claude-code", "agent.spoke", (f"claude-code/{name}",)),
        (f"{SESSION}/{name}", f"claude-code/{name}", "agent.spoke", None),
    ]
    assert found[1].payload["ok"]


def test_many_reminders_that_do_not_end_are_searched_once() -> None:
    began = time.process_time()
    (said,) = events(user(1, "Hello." + "<system-reminder>" * 12_000))
    assert said.text.startswith("Hello.<system-reminder>")
    assert time.process_time() - began < 1.0


def test_a_broken_line_is_an_error_with_its_number_and_the_others_are_read() -> None:
    broken = lines(*TALK[:3]) + b'{"type": "user", "mess\n' + lines(*TALK[4:])
    found = formats.items(claude_code.FORMAT, broken)
    errors = [str(item.error) for item in found if item.error]
    assert len(errors) == 1
    assert errors[0].startswith("conversation 1: line 4: not JSON")
    assert sum(item.event is not None for item in found) == 5


def test_a_file_of_summaries_alone_has_no_events() -> None:
    assert (events(SUMMARY, SUMMARY), left_out(SUMMARY, SUMMARY)) == ([], {"summary": 2})


def test_a_long_folder_is_replaced_by_its_digest_and_any_other_names_its_space() -> None:
    (found,) = events(user(1, "Hello.", cwd="/" + "x" * 200))
    assert found.space.startswith("project/")
    assert len(found.space) == len("project/") + 16
    (found,) = events(user(1, "Hello.", cwd="C:\\Users\\Ann Lee\\app"))
    assert found.space == "project/C:\\Users\\Ann Lee\\app"


def test_the_output_of_a_run_without_a_terminal_is_read_too() -> None:
    def streamed(kind: str, n: int, *blocks: Record, **fields: Any) -> Record:
        message = {"role": kind, "content": list(blocks)}
        return {"type": kind, "message": message, "session_id": SESSION, "uuid": f"u-{n}", **fields}

    init = {"type": "system", "subtype": "init", "session_id": SESSION, "cwd": "/home/alice/bakery", "tools": []}
    run = [
        init,
        streamed("assistant", 1, call("toolu_1", "Task", prompt="Count."), parent_tool_use_id=None),
        streamed("assistant", 2, text("Nine."), parent_tool_use_id="toolu_1"),
        streamed("user", 3, result("toolu_1", "Nine."), parent_tool_use_id=None),
        {"type": "result", "subtype": "success", "session_id": SESSION, "result": "Nine sacks."},
    ]
    assert [(event.space, event.session, event.text) for event in events(*run)] == [
        ("project/home/alice/bakery", SESSION, "Task(prompt=Count.): Nine."),
        ("project/home/alice/bakery", f"{SESSION}/toolu_1", "Nine."),
    ]
    assert left_out(*run) == {"system/init": 1, "result/success": 1}
