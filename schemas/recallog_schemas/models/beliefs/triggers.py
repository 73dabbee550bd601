"""The trigger of reflections."""

from recallog_schemas import triggers
from recallog_schemas.triggers import Trigger, TriggerKind

REFLECTION = "reflection.due"
"""An agent has seen as many events as its threshold says."""
KINDS = (TriggerKind(REFLECTION, recurs=True, answer="agent.reflected", failure="reflection.failed"),)
ANSWERS = KINDS[0].closings
"""The kinds of events that close a reflection."""


def reflection_of(space: str, agent: str, ordinal: int) -> Trigger:
    """The trigger of the reflection that is due for `agent` after `ordinal` answers."""
    return triggers.make_numbered(REFLECTION, space, agent, ordinal)
