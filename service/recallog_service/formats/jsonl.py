"""JSONL: one event a line.

A line is what `recallog export` writes, what a producer hands in (`id`, `at` and `envelope` may be absent), or an event
of envelope 0 (`run_id`, `actor`, `created_at`). What is absent is filled in from the file alone, so that reading it
again gives the same events:

id   uuid5 of (space, session, n) for the n-th event of that session that has none
at   `start` plus n seconds for the n-th event of the file that has none, n from 0

A line that is refused counts in both, if it is JSON: what follows keeps its id and time once that line is mended.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

from recallog_schemas import Event, codec, limits
from recallog_schemas.errors import InvalidEvent
from recallog_service.formats.guess import guess, wrong_format
from recallog_service.formats.item import DEFAULT_START, Item, derived_id, refused

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# `codec.decode` limits the bytes as they stand in the line, a door the bytes as they will be written. JSON can grow
# about fourfold on the way (1e15 becomes 1000000000000000.0), or shrink (\u00e9), so long lines take the slow way.
_DECODED_BYTES_MAX = limits.EVENT_BYTES_MAX // 8


def read(lines: Iterable[bytes], start: datetime = DEFAULT_START) -> Iterator[Item]:
    """One item for each line that is not blank; `number` is the line's. Reads as it goes: a pipe may stay open.

    Raises `InvalidEvent` if the first line shows that the file is none of events.
    """
    gaps = _Gaps(start)
    started = False
    for number, line in enumerate(lines, 1):
        raw = line if number > 1 else line.removeprefix(_BYTE_ORDER_MARK)
        try:
            item = Item(number, event=_event(raw, gaps))
        except InvalidEvent as error:
            if not raw.strip():
                continue
            if not started:
                _refuse_other_formats(raw)
            item = refused(number, f"line {number}", error)
        started = True
        yield item


def _event(raw: bytes, gaps: "_Gaps") -> Event:
    if len(raw) <= _DECODED_BYTES_MAX and b'"envelope"' in raw:
        try:
            return codec.decode(raw)  # takes exactly what is complete, as nearly all of an export is
        except InvalidEvent:
            pass
    return codec.parse(gaps.fill(raw))


class _Gaps:
    """Fills in what lines leave out. Remembers one count for each session that has events without id."""

    def __init__(self, start: datetime) -> None:
        self._next_at = start
        self._without_id: Counter[tuple[str, str | None]] = Counter()

    def fill(self, raw: bytes) -> bytes | str:
        """The line with `id` and `at`. As it stands where it has both, or is for the codec to refuse."""
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
    """The line's JSON object; None where the codec will say what is wrong with it."""
    try:
        fields = json.loads(raw, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _refuse_other_formats(first: bytes) -> None:
    """Say at once what would otherwise be one error a line."""
    if first.strip() == b"{" or first.lstrip().startswith(b"["):
        raise wrong_format("one whole event a line (JSONL), not a JSON document", _document(first))
    fields = _fields(first)
    if fields is not None and "kind" not in fields and guess(fields):
        raise wrong_format("one event a line (JSONL)", fields)


def _document(first: bytes) -> object:
    try:
        return json.loads(first)
    except (ValueError, RecursionError):
        return None
