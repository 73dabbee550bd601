"""A newer version of the code: a worker that counts every event twice. `python -m live.support_upgraded` runs it, with
the arguments of `recallog worker`."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar
from unittest.mock import patch

import msgspec

from recallog_projections.projection import Projection
from recallog_projections.rows import Rows
from recallog_projections.views import builtin
from recallog_projections.views.activity import AGENTS, SPACES, ActivityProjection
from recallog_schemas import Record, limits
from recallog_service.cli import main

_of_today = builtin.projections


class Twice(ActivityProjection):
    version: ClassVar[int] = ActivityProjection.version + 1

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        for record in run:
            super().apply(rows, [record])
            event = record.event
            space, agent = rows.get(SPACES, event.space), rows.get(AGENTS, event.space, event.agent)
            assert space is not None
            assert agent is not None
            rows.put(SPACES, msgspec.structs.replace(space, events=space.events + 1), event.space)
            rows.put(AGENTS, msgspec.structs.replace(agent, events=agent.events + 1), event.space, event.agent)


def newer_projections(log_events: int = limits.LOG_EVENTS_KEPT) -> list[Projection]:
    return [Twice() if each.name == ActivityProjection.name else each for each in _of_today(log_events)]


@contextmanager
def newer_code() -> Iterator[None]:
    """Memories opened within it use the newer code."""
    with patch.object(builtin, "projections", newer_projections):
        yield


if __name__ == "__main__":
    with newer_code():
        sys.argv = ["recallog", "worker", *sys.argv[1:]]
        main()
