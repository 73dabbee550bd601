"""The triggers of plans, and of the summaries of what they archive."""

from recallog_schemas import triggers
from recallog_schemas.triggers import Trigger, TriggerKind

CONSOLIDATION = "consolidation.due"
"""The entries of an agent that carry a tier have not been planned for the interval in its settings, or there are too
many in one tier."""
SUMMARY = "summary.due"
"""A plan has archived entries of which no summary has been kept yet."""
KINDS = (TriggerKind(CONSOLIDATION, ("plan", "plans"), recurs=True), TriggerKind(SUMMARY, part_of="consolidation"))


def consolidation_of(space: str, agent: str, ordinal: int) -> Trigger:
    """The trigger of the plan that is due for `agent` after `ordinal` plans."""
    return triggers.make_numbered(CONSOLIDATION, space, agent, ordinal)
