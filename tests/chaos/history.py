"""The history that a producer writes: one line for each call, before the next call."""

import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from recallog_schemas import Event, Position

FIRST = "first"
AGAIN = "again"
CONTRADICTION = "contradiction"
READ = "read"
QUESTION = "question"


class Acknowledged(NamedTuple):
    """One event that the ledger has acknowledged, and its position."""

    space: str
    number: int
    id: str
    partition: int
    offset: int
    why: str
    """`FIRST`, `AGAIN` (repeated on purpose) or `CONTRADICTION` (another event with the same id)."""


@dataclass(slots=True)
class Tally:
    """The totals of the histories so far."""

    acknowledged: int = 0
    """Distinct events."""
    again: int = 0
    contradictions: int = 0
    calls: int = 0
    unknown: int = 0
    """Calls whose outcome was unknown and that were sent again."""
    unavailable: int = 0
    """Calls that were refused and sent again."""
    reads: int = 0
    """Answered queries of producers for the event that they had just published."""
    reads_refused: int = 0
    """Queries that failed because the views were unreachable or behind."""
    reads_wrong: int = 0
    questions: int = 0
    """Questions of the reader."""
    questions_refused: int = 0
    """Questions that failed with a named error, because a service was unreachable or the views were being built."""
    slowest_seconds: float = 0.0
    """Of all questions."""
    operations: Counter[str] = field(default_factory=Counter)
    """Operations on lists: how many were invoked, ok, failed and unknown."""

    def add(self, line: dict[str, Any]) -> None:
        if "op" in line:
            self.operations[line["what"]] += 1
            return
        if line["what"] == QUESTION:
            self.questions += 1
            self.questions_refused += "error" in line
            self.slowest_seconds = max(self.slowest_seconds, line["seconds"])
            return
        events = line.get("events", [])
        why = line.get("why")
        self.acknowledged += len(events) if why == FIRST else 0
        self.again += len(events) if why == AGAIN else 0
        self.contradictions += len(events) if why == CONTRADICTION else 0
        self.calls += line["what"] == "acknowledged"
        self.unknown += line["what"] == "UnknownOutcome"
        self.unavailable += line["what"] not in ("acknowledged", "started", "finished", "UnknownOutcome", READ)
        self.reads += "right" in line
        self.reads_refused += line["what"] == READ and "error" in line
        self.reads_wrong += line.get("right") is False


def path_of(folder: Path, name: str) -> Path:
    """The file with the history of the process `name`."""
    return folder / f"{name}.history.jsonl"


class Writer:
    """Appends to a producer's history; each line is one write."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        if path.stat().st_size and not path.read_bytes().endswith(b"\n"):
            self._write(b"\n")  # an earlier process was killed while it wrote a line, which is then ignored

    def acknowledged(self, why: str, events: Sequence[Event], numbers: Sequence[int], at: Sequence[Position]) -> None:
        addresses = [
            (event.space, number, event.id, position.partition, position.offset)
            for event, number, position in zip(events, numbers, at, strict=True)
        ]
        self.note("acknowledged", why=why, events=addresses)

    def note(self, what: str, **more: Any) -> None:
        self._write(json.dumps({"what": what, "at": round(time.time(), 3), **more}).encode() + b"\n")

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._file, data) :]


class Tail:
    """Reads a history while it is being written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def lines(self) -> Iterator[dict[str, Any]]:
        """Complete lines that were written since the last call."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._read += len(line)
                try:
                    yield json.loads(line)
                except ValueError:
                    continue  # see `Writer`


def acknowledged(path: Path) -> Iterator[Acknowledged]:
    """All acknowledgements of one history."""
    for line in Tail(path).lines():
        for event in line.get("events", ()):
            space, number, id_, partition, offset = event
            yield Acknowledged(space, number, id_, partition, offset, line["why"])
