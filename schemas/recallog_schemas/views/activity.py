"""The rate of a ledger's appends."""

from datetime import datetime

from recallog_schemas.views.base import View, count_noun


class ActivityMinute(View):
    """One minute of a ledger."""

    at: datetime
    """Its beginning, in UTC."""
    events: int
    """How many events were appended in it."""

    def format(self) -> str:
        """The minute and the number in one line."""
        return f"{self.at:%Y-%m-%d %H:%M} {self.events:,}"


class Activity(View):
    """How many events were appended in each of the last minutes."""

    minutes: tuple[ActivityMinute, ...]
    """All minutes without a gap, oldest first. The last one is not complete."""
    complete: bool
    """Whether all records of these minutes were counted. If not, the numbers of the first minutes are too small."""

    def format(self) -> str:
        """The sum, then one line for each minute with events."""
        lines = [each.format() for each in self.minutes if each.events]
        total = sum(each.events for each in self.minutes)
        return "\n".join([f"{count_noun(total, 'event')} in {count_noun(len(self.minutes), 'minute')}", *lines])
