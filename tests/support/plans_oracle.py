"""The expected plan of one agent, by brute force from the expected entries. It shares no code with the planner."""

import math
from dataclasses import dataclass, field
from typing import Any

from support.entries_oracle import ExpectedEntries
from support.tiers_oracle import Key

Fields = dict[str, Any]
UP = {"glacial": "slow", "slow": "medium", "medium": "fast"}
DOWN = {"fast": "medium", "medium": "slow", "slow": "glacial"}
LEAST = {"fast": 0.8, "medium": 0.5, "slow": 0.3, "glacial": 0.0}
DAY = 86_400_000_000
DEFAULTS: Fields = {
    "promotion_access": 3,
    "surprise": {"glacial": 0.5, "slow": 0.6, "medium": 0.7},
    "success": {"reports": 3, "rate": 0.7},
    "max": {"fast": 1000, "medium": 500, "slow": 200, "glacial": 100},
    "ttl": {"fast": 60, "medium": 3600, "slow": 86_400, "glacial": 604_800},
    "half_life": {"fast": 1, "medium": 24, "slow": 168, "glacial": 720},
}


@dataclass
class ExpectedPlan:
    moves: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By id: the new tier, and why."""
    archived: list[tuple[str, str]] = field(default_factory=list)
    """Ids and reasons; expired ones first."""


@dataclass
class _Judge:
    expected: ExpectedEntries
    now: int
    settings: Fields

    def setting(self, name: str, tier: str) -> float:
        return float((self.settings.get(name) or {}).get(tier, DEFAULTS[name][tier]))

    def worth(self, key: Key) -> float:
        row = self.expected.tiers.rows[key]
        hours = max(0, self.now - row.at) / 3_600_000_000
        return float(row.importance * math.exp2(-hours / self.setting("half_life", row.tier)))

    def used(self, key: Key) -> int:
        return max(self.expected.tiers.rows[key].at, self.expected.uses.get(key, (0, -(2**62), 0))[1])

    def rests(self, key: Key) -> bool:
        promoted = self.expected.tiers.rows[key].promoted_at
        return promoted is not None and promoted - DAY < self.now < promoted + DAY

    def rises(self, key: Key) -> str:
        row = self.expected.tiers.rows[key]
        reads = self.expected.uses.get(key, (0, 0, 0))[0] - row.reads
        if row.tier == "fast" or self.rests(key):
            return ""
        if reads >= self.settings.get("promotion_access", 3):
            return "access"
        if row.surprise >= self.setting("surprise", row.tier):
            return "surprise"
        good, all_ = sum(row.outcomes), len(row.outcomes)
        return "success" if good >= 3 and 10 * good >= 7 * all_ else ""

    def falls(self, key: Key) -> str:
        row = self.expected.tiers.rows[key]
        if self.expected.tiers.is_exempt(self.expected, key):
            return ""
        if self.now - self.used(key) > self.setting("ttl", row.tier) * 1_000_000:
            return "ttl"
        return "importance" if not self.rests(key) and self.worth(key) < LEAST[row.tier] else ""


def expected_plan(
    expected: ExpectedEntries, space: str, agent: str, now: int, settings: Fields, passed: set[str] | None = None
) -> ExpectedPlan:
    """The plan at `now`, in microseconds since 1970. The entries `passed` have moved in the same plan already."""
    judge, plan = _Judge(expected, now, settings), ExpectedPlan()
    owned = [key for key in expected.tiers.owned(expected, space, agent) if key[1] not in (passed or set())]
    staying: dict[str, list[Key]] = {"fast": [], "medium": [], "slow": [], "glacial": []}
    for key in sorted(owned, key=lambda key: expected.entries[key].offset):
        tier = expected.tiers.rows[key].tier
        if why := judge.rises(key):
            plan.moves[key[1]] = (UP[tier], why)
        elif (why := judge.falls(key)) and tier != "glacial":
            plan.moves[key[1]] = (DOWN[tier], why)
        elif why:
            plan.archived.append((key[1], "expired"))
        else:
            staying[tier].append(key)
    for tier, keys in staying.items():
        excess = len(keys) - int(judge.setting("max", tier))
        mortal = [key for key in keys if not expected.tiers.is_exempt(expected, key)]
        while excess > 0 and mortal:
            worst = min(
                mortal, key=lambda key: (round(judge.worth(key), 12), judge.used(key), expected.entries[key].offset)
            )
            mortal.remove(worst)
            plan.archived.append((worst[1], "tier_limit"))
            excess -= 1
    return plan
