"""The port of stores: a system, and the rows that its stores hold as events.

A distribution adds a system by an entry point of the group `recallog.imports`, which names a `StoreFormat`.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recallog import Event, InvalidEvent
from recallog_schemas import codec
from recallog_service.formats import DEFAULT_START, derived_id

Fields = Mapping[str, Any]
"""A row, by the names of its columns or keys."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where the rows go."""

    space: str | None
    """None: the space that the row names."""
    agent: str
    """The agent of rows that name none."""


@dataclass(frozen=True, slots=True)
class StoreRow:
    """A row of a store, or several that are left out: exactly one of `event`, `error` and `left_out` is set."""

    place: str
    """Where the row is: its table and its key."""
    event: Event | None = None
    error: InvalidEvent | None = None
    left_out: str | None = None
    """Why the row is not taken over."""
    count: int = 1
    """Number of rows."""
    opens: bool = False
    in_sequence: bool = False
    is_copied: bool = False
    """As in `Item`. The rows of a sequence have the same place."""
    cut: str | None = None
    """As in `Item`."""

    def __post_init__(self) -> None:
        """A key may have bytes that are not UTF-8; the metadata of an entry contains its place."""
        object.__setattr__(self, "place", self.place.encode(errors="backslashreplace").decode())


@dataclass(frozen=True, slots=True)
class StoreFormat:
    """The stores of one system."""

    name: str
    about: str
    """The files or folders, in one line."""
    keeps: str
    """What is taken over, in one line."""
    leaves_out: str
    """What is not, in one line."""
    read: Callable[[Path, Destination], Iterator[StoreRow]]
    """The rows of a store, in its order. Raises `InvalidArgument` if there is no store of the system at the path."""
    names_spaces: bool = False
    """Whether its rows name their space. Otherwise the user must name one."""


class LeftOutRow(Exception):
    """Raised by a function that maps a row that is not taken over. The message says why."""


EventOfRow = Callable[[Fields, Destination], dict[str, Any]]
"""The fields of the event of a row. Raises `LeftOutRow`, or `ValueError` or `KeyError` for a malformed row."""


def map_row(place: str, row: object, event_of: EventOfRow, into: Destination) -> StoreRow:
    """The event of a row. A malformed row becomes an error with its place."""
    try:
        if not isinstance(row, Mapping):
            raise ValueError("not an object")
        return StoreRow(place, codec.make(event_of(row, into)))
    except LeftOutRow as why:
        return StoreRow(place, left_out=str(why))
    except InvalidEvent as error:
        return StoreRow(place, error=error)
    except KeyError as error:
        return StoreRow(place, error=InvalidEvent(f"it has no {error.args[0]}", rule="missing"))
    except RecursionError:
        return StoreRow(place, error=InvalidEvent("its JSON is nested too deeply", rule="unparsable"))
    except (ValueError, TypeError, AttributeError) as error:
        return StoreRow(place, error=InvalidEvent(str(error), rule="unparsable"))


def left_out_rows(place: str, rows: object, why: str) -> Iterator[StoreRow]:
    """The rows of a part of a store that is left out. A value that is not a list or an object counts as one row."""
    if rows:
        yield StoreRow(place, left_out=why, count=len(rows) if isinstance(rows, list | dict) else 1)


def make_entry(row: Fields, into: Destination, text: str, **payload: Any) -> dict[str, Any]:
    """The fields of a `memory.retained` with the id of the row. Fields that are None are left out."""
    if row["id"] is None:
        raise KeyError("id")
    known = {name: value for name, value in payload.items() if value is not None and value != {}}
    return {
        "id": str(row["id"]),
        "space": into.space,
        "agent": into.agent,
        "kind": "memory.retained",
        "at": time_of_row(row.get("created_at")),
        "payload": {"text": text, **known},
    }


def make_item(into: Destination, namespace: list[str], key: str, value: object, at: object) -> dict[str, Any]:
    """The fields of an `item.put`. Its id follows from its address and value, so that a repeat adds nothing."""
    identity = ["import", into.agent, namespace, key, value]
    return {
        "id": derived_id(str(into.space), None, identity),
        "space": into.space,
        "agent": into.agent,
        "kind": "item.put",
        "at": time_of_row(at),
        "payload": {"namespace": namespace, "key": key, "value": value},
    }


def time_of_row(value: object) -> str:
    """The time of a row as ISO 8601 with a zone. A time without a zone is in UTC; a missing one is the time from which
    missing times are counted. Raises `ValueError`."""
    if value is None or value == "":
        return DEFAULT_START.isoformat()
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(value, UTC).isoformat()
        except (OverflowError, OSError) as error:
            raise ValueError(f"{value} is not a time: {error}") from None
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        raise ValueError(f"{value!r} is not a time: expected ISO 8601, or seconds since 1970 as a number") from None
    return (moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment).isoformat()


def expiry_of(value: object, now: datetime | None = None) -> str | None:
    """The time at which a row expires. Raises `LeftOutRow` if it has expired."""
    if value is None or value == "":
        return None
    expiry = time_of_row(value)
    if datetime.fromisoformat(expiry) <= (now or datetime.now(UTC)):
        raise LeftOutRow(f"it expired at {expiry}")
    return expiry


def json_object(value: object) -> dict[str, Any]:
    """The object of a column with JSON; empty if the column is empty. Raises `ValueError`."""
    found = json.loads(value) if isinstance(value, str | bytes) and value else value or {}
    if not isinstance(found, dict):
        raise ValueError("expected a JSON object")
    return found


def without_nulls(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}
