"""The reader of JSONL files: one event per line.

A line is an event as `recallog export` writes it, as a producer writes it (`id`, `at` and `envelope` may be absent), or
an event of envelope 0 (`run_id`, `actor`, `created_at`). A line of an export ends with the time at which its event was
first appended. Absent fields are derived from the file only, so that reading it again gives the same events:

id   uuid5 of (space, session, n) for the n-th event without an id in that session
at   `start` plus n seconds for the n-th event without a time in the file, n from 0

A refused line that is JSON counts in both, so that later lines keep their ids and times when it is corrected.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

from recallog_schemas import Event, codec, limits
from recallog_schemas.errors import InvalidEvent
from recallog_service.formats.format import Format, ItemsReading, Options
from recallog_service.formats.guess import guess, wrong_format
from recallog_service.formats.item import DEFAULT_START, Item, derived_id, refuse_item
from recallog_service.formats.source import HALF, UNFINISHED, Source
from recallog_service.formats.structure import Structure

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_TIME = re.compile(rb',\s*"appended":\s*(\d{1,18})\s*\}\s*$')

# `codec.decode` limits the size of the line, `codec.parse` the size of the event as it will be written. The two
# differ by up to a factor of four (1e15 becomes 1000000000000000.0), so long lines go through `codec.parse`.
_DECODED_BYTES_MAX = limits.EVENT_BYTES_MAX // 8


def read(lines: Iterable[bytes], start: datetime = DEFAULT_START) -> Iterator[Item]:
    """One item for each line that is not blank; `Item.number` is the line number. It reads lazily, so a pipe works too.

    Raises `InvalidEvent` if the first line shows that the file is not JSONL of events.
    """
    absent = _AbsentFields(start)
    started = False
    for number, line in enumerate(lines, 1):
        raw = line if number > 1 else line.removeprefix(_BYTE_ORDER_MARK)
        try:
            data, appended = without_time(raw)
            item = Item(number, event=_event(data, absent), appended=appended)
        except InvalidEvent as error:
            if not raw.strip():
                continue
            if not started:
                _refuse_other_formats(raw)
            is_unfinished = started and not raw.endswith(b"\n") and error.rule == "unparsable"
            item = Item(number, left_out=UNFINISHED) if is_unfinished else refuse_item(number, f"line {number}", error)
        started = True
        yield item


def with_time(event: bytes, appended: int) -> bytes:
    """The line of an event in an export, with the time at which it was first appended; 0 if unknown."""
    return b'%s,"appended":%d}' % (event[:-1], appended)


def without_time(line: bytes) -> tuple[bytes, int | None]:
    """The event of a line, and the time at which it was first appended in milliseconds since 1970: 0 if unknown, None
    if the line has no such time."""
    found = _TIME.search(line)
    return (line, None) if found is None else (line[: found.start()] + b"}", int(found[1]))


def _event(raw: bytes, absent: "_AbsentFields") -> Event:
    if len(raw) <= _DECODED_BYTES_MAX and b'"envelope"' in raw:
        try:
            return codec.decode(raw)  # the fast path for complete events, as in an export
        except InvalidEvent:
            pass
    return codec.parse(absent.fill(raw))


class _AbsentFields:
    """Adds `id` and `at` to lines without them. Counts the events without an id per session."""

    def __init__(self, start: datetime) -> None:
        self._next_at = start
        self._without_id: Counter[tuple[str, str | None]] = Counter()

    def fill(self, raw: bytes) -> bytes | str:
        """The line with `id` and `at`; unchanged if it has both, or if it is not a JSON object."""
        fields = _fields(raw)
        if fields is None:
            return raw
        old = "envelope" not in fields and "run_id" in fields
        filled = self._id(fields, old) | self._at(fields, old)
        return json.dumps(fields | filled) if filled else raw

    def _id(self, fields: dict[str, Any], old: bool) -> dict[str, str]:
        space, session = fields.get("run_id" if old else "space"), fields.get("session_id" if old else "session")
        if "id" in fields or not isinstance(space, str) or not isinstance(session, str | None):
            return {}
        self._without_id[space, session] += 1
        return {"id": derived_id(space, session, self._without_id[space, session])}

    def _at(self, fields: dict[str, Any], old: bool) -> dict[str, str]:
        name = "created_at" if old else "at"
        if name in fields:
            return {}
        at, self._next_at = self._next_at, self._next_at + timedelta(seconds=1)
        return {name: at.isoformat()}


def _fields(raw: bytes) -> dict[str, Any] | None:
    """The JSON object of a line; None if it is not one, which the codec reports."""
    try:
        fields = json.loads(raw, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _refuse_other_formats(first: bytes) -> None:
    """Raise one error for a file in another format, instead of one per line."""
    if first.strip() == b"{" or first.lstrip().startswith(b"["):
        raise wrong_format("one whole event per line (JSONL), not a JSON document", _document(first))
    fields = _fields(first)
    if fields is not None and "kind" not in fields and guess(fields):
        raise wrong_format("one event per line (JSONL)", fields)


def _document(first: bytes) -> object:
    try:
        return json.loads(first)
    except (ValueError, RecursionError):
        return None


def _read(source: Source, options: Options) -> ItemsReading:
    def items() -> Iterator[Item]:
        yield from read(map(source.mend, source.lines()), options.start)
        for _ in range(source.halves):
            yield Item(0, left_out=HALF)

    return ItemsReading(items(), "line")


FORMAT = Format(
    "jsonl",
    "one event per line, as recallog export and producers write them",
    Structure([{"kind": "<any>", "space": "<any>"}, {"kind": "<any>", "run_id": "<any>"}], among=3),
    _read,
    "every event",
)
