"""Reading your own writes: the event that a producer has just published must be the newest that a query returns.

Or a later event of its space, which the producer had published before it was killed, and publishes again.
"""

from chaos import history
from chaos.events import NUMBER
from recallog import Memory
from recallog_schemas import Event, Position
from recallog_schemas.errors import RecallogError
from support import oracle

_WINDOW = 5


def is_visible(event: Event) -> bool:
    """Whether `event` is certainly a memory of its agent. An answer is not, if it is the second one to its trigger."""
    return event.kind not in oracle.BOOKKEEPING and not event.id.endswith("/answer")


async def read_own(memory: Memory, event: Event, at: Position, written: history.Writer) -> None:
    """Query the newest memories of the agent of `event`, the last event of its space so far; record the outcome.

    Views that are unreachable or behind are not a fault. Any other error ends this process, which is a finding.
    """
    try:
        view = await memory.episodic(event.space, event.agent, window=_WINDOW, after=at)
    except RecallogError as error:
        if not error.retryable:
            raise
        written.note(history.READ, error=type(error).__name__)
        return
    newest = view.memories[-1] if view.memories else None
    if newest is not None and newest.position.partition == at.partition and is_at_least(newest.event, event):
        written.note(history.READ, right=True)
    else:
        written.note(history.READ, right=False, event=event.id, position=str(at), found=repr(view)[:2000])


def is_at_least(newest: Event, event: Event) -> bool:
    """Whether `newest` is `event`, or a later one of the same space."""
    number, published = newest.payload[NUMBER], event.payload[NUMBER]
    return newest == event if number == published else bool(number > published)
