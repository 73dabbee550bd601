"""Tiers: entries with their present importance, the moves of plans, and how full the tiers are."""

import shlex
from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar, Literal

from recallog_schemas.event import Position
from recallog_schemas.kinds.payload import Tier
from recallog_schemas.models.long_term.views import EntryView
from recallog_schemas.views.base import Bounded, OfAgent, View, count_noun, one_line

_ENDED = {"expired": "unread for too long", "tier_limit": "beyond the maximum of their tier"}
"""The reasons for which plans archive, in words."""


def _minute(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"


class TierEntry(View):
    """An entry that carries a tier, at the time of the question."""

    entry: EntryView
    """The entry; `tier` is the one that it is in."""
    importance: float
    """Its importance now: as its owner gave it, changed by outcomes, and decayed since it was retained."""
    undecayed: float
    """Its importance without decay."""
    last_access: datetime | None
    """When it was last read in a way that counts, in UTC. None: never."""
    accesses: int
    """The total number of its reads."""
    accesses_since_move: int
    """How often it was read since it last moved; enough of them promote it."""
    surprise: float
    """From 0 to 1: how much better its outcomes were than predicted; newer ones weigh more."""
    successes: int
    """Reported successes since its last move."""
    reports: int
    """Reported successes and failures since its last move."""
    promoted_at: datetime | None
    """When it last moved to a faster tier, in UTC. None: never."""
    exempt: bool
    """Whether no plan may demote or archive it: it is pinned or red-lined."""

    def format(self) -> str:
        """Tier, importance and entry in one line, then what a plan judges it by."""
        lines = [
            f"{self.entry.tier} {self.importance:.3f} {self.entry.format()}",
            f"importance: {self.importance:.3f} now, {self.undecayed:.3f} without decay",
            f"reads: {self.accesses:,}, of which {self.accesses_since_move:,} since its last move"
            + ("" if self.last_access is None else f"; the last one at {_minute(self.last_access)}"),
            f"outcomes since its last move: {self.successes:,} of {self.reports:,} were successes; "
            f"surprise: {self.surprise:.3f}",
        ]
        if self.promoted_at is not None:
            lines.append(f"promoted: {_minute(self.promoted_at)}")
        if self.exempt:
            lines.append("No plan demotes or archives it: it is pinned or red-lined.")
        return "\n".join(lines)


class TierEntryFound(OfAgent):
    """The entry with an id, if it carries a tier and the agent may read it."""

    now: datetime | None
    """The time for which its importance is computed, in UTC. None: the space has no events."""
    found: TierEntry | None
    """The entry. None: there is none, it carries no tier, it is no longer live, or the agent may not read it."""

    @property
    def ok(self) -> bool:
        """Whether there is such an entry."""
        return self.found is not None

    def format(self) -> str:
        """The entry, and what a plan judges it by; a sentence that says what to try if there is none."""
        if self.found is not None:
            return self.found.format()
        return (
            f"No entry with this id carries a tier, is live, and may be read by {self.agent}. "
            f"If it has no tier or is archived: recallog long-term get {shlex.join([self.space, self.agent])} ID"
        )


class TierHit(View):
    """One entry that answers a question."""

    entry: EntryView
    """The entry; `tier` is the one that it is in, and None without one."""
    score: float
    """The value by which hits are ranked: with the strategy "weighted" the similarity times the weight of the tier
    (FAST 1, MEDIUM 0.8, SLOW and no tier 0.6, GLACIAL 0.4), else the similarity."""
    similarity: float
    """The cosine of its text (its best passage, if it is long) and the question. If words were compared: the
    share of the question's words that it has."""

    def format(self) -> str:
        """Tier, score, id and labelled text in one line."""
        return one_line(f"{self.entry.tier or '-'} {self.score:.3f} {self.entry.id} {self.entry.labelled}")


class TierHits(OfAgent, Bounded):
    """The entries that answer a question, with their tiers."""

    list_field: ClassVar[str] = "hits"

    hits: tuple[TierHit, ...]
    """The entries, in the order of the strategy."""
    strategy: Literal["weighted", "fast_first", "comprehensive"]
    """How they are ordered."""
    relevance_by: Literal["semantic", "words"]
    """Whether meanings were compared, or, where the index could not answer, words."""
    now: datetime | None
    """The time of the question, in UTC. None: the space has no events."""

    def format(self) -> str:
        """One line for each entry; a sentence that says what to try if there are none."""
        if self.hits:
            return "\n".join(hit.format() for hit in self.hits)
        why = " Only words were compared: no index has answered." if self.relevance_by == "words" else ""
        return f"No entry fits the question.{why} Try a lower min_similarity, or all tiers; `recall` also finds events."


class TierMove(View):
    """One entry that a plan has moved."""

    id: str
    """The id of the entry."""
    origin: Tier
    """The tier that it left."""
    to: Tier
    """The tier that it is in."""
    reason: str
    """access, surprise or success of a promotion; ttl or importance of a demotion."""

    def format(self) -> str:
        """Id, tiers and reason in one line."""
        return one_line(f"{self.id} {self.origin} → {self.to} ({self.reason})")


class ArchivedEntry(View):
    """One entry that a plan has archived."""

    id: str
    """The id of the entry."""
    reason: str
    """expired (not read for too long) or tier_limit (its tier had too many)."""

    def format(self) -> str:
        """Id and reason in one line."""
        return one_line(f"{self.id} archived ({self.reason})")


class Consolidation(View):
    """What a plan did to the entries of an agent."""

    promoted: int
    """How many entries moved to a faster tier."""
    demoted: int
    """How many moved to a slower one."""
    moves: tuple[TierMove, ...]
    """The entries that moved, in the order of the plan."""
    archived: tuple[ArchivedEntry, ...]
    """The entries that were archived, in the order of the plan."""
    summaries: tuple[str, ...]
    """The ids of the entries that summarise what was archived."""
    now: datetime
    """The time of the plan, in UTC."""
    position: Position | None
    """The position of the last event. None: nothing was written."""

    def format(self) -> str:
        """One line for each entry that moved or was archived, then the numbers."""
        summaries = count_noun(len(self.summaries), "summary", "summaries")
        numbers = f"{self.promoted} promoted, {self.demoted} demoted, {len(self.archived)} archived, {summaries}"
        return "\n".join([*(each.format() for each in (*self.moves, *self.archived)), numbers])


class TierStats(OfAgent):
    """How many entries of an agent are in each tier, and how they have moved."""

    tier_counts: Mapping[Tier, int]
    """Live entries by tier, from the fastest to the slowest."""
    promotions_last_hour: int
    """Moves to a faster tier in the hour before the question."""
    demotions_last_hour: int
    """Moves to a slower tier in that hour."""
    archived: Mapping[str, int]
    """Entries that plans have archived so far, by reason: expired, and tier_limit."""
    lookups: int
    """How often the agent has looked for entries in a way that counts."""
    hit_rate: float
    """The share of these lookups that found something; 0 without lookups."""
    avg_surprise_score: float
    """The mean surprise of the live entries; 0 without entries."""
    planned_at: datetime | None
    """The time of the newest plan, in UTC. None: there was none."""
    due_at: datetime | None
    """When the next plan is due, in UTC. None: no entry carries a tier."""
    now: datetime | None
    """The time of the question, in UTC. None: the space has no events."""

    def format(self) -> str:
        """Entries by tier, what has moved, and when plans are made, in some lines."""
        plan = "none yet" if self.planned_at is None else f"at {_minute(self.planned_at)}"
        if self.due_at is None:
            due = "none, since no entry carries a tier"
        else:
            due = f"due at {_minute(self.due_at)}" + ("" if self.now is None else f" (it is {_minute(self.now)} now)")
        ended = ", ".join(f"{count:,} {_ENDED.get(reason, reason)}" for reason, count in self.archived.items())
        return "\n".join(
            [
                f"entries: {', '.join(f'{count:,} {tier}' for tier, count in self.tier_counts.items())}",
                f"moves in the last hour: {self.promotions_last_hour:,} up, {self.demotions_last_hour:,} down",
                f"archived so far: {ended}",
                f"lookups: {self.lookups:,}, of which {self.hit_rate:.0%} found something",
                f"mean surprise: {self.avg_surprise_score:.3f}",
                f"last plan: {plan}",
                f"next plan: {due}",
            ]
        )


class TierLoad(View):
    """How full one tier is."""

    count: int
    """Live entries."""
    limit: int
    """The maximum number of entries that a plan leaves in it."""
    share: float
    """The count as a share of the limit."""
    ttl_seconds: float
    """For how long an entry may stay in it without being read."""
    half_life_hours: float
    """The time in which the importance of an entry halves."""


class TierPressure(OfAgent):
    """How full the tiers of an agent are."""

    tiers: Mapping[Tier, TierLoad]
    """By tier, from the fastest to the slowest."""
    share: float
    """The highest of their shares."""
    status: Literal["normal", "elevated", "high", "critical"]
    """By this share: normal below 0.5, elevated below 0.8, high below 0.9, else critical."""

    def format(self) -> str:
        """The status, then one line for each tier."""
        lines = [f"{name}: {load.count:,} of {load.limit:,} ({load.share:.0%})" for name, load in self.tiers.items()]
        return "\n".join([f"{self.status} ({self.share:.0%})", *lines])
