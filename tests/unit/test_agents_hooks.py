"""The hooks of coding agents by their protocols: every event, broken ones, and what goes wrong around them."""

import json
import os
import resource
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from recallog_agents import spool
from recallog_agents.events import EVENTS
from support.cli import environment_of
from support.coding_agents import HOOK, log_of, run_hook, waiting

COMMON = {"session_id": "4b1c0f4e-8f57-4a46-9a52-0d5f3f2f0a11", "cwd": "/home/ann/app"}
TOOL = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": {"stdout": "a"}, "tool_use_id": "t1"}
FIELDS: dict[str, dict[str, Any]] = {
    "SessionStart": {"source": "startup"},
    "sessionStart": {"is_background_agent": False, "composer_mode": "agent"},
    "UserPromptSubmit": {"prompt": "Fix it."},
    "BeforeAgent": {"prompt": "Fix it.", "timestamp": "2026-03-01T12:00:00Z"},
    "beforeSubmitPrompt": {"prompt": "Fix it.", "attachments": [], "generation_id": "g1"},
    "chat.message": {"prompt": "Fix it.", "message_id": "msg_1"},
    "PreToolUse": TOOL,
    "PostToolUse": TOOL,
    "AfterTool": TOOL | {"tool_response": {"llmContent": "a", "returnDisplay": "a"}},
    "postToolUse": {"tool_name": "Shell", "tool_input": {}, "tool_output": '{"stdout": "a"}', "tool_use_id": "t1"},
    "tool.execute.after": TOOL,
    "AfterAgent": {"prompt": "Fix it.", "prompt_response": "Done.", "stop_hook_active": False},
    "afterAgentResponse": {"text": "Done.", "generation_id": "g1"},
    "text.complete": {"text": "Done.", "message_id": "prt_1"},
    "Stop": {"stop_hook_active": False, "last_assistant_message": "Done."},
    "SubagentStop": {"stop_hook_active": False, "agent_id": "a1", "agent_transcript_path": "/nowhere/agent-a1.jsonl"},
    "PreCompact": {"trigger": "auto", "custom_instructions": ""},
    "Notification": {"message": "waiting", "notification_type": "idle_prompt"},
    "SessionEnd": {"reason": "exit"},
    "PermissionRequest": TOOL,
    "PostCompact": {"trigger": "auto"},
    "BeforeModel": {"llm_request": {"model": "m", "messages": []}},
    "stop": {"status": "completed", "loop_count": 0},
}
"""The fields of events besides those that all have."""
OTHERS = {
    "claude-code": ("PreToolUse", "Notification", "SubagentStart", "PostToolUseFailure", "ConfigChange", "Invented"),
    "codex": ("PreToolUse", "PermissionRequest", "PostCompact", "SubagentStart"),
    "cursor": ("preToolUse", "beforeShellExecution", "afterFileEdit", "afterAgentThought"),
    "gemini-cli": ("BeforeModel", "AfterModel", "BeforeTool", "BeforeToolSelection", "Notification"),
    "opencode": ("file.edited",),
}
"""Events that are documented, and at which there is nothing to do."""


def event_of(agent: str, name: str) -> dict[str, Any]:
    transcript = {"transcript_path": "/nowhere/t.jsonl"} if agent in ("claude-code", "codex") else {}
    return COMMON | transcript | {"hook_event_name": name} | FIELDS.get(name, {})


@pytest.mark.parametrize(
    ("agent", "name"), [(agent, name) for agent in EVENTS for name in (*EVENTS[agent], *OTHERS[agent])]
)
def test_every_event_is_noted_or_ignored_and_the_agent_goes_on(tmp_path: Path, agent: str, name: str) -> None:
    without_process(tmp_path)
    done = run_hook(tmp_path, agent, event_of(agent, name))
    assert (done.code, done.err, log_of(tmp_path)) == (0, "", [])
    expected = {"cursor": {}, "opencode": {"context": ""}}.get(agent)
    expected = {"continue": True} if name == "beforeSubmitPrompt" else expected
    assert done.out.strip() == (json.dumps(expected) if expected is not None and name in EVENTS[agent] else "")
    is_noted = EVENTS[agent].get(name) not in (None, "start")
    assert [each["session"] for each in waiting(tmp_path)] == [COMMON["session_id"]] * is_noted


def without_process(home: Path) -> None:
    """Let no hook start the process of the memory: another one seems to have just done so."""
    folder = Path(spool.place(str(home)))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / spool.STARTING).touch()


BROKEN = {
    "nothing": b"",
    "half of an object": b'{"hook_event_name": "Stop", "session_id": "x"',
    "a list": b"[]",
    "null": b"null",
    "not UTF-8": b'{"hook_event_name": "\xff"}',
    "nested too deeply": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "a session that is a number": b'{"hook_event_name": "Stop", "session_id": 5, "transcript_path": 7}',
    "half a surrogate": b'{"hook_event_name": "Stop", "session_id": "\\ud800", "transcript_path": "\\ud800"}',
    "no event": b"{}",
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("agent", ["claude-code", "cursor"])
def test_a_broken_event_costs_at_most_a_line_in_the_log(tmp_path: Path, agent: str, data: bytes) -> None:
    without_process(tmp_path)
    done = run_hook(tmp_path, agent, data)
    assert (done.code, done.err) == (0, "")
    assert len(log_of(tmp_path)) <= 1


@pytest.mark.parametrize("agent", ["claude-code", "cursor"])
def test_an_event_of_ten_megabytes_is_noted(tmp_path: Path, agent: str) -> None:
    without_process(tmp_path)
    name = "PostToolUse" if agent == "claude-code" else "postToolUse"
    done = run_hook(tmp_path, agent, event_of(agent, name) | {"tool_response": "x" * 10_000_000})
    assert (done.code, log_of(tmp_path)) == (0, [])
    assert len(waiting(tmp_path)) == 1
    kept = Path(spool.place(str(tmp_path), spool.TRANSCRIPTS))
    assert sum(each.stat().st_size for each in kept.glob("*")) < 1_000_000


def test_an_agent_that_stops_in_the_middle_of_an_event_is_not_waited_for(tmp_path: Path) -> None:
    without_process(tmp_path)
    with started(tmp_path, "claude-code") as hook:
        assert hook.stdin is not None
        hook.stdin.write(b'{"hook_event_name": "Stop", ')
        hook.stdin.flush()
        assert hook.wait(30) == 0
    assert ["the input or the disk is too slow" in each for each in log_of(tmp_path)] == [True]


def test_an_agent_that_leaves_the_end_of_the_input_open_is_answered(tmp_path: Path) -> None:
    without_process(tmp_path)
    with started(tmp_path, "claude-code") as hook:
        assert hook.stdin is not None
        hook.stdin.write(json.dumps(event_of("claude-code", "Stop")).encode())
        hook.stdin.flush()
        assert hook.wait(30) == 0
    assert len(waiting(tmp_path)) == 1
    assert log_of(tmp_path) == []


@contextmanager
def started(home: Path, agent: str) -> Iterator["subprocess.Popen[bytes]"]:
    hook = subprocess.Popen(
        [*HOOK, agent, "--home", str(home)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment_of()
    )
    with hook:
        try:
            yield hook
        finally:
            hook.kill()


def test_a_process_that_does_not_answer_is_not_waited_for(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        named(tmp_path, silent.getsockname()[1])
        done = run_hook(tmp_path, "claude-code", event_of("claude-code", "UserPromptSubmit"))
    assert (done.code, done.out, done.err, log_of(tmp_path)) == (0, "", "", [])
    assert len(waiting(tmp_path)) == 1


@pytest.mark.parametrize("answer", [b"", b"{", b"[]\n", b'{"text": 5}\n', b"\xff\n", b'{"text": ""}\n'])
def test_a_process_that_answers_nonsense_costs_nothing(tmp_path: Path, answer: bytes) -> None:
    without_process(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def reply() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(answer)

        thread = threading.Thread(target=reply)
        thread.start()
        named(tmp_path, server.getsockname()[1])
        done = run_hook(tmp_path, "claude-code", event_of("claude-code", "UserPromptSubmit"))
        thread.join()
    assert (done.code, done.err) == (0, "")
    assert done.told in ("", "5")


def named(home: Path, port: int) -> None:
    folder = Path(spool.place(str(home)))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / spool.ADDRESS).write_text(json.dumps({"port": port, "token": "t"}))


@pytest.mark.parametrize("address", [b"", b"{}", b'{"port": "x", "token": 1}', b'{"port": 1, "token": "t"}'])
def test_an_address_that_leads_nowhere_costs_nothing(tmp_path: Path, address: bytes) -> None:
    without_process(tmp_path)
    Path(spool.place(str(tmp_path), spool.ADDRESS)).write_bytes(address)
    done = run_hook(tmp_path, "claude-code", event_of("claude-code", "UserPromptSubmit"))
    assert (done.code, done.out, done.err) == (0, "", "")


def test_a_folder_that_cannot_be_made_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run_hook(tmp_path / "file" / "home", "claude-code", event_of("claude-code", "Stop"))
    assert (done.code, done.out, done.err) == (0, "", "")


def test_a_full_disk_costs_nothing(tmp_path: Path) -> None:
    without_process(tmp_path)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    done = run_hook(tmp_path, "claude-code", event_of("claude-code", "Stop"), preexec_fn=limit)
    assert (done.code, done.out, done.err, waiting(tmp_path)) == (0, "", "", [])


@pytest.mark.parametrize("arguments", [[], ["unknown"], ["claude-code", "--home"]])
def test_a_command_that_is_written_wrongly_does_not_stop_the_agent(tmp_path: Path, arguments: list[str]) -> None:
    environment = environment_of(RECALLOG_HOME=str(tmp_path), HOME=str(tmp_path))
    done = subprocess.run([*HOOK, *arguments], input=b"{}", capture_output=True, env=environment, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_codex_may_give_the_end_of_a_turn_as_an_argument(tmp_path: Path) -> None:
    without_process(tmp_path)
    notification = {"type": "agent-turn-complete", "thread-id": "0199-a", "turn-id": "1", "cwd": "/home/ann/app"}
    arguments = [*HOOK, "codex", "--home", str(tmp_path), json.dumps(notification)]
    done = subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, env=environment_of(), check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert [each["session"] for each in waiting(tmp_path)] == ["0199-a"]


def test_notes_of_one_session_replace_each_other_so_that_the_spool_is_bounded(tmp_path: Path) -> None:
    without_process(tmp_path)
    for _ in range(3):
        run_hook(tmp_path, "claude-code", event_of("claude-code", "PostToolUse"))
    assert len(waiting(tmp_path)) == 1


def test_what_hooks_write_is_for_their_user_alone(tmp_path: Path) -> None:
    without_process(tmp_path / "home")
    os.chmod(tmp_path / "home" / "agents", 0o755)  # noqa: PTH101  # of another program
    run_hook(tmp_path / "home", "cursor", event_of("cursor", "beforeSubmitPrompt"))
    made = [each for each in (tmp_path / "home").rglob("*") if each.name not in ("agents", spool.STARTING)]
    assert made
    assert not any(each.stat().st_mode & 0o077 for each in made)


def test_a_hook_imports_little() -> None:
    program = (
        "import sys; import recallog_agents.hook; print(*sorted({each.partition('.')[0] for each in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    heavy = {
        "asyncio",
        "pydantic",
        "recallog",
        "recallog_schemas",
        "recallog_service",
        "subprocess",
        "typer",
        "threading",
    }
    assert heavy.isdisjoint(done.stdout.split()), done.stdout
