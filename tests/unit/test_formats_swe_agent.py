"""SWE-agent trajectories as chats, and which results of tools say that a call failed."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from recallog import Event, Memory
from recallog.messages import outcomes
from recallog_service.formats import chat, swe_agent
from support import formats

TASK = {"role": "user", "content": "Fix the oven.", "agent": "main", "message_type": "observation"}


def events_of(messages: list[dict[str, Any]], key: str = "history") -> list[Event]:
    text = json.dumps({key: messages, "info": {}}).encode()
    reader = chat.FORMAT if key == "messages" else swe_agent.FORMAT
    items = formats.items(reader, text, space="run", start=datetime(2026, 1, 1, tzinfo=UTC))
    assert [item.error for item in items] == [None] * len(items)
    return [item.event for item in items if item.event is not None]


def shown(events: list[Event]) -> list[str]:
    return [f"{event.turn} {event.agent} {event.kind} {event.text}" for event in events]


def answer(thought: str, action: str, **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "agent": "main", "message_type": "action"}
    return message | {"content": f"{thought}\n```\n{action}```", "thought": thought, "action": action} | more


def output(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, "agent": "main", "message_type": "observation"} | more


def test_a_command_and_its_output_are_one_tool_call() -> None:
    messages = [TASK, answer("Look.", "ls -F\n"), output("oven.py"), answer("Run.", "python oven.py\n"), output("hot")]
    assert shown(events_of(messages)) == [
        "1 user user.injected Fix the oven.",
        "1 assistant agent.spoke Look.\n```\nls -F\n```",
        "1 assistant tool.used bash(ls -F): oven.py",
        "1 assistant agent.spoke Run.\n```\npython oven.py\n```",
        "1 assistant tool.used bash(python oven.py): hot",
    ]


def test_a_command_without_output_says_so_and_takes_no_later_output() -> None:
    messages = [TASK, answer("Run.", "sleep 9"), answer("Look.", "ls"), output("oven.py"), output("Well done.")]
    assert [text for text in shown(events_of(messages)) if "spoke" not in text] == [
        "1 user user.injected Fix the oven.",
        "1 assistant tool.used bash(sleep 9): failed: no result",
        "1 assistant tool.used bash(ls): oven.py",
        "2 user user.injected Well done.",
    ]


def test_what_a_person_says_after_a_command_is_no_output() -> None:
    messages = [TASK, answer("Run.", "sleep 9"), output("Stop it.", message_type="user")]
    assert shown(events_of(messages))[2:] == [
        "1 assistant tool.used bash(sleep 9): failed: no result",
        "2 user user.injected Stop it.",
    ]


def test_a_result_that_names_its_calls_in_a_list_completes_the_first_of_them() -> None:
    calls = [
        {
            "id": f"call-{n}",
            "type": "function",
            "function": {"name": "bash", "arguments": json.dumps({"command": name})},
        }
        for n, name in enumerate(["ls", "pwd"])
    ]
    results = [
        output("/home", role="tool", tool_call_ids=["call-1"]),
        output("a.py", role="tool", tool_call_ids=["call-0"]),
    ]
    messages = [TASK, answer("Look.", "ls", tool_calls=calls), *results]
    used = [event for event in events_of(messages) if event.kind == "tool.used"]
    assert [event.text for event in used] == ["bash(pwd): /home", "bash(ls): a.py"]
    assert used[0].payload["arguments"] == {"command": "pwd"}


def test_the_steps_of_a_trajectory_are_read_too() -> None:
    steps = [
        {"action": "ls\n", "observation": "a.py", "response": "Look.\n```\nls\n```", "thought": "Look.", "state": "{}"},
        {"action": "submit", "observation": "", "response": "", "thought": "Done."},
    ]
    assert shown(events_of(steps, "trajectory")) == [
        "0 assistant agent.spoke Look.\n```\nls\n```",
        "0 assistant tool.used bash(ls): a.py",
        "0 assistant agent.spoke Done.",
        "0 assistant tool.used bash(submit): ok",
    ]


def test_the_action_of_another_agent_s_user_stays_a_field_of_no_event() -> None:
    messages = [
        {"role": "user", "content": "Hello", "action": "wave"},
        {"role": "assistant", "content": "Hi", "action": ""},
    ]
    assert shown(events_of(messages, "messages")) == ["1 user user.injected Hello", "1 assistant agent.spoke Hi"]


@pytest.mark.models("prompt")
def test_a_command_that_was_run_is_found_by_its_words_and_is_in_the_action_history() -> None:
    commands = [
        "ls -F",
        "pip install -e .[dev]",
        "grep -rn preheat src/kitchen",
        "cat README",
        "pytest tests -k preheat",
    ]
    messages = [
        TASK,
        *(each for command in commands for each in (answer("Next.", command, content=""), output("done"))),
    ]

    async def work() -> tuple[str, list[str]]:
        async with Memory.in_memory() as memory:
            await memory.publish_many(events_of(messages))
            found = await memory.recall("run", "assistant", "grep -rn preheat src/kitchen")
            prompt = (await memory.context("run", "assistant")).text
            history = prompt.partition("ACTION HISTORY\n")[2].partition("\n\n")[0]
            return found.hits[0].text, history.splitlines()

    first, history = asyncio.run(work())
    assert first == "bash(grep -rn preheat src/kitchen): done"
    assert history == [f"[turn 001][tool.used][tool] «bash({command}): done»" for command in commands]


@pytest.mark.parametrize(
    "result",
    [
        "Error: no such user",
        "  error: no such user",
        "Traceback (most recent call last):\n  File",
        "<returncode>1</returncode>\n<output>\nno such file\n</output>",
        "no such file\n[The command completed with exit code 2.]",
        "Exit code: 127\nbash: frob: command not found",
        "Process exited with code 0\nProcess exited with exit code 1",
        "bash: frob: command not found",
        "ls: cannot access 'mill.txt': No such file or directory\n(Current directory: /village)",
        "/bin/sh: 1: frob: not found",
        "tail: ledger.txt: Permission denied",
        {"is_error": True, "text": "no"},
        {"error": "no such user"},
        {"stdout": "", "exit_code": 2},
        '{"output": "no such file", "metadata": {"exit_code": 1, "duration_seconds": 0.1}}',
        '{"error": {"code": 404}}',
    ],
)
def test_a_result_says_that_its_call_failed(result: object) -> None:
    assert outcomes.is_failure(result)


@pytest.mark.parametrize(
    "result",
    [
        "",
        None,
        7,
        ["Error"],
        "No error found",
        "<returncode>0</returncode>\n<output>\n</output>",
        "done\n[The command completed with exit code 0.]",
        "README.md: explains what to do if a command is not found.",
        "12 files\nls: mill.txt: No such file or directory",
        "setup\nthe worker has exit code 1 in the log\ndone",
        {"error": None, "exit_code": 0},
        {"is_error": False, "text": "Error"},
        '{"output": "", "metadata": {"exit_code": 0}}',
        '{"error',
        "{" * 500_000,
        "exit code: " + "9" * 5_000,
    ],
)
def test_a_result_does_not_say_that_its_call_failed(result: object) -> None:
    assert not outcomes.is_failure(result)
