"""The folder `agents` of a memory: the records that hooks leave for the process that drains it, and its address.

A file of the spool says that a session has something to read. It is written to another file and renamed, so that it is
never incomplete. A session has one file, so that the spool is bounded by the number of sessions. The module uses only
the standard library, because hooks import it.
"""

import hashlib
import json
import os
import time
from contextlib import suppress
from typing import Any

FOLDER = "agents"
SPOOL = "spool"
TRANSCRIPTS = "transcripts"
"""Transcripts that hooks write for agents that have none."""
STARTS = "starts"
"""Notes of how sessions began that have not received the state of the work yet."""
ADDRESS, STARTING, LOCK = "service.json", "service.starting", "service.lock"
INSTALLED = "installed.json"
LOG = "hooks.log"

_CLAIMED = ".claimed"
_LOG_BYTES_MAX = 1_000_000


def place(home: str, *names: str) -> str:
    return os.path.join(home, FOLDER, *names)  # noqa: PTH118  # pathlib is a third of a hook's imports


def put(home: str, record: dict[str, Any]) -> None:
    """Leave a record of a session. A record of the same session that was not drained yet is replaced."""
    name = f"{record['agent']}-{_digest([record['session'], record['transcripts']])}.json"
    written = place(home, SPOOL, f".{name}.{os.getpid()}.{time.monotonic_ns()}")
    _write(written, json.dumps(record).encode(), os.O_CREAT | os.O_EXCL)
    os.replace(written, place(home, SPOOL, name))  # noqa: PTH105


def append(home: str, agent: str, session: str, lines: list[dict[str, Any]]) -> str:
    """Append to the transcript of a session that hooks keep, and return its path. A line is one write."""
    path = place(home, TRANSCRIPTS, f"{agent}-{_digest(session)}.jsonl")
    for line in lines:
        _write(path, json.dumps(line, ensure_ascii=False).encode(errors="replace") + b"\n", os.O_CREAT | os.O_APPEND)
    return path


def keep_start(home: str, agent: str, session: str, source: str) -> None:
    """Note that a session has not received the state of the work: the answer was late, or no process answered."""
    _write(_start_of(home, agent, session), source.encode(errors="replace"), os.O_CREAT | os.O_TRUNC)


def take_start(home: str, agent: str, session: str) -> str:
    """How a session began that missed the state of the work; "" for others. Only one hook gets it."""
    path = _start_of(home, agent, session)
    with suppress(FileNotFoundError):
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            source = file.read()
        os.unlink(path)  # noqa: PTH108
        return source
    return ""


def _start_of(home: str, agent: str, session: str) -> str:
    return place(home, STARTS, f"{agent}-{_digest(session)}")


def claim(home: str) -> dict[str, dict[str, Any]]:
    """The records that wait, by the paths under which they stay until `done`; unreadable ones are deleted.

    A claim renames the file, so that a record which a hook leaves meanwhile is a separate one.
    """
    found: dict[str, dict[str, Any]] = {}
    for name in _names(place(home, SPOOL)):
        path = place(home, SPOOL, name)
        if name.endswith(".json"):
            os.replace(path, path := path + _CLAIMED)  # noqa: PTH105
        elif not name.endswith(_CLAIMED):
            continue
        try:
            with open(path, "rb") as file:  # noqa: PTH123
                record = json.loads(file.read())
            found[path] = record | {"transcripts": list(map(str, record["transcripts"]))}
        except (ValueError, TypeError, KeyError, FileNotFoundError):
            done(path)
    return found


def done(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108


def log(home: str, message: str) -> None:
    """Write one line to the log of hooks. Does nothing if the log cannot be written."""
    line = " ".join(f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {message}".split())[:1_000] + "\n"
    path = place(home, LOG)
    with suppress(OSError):
        if os.path.getsize(path) > _LOG_BYTES_MAX:  # noqa: PTH202
            os.replace(path, path + ".1")  # noqa: PTH105
    with suppress(OSError):
        _write(path, line.encode(errors="replace"), os.O_CREAT | os.O_APPEND)


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208
    except FileNotFoundError:
        return []


def _write(path: str, data: bytes, flags: int) -> None:
    try:
        file = os.open(path, os.O_WRONLY | flags, 0o600)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)  # noqa: PTH103, PTH120
        file = os.open(path, os.O_WRONLY | flags, 0o600)
    try:
        if os.write(file, data) < len(data):
            raise OSError(28, "the disk is full")
    finally:
        os.close(file)


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:24]
