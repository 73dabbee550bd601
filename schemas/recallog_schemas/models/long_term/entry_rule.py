"""The number of the rule by which an event compares texts: `rule` of the payload.

The fold judges each event by the rule that it states, so that later versions of Recallog give old ledgers the entries
that they had. Rule 1 compared vectors too: a nearly equal fact was replaced, and other nearly equal texts were skipped.
By rule 2 only texts decide (`recallog_projections.models.long_term.texts`).
"""

from recallog_schemas.event import Event
from recallog_schemas.models.long_term.payloads import FIRST_RULE as FIRST_RULE
from recallog_schemas.models.long_term.payloads import NEWEST_RULE as NEWEST_RULE

KINDS = frozenset({"memory.retained", "memory.updated", "memory.transferred"})
"""The kinds of the events that compare texts."""


def rule_of(event: Event) -> int:
    """The rule that an event of a kind in `KINDS` is judged by."""
    rule: int | None = event.payload.get("rule")
    return FIRST_RULE if rule is None else rule


def with_rule(event: Event, rule: int = NEWEST_RULE) -> Event:
    """`event` with a rule, unless it states one or compares no texts."""
    if event.kind not in KINDS or event.payload.get("rule") is not None:
        return event
    return event.model_copy(update={"payload": {**event.payload, "rule": rule}})
