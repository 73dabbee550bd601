"""The rule by which the fold judges an event. For kinds that have rules, `rule` of the payload is its number.

The fold judges each event by the rule that it states, so that a later version of Recallog gives old ledgers the
same views. Publishing states the newest rule. If an event states no rule, because its writer knew none, rule 1 applies
to it.
"""

from recallog_schemas import kinds
from recallog_schemas.event import Event

FIELD = "rule"
FIRST = 1


def rule_of(event: Event) -> int:
    """The rule that an event is judged by."""
    rule: int | None = event.payload.get(FIELD)
    return FIRST if rule is None else rule


def with_newest_rule(event: Event) -> Event:
    """`event` with the newest rule of its kind, unless it states one or its kind has none."""
    newest = kinds.kind_of(event.kind).newest_rule
    return event if newest is None else _with_rule(event, newest)


def with_own_rule(event: Event) -> Event:
    """`event` with the rule that it is judged by stated, unless its kind has no rules."""
    return event if kinds.kind_of(event.kind).newest_rule is None else _with_rule(event, FIRST)


def _with_rule(event: Event, rule: int) -> Event:
    if event.payload.get(FIELD) is not None or event.is_erased:
        return event
    return event.model_copy(update={"payload": {**event.payload, FIELD: rule}})
