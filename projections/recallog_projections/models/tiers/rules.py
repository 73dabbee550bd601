"""The constants and formulas of tiers: their order, decay, thresholds, and what a reported outcome changes.

The numbers are those of the memory model, sections 1.2 and 5; those that an agent may set are in `kinds.TierSettings`.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from recallog_projections.views.settings import AgentSettings
from recallog_schemas.kinds import TierSettings

Item = TypeVar("Item")

FAST, MEDIUM, SLOW, GLACIAL = "fast", "medium", "slow", "glacial"
TIERS = (FAST, MEDIUM, SLOW, GLACIAL)
"""From the fastest to the slowest."""
FASTER: Mapping[str, str] = {MEDIUM: FAST, SLOW: MEDIUM, GLACIAL: SLOW}
SLOWER: Mapping[str, str] = {FAST: MEDIUM, MEDIUM: SLOW, SLOW: GLACIAL}

IMPORTANCE: Mapping[str, float] = {FAST: 0.8, MEDIUM: 0.5, SLOW: 0.3, GLACIAL: 0.0}
"""An entry whose decayed importance is below that of its tier is demoted."""
COOLDOWN_SECONDS = 86_400
"""For this long after a promotion an entry is neither promoted again nor demoted because of its importance."""
SURPRISE_ALPHA = 0.3
"""The weight of the newest outcome in the moving average of surprise."""
CONFIDENCE_MIN = 0.5
"""A report whose confidence is lower changes nothing."""
SUCCESS_IMPORTANCE = 0.05
"""What a success adds to the importance of an entry."""
FAILURE_IMPORTANCE = -0.1
"""What a failure adds to it."""

# Why a plan moves or archives an entry.
BY_ACCESS = "access"
BY_SURPRISE = "surprise"
BY_SUCCESS = "success"
BY_TTL = "ttl"
BY_IMPORTANCE = "importance"
EXPIRED = "expired"
TIER_LIMIT = "tier_limit"

_DEFAULTS = TierSettings()
_MICROS_OF_HOUR = 3_600_000_000


def settings_of(agent: AgentSettings | None) -> TierSettings:
    """The settings of tiers of an agent."""
    return of_raw(None if agent is None else agent.tiers)


def of_raw(given: Mapping[str, Any] | None) -> TierSettings:
    """The settings of tiers as an event has them."""
    return _DEFAULTS if given is None else TierSettings.model_validate(given)


def is_faster(tier: str, other: str) -> bool:
    return TIERS.index(tier) < TIERS.index(other)


def decay_importance(importance: float, at: int, now: int, half_life_hours: float) -> float:
    """The importance at `now` of an entry retained `at`, both in microseconds since 1970; unchanged if not yet."""
    age = now - at
    return importance if age <= 0 else importance * 0.5 ** (age / _MICROS_OF_HOUR / half_life_hours)


def average_surprise(surprise: float, predicted: float, actual: float) -> float:
    """The moving average of surprise after one more outcome."""
    return (1 - SURPRISE_ALPHA) * surprise + SURPRISE_ALPHA * max(0.0, actual - predicted)


def in_equal_parts(ids: Sequence[Item], most: int) -> list[Sequence[Item]]:
    """`ids` in as few parts of at most `most` as possible, of about the same size."""
    count = -(-len(ids) // most)
    bounds = [len(ids) * number // count for number in range(count + 1)] if count else [0]
    return [ids[first:end] for first, end in itertools.pairwise(bounds)]
