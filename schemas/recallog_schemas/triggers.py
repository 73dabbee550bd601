"""What an agent owes: the ids of triggers and of their answers.

A trigger is no event. It is what the views say of an agent that owes something (a reflection), and its id follows from
who owes it and how often that agent has answered before: every fold, and every reactor, names it alike. Both answers,
`agent.reflected` and `reflection.failed`, carry the one id that follows from the trigger's, so that an answer given
twice is there once: the first one wins, and the second is no conflict.
"""

import hashlib
import re
from typing import NamedTuple

from recallog_schemas.event import Event

REFLECTION = "reflection.due"
ANSWERS = frozenset({"agent.reflected", "reflection.failed"})

_TRIGGER = re.compile(r"reflection\.due/([0-9a-f]{32})/(0|[1-9][0-9]{0,17})")


class Trigger(NamedTuple):
    """`owner` is 32 hex digits (blake2b) of kind, space and agent; `ordinal` counts the agent's answers before it."""

    owner: str
    ordinal: int

    @property
    def id(self) -> str:
        return f"{REFLECTION}/{self.owner}/{self.ordinal}"

    @property
    def answer_id(self) -> str:
        """The id of the event that answers it."""
        return f"{self.id}/answer"


def reflection_of(space: str, agent: str, ordinal: int) -> Trigger:
    """The trigger of the reflection that `agent` owes after `ordinal` answers."""
    # Names hold no line break, so that two different owners are never the same text.
    owner = hashlib.blake2b(f"{REFLECTION}\n{space}\n{agent}".encode(), digest_size=16).hexdigest()
    return Trigger(owner, ordinal)


def parse(id_: str | None) -> Trigger | None:
    """The trigger that `id_` names, None where it names none."""
    found = _TRIGGER.fullmatch(id_) if id_ is not None else None
    return Trigger(found[1], int(found[2])) if found else None


def named_by(event: Event) -> Trigger | None:
    """The trigger of the event's own agent that its `causation_id` names; None where it names none, or another's."""
    if event.kind not in ANSWERS:
        return None
    trigger = parse(event.causation_id)
    mine = trigger is not None and trigger == reflection_of(event.space, event.agent, trigger.ordinal)
    return trigger if mine else None


def answered_by(event: Event) -> Trigger | None:
    """The trigger that `event` answers under the answer's own id: of several such events the first one counts."""
    trigger = named_by(event)
    return trigger if trigger is not None and event.id == trigger.answer_id else None
