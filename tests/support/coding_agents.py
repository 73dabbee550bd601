"""Coding agents for tests: they write transcripts, and run hooks in processes of their own, as real ones do."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any
from uuid import uuid4

from recallog_agents import spool
from support.cli import environment_of
from support.waiting import WAIT_SECONDS

FOLDER = "/home/ann/app"
SPACE = "project/home/ann/app"
HOOK = [sys.executable, "-m", "recallog_agents.hook"]


@dataclass(frozen=True, slots=True)
class Ended:
    """What a hook answered, and when it ended."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def told(self) -> str:
        """What the agent gets."""
        return str(json.loads(self.out)["hookSpecificOutput"]["additionalContext"]) if self.out else ""


def run_hook(home: Path, agent: str, event: bytes | dict[str, Any], **more: Any) -> Ended:
    data = event if isinstance(event, bytes) else json.dumps(event).encode()
    began = time.monotonic()
    with TemporaryFile() as file:  # the event is there at once, however busy this process is
        file.write(data)
        file.seek(0)
        done = subprocess.run(
            [*HOOK, agent, "--home", str(home)],
            stdin=file,
            capture_output=True,
            env=environment_of(RECALLOG_INDEX="off"),
            check=False,
            timeout=60,
            **more,
        )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode(), time.monotonic() - began)


@dataclass
class Session:
    """A session of Claude Code on a project: what is said is written to its transcript, and then a hook runs."""

    folder: Path
    home: Path
    cwd: str = FOLDER
    id: str = field(default_factory=lambda: str(uuid4()))
    calls: int = 0

    @property
    def transcript(self) -> Path:
        return self.folder / f"{self.id}.jsonl"

    def write(self, kind: str, content: object, **more: Any) -> None:
        record = {
            "type": kind, "uuid": str(uuid4()), "sessionId": self.id, "cwd": self.cwd, "isSidechain": False,
            "timestamp": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime())}.000Z",
            "message": {"role": kind, "content": content},
        }  # fmt: skip
        self.append(json.dumps(record | more) + "\n")

    def append(self, text: str) -> None:
        with self.transcript.open("a") as file:
            file.write(text)

    def event(self, name: str, **more: Any) -> dict[str, Any]:
        common = {"session_id": self.id, "transcript_path": str(self.transcript), "cwd": self.cwd}
        return common | {"permission_mode": "default", "hook_event_name": name} | more

    def hook(self, name: str, **more: Any) -> Ended:
        return run_hook(self.home, "claude-code", self.event(name, **more))

    def start(self, source: str = "startup") -> Ended:
        return self.hook("SessionStart", source=source)

    def ask(self, prompt: str) -> Ended:
        """The user asks: the hook runs before the transcript has the prompt, as that of Claude Code does."""
        ended = self.hook("UserPromptSubmit", prompt=prompt)
        self.write("user", prompt)
        return ended

    def call(self, tool: str, arguments: dict[str, Any], result: str) -> Ended:
        self.calls += 1
        id_ = f"toolu_{self.id[:8]}_{self.calls}"
        self.write("assistant", [{"type": "tool_use", "id": id_, "name": tool, "input": arguments}])
        self.write("user", [{"type": "tool_result", "tool_use_id": id_, "content": result}])
        return self.hook("PostToolUse", tool_name=tool, tool_input=arguments, tool_response=result, tool_use_id=id_)

    def say(self, text: str) -> Ended:
        self.write("assistant", [{"type": "text", "text": text}])
        return self.hook("Stop", stop_hook_active=False)

    def end(self) -> Ended:
        return self.hook("SessionEnd", reason="exit")


def codex_rollout(path: Path, id_: str, *texts: tuple[str, str], cwd: str = FOLDER) -> None:
    """Write a rollout of Codex, with texts by their roles."""
    lines: list[Any] = [
        {"type": "session_meta", "payload": {"id": id_, "cwd": cwd, "timestamp": "2026-03-01T12:00:00Z"}}
    ]
    for n, (role, text) in enumerate(texts):
        kind = "input_text" if role == "user" else "output_text"
        item = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        lines.append({"timestamp": f"2026-03-01T12:00:{n:02}Z", "type": "response_item", "payload": item})
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))


# The process of the memory.


def service_of(home: Path) -> int | None:
    """The id of the process that serves hooks; None if there is none."""
    try:
        return int(json.loads(Path(spool.place(str(home), spool.ADDRESS)).read_bytes())["pid"])
    except (OSError, ValueError):
        return None


@contextmanager
def served(home: Path) -> Iterator[None]:
    """Whatever process a hook starts for a memory is ended."""
    try:
        yield
    finally:
        kill_service(home)


def kill_service(home: Path) -> None:
    process = service_of(home)
    if process is not None:
        os.kill(process, signal.SIGKILL)
        wait_until(lambda: not _is_alive(process), "the process has ended")


def start_service(home: Path) -> None:
    """Start the process by a hook, and wait until it answers."""
    run_hook(home, "claude-code", {"hook_event_name": "SessionStart", "session_id": "s", "cwd": "/nowhere"})
    wait_until(lambda: service_of(home) is not None, "the process serves")


def wait_drained(home: Path) -> None:
    folder = Path(spool.place(str(home), spool.SPOOL))
    wait_until(lambda: not any(folder.glob("*.json*")), "the spool is empty")


def wait_until(holds: Any, what: str) -> None:
    give_up = time.monotonic() + WAIT_SECONDS
    while not holds():
        assert time.monotonic() < give_up, f"{what}: not within {WAIT_SECONDS:g} s"
        time.sleep(0.02)


def _is_alive(process: int) -> bool:
    try:
        return b"\nState:\tZ" not in Path(f"/proc/{process}/status").read_bytes()
    except OSError:
        return False


def log_of(home: Path) -> list[str]:
    path = Path(spool.place(str(home), spool.LOG))
    return path.read_text().splitlines() if path.exists() else []


def waiting(home: Path) -> list[dict[str, Any]]:
    """The records of the spool."""
    return [json.loads(each.read_bytes()) for each in sorted(Path(spool.place(str(home), spool.SPOOL)).glob("*.json"))]
