"""The content of a file: the first documents, by which its format is recognised, and all documents."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain
from typing import Any

from recallog.messages.mapping import MESSAGE_TIMES
from recallog.messages.times import time_in
from recallog_schemas.errors import InvalidEvent

SAMPLE_LINES = 200
"""Lines that are read to recognise a format. Transcripts of agents begin with various records."""
SAMPLE_BYTES = 4 * 1024 * 1024

HALF = "half_of_a_character"
"""The type under which unpaired surrogates are counted: an agent cut a text inside a surrogate pair."""
_HALVES = re.compile(rb"\\\\|\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|(\\u[dD][89a-fA-F]\w\w)")
"""Escape sequences; the group matches an unpaired surrogate."""

UNFINISHED = "unfinished_line"
"""The type of an unfinished last line. A later run finds the whole line."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Sample:
    """The beginning of a file, as JSON and as text."""

    documents: tuple[object, ...] = ()
    """The first lines that are JSON, the first elements of a JSON list, or the one document; parsed."""
    lines: tuple[str, ...] = ()
    """The first lines of a file that has no JSON; empty if they are not UTF-8."""
    is_list: bool = False
    """Whether the file is one JSON list."""
    is_blank: bool = False
    """Whether the file contains only white space."""

    @property
    def first_time(self) -> datetime:
        """The first time in its documents; the latest possible time if they have none."""
        times = (time_in(place, MESSAGE_TIMES) for each in self.objects for place in (each, _inner(each)))
        return next((time for time in times if time is not None), datetime.max.replace(tzinfo=UTC))

    @property
    def objects(self) -> list[dict[str, Any]]:
        return [each for each in self.documents if isinstance(each, dict)]


def _inner(document: dict[str, Any]) -> dict[str, Any]:
    """The first message of a conversation."""
    messages = document.get("messages")
    first = messages[0] if isinstance(messages, list) and messages else None
    return first if isinstance(first, dict) else {}


class Source:
    """The lines of a file, read once and lazily, so that a pipe works too."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._rest = iter(lines)
        self._head: list[bytes] = []
        self.halves = 0
        """Number of unpaired surrogates in the documents, each replaced by U+FFFD."""
        self.left_out: tuple[str, ...] = ()
        """Counts of what `documents` has left out, by type."""

    @cached_property
    def sample(self) -> Sample:
        """The beginning of the file: one line if it is an event, the whole file if it is one JSON document, else the
        first lines."""
        first = next(self._read(lambda line: bool(line.strip())), b"").removeprefix(_BYTE_ORDER_MARK)
        if not first.strip():
            return Sample(is_blank=True)
        value = _parse_line(first)
        if isinstance(value, dict) and "kind" in value and ("space" in value or "run_id" in value):
            return Sample((value,))
        if isinstance(value, list) or (value is None and first.lstrip()[:1] in (b"[", b"{")):
            try:
                return Sample(tuple(self.documents()[:SAMPLE_LINES]), is_list=first.lstrip().startswith(b"["))
            except InvalidEvent:
                value = None  # plain text may begin with a bracket
        for _ in self._read(lambda _: len(self._head) >= SAMPLE_LINES or sum(map(len, self._head)) >= SAMPLE_BYTES):
            break
        head = b"".join(self._head).splitlines(keepends=True)[:SAMPLE_LINES]
        documents = [value for line in head if (value := _parse_line(line)) is not None]
        if any(isinstance(each, dict | list) for each in documents):
            return Sample(tuple(documents))
        try:
            lines = lines_of(b"".join(head).decode("utf-8-sig"))
        except UnicodeDecodeError:
            return Sample()
        return Sample(lines=() if any("\0" in line for line in lines) else tuple(lines))

    def lines(self) -> Iterator[bytes]:
        """All lines from the first one. They can be read only once."""
        return chain(self._head, self._rest)

    def text(self) -> bytes:
        self._head = [b"".join(self.lines())]
        return self._head[0]

    @cached_property
    def _documents(self) -> list[object]:
        text = self.text()
        found = documents_of(self.mend(text))
        if len(found) > 1 and isinstance(found[-1], InvalidEvent) and not text.endswith(b"\n"):
            self.left_out = (UNFINISHED,)
            found.pop()
        return found

    def mend(self, json_text: bytes) -> bytes:
        """The JSON text with U+FFFD in place of unpaired surrogates, which are counted."""
        return _HALVES.sub(self._whole, json_text) if rb"\ud" in json_text.lower() else json_text

    def _whole(self, found: re.Match[bytes]) -> bytes:
        self.halves += found[1] is not None
        return found[0] if found[1] is None else rb"\ufffd"

    def documents(self) -> list[object]:
        """The elements of a JSON list, or the one object, or the lines; a line that is not JSON becomes an error.

        An unfinished last line is left out. Raises `InvalidEvent` for a file that is not JSON.
        """
        return self._documents

    def _read(self, enough: Callable[[bytes], bool]) -> Iterator[bytes]:
        """Read lines into the head; yield each line for which `enough` is true."""
        for line in self._rest:
            self._head.append(line)
            if enough(line):
                yield line


def lines_of(text: str) -> list[str]:
    """The lines of a text. Unlike `str.splitlines`, it does not split at Unicode separators."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def documents_of(text: bytes) -> list[object]:
    """The elements of a JSON list, or the one object, or the lines; a line that is not JSON becomes an error.

    Raises `InvalidEvent` for a text that is not JSON.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        lines = [_line(line) for line in text.removeprefix(_BYTE_ORDER_MARK).splitlines() if line.strip()]
        # In a JSON document with a syntax error, few lines are JSON by themselves; in JSONL with an error, most are.
        broken = sum(isinstance(line, InvalidEvent) for line in lines)
        if len(lines) < 2 or broken > len(lines) / 2:
            raise InvalidEvent(f"not JSON: {error}", rule="unparsable") from None
        return lines
    return document if isinstance(document, list) else [document]


def _line(line: bytes) -> object:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        return InvalidEvent(f"not JSON: {error}", rule="unparsable")
    return (
        value if isinstance(value, dict | list) else InvalidEvent("neither a JSON object nor a list", rule="unparsable")
    )


def _parse_line(line: bytes) -> object:
    """The JSON of a line; None if it is not JSON (or null)."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
