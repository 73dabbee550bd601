"""The reactor port: makes the events that answer a due trigger.

A reactor calls a model, or applies a rule, and returns events. It does not write them: `answering.Answers` gives the
events their ids, publishes them, and closes the trigger.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from recallog_schemas import Event


@dataclass(frozen=True, slots=True)
class DueTrigger:
    """A trigger that is due, and the input that a reactor needs to answer it."""

    id: str
    kind: str
    """For example `reflection.due`, or a name of a user's projection."""
    space: str
    agent: str
    """The agent that answers. All events of the answer are its own."""
    skip_loops: bool = False
    """Whether to leave the trigger if it depends only on answers of reactors, since such answers would never end."""
    cause: str | None = None
    """The id of the event that made it due; None for a recurring trigger, which is not made due by a single event."""
    at: datetime | None = None
    """The time of that event."""
    turn: int = 0
    """The turn of that event; 0 without one."""
    session: str | None = None
    """The session of that event."""
    texts: Sequence[tuple[str, str]] = ()
    """The texts that the projection named, see `Due`. `entries` and `since` are from there too."""
    entries: Sequence[str] = ()
    since: int = -1
    offset: int = -1
    """The offset of the event that made it due; -1 without one."""
    read: set[int] = field(default_factory=set, compare=False)
    """The offsets of the events from which the answer is made. The reactor adds them. If one of these events is erased,
    the answer is erased too, and the trigger is due again. The event at `offset` need not be added."""


class Reactor(ABC):
    """Answers triggers of some kinds. Implement it for a model or a custom rule."""

    kinds: ClassVar[frozenset[str]]
    """The kinds of the triggers that it answers."""
    pure: ClassVar[bool] = False
    """Whether the answer depends only on the trigger. Such a reactor is called again after a crash, and its events take
    the time, the turn and the session of the trigger's cause. If another reactor was interrupted, its answer is closed
    with the events that were written, so that no model is called twice."""
    priority: ClassVar[int] = 0
    """In a process, triggers of reactors with a higher number are taken first."""
    immediate: bool = False
    """Whether it answers at once, without waiting for a model or a server. Its triggers are answered one after another,
    in order; other triggers are answered beside them, several at a time."""

    def attach(self, memory: Any) -> None:  # noqa: B027 - many reactors need no memory
        """Called once, before the first trigger, with the `recallog.Memory` whose triggers it answers."""

    @abstractmethod
    async def answer(self, trigger: DueTrigger) -> Sequence[Event] | None:
        """The events that answer `trigger`, in order, all in its space and of its agent; None to leave it.

        Their ids and causes are set when they are published. A last event whose id is that of the trigger's answer
        closes the trigger; otherwise a `reaction.done` is added, which does.

        After any other exception than a `RecallogError`, after an `InvalidEvent`, after a `ModelFailed`, and after the
        deadline (`RECALLOG_REACTOR_DEADLINE_SECONDS`), the trigger is closed with `reaction.failed`. After a further
        `RecallogError` it stays due and is tried again later; after a `ModelMisconfigured` all triggers of its kind
        wait. Other triggers are answered meanwhile. It may be called again for the same trigger, and several calls may
        run at the same time, each for another agent.
        """

    async def close(self) -> None:  # noqa: B027 - most reactors have nothing to close
        """Close connections."""


def is_local(reactor: Reactor) -> bool:
    """Whether a reactor does not wait for a model or for its own server."""
    return reactor.pure or reactor.immediate
