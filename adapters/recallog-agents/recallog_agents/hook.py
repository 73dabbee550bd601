"""`recallog-hook AGENT --home HOME`: the command that a coding agent runs at its events.

The event is JSON on standard input, and the answer JSON on standard output. A hook leaves a note of the event in the
spool, and asks the process of the memory for what it recalls. If there is no such process, it starts one without
waiting for the start. A hook always ends within a second and with exit code 0; a failure is one line in the log.

A process is started for each event, and imports take most of its time. Therefore it imports only necessary modules of
the standard library.
"""

import json
import os
import signal
import sys
import time
from typing import Any

from recallog_agents import spool
from recallog_agents.events import END, EVENTS, PROMPT, START, WITH_TRANSCRIPTS, folder_of, messages_of, session_of

DEADLINE_SECONDS = 1.0
_RECALL_SECONDS = 0.75
"""How long a hook waits for an answer, from the start of the process."""
_LAST_SECONDS = 0.9
"""The time after which a hook ends, even if its work is not finished."""
_START_SECONDS = 20.0
"""How long a process that was started may take before another one is started."""
_INPUT_BYTES_MAX = 64 * 1024 * 1024
_ANSWER_BYTES_MAX = 1024 * 1024
_LATE: dict[str, Any] = {"late": True}


def main() -> None:
    """Entry point of `recallog-hook`."""
    run(sys.argv[1:], _age())


def run(arguments: list[str], age: float = 0.0) -> None:
    """Run a hook, and end the process. Its start took `age` seconds of the hook's time."""
    began = time.monotonic() - age
    os.umask(0o077)
    agent, home, given = _parsed(arguments)
    _end_in_time(home, agent, began)
    try:
        data = given if given is not None else _input()
        answer = _answer(agent, home, data, began)
        sys.stdout.write(f"{answer}\n" if answer else "")
        sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - the agent goes on
        spool.log(home, f"{agent}: {type(error).__name__}: {error}")
    os._exit(0)


def _parsed(arguments: list[str]) -> tuple[str, str, bytes | None]:
    """The agent, the folder of the memory, and the event, if the agent appends it to the command."""
    agent, given = "", None
    home = os.environ.get("RECALLOG_HOME") or os.path.expanduser("~/.recallog")  # noqa: PTH111
    rest = iter(arguments)
    for word in rest:
        if word == "--home":
            home = next(rest, home)
        elif word.startswith("{"):
            given = word.encode(errors="surrogateescape")
        else:
            agent = agent or word
    return agent, home, given


def _age() -> float:
    """The age of this process, if the system reports it. On a busy machine, the start takes a part of its time."""
    try:
        with open("/proc/self/stat", "rb") as file:  # noqa: PTH123
            started = int(file.read().rpartition(b")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
        return min(DEADLINE_SECONDS / 2, max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started))
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0


def _end_in_time(home: str, agent: str, began: float) -> None:
    """End the process when its time is used up. Time in which it waited for a processor does not count.

    Therefore notes are not lost if hundreds of hooks start at once.
    """

    def left() -> float:
        return _LAST_SECONDS - (time.monotonic() - began - _starved())

    if not hasattr(signal, "setitimer"):  # Windows
        import threading

        timer = threading.Timer(left(), os._exit, (0,))
        timer.daemon = True
        timer.start()
        return

    def end(*_: object) -> None:
        if left() > 0:
            signal.setitimer(signal.ITIMER_REAL, left() + 0.01)
            return
        signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
        signal.setitimer(signal.ITIMER_REAL, 0.05)  # the log may be on the slow disk
        spool.log(home, f"{agent}: ended after {time.monotonic() - began:.1f} s: the input or the disk is too slow")
        os._exit(0)

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, max(0.01, left()))


def _starved() -> float:
    """The seconds in which this process was ready but did not run, if the system reports them."""
    try:
        with open("/proc/self/schedstat", "rb") as file:  # noqa: PTH123
            return int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def _input() -> bytes:
    """The event, up to the end of the input or of the JSON, since an agent may not close the input."""
    data = b""
    while chunk := os.read(0, 1024 * 1024):
        data += chunk
        if len(data) > _INPUT_BYTES_MAX:
            raise ValueError(f"an event of more than {_INPUT_BYTES_MAX:,} bytes")
        if chunk.rstrip().endswith(b"}") and len(chunk) < 65_536 and _is_whole(data):
            break
    return data


def _is_whole(data: bytes) -> bool:
    try:
        json.loads(data)
    except ValueError:
        return False
    return True


def _answer(agent: str, home: str, data: bytes, began: float) -> str:
    """The answer for the agent: JSON, or an empty text."""
    if agent not in EVENTS:
        raise ValueError(f"not a known agent; known are {', '.join(EVENTS)}")
    payload = json.loads(data)
    if not isinstance(payload, dict):
        raise ValueError("the event is not a JSON object")
    event = str(payload.get("hook_event_name") or payload.get("type") or "")
    action = EVENTS[agent].get(event) or ("part" if event == "agent-turn-complete" else None)
    if action is None:
        return ""
    session, folder = session_of(payload), folder_of(payload)
    transcripts = _capture(agent, home, event, action, payload, session, folder)
    source = str(payload.get("source") or "startup") if action == START else ""
    if action in (PROMPT, END):
        source = spool.take_start(home, agent, session)
    request = {"agent": agent, "action": action, "session": session, "folder": folder, "transcripts": transcripts}
    answer = _asked(home, request | {"source": source, "prompt": str(payload.get("prompt") or "")[:20_000]}, began)
    if source and action != END and answer.get("late"):
        spool.keep_start(home, agent, session, source)  # the next prompt gets it instead
    return _formatted(agent, event, action, str(answer.get("text") or ""))


def _capture(
    agent: str, home: str, event: str, action: str, payload: dict[str, Any], session: str, folder: str
) -> list[str]:
    """Leave a note of the transcript to read: that of the agent, or one that hooks keep."""
    own = [payload.get("transcript_path"), payload.get("agent_transcript_path")]
    transcripts = [os.path.expanduser(each) for each in own if isinstance(each, str) and each]  # noqa: PTH111
    now = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + f".{time.time_ns() // 1_000_000 % 1_000:03d}Z"
    if not (transcripts and agent in WITH_TRANSCRIPTS) and event != "agent-turn-complete":
        lines = [
            {"recallog_agent": agent, "session": session, "cwd": folder, "message": each}
            for each in messages_of(event, payload, now)
        ]
        transcripts.append(spool.append(home, agent, session, lines))
    if session and action != START:
        record = {"agent": agent, "session": session, "transcripts": transcripts}
        spool.put(home, record | {"tool": action == "tool", "at": now})
    return transcripts


def _asked(home: str, request: dict[str, Any], began: float) -> dict[str, Any]:
    """The answer of the process of the memory. It is "late" if no process answers, too."""
    import socket

    try:
        with open(spool.place(home, spool.ADDRESS), "rb") as file:  # noqa: PTH123
            address = json.loads(file.read())
        with socket.create_connection(("127.0.0.1", address["port"]), timeout=0.2) as connection:
            connection.sendall(json.dumps(request | {"token": address["token"]}).encode() + b"\n")
            return _received(connection, began) if request["action"] in (START, PROMPT) else {}
    except TimeoutError:
        return _LATE
    except (OSError, ValueError, KeyError, TypeError):
        _start(home)
        return _LATE


def _received(connection: Any, began: float) -> dict[str, Any]:
    data = b""
    while not data.endswith(b"\n") and len(data) < _ANSWER_BYTES_MAX:
        connection.settimeout(max(0.01, _RECALL_SECONDS - (time.monotonic() - began)))
        chunk = connection.recv(65_536)
        if not chunk:
            return _LATE
        data += chunk
    return dict(json.loads(data))


def _start(home: str) -> None:
    """Start the process of the memory, unless another hook has just started it."""
    marker = spool.place(home, spool.STARTING)
    os.makedirs(spool.place(home), 0o700, exist_ok=True)  # noqa: PTH103
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        if time.time() - os.stat(marker).st_mtime < _START_SECONDS:  # noqa: PTH116
            return
        os.utime(marker)
    import subprocess

    command = [sys.executable, "-m", "recallog_agents.service", home]
    null = subprocess.DEVNULL
    subprocess.Popen(command, stdin=null, stdout=null, stderr=null, start_new_session=True, cwd="/")


def _formatted(agent: str, event: str, action: str, text: str) -> str:
    if agent == "cursor":
        answer: dict[str, Any] = {"continue": True} if action == PROMPT else {}
        if text and action == START:
            answer["additional_context"] = text
        return json.dumps(answer)
    if agent == "opencode":
        return json.dumps({"context": text})
    if not text:
        return ""
    return json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})


if __name__ == "__main__":
    main()
