"""The ids of triggers and of their answers.

A trigger is not an event. The views derive it for an agent with a due reflection. Its id follows from the agent and the
number of the agent's earlier answers, so that every fold and every reactor computes the same id. Both answers,
`agent.reflected` and `reflection.failed`, carry the answer id that follows from the trigger's id: if a trigger is
answered twice, the first answer counts and the second is a repeat, not a conflict.
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
        """The id of the event that answers the trigger."""
        return f"{self.id}/answer"


def reflection_of(space: str, agent: str, ordinal: int) -> Trigger:
    """The trigger of the reflection that is due for `agent` after `ordinal` answers."""
    # Names contain no line break, so that two different owners never give the same text.
    owner = hashlib.blake2b(f"{REFLECTION}\n{space}\n{agent}".encode(), digest_size=16).hexdigest()
    return Trigger(owner, ordinal)


def parse(id_: str | None) -> Trigger | None:
    """The trigger with the id `id_`; None if it is not a trigger's id."""
    found = _TRIGGER.fullmatch(id_) if id_ is not None else None
    return Trigger(found[1], int(found[2])) if found else None


def named_by(event: Event) -> Trigger | None:
    """The trigger in the `causation_id` of an answer; None if it is not a trigger of the event's own agent."""
    if event.kind not in ANSWERS:
        return None
    trigger = parse(event.causation_id)
    own = trigger is not None and trigger == reflection_of(event.space, event.agent, trigger.ordinal)
    return trigger if own else None


def answered_by(event: Event) -> Trigger | None:
    """The trigger that `event` answers if `event` has the trigger's answer id: the first such event counts."""
    trigger = named_by(event)
    return trigger if trigger is not None and event.id == trigger.answer_id else None
