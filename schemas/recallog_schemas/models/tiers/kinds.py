"""The kinds of plans, of moves between tiers, and of outcomes."""

from recallog_schemas.kinds.kind import bookkeeping
from recallog_schemas.models.long_term.payloads import NEWEST_RULE
from recallog_schemas.models.tiers.payloads import Consolidated, OutcomeReported, TierChanged

KINDS = (
    bookkeeping("memory.outcome_reported", "Outcomes of using entries.", OutcomeReported, "cause"),
    bookkeeping(
        "memory.tier_changed",
        "An entry was moved to another tier.",
        TierChanged,
        "reason",
        newest_rule=NEWEST_RULE,
        uncompared=frozenset({"rule"}),
        version=2,
    ),
    bookkeeping("memory.consolidated", "A plan that moves and archives entries.", Consolidated),
)
