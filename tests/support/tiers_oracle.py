"""The expected view of tiers, by brute force, beside the expected entries. It shares no code with the fold."""

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from support.entries_oracle import ExpectedEntries, ExpectedEntry

Fields = dict[str, Any]
Key = tuple[str, str]

SPEED = {"fast": 4, "medium": 3, "slow": 2, "glacial": 1}
INTERVAL = 3_600_000_000
"""Microseconds between two plans of an agent without settings."""
DAY = 86_400_000_000
TRIGGER = re.compile(r"(reflection|consolidation)\.due/[0-9a-f]{32}/\d+|[a-z]+\.due/[0-9a-f]{32}/[0-9a-f]{32}")
CONCERNED = {
    "memory.retained", "memory.updated", "memory.retracted", "memory.archived", "memory.restored", "memory.erased",
    "memory.transferred", "memory.metered", "memory.consolidated", "memory.outcome_reported", "memory.tier_changed",
    "agent.configured", "reaction.done", "reaction.failed",
}  # fmt: skip


def moment(at: str) -> int:
    return (datetime.fromisoformat(at) - datetime.fromisoformat("1970-01-01T00:00:00+00:00")) // timedelta(
        microseconds=1
    )


@dataclass
class ExpectedTier:
    """A live entry with a tier."""

    tier: str
    importance: float
    given: float
    """The importance that its owner gave it."""
    touched: int
    reads: int = 0
    """How often it was read in all at its last move."""
    outcomes: list[bool] = field(default_factory=list)
    """The reported successes and failures since its last move."""
    surprise: float = 0.0
    promoted_at: int | None = None
    plan: int | None = None
    changes: int = 1
    """How many records have changed it, the first one included."""

    def touch(self, offset: int) -> None:
        self.touched = offset
        self.changes += 1


@dataclass
class ExpectedPlans:
    """The plans of one agent."""

    finished: int = 0
    unfinished: bool = False
    planned_at: int | None = None
    since: int | None = None
    moves: list[tuple[str, int, int, int, int, tuple[str, ...]]] = field(default_factory=list)
    archived: list[str] = field(default_factory=list)
    """The reasons for which plans have archived entries."""


@dataclass
class ExpectedTiers:
    rows: dict[Key, ExpectedTier] = field(default_factory=dict)
    """By space and id."""
    plans: dict[Key, ExpectedPlans] = field(default_factory=dict)
    """By space and agent."""

    def of(self, space: str, agent: str) -> ExpectedPlans:
        return self.plans.setdefault((space, agent), ExpectedPlans())

    def owned(self, entries: "ExpectedEntries", space: str, agent: str) -> list[Key]:
        return [key for key in self.rows if key[0] == space and entries.entries[key].owner == agent]

    def begin(self, entries: "ExpectedEntries", key: Key, row: ExpectedTier, at: int) -> None:
        """An entry has got a tier."""
        owner = entries.entries[key].owner
        plans = self.of(key[0], owner)
        if not self.owned(entries, key[0], owner) and plans.planned_at is None:
            plans.since = at
        self.rows[key] = row

    def follow(self, entries: "ExpectedEntries", event: Fields, offset: int, owners: dict[str, str]) -> None:
        """Follow the entries of which the event has changed something; `owners` are those before, by id."""
        space, at = event["space"], moment(event["at"])
        moved: list[tuple[Key, ExpectedTier]] = []
        for id_, owner in owners.items():
            key = (space, id_)
            entry, known = entries.entries[key], self.rows.get(key)
            if entry.status != "live":
                self.rows.pop(key, None)
            elif known is None:
                if owner == "" or event["kind"] == "memory.restored":
                    self.retained(entries, entry, offset, at)
            else:
                known.touch(offset)
                if entry.content["importance"] != known.given:
                    known.importance = known.given = entry.content["importance"]
                if entry.owner != owner:
                    moved.append((key, self.rows.pop(key)))
        for key, known in moved:
            self.begin(entries, key, known, at)

    def happened(self, event: Fields) -> None:
        """An event of an agent about entries: intervals between plans begin at most a day after it."""
        kind, payload = event["kind"], event["payload"]
        retains = kind in ("memory.retained", "experience.recorded") and payload.get("tier") is None
        if kind not in CONCERNED or retains or TRIGGER.fullmatch(event.get("causation_id") or ""):
            return
        plans = self.plans.get((event["space"], event["agent"]))
        if plans is not None and plans.since is not None:
            plans.since = min(plans.since, moment(event["at"]) + DAY)

    def retained(self, entries: "ExpectedEntries", entry: "ExpectedEntry", offset: int, at: int) -> None:
        tier, importance = entry.content["tier"], entry.content["importance"]
        if tier is not None:
            self.begin(entries, (entry.space, entry.id), ExpectedTier(tier, importance, importance, offset), at)

    def untouched(self, entries: "ExpectedEntries", event: Fields, planned: Fields) -> ExpectedTier | None:
        """The tier of an entry that a plan may change."""
        key = (event["space"], planned["id"])
        entry, row = entries.entries.get(key), self.rows.get(key)
        if entry is None or row is None or entry.owner != event["agent"] or entry.status != "live":
            return None
        reads, _, read_at = entries.uses.get(key, (0, 0, -1))
        if planned.get("changes") is not None:
            return row if planned["changes"] == min(row.changes + reads, 2**63 - 1) else None
        seen = event["payload"]["seen"]
        return None if row.touched > seen or read_at > seen else row

    def is_exempt(self, entries: "ExpectedEntries", key: Key) -> bool:
        content = entries.entries[key].content
        return bool(content["red_line"]) or content["priority"] == "pinned"

    def move(self, entries: "ExpectedEntries", key: Key, to: str, at: int, plan: int | None, offset: int) -> int:
        """Move an entry; 1 for a promotion, -1 for a demotion."""
        row = self.rows[key]
        direction = (SPEED[to] > SPEED[row.tier]) - (SPEED[to] < SPEED[row.tier])
        row.tier, row.plan, row.outcomes = to, plan, []
        row.touch(offset)
        row.reads = entries.uses.get(key, (0, 0, 0))[0]
        if direction > 0:
            row.promoted_at = at
        return direction

    def add(self, entries: "ExpectedEntries", event: Fields, offset: int) -> None:
        """Count a plan, an outcome, or a move by the owner."""
        kind, payload, space = event["kind"], event["payload"], event["space"]
        if kind == "memory.consolidated":
            self.planned(entries, event, offset)
        elif kind == "memory.tier_changed":
            self.moved_by_owner(entries, event, offset)
        elif kind == "memory.outcome_reported" and (payload.get("confidence") is None or payload["confidence"] >= 0.5):
            for id_ in dict.fromkeys(payload["entries"]):
                entry, row = entries.entries.get((space, id_)), self.rows.get((space, id_))
                if entry is not None and row is not None and {event["agent"], "*"} & {entry.owner, *entry.readers}:
                    self.learn(row, payload, offset)

    def learn(self, row: ExpectedTier, payload: Fields, offset: int) -> None:
        better = payload.get("actual", 0.5) - payload.get("predicted", 0.5)
        row.surprise = 0.7 * row.surprise + (0.3 * better if better > 0 else 0)
        row.touch(offset)
        if payload.get("success") is not None:
            row.outcomes.append(payload["success"])
            row.importance = min(max(row.importance + (0.05 if payload["success"] else -0.1), 0), 1)

    def moved_by_owner(self, entries: "ExpectedEntries", event: Fields, offset: int) -> None:
        to, at = event["payload"]["to"], moment(event["at"])
        key = (event["space"], event["payload"]["entry"])
        entry = entries.entries.get(key)
        if entry is None or entry.status != "live" or entry.owner != event["agent"]:
            return
        if key not in self.rows:
            importance, reads = entry.content["importance"], entries.uses.get(key, (0, 0, 0))[0]
            self.begin(entries, key, ExpectedTier(to, importance, importance, offset, reads), at)
        elif self.rows[key].tier != to:
            direction = self.move(entries, key, to, at, None, offset)
            noted = (event["id"], at, int(direction > 0), int(direction < 0), 0, ())
            self.of(event["space"], event["agent"]).moves.append(noted)

    def planned(self, entries: "ExpectedEntries", event: Fields, offset: int) -> None:
        payload, space = event["payload"], event["space"]
        at, plans = moment(payload["now"]), self.of(space, event["agent"])
        rejected, directions, gone = [], [], []
        archived = {each["id"]: each for each in payload.get("archived", [])}
        for id_, each in archived.items():
            if self.untouched(entries, event, each) is None or self.is_exempt(entries, (space, id_)):
                rejected.append(id_)
            else:
                entries.end(event, entries.entries[space, id_], "archived", each["reason"])
                gone.append(id_)
        left = []
        for move in payload.get("moves", []):
            row, key = self.untouched(entries, event, move), (space, move["id"])
            slower = SPEED[move["to"]] < SPEED[move["from"]]
            if (
                row is None
                or row.tier != move["from"]
                or move["to"] == row.tier
                or (slower and self.is_exempt(entries, key))
            ):
                left.append(move["id"])
            else:
                directions.append(self.move(entries, key, move["to"], at, payload["ordinal"], offset))
        for id_ in gone:
            del self.rows[space, id_]
        plans.archived += [archived[id_]["reason"] for id_ in gone]
        noted = (directions.count(1), directions.count(-1), len(gone), (*left, *rejected))
        plans.moves.append((event["id"], at, *noted))
        if payload["ordinal"] == plans.finished:
            if not plans.unfinished:
                plans.planned_at = plans.since = at
            plans.unfinished = payload.get("part", 1) < payload.get("parts", 1)
            plans.finished += not plans.unfinished
