"""Plans: which entries of an agent change their tier, and which are archived, at a given time.

A plan is a pure function of the entries as they were before it. In this order:

1. An entry is promoted that was read often enough since its last move, or whose surprise or successes suffice, unless
   it was promoted within the last 24 hours.
2. An entry that was not promoted is demoted if it was not read for longer than its tier allows, or, unless it was
   promoted within the last 24 hours, if its decayed importance is below that of its tier.
3. An entry of the slowest tier that was not read for too long is archived.
4. Of the entries that stay in a tier, those beyond its maximum are archived: the least important ones.

An entry moves by one tier at most. Those that arrive are counted by the next plan. Pinned and red-lined entries are
neither demoted nor archived.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from recallog_projections.views.due import in_equal_parts
from recallog_projections.views.tiers import rules
from recallog_projections.views.tiers.tables import TierRow
from recallog_projections.views.uses import UseRow
from recallog_schemas import limits, timestamps
from recallog_schemas.kinds import TierSettings

_MICROS = 1_000_000
_COOLDOWN = rules.COOLDOWN_SECONDS * _MICROS


class Aging(NamedTuple):
    """One entry as a plan looks at it."""

    row: TierRow
    use: UseRow | None
    """How often it was read; None: never."""

    @property
    def accesses(self) -> int:
        """How often it was read since its last move."""
        return (0 if self.use is None else self.use.accesses) - self.row.accesses

    @property
    def used_at(self) -> int:
        """When it was last read, or retained if that is later, in microseconds since 1970."""
        return self.row.at if self.use is None else max(self.row.at, self.use.last_at)


class Move(NamedTuple):
    """One entry changes its tier."""

    id: str
    origin: str
    to: str
    reason: str
    """access, surprise, success, ttl or importance."""


class Archival(NamedTuple):
    """One entry is archived."""

    id: str
    reason: str
    """expired or tier_limit."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a plan changes."""

    moves: Sequence[Move] = ()
    """Promotions, then demotions, from the slowest tier to the fastest and from the fastest to the slowest; those of
    one tier in the order in which their entries were retained."""
    archived: Sequence[Archival] = ()
    """Expired entries first, then those beyond a maximum, from the fastest tier to the slowest."""


def plan(entries: Iterable[Aging], now: datetime, settings: TierSettings, *, unfinished: int | None = None) -> Plan:
    """The plan for the entries of one agent at the time `now`.

    `unfinished` is the ordinal of a plan of which only the first parts were written: the entries that these have moved
    are left out, so that the answer is its rest.
    """
    at = timestamps.micros(now)
    by_tier: dict[str, list[Aging]] = {tier: [] for tier in rules.TIERS}
    for entry in entries:
        if unfinished is None or entry.row.plan != unfinished:
            by_tier[entry.row.tier].append(entry)
    promoted: list[Move] = []
    demoted: dict[str, list[Move]] = {tier: [] for tier in rules.TIERS}
    expired: list[Archival] = []
    staying: dict[str, list[Aging]] = {tier: [] for tier in rules.TIERS}
    for tier in reversed(rules.TIERS):
        for entry in sorted(by_tier[tier], key=lambda each: each.row.offset):
            row = entry.row
            if (reason := _promotion(entry, at, settings)) is not None:
                promoted.append(Move(row.id, tier, rules.FASTER[tier], reason))
            elif (reason := _end(entry, at, settings)) is None:
                staying[tier].append(entry)
            elif tier in rules.SLOWER:
                demoted[tier].append(Move(row.id, tier, rules.SLOWER[tier], reason))
            else:
                expired.append(Archival(row.id, rules.EXPIRED))
    evicted = [
        Archival(entry.row.id, rules.TIER_LIMIT)
        for tier in rules.TIERS
        for entry in _beyond(staying[tier], getattr(settings.max, tier), at, settings)
    ]
    return Plan([*promoted, *(move for tier in rules.TIERS for move in demoted[tier])], [*expired, *evicted])


def decayed(row: TierRow, at: int, settings: TierSettings) -> float:
    """The importance of an entry at a time in microseconds since 1970, after decay."""
    return rules.decayed(row.importance, row.at, at, getattr(settings.half_life, row.tier))


def payloads(plan: Plan, *, seen: int, now: datetime, ordinal: int, settings: TierSettings) -> list[dict[str, Any]]:
    """The payloads of the events that record a plan: parts with at most `limits.EVENT_IDS_MAX` changes, at least one.

    `seen` is the offset up to which the views had been read.
    """
    most = limits.EVENT_IDS_MAX
    moves = [{"id": each.id, "from": each.origin, "to": each.to, "reason": each.reason} for each in plan.moves]
    archived = [each._asdict() for each in plan.archived]
    if len(moves) + len(archived) <= most:
        parts = [{"moves": moves, "archived": archived}]
    else:
        parts = [{"moves": list(each)} for each in in_equal_parts(moves, most)]
        parts += [{"archived": list(each)} for each in in_equal_parts(archived, most)]
    head = {"seen": seen, "now": now.isoformat(), "ordinal": ordinal, "parts": len(parts)}
    constants = settings.model_dump(mode="json")
    return [{**head, "part": number, "constants": constants, **part} for number, part in enumerate(parts, start=1)]


def _promotion(entry: Aging, at: int, settings: TierSettings) -> str | None:
    """Why an entry is promoted; None if it is not."""
    row = entry.row
    if row.tier not in rules.FASTER or _is_cooling(row, at):
        return None
    if entry.accesses >= settings.promotion_access:
        return rules.BY_ACCESS
    if row.surprise >= getattr(settings.surprise, row.tier):
        return rules.BY_SURPRISE
    success = settings.success
    if row.successes >= success.reports and row.successes / row.reports >= success.rate:
        return rules.BY_SUCCESS
    return None


def _end(entry: Aging, at: int, settings: TierSettings) -> str | None:
    """Why an entry leaves its tier for a slower one or, from the slowest, the memory; None if it does not."""
    row = entry.row
    if row.exempt:
        return None
    if at - entry.used_at > getattr(settings.ttl, row.tier) * _MICROS:
        return rules.BY_TTL
    if not _is_cooling(row, at) and decayed(row, at, settings) < rules.IMPORTANCE[row.tier]:
        return rules.BY_IMPORTANCE
    return None


def _is_cooling(row: TierRow, at: int) -> bool:
    """Whether an entry was promoted within the last 24 hours."""
    return row.promoted_at is not None and at - row.promoted_at < _COOLDOWN


def _beyond(staying: Sequence[Aging], most: int, at: int, settings: TierSettings) -> Sequence[Aging]:
    """The entries of one tier that are too many: the least important, then least recently read, then older ones."""
    evictable = (entry for entry in staying if not entry.row.exempt)
    ranked = sorted(evictable, key=lambda one: (decayed(one.row, at, settings), one.used_at, one.row.offset))
    return ranked[: max(0, len(staying) - most)]
