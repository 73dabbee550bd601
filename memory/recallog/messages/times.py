"""Times in chat files."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

_SECONDS_MAX = 10**11  # the year 5138; a larger number is JavaScript's milliseconds
_YEAR_MAX = 9998  # times count on from here, and the calendar ends with 9999


def time_in(fields: Mapping[str, Any], names: Iterable[str]) -> datetime | None:
    """The first of the fields that is a time: ISO 8601 with a zone, or seconds (or milliseconds) since 1970."""
    return next((time for name in names if (time := _moment(fields.get(name))) is not None), None)


def _moment(value: object) -> datetime | None:
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            if moment.tzinfo is None:
                return None
            moment = moment.astimezone(UTC)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            moment = datetime.fromtimestamp(value if abs(value) < _SECONDS_MAX else value / 1000, UTC)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return moment if moment.year <= _YEAR_MAX else None
