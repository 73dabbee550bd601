"""Timestamps: moments as whole microseconds since 1970, which are exact, unlike floats."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def micros(moment: datetime) -> int:
    """The microseconds from 1970 to `moment`, which has a zone."""
    return (moment - _EPOCH) // _MICROSECOND


def moment_of(micros: int) -> datetime:
    """The moment that is `micros` microseconds after the beginning of 1970, in UTC."""
    return _EPOCH + micros * _MICROSECOND
