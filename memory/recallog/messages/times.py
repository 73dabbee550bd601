"""Times in chat files."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

_SECONDS_MAX = 10**11  # the year 5138; larger numbers are JavaScript's milliseconds, micro- or nanoseconds
_NANOSECONDS_MAX = _SECONDS_MAX * 10**9
_NUMBER = re.compile(r"\d{9,}(?:\.\d+)?")
_YEAR_MAX = 9998  # later times are derived from these, and the calendar ends with 9999


def time_in(fields: Mapping[str, Any], names: Iterable[str]) -> datetime | None:
    """The first of the fields that is a time: ISO 8601, in UTC if it has no zone, or a number of seconds, milliseconds,
    microseconds or nanoseconds since 1970."""
    return next((time for name in names if (time := _moment(fields.get(name))) is not None), None)


def _moment(value: object) -> datetime | None:
    try:
        if isinstance(value, str) and _NUMBER.fullmatch(value):
            value = float(value) if "." in value else int(value)
        if isinstance(value, str) and not value.isdecimal():
            moment = datetime.fromisoformat(value)
            moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            while abs(value) >= _SECONDS_MAX and abs(value) < _NANOSECONDS_MAX:
                value = value / 1000
            moment = datetime.fromtimestamp(value, UTC)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return moment if moment.year <= _YEAR_MAX else None
