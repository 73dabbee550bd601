"""A producer reads its own writes: the newest event of its space must be the newest that the views have of it."""

from chaos import history
from recallog import Memory
from recallog_schemas import Event, Position
from recallog_schemas.errors import RecallogError
from support import oracle

_WINDOW = 5


def can_be_seen(event: Event) -> bool:
    """Whether `event` is a memory of its agent; the second answer to a trigger is none, and nobody knows which is."""
    return event.kind not in oracle.BOOKKEEPING and not event.id.endswith("/answer")


async def read_own(memory: Memory, event: Event, at: Position, written: history.Writer) -> None:
    """Ask the agent of `event`, the last one of its space so far, for its newest memories; write down what they are.

    Views that are away or behind are no fault. Any other error ends this process, which is one.
    """
    try:
        view = await memory.episodic(event.space, event.agent, window=_WINDOW, after=at)
    except RecallogError as error:
        if not error.retryable:
            raise
        written.note(history.READ, error=type(error).__name__)
        return
    newest = view.memories[-1] if view.memories else None
    if newest is not None and newest.event == event and newest.position.partition == at.partition:
        written.note(history.READ, right=True)
    else:
        written.note(history.READ, right=False, event=event.id, position=str(at), found=repr(view)[:2000])
