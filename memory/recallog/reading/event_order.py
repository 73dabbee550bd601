"""The order in which events of a session are shown: by their time, not by when they were appended."""

from collections import defaultdict
from collections.abc import Sequence

from recallog_schemas.invented_times import is_invented
from recallog_schemas.views import Remembered


def in_event_time(events: Sequence[Remembered]) -> list[Remembered]:
    """`events` in ledger order, except that the events of each session are ordered among themselves by time.

    An event without a session, or with a time that ingest invented, keeps its place. Of events with equal times, the
    one that was appended first comes first.
    """
    places = defaultdict[str, list[int]](list)
    for place, each in enumerate(events):
        if each.event.session is not None and not is_invented(each.at):
            places[each.event.session].append(place)
    found = list(events)
    for of_session in places.values():
        by_time = sorted((events[place] for place in of_session), key=lambda each: each.at)
        for place, each in zip(of_session, by_time, strict=True):
            found[place] = each
    return found
