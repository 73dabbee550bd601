"""Plans: which entries of an agent change their tier, and which are archived, at a given time.

A plan is a pure function of the entries as they were before it. In this order:

1. An entry is promoted that was read often enough since its last move, or whose surprise or successes suffice, unless
   it was promoted within 24 hours.
2. An entry that was not promoted is demoted if it was not read for longer than its tier allows, or, unless it was
   promoted within 24 hours, if its decayed importance is below that of its tier.
3. An entry of the slowest tier that was not read for too long is archived.
4. Of the entries that stay in a tier, those beyond its maximum are archived: the least important ones.

An entry moves by one tier at most. Those that arrive are counted by the next plan. Pinned and red-lined entries are
neither demoted nor archived.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from recallog_projections.models.long_term.uses import UseRow
from recallog_projections.models.tiers import judging, rules
from recallog_projections.models.tiers.tables import TierRow
from recallog_schemas import limits, timestamps
from recallog_schemas.kinds import TierSettings

_MICROS = 1_000_000
_COOLDOWN = rules.COOLDOWN_SECONDS * _MICROS


class Aging(NamedTuple):
    """One entry with the values that a plan considers."""

    row: TierRow
    use: UseRow | None
    """How often it was read; None if never."""

    @property
    def changes(self) -> int:
        """The number of its changes and reads that the planner has seen."""
        return judging.changes_of(self.row, self.use)

    @property
    def accesses(self) -> int:
        """How often it was read since its last move."""
        return (0 if self.use is None else self.use.accesses) - self.row.accesses

    @property
    def used_at(self) -> int:
        """When it was last read, or retained if that is later, in microseconds since 1970."""
        return self.row.at if self.use is None else max(self.row.at, self.use.last_at)


class PlannedMove(NamedTuple):
    """A change of an entry's tier."""

    id: str
    origin: str
    to: str
    reason: str
    """access, surprise, success, ttl or importance."""
    changes: int
    """The number of the entry's changes and reads that the planner had seen."""


class PlannedArchival(NamedTuple):
    """The archival of an entry."""

    id: str
    reason: str
    """expired or tier_limit."""
    changes: int
    """As in `PlannedMove`."""


@dataclass(frozen=True, slots=True)
class ConsolidationPlan:
    """The changes of a plan."""

    moves: Sequence[PlannedMove] = ()
    """Promotions, then demotions, from the slowest tier to the fastest and from the fastest to the slowest; moves from
    one tier are in the order in which their entries were retained."""
    archived: Sequence[PlannedArchival] = ()
    """Expired entries first, then those beyond a maximum, from the fastest tier to the slowest."""


@dataclass(frozen=True, slots=True)
class _Limits:
    """The limits of the entries of one tier."""

    surprise: float | None
    """None: entries of the tier are not promoted."""
    ttl: float
    """In microseconds."""
    half_life: float
    """In hours."""
    importance: float
    most: int


def plan(
    entries: Iterable[Aging], now: datetime, settings: TierSettings, *, unfinished: int | None = None
) -> ConsolidationPlan:
    """The plan for the entries of one agent at the time `now`.

    `unfinished` is the ordinal of a plan of which only the first parts were written. Entries that these parts have
    moved are left out, so that the answer has the remaining changes.
    """
    at = timestamps.micros(now)
    limits_of = {tier: _limits(tier, settings) for tier in rules.TIERS}
    promoted: dict[str, list[PlannedMove]] = {tier: [] for tier in rules.TIERS}
    demoted: dict[str, list[PlannedMove]] = {tier: [] for tier in rules.TIERS}
    staying: dict[str, list[Aging]] = {tier: [] for tier in rules.TIERS}
    expired: list[PlannedArchival] = []
    for entry in sorted(entries, key=lambda each: each.row.offset):
        row, tier = entry.row, entry.row.tier
        if unfinished is not None and row.plan == unfinished:
            continue
        is_cooling = row.promoted_at is not None and abs(at - row.promoted_at) < _COOLDOWN
        if (reason := None if is_cooling else _promotion(entry, limits_of[tier], settings)) is not None:
            promoted[tier].append(PlannedMove(row.id, tier, rules.FASTER[tier], reason, entry.changes))
        elif (reason := None if row.exempt else _end(entry, at, limits_of[tier], is_cooling=is_cooling)) is None:
            staying[tier].append(entry)
        elif tier in rules.SLOWER:
            demoted[tier].append(PlannedMove(row.id, tier, rules.SLOWER[tier], reason, entry.changes))
        else:
            expired.append(PlannedArchival(row.id, rules.EXPIRED, entry.changes))
    moves = [*(promoted[tier] for tier in reversed(rules.TIERS)), *demoted.values()]
    evicted = (
        PlannedArchival(entry.row.id, rules.TIER_LIMIT, entry.changes)
        for tier in rules.TIERS
        for entry in _beyond(staying[tier], at, limits_of[tier])
    )
    return ConsolidationPlan([move for of_tier in moves for move in of_tier], [*expired, *evicted])


def _limits(tier: str, settings: TierSettings) -> _Limits:
    return _Limits(
        getattr(settings.surprise, tier) if tier in rules.FASTER else None,
        getattr(settings.ttl, tier) * _MICROS,
        getattr(settings.half_life, tier),
        rules.IMPORTANCE[tier],
        getattr(settings.max, tier),
    )


def decay_importance(row: TierRow, at: int, settings: TierSettings) -> float:
    """The importance of an entry at a time in microseconds since 1970, after decay."""
    return rules.decay_importance(row.importance, row.at, at, getattr(settings.half_life, row.tier))


def payloads(plan: ConsolidationPlan, *, now: datetime, ordinal: int, settings: TierSettings) -> list[dict[str, Any]]:
    """The payloads of the events that record a plan: parts that name at most `limits.EVENT_IDS_MAX` entries, at least
    one."""
    most = limits.EVENT_IDS_MAX
    moves = [
        {"id": each.id, "from": each.origin, "to": each.to, "reason": each.reason, "changes": each.changes}
        for each in plan.moves
    ]
    archived = [each._asdict() for each in plan.archived]
    if len(moves) + len(archived) <= most:
        parts = [{"moves": moves, "archived": archived}]
    else:
        parts = [{"moves": list(each)} for each in rules.in_equal_parts(moves, most)]
        parts += [{"archived": list(each)} for each in rules.in_equal_parts(archived, most)]
    head = {"now": now.isoformat(), "ordinal": ordinal, "parts": len(parts)}
    constants = settings.model_dump(mode="json")
    return [{**head, "part": number, "constants": constants, **part} for number, part in enumerate(parts, start=1)]


def _promotion(entry: Aging, limits: _Limits, settings: TierSettings) -> str | None:
    """Why an entry is promoted; None if it is not."""
    if limits.surprise is None:
        return None
    if entry.accesses >= settings.promotion_access:
        return rules.BY_ACCESS
    row = entry.row
    if row.surprise >= limits.surprise:
        return rules.BY_SURPRISE
    if row.successes >= settings.success.reports and row.successes / row.reports >= settings.success.rate:
        return rules.BY_SUCCESS
    return None


def _end(entry: Aging, at: int, limits: _Limits, *, is_cooling: bool) -> str | None:
    """Why an entry is demoted or, in the slowest tier, archived; None if it is not."""
    if at - entry.used_at > limits.ttl:
        return rules.BY_TTL
    if not is_cooling and _importance(entry.row, at, limits) < limits.importance:
        return rules.BY_IMPORTANCE
    return None


def _importance(row: TierRow, at: int, limits: _Limits) -> float:
    return rules.decay_importance(row.importance, row.at, at, limits.half_life)


def _beyond(staying: Sequence[Aging], at: int, limits: _Limits) -> Sequence[Aging]:
    """The entries of one tier beyond its maximum: the least important first, then the least recently read, then the
    oldest."""
    excess = len(staying) - limits.most
    if excess <= 0:
        return ()
    evictable = [entry for entry in staying if not entry.row.exempt]
    return sorted(evictable, key=lambda one: (_importance(one.row, at, limits), one.used_at, one.row.offset))[:excess]
