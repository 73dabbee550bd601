"""`memory.tiers`: what time, reads and outcomes do to entries, through rebuilds and repeated deliveries."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recallog import Memory
from recallog.composition import assemble
from recallog_projections.models.tiers import rules
from recallog_projections.stores.memory import MemoryStore
from recallog_schemas import Event, Position, triggers
from recallog_schemas.models.tiers.triggers import CONSOLIDATION, SUMMARY, consolidation_of
from recallog_schemas.models.tiers.views import Consolidation
from recallog_streams.ledgers.memory import MemoryLedger
from support.events import event, run
from support.twice import Check, events_of
from support.twice import memory as memory

pytestmark = pytest.mark.models("tiers")

T0 = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
A = ("s", "a")


@pytest.fixture
def checks() -> list[Check]:
    """The tiers, and what a test adds."""
    return [tiers_of]


def kept(id_: str, tier: str | None, at: datetime = T0, *, agent: str = "a", **payload: Any) -> Event:
    given = {"text": f"What {id_} says.", "importance": 1.0, **payload}
    if tier is not None:
        given["tier"] = tier
    return event("memory.retained", space="s", agent=agent, id=id_, at=at, payload=given)


def read(at: datetime, agent: str = "a", **counts: int) -> Event:
    return event("memory.accessed", space="s", agent=agent, at=at, payload={"counts": counts, "hits": 1})


def outcome(*ids: str, at: datetime = T0, agent: str = "a", **payload: Any) -> Event:
    return event("memory.outcome_reported", space="s", agent=agent, at=at, payload={"entries": list(ids), **payload})


def changed(kind: str, at: datetime = T0, agent: str = "a", **payload: Any) -> Event:
    return event(f"memory.{kind}", space="s", agent=agent, at=at, payload=payload)


def configured(agent: str = "a", at: datetime = T0, **tiers: Any) -> Event:
    return event("agent.configured", space="s", agent=agent, at=at, payload={"tiers": tiers})


async def tiers_of(memory: Memory, agent: str = "a") -> dict[str, str | None]:
    """The tiers of the live entries of an agent, by id."""
    return {each.id: each.tier for each in (await memory.long_term.list("s", agent, limit=1_000)).entries}


async def importance(memory: Memory, id_: str, now: datetime) -> float:
    found = (await memory.tiers.entry(*A, id_, now=now)).found
    assert found is not None
    return found.importance


def moves(made: Consolidation) -> dict[str, tuple[str, str]]:
    """What moved, and why, by id."""
    return {each.id: (each.to, each.reason) for each in made.moves}


def archived(made: Consolidation) -> list[tuple[str, str]]:
    return [(each.id, each.reason) for each in made.archived]


# Decay.


@pytest.mark.parametrize(
    ("tier", "hours", "expected"),
    [
        ("fast", 1, 0.4),
        ("fast", 0.25, 0.67272),
        ("medium", 24, 0.4),
        ("medium", 6, 0.67272),
        ("slow", 168, 0.4),
        ("slow", 24, 0.72458),
        ("slow", 72, 0.59440),
        ("glacial", 720, 0.4),
        ("glacial", 168, 0.68053),
        ("slow", -5, 0.8),
    ],
)
async def test_importance_halves_with_the_half_life_of_the_tier(
    memory: Memory, checks: list[Check], tier: str, hours: float, expected: float
) -> None:
    await memory.publish(kept("e", tier, importance=0.8))

    async def check(memory: Memory) -> object:
        found = await importance(memory, "e", T0 + hours * HOUR)
        assert found == pytest.approx(expected, abs=0.000005)
        return found

    checks.append(check)


async def test_now_is_the_time_of_the_newest_event_that_the_agent_sees(memory: Memory, checks: list[Check]) -> None:
    await memory.publish(kept("e", "fast", importance=0.8))
    await memory.publish(event("agent.spoke", space="s", agent="b", audience=("a",), at=T0 + HOUR))
    await memory.publish(event("agent.spoke", space="s", agent="b", at=T0 + 5 * HOUR))
    await memory.publish(read(T0 + 9 * HOUR, e=1))

    async def check(memory: Memory) -> object:
        found = await memory.tiers.entry(*A, "e")
        assert (found.now, found.found and found.found.importance) == (T0 + HOUR, 0.4)
        return found.found

    checks.append(check)


# Outcomes and surprise.


async def test_surprise_is_a_moving_average(memory: Memory, checks: list[Check]) -> None:
    await memory.publish(kept("e", "fast"))
    found = []
    for predicted, actual in ((0.0, 1.0), (0.0, 1.0), (0.4, 0.9), (0.8, 0.2)):
        await memory.publish(outcome("e", predicted=predicted, actual=actual))
        entry = (await memory.tiers.entry(*A, "e")).found
        assert entry is not None
        found.append(entry.surprise)
    assert found == [0.3, 0.51, 0.507, 0.3549]
    await memory.publish(outcome("e"))

    async def check(memory: Memory) -> object:
        stats = await memory.tiers.stats(*A)
        assert stats.avg_surprise_score == 0.24843
        return stats.avg_surprise_score

    checks.append(check)


async def test_full_surprises_promote_after_two_three_and_four_reports(memory: Memory) -> None:
    tiers = ("glacial", "slow", "medium", "fast")
    await memory.publish_many([kept(tier, tier) for tier in tiers])
    found, promoted = [], {}
    for number in range(1, 5):
        await memory.publish(outcome(*tiers, predicted=0.0, actual=1.0))
        entry = (await memory.tiers.entry(*A, "fast")).found
        assert entry is not None
        found.append(entry.surprise)
        for id_, to in moves(await memory.tiers.consolidate(*A, now=T0)).items():
            promoted[id_] = (number, *to)
    assert found == [0.3, 0.51, 0.657, 0.7599]
    assert promoted == {
        "glacial": (2, "slow", "surprise"),
        "slow": (3, "medium", "surprise"),
        "medium": (4, "fast", "surprise"),
    }


@pytest.mark.parametrize(("good", "bad", "promoted"), [(2, 0, False), (3, 0, True), (3, 1, True), (3, 2, False)])
async def test_successes_promote_if_their_rate_suffices(memory: Memory, good: int, bad: int, *, promoted: bool) -> None:
    await memory.publish(kept("e", "medium"))
    await memory.publish_many([outcome("e", success=number < good) for number in range(good + bad)])
    made = await memory.tiers.consolidate(*A, now=T0)
    assert moves(made) == ({"e": ("fast", "success")} if promoted else {})


async def test_outcomes_change_importance_and_uncertain_ones_change_nothing(
    memory: Memory, checks: list[Check]
) -> None:
    await memory.publish(kept("e", "medium", importance=0.5))
    await memory.publish(outcome("e", success=True))
    assert await importance(memory, "e", T0) == 0.55
    await memory.publish(outcome("e", success=False))
    assert await importance(memory, "e", T0) == 0.45
    await memory.publish(outcome("e", success=False, actual=1.0, confidence=0.49))
    await memory.publish_many([outcome("e", success=True) for _ in range(20)])
    entry = (await memory.tiers.entry(*A, "e")).found
    assert entry is not None
    assert (entry.undecayed, entry.successes, entry.reports, entry.surprise) == (1.0, 21, 22, 0.0)
    await memory.publish(changed("updated", entry="e", importance=0.2))

    async def check(memory: Memory) -> object:
        assert await importance(memory, "e", T0) == 0.2
        return None

    checks.append(check)


async def test_only_agents_that_may_read_an_entry_report_outcomes_of_it(memory: Memory) -> None:
    await memory.publish(kept("e", "medium", importance=0.5))
    await memory.publish(outcome("e", agent="b", success=True))
    await memory.publish(outcome("nothing", success=True))
    assert await importance(memory, "e", T0) == 0.5


# Promotions and demotions.


async def test_one_plan_promotes_and_demotes(memory: Memory) -> None:
    now = T0 + HOUR
    others = {"s2": 2, "s3": 3, "m": 5}

    await memory.publish_many(
        [
            kept("g", "glacial"),
            kept("s2", "slow", importance=0.5),
            kept("s3", "slow", importance=0.5),
            kept("m", "medium", importance=0.9),
            kept("f60", "fast", now - timedelta(seconds=60)),
            kept("f61", "fast", now - timedelta(seconds=61)),
            kept("fl", "fast", now, importance=0.79),
            *(outcome("g", predicted=0.0, actual=1.0) for _ in range(13)),
            read(now, **others),
        ]
    )
    entry = (await memory.tiers.entry(*A, "g")).found
    assert entry is not None
    assert entry.surprise >= 0.99
    made = await memory.tiers.consolidate(*A, now=now)
    assert moves(made) == {
        "g": ("slow", "surprise"),
        "s3": ("medium", "access"),
        "m": ("fast", "access"),
        "f61": ("medium", "ttl"),
        "fl": ("medium", "importance"),
    }
    assert [each.id for each in made.moves] == ["g", "s3", "m", "f61", "fl"]
    assert (made.promoted, made.demoted, made.archived, made.summaries) == (3, 2, (), ())
    assert await tiers_of(memory) == {
        "g": "slow", "s2": "slow", "s3": "medium", "m": "fast", "f60": "fast", "f61": "medium", "fl": "medium",
    }  # fmt: skip
    stats = await memory.tiers.stats(*A, now=now)
    assert stats.tier_counts == {"fast": 2, "medium": 3, "slow": 2, "glacial": 0}
    assert (stats.promotions_last_hour, stats.demotions_last_hour, stats.planned_at) == (3, 2, now)


async def test_an_entry_idle_for_longer_than_its_tier_allows_is_demoted(memory: Memory) -> None:
    await memory.publish(kept("e", "slow", importance=0.5))
    assert moves(await memory.tiers.consolidate(*A, now=T0 + timedelta(seconds=86_400))) == {}
    made = await memory.tiers.consolidate(*A, now=T0 + timedelta(seconds=86_401))
    assert moves(made) == {"e": ("glacial", "ttl")}


async def test_an_entry_that_is_read_every_hour_stays_until_it_has_lost_its_importance(memory: Memory) -> None:
    await memory.publish(configured(promotion_access=1_000))
    await memory.publish(kept("e", "slow", importance=0.5))
    await memory.publish_many([read(T0 + hours * HOUR, e=1) for hours in range(1, 124)])
    assert moves(await memory.tiers.consolidate(*A, now=T0 + 123.80 * HOUR)) == {}
    made = await memory.tiers.consolidate(*A, now=T0 + 123.82 * HOUR)
    assert moves(made) == {"e": ("glacial", "importance")}


async def test_an_entry_of_full_importance_leaves_fast_when_it_has_decayed(memory: Memory) -> None:
    await memory.publish(configured(promotion_access=1_000))
    await memory.publish(kept("e", "fast"))
    await memory.publish(read(T0 + timedelta(minutes=19), e=1))
    assert moves(await memory.tiers.consolidate(*A, now=T0 + timedelta(minutes=19.3))) == {}
    made = await memory.tiers.consolidate(*A, now=T0 + timedelta(minutes=19.32))
    assert moves(made) == {"e": ("medium", "importance")}


async def test_a_promotion_needs_a_day_since_the_last_one(memory: Memory) -> None:
    await memory.publish_many([kept("e", "glacial"), read(T0, e=3)])
    assert moves(await memory.tiers.consolidate(*A, now=T0)) == {"e": ("slow", "access")}
    await memory.publish(read(T0 + DAY, e=3))
    assert moves(await memory.tiers.consolidate(*A, now=T0 + DAY - timedelta(seconds=1))) == {}
    assert moves(await memory.tiers.consolidate(*A, now=T0 + DAY)) == {"e": ("medium", "access")}


async def test_a_promoted_entry_is_not_demoted_for_its_importance_within_a_day(memory: Memory) -> None:
    await memory.publish_many([kept("e", "medium", importance=0.5), read(T0, e=3)])
    assert moves(await memory.tiers.consolidate(*A, now=T0)) == {"e": ("fast", "access")}
    assert moves(await memory.tiers.consolidate(*A, now=T0 + timedelta(seconds=60))) == {}
    made = await memory.tiers.consolidate(*A, now=T0 + timedelta(seconds=61))
    assert moves(made) == {"e": ("medium", "ttl")}


async def test_a_move_begins_a_new_count_of_reads_and_reports(memory: Memory, checks: list[Check]) -> None:
    await memory.publish_many([kept("e", "glacial"), read(T0, e=5), outcome("e", success=True)])
    await memory.tiers.consolidate(*A, now=T0)

    async def check(memory: Memory) -> object:
        entry = (await memory.tiers.entry(*A, "e")).found
        assert entry is not None
        assert (entry.accesses, entry.accesses_since_move, entry.successes, entry.reports) == (5, 0, 0, 0)
        assert (entry.promoted_at, entry.last_access) == (T0, T0)
        return entry

    checks.append(check)


# Archive.


async def test_a_glacial_entry_expires_unless_it_is_pinned_or_red_lined(memory: Memory, checks: list[Check]) -> None:
    await memory.publish_many(
        [
            kept("idle", "glacial", T0),
            kept("pinned", "glacial", T0, priority="pinned"),
            kept("red", "glacial", T0, red_line=True),
            kept("younger", "glacial", T0 + timedelta(seconds=1)),
        ]
    )
    assert archived(await memory.tiers.consolidate(*A, now=T0 + timedelta(seconds=604_800))) == []
    made = await memory.tiers.consolidate(*A, now=T0 + timedelta(seconds=604_801))
    assert (archived(made), made.summaries) == ([("idle", "expired")], ())

    async def check(memory: Memory) -> object:
        found = await memory.long_term.get(*A, "idle")
        assert found.entry is not None
        assert (found.entry.status, found.entry.tier) == ("archived", None)
        assert (await memory.tiers.stats(*A)).archived == {"expired": 1, "tier_limit": 0}
        return (await memory.long_term.audit(*A, "idle")).changes

    checks.append(check)


async def test_a_tier_that_has_too_many_loses_the_least_important_ones_to_a_summary(
    memory: Memory, checks: list[Check]
) -> None:
    await memory.publish(configured(max={"glacial": 3}))
    weights = {"e9": 0.9, "e5": 0.5, "e1": 0.1, "e05": 0.05, "e01": 0.01}
    await memory.publish_many([kept(id_, "glacial", importance=weight) for id_, weight in weights.items()])
    made = await memory.tiers.consolidate(*A, now=T0)
    assert archived(made) == [("e01", "tier_limit"), ("e05", "tier_limit")]
    assert len(made.summaries) == 1
    assert moves(made) == {}

    async def check(memory: Memory) -> object:
        (summary,) = made.summaries
        found = (await memory.long_term.get(*A, summary)).entry
        assert found is not None
        assert (found.type, found.tier, found.importance) == ("summary", None, 0.05)
        assert found.sources == ("e01", "e05")
        assert found.text == "2 memories: What e05 says. · What e01 says."
        assert await tiers_of(memory) == {"e9": "glacial", "e5": "glacial", "e1": "glacial", summary: None}
        assert (await memory.pending("s")).items == ()
        return found

    checks.append(check)


async def test_equally_important_entries_leave_by_their_last_read_and_then_by_age(memory: Memory) -> None:
    await memory.publish(configured(max={"slow": 1}, promotion_access=100))
    await memory.publish_many([kept("a", "slow"), kept("b", "slow"), kept("c", "slow"), read(T0 + HOUR, a=1)])
    made = await memory.tiers.consolidate(*A, now=T0 + HOUR)
    assert archived(made) == [("b", "tier_limit"), ("c", "tier_limit")]


async def test_entries_without_a_tier_do_not_age(memory: Memory) -> None:
    await memory.publish(configured(max={"fast": 0, "medium": 0, "slow": 0, "glacial": 0}))
    await memory.publish(kept("fact", None))
    made = await memory.tiers.consolidate(*A, now=T0 + 4_000 * DAY)
    assert (made.moves, made.archived, made.position) == ((), (), None)
    assert (await memory.tiers.entry(*A, "fact")).found is None


# What the owner does.


async def test_its_owner_moves_an_entry_and_gives_one_a_tier(memory: Memory, checks: list[Check]) -> None:
    await memory.publish_many([kept("e", "slow"), kept("fact", None), read(T0, e=2, fact=2)])
    await memory.publish(changed("tier_changed", entry="e", to="fast", agent="b"))
    assert await tiers_of(memory) == {"e": "slow", "fact": None}
    await memory.publish(changed("tier_changed", entry="e", to="fast", reason="it matters now"))
    await memory.publish(changed("tier_changed", entry="fact", to="glacial"))
    assert await tiers_of(memory) == {"e": "fast", "fact": "glacial"}

    async def check(memory: Memory) -> object:
        found = [(await memory.tiers.entry(*A, id_)).found for id_ in ("e", "fact")]
        assert [each and (each.accesses, each.accesses_since_move) for each in found] == [(2, 0), (2, 0)]
        stats = await memory.tiers.stats(*A, now=T0)
        assert (stats.promotions_last_hour, stats.demotions_last_hour) == (1, 0)
        return stats.tier_counts

    checks.append(check)


async def test_a_tier_follows_its_entry_to_another_owner_and_ends_with_it(memory: Memory, checks: list[Check]) -> None:
    ids = ["given", "forgotten", "retracted", "archived"]
    await memory.publish_many([kept(id_, "fast") for id_ in ids])
    await memory.publish(read(T0, given=2))
    await memory.publish(outcome("given", success=True))
    await memory.publish(changed("transferred", entries=["given"], to="b"))
    await memory.publish(changed("erased", entries=["forgotten"]))
    await memory.publish(changed("retracted", entry="retracted"))
    await memory.publish(changed("archived", entry="archived"))

    async def check(memory: Memory) -> object:
        assert (await memory.tiers.stats(*A)).tier_counts == {"fast": 0, "medium": 0, "slow": 0, "glacial": 0}
        assert (await memory.tiers.stats(*A)).due_at is None
        assert (await memory.tiers.stats("s", "b")).tier_counts["fast"] == 1
        found = (await memory.tiers.entry("s", "b", "given")).found
        assert found is not None
        assert (found.accesses, found.successes) == (2, 1)
        assert [(await memory.tiers.entry(*A, id_)).found for id_ in ids] == [None] * 4
        return found

    checks.append(check)


# Numbers.


async def test_numbers_of_an_unknown_agent(memory: Memory) -> None:
    stats = await memory.tiers.stats("s", "nobody")
    assert (stats.hit_rate, stats.avg_surprise_score, stats.lookups, stats.now) == (0.0, 0.0, 0, None)
    pressure = await memory.tiers.pressure("s", "nobody")
    assert (pressure.share, pressure.status) == (0.0, "normal")
    made = await memory.tiers.consolidate("s", "nobody", now=T0)
    assert made.position is None
    assert await events_of(memory) == []


async def test_the_hit_rate_counts_lookups_and_a_move_counts_for_an_hour(memory: Memory, checks: list[Check]) -> None:
    await memory.publish_many([kept("e", "medium"), read(T0, e=3)])
    await memory.publish(event("memory.accessed", space="s", agent="a", at=T0, payload={"hits": 2, "misses": 1}))
    await memory.tiers.consolidate(*A, now=T0)

    async def check(memory: Memory) -> object:
        minutes = [0, 60, 61]
        found = [await memory.tiers.stats(*A, now=T0 + timedelta(minutes=each)) for each in minutes]
        assert [each.promotions_last_hour for each in found] == [1, 1, 0]
        assert (found[0].hit_rate, found[0].lookups) == (0.75, 4)
        return [each.tier_counts for each in found]

    checks.append(check)


@pytest.mark.parametrize(
    ("count", "status"),
    [(4, "normal"), (5, "elevated"), (7, "elevated"), (8, "high"), (9, "critical"), (12, "critical")],
)
async def test_pressure_is_that_of_the_fullest_tier(memory: Memory, count: int, status: str) -> None:
    await memory.publish(configured(max={"fast": 10}))
    await memory.publish_many([kept(f"e{number}", "fast") for number in range(count)])
    pressure = await memory.tiers.pressure(*A)
    assert (pressure.status, pressure.share) == (status, count / 10)
    assert (pressure.tiers["fast"].count, pressure.tiers["fast"].limit) == (count, 10)


# When plans meet changes, each other, and interruptions.


def plan(payload: dict[str, Any], at: datetime = T0, **given: Any) -> Event:
    """A plan for entries that nothing has changed since they were retained; with `seen`, one of an earlier version."""
    known = {} if "seen" in given else {"changes": 1}
    named = {name: [{**known, **each} for each in found] for name, found in payload.items()}
    head = {"now": at.isoformat(), "ordinal": 0}
    return event("memory.consolidated", space="s", agent="a", at=at, payload={**head, **named, **given})


@pytest.mark.parametrize("earlier", [False, True])
async def test_a_plan_moves_only_what_nothing_has_touched_since(memory: Memory, *, earlier: bool) -> None:
    ids = ["read", "reported", "updated", "moved", "untouched"]

    positions = (await memory.publish_many([kept(id_, "slow") for id_ in ids])).items
    await memory.publish_many(
        [
            read(T0, read=1),
            outcome("reported"),
            changed("updated", entry="updated", metadata={"checked": True}),
            changed("tier_changed", entry="moved", to="fast"),
        ]
    )
    down = [{"id": id_, "from": "slow", "to": "glacial", "reason": "ttl"} for id_ in [*ids, "unknown"]]
    await memory.publish(plan({"moves": down}, **({"seen": positions[-1].offset} if earlier else {})))
    assert await tiers_of(memory) == {
        "read": "slow", "reported": "slow", "updated": "slow", "moved": "fast", "untouched": "glacial",
    }  # fmt: skip


@pytest.mark.parametrize("earlier", [False, True])
async def test_a_plan_archives_only_what_nothing_has_touched_since(memory: Memory, *, earlier: bool) -> None:
    ids = ["a", "b", "c", "pinned"]
    events = [kept(id_, "glacial") for id_ in ids[:3]] + [kept("pinned", "glacial", priority="pinned")]
    seen = (await memory.publish_many(events)).items[-1].offset
    await memory.publish(read(T0, b=1))
    gone = [{"id": id_, "reason": "expired"} for id_ in [*ids, "unknown"]]
    await memory.publish(plan({"archived": gone}, **({"seen": seen} if earlier else {})))
    assert await tiers_of(memory) == {"b": "glacial", "pinned": "glacial"}
    stats = await memory.tiers.stats(*A)
    assert (stats.archived["expired"], stats.tier_counts["glacial"]) == (2, 2)


async def test_only_its_owner_plans_an_entry(memory: Memory) -> None:
    await memory.publish_many([kept("e", "slow", agent="b"), kept("f", "glacial", agent="b")])
    down = [{"id": "e", "from": "slow", "to": "glacial", "reason": "ttl"}]
    await memory.publish(plan({"moves": down, "archived": [{"id": "f", "reason": "expired"}]}))
    assert await tiers_of(memory, "b") == {"e": "slow", "f": "glacial"}


async def test_a_plan_that_was_interrupted_is_finished_at_its_own_time(memory: Memory) -> None:
    """The rest of a plan is what one run would have done: an entry that has moved does not move again."""
    now = T0 + 2 * DAY

    await memory.publish(configured(max={"glacial": 0}))
    await memory.publish_many([kept(f"f{number}", "fast") for number in range(3)])
    await memory.publish_many([kept(f"g{number}", "glacial", importance=number / 10) for number in range(4)])
    down = [{"id": "f0", "from": "fast", "to": "medium", "reason": "ttl"}]
    gone = [{"id": "g0", "reason": "tier_limit"}]
    await memory.publish(plan({"moves": down, "archived": gone}, now, part=1, parts=2))
    made = await memory.tiers.consolidate(*A, now=now)
    assert moves(made) == {"f1": ("medium", "ttl"), "f2": ("medium", "ttl")}
    assert archived(made) == [("g1", "tier_limit"), ("g2", "tier_limit"), ("g3", "tier_limit")]
    (summary,) = made.summaries
    assert await tiers_of(memory) == {"f0": "medium", "f1": "medium", "f2": "medium", summary: None}
    assert (await memory.tiers.stats(*A)).planned_at == now


async def test_a_later_plan_follows_the_rest_of_an_interrupted_one(memory: Memory) -> None:
    now = T0 + 2 * DAY

    await memory.publish_many([kept(f"f{number}", "fast") for number in range(2)])
    down = [{"id": "f0", "from": "fast", "to": "medium", "reason": "ttl"}]
    await memory.publish(plan({"moves": down}, now, part=1, parts=2))
    made = await memory.tiers.consolidate(*A, now=now + DAY)
    assert [(each.id, each.to) for each in made.moves] == [("f1", "medium"), ("f0", "slow"), ("f1", "slow")]
    assert (await memory.tiers.stats(*A)).planned_at == now + DAY


async def test_clocks_that_go_backwards_move_nothing_twice(memory: Memory) -> None:
    await memory.publish_many([kept("e", "slow"), read(T0, e=3), kept("f", "fast", T0 + DAY)])
    made = await memory.tiers.consolidate(*A, now=T0)
    assert moves(made) == {"e": ("medium", "access")}
    again = await memory.tiers.consolidate(*A, now=T0 - 400 * DAY)
    assert (again.moves, again.archived, again.position) == ((), (), None)


async def test_two_plans_at_once_have_one_effect(memory: Memory) -> None:
    await memory.publish(configured(max={"glacial": 1}))
    await memory.publish_many([kept(f"f{number}", "fast") for number in range(4)])
    await memory.publish_many([kept(f"g{number}", "glacial", importance=number / 10) for number in range(4)])
    made = await gather_twice(memory)
    assert sum(each.demoted for each in made) == 4
    assert sum(len(each.archived) for each in made) == 3
    (summary,) = {id_ for each in made for id_ in each.summaries}
    demoted = {f"f{number}": "medium" for number in range(4)}
    assert await tiers_of(memory) == {**demoted, "g3": "glacial", summary: None}


async def gather_twice(memory: Memory) -> list[Consolidation]:
    """Two plans of which both were made before either was published."""
    import asyncio

    from recallog.models.tiers import commands as tiers
    from recallog_schemas.models.tiers.views import Consolidation as Made

    access = memory.tiers._access
    both = asyncio.Barrier(2)
    append = access.append

    async def together(events: Sequence[Event], *, keys: Collection[str]) -> list[Position]:
        if events[0].kind == "memory.consolidated":
            await both.wait()
        return await append(events, keys=keys)

    access.append = together  # type: ignore[method-assign]
    try:
        made: list[Made] = await asyncio.gather(
            *(tiers.consolidate(access, *A, T0 + 10 * timedelta(minutes=1)) for _ in range(2))
        )
    finally:
        access.append = append  # type: ignore[method-assign]
    return made


# Finding entries without an index, and reads that count.


async def test_words_are_compared_without_an_index_and_what_is_shown_counts_as_read(
    memory: Memory, checks: list[Check]
) -> None:
    await memory.publish_many(
        [
            kept("mill", "slow", text="The mill grinds rye."),
            kept("oven", "fast", text="The oven is cold."),
            kept("fact", None, text="The mill grinds rye well."),
            kept("other", "fast", agent="b", text="The mill is far."),
        ]
    )
    found = await memory.tiers.retrieve(*A, "the mill grinds")
    assert [(hit.entry.id, hit.score, hit.similarity) for hit in found.hits] == [("fact", 0.6, 1.0), ("mill", 0.6, 1.0)]
    assert (found.relevance_by, found.now) == ("words", T0)
    assert (await memory.tiers.retrieve(*A, "nothing like that")).hits == ()
    await memory.tiers.retrieve(*A, "the mill grinds", as_of="0:3")
    await memory.publish(outcome("oven"))

    async def check(memory: Memory) -> object:
        stats = await memory.tiers.stats(*A)
        assert (stats.lookups, stats.hit_rate) == (2, 0.5)
        entry = (await memory.tiers.entry(*A, "mill")).found
        assert entry is not None
        assert (entry.accesses, entry.accesses_since_move, entry.last_access) == (1, 1, T0)
        return entry

    checks.append(check)
    found = await events_of(memory)
    assert [each.kind for each in found].count("memory.accessed") == 1


async def test_a_read_just_before_a_plan_counts_for_it(memory: Memory) -> None:
    await memory.publish(kept("mill", "slow", text="The mill grinds rye."))
    for _ in range(3):
        await memory.tiers.retrieve(*A, "mill")
    assert moves(await memory.tiers.consolidate(*A, now=T0)) == {"mill": ("medium", "access")}


async def test_the_past_has_the_tiers_of_then(memory: Memory) -> None:
    before = await memory.publish(kept("e", "slow"))
    await memory.publish(changed("tier_changed", entry="e", to="fast", at=T0 + HOUR))
    for as_of in (before, T0 + HOUR / 2):
        assert (await memory.tiers.stats(*A, as_of=as_of)).tier_counts["slow"] == 1
        entry = (await memory.tiers.entry(*A, "e", as_of=as_of)).found
        assert entry is not None
        assert entry.entry.tier == "slow"


# What people read.


async def test_the_numbers_are_shown_in_words(memory: Memory) -> None:
    assert (await memory.tiers.stats(*A)).format() == (
        "entries: 0 fast, 0 medium, 0 slow, 0 glacial\n"
        "moves in the last hour: 0 up, 0 down\n"
        "archived so far: 0 unread for too long, 0 beyond the maximum of their tier\n"
        "lookups: 0, of which 0% found something\n"
        "mean surprise: 0.000\n"
        "last plan: none yet\n"
        "next plan: none, since no entry carries a tier"
    )
    await memory.publish_many([kept("e", "slow", priority="pinned"), read(T0 + HOUR, e=4), outcome("e", success=True)])
    assert (await memory.tiers.entry(*A, "e", now=T0 + HOUR)).format() == (
        "slow 0.996 e fact [pinned] What e says.\n"
        "importance: 0.996 now, 1.000 without decay\n"
        "reads: 4, of which 4 since its last move; the last one at 2026-03-01 01:00 UTC\n"
        "outcomes since its last move: 1 of 1 were successes; surprise: 0.000\n"
        "No plan demotes or archives it: it is pinned or red-lined."
    )
    await memory.tiers.consolidate(*A, now=T0 + HOUR)
    shown = (await memory.tiers.stats(*A, now=T0 + 2 * HOUR)).format().splitlines()
    assert shown[:2] == ["entries: 0 fast, 1 medium, 0 slow, 0 glacial", "moves in the last hour: 1 up, 0 down"]
    assert shown[5:] == [
        "last plan: at 2026-03-01 01:00 UTC",
        "next plan: due at 2026-03-01 02:00 UTC (it is 2026-03-01 02:00 UTC now)",
    ]
    assert "promoted: 2026-03-01 01:00 UTC" in (await memory.tiers.entry(*A, "e")).format()


async def test_a_space_gives_entries_a_tier_and_leaves_summaries_without(memory: Memory, checks: list[Check]) -> None:
    await memory.publish(kept("before", None, text="The mill is old."))
    await memory.configure_space("s", tiers={"default": "medium"})
    await memory.publish_many([kept("plain", None, text="The mill grinds."), kept("fast", "fast", text="It is hot.")])
    await memory.publish(kept("sum", None, text="Two mills.", type="summary"))
    await memory.long_term.retain(*A, "Rye is dear.", entry_id="rye")
    await memory.long_term.record_experience(*A, "bake", "baked rye")
    await memory.configure_space("s", tiers=None)
    await memory.publish(kept("after", None, text="The mill is sold."))

    async def check(memory: Memory) -> object:
        found = {each.id: each.tier for each in (await memory.long_term.list(*A)).entries}
        tiers = {"before": None, "plain": "medium", "fast": "fast", "sum": None, "rye": "medium", "after": None}
        assert {id_: found[id_] for id_ in tiers} == tiers
        assert (await memory.tiers.stats(*A)).tier_counts == {"fast": 1, "medium": 2, "slow": 0, "glacial": 0}
        return found

    checks.append(check)
    await check(memory)


async def test_entries_without_a_tier_rank_with_those_of_slow(memory: Memory) -> None:
    text = "The mill grinds rye."
    tiers = {"glacial": "glacial", "slow": "slow", "none": None, "medium": "medium"}
    await memory.publish_many([kept(id_, tier, text=f"{text} {id_}") for id_, tier in tiers.items()])
    for strategy in ("weighted", "fast_first"):
        hits = (await memory.tiers.retrieve(*A, text, strategy=strategy)).hits
        assert [(hit.entry.id, hit.entry.tier) for hit in hits] == [
            (id_, tiers[id_]) for id_ in ("medium", "none", "slow", "glacial")
        ]
    only = await memory.tiers.retrieve(*A, text, tiers=["slow"])
    assert [hit.entry.id for hit in only.hits] == ["slow"]
    assert (await memory.tiers.retrieve(*A, text, limit=2)).format().splitlines()[1].startswith("- 0.600 none")


async def test_what_is_not_found_is_said_with_what_to_try(memory: Memory) -> None:
    await memory.publish(kept("e", None))
    assert (await memory.tiers.retrieve(*A, "mill")).format() == (
        "No entry fits the question. Only words were compared: no index has answered. Try a lower min_similarity, or "
        "all tiers; `recall` also finds events."
    )
    assert (await memory.tiers.entry(*A, "e")).format() == (
        "No entry with this id carries a tier, is live, and may be read by a. If it has no tier or is archived: "
        "recallog long-term get s a ID"
    )


# Reactors.


async def test_a_plan_is_due_an_interval_after_the_last_one_by_the_time_of_the_space(
    memory: Memory, checks: list[Check]
) -> None:
    await memory.publish(kept("e", "fast"))
    stats = await memory.tiers.stats(*A)
    assert stats.due_at == T0 + HOUR
    assert (await memory.react()).items == ()
    await memory.publish(event("clock.ticked", space="s", agent="clock", at=T0 + HOUR, payload={}))
    (pending,) = (await memory.pending("s")).items
    assert (pending.kind, pending.agent) == (CONSOLIDATION, "a")
    (answer,) = (await memory.react()).items
    assert (answer.kind, answer.trigger) == (triggers.DONE, consolidation_of(*A, 0).id)
    assert await tiers_of(memory) == {"e": "medium"}
    assert (await memory.react()).items == ()

    async def check(memory: Memory) -> object:
        stats = await memory.tiers.stats(*A)
        assert (stats.planned_at, stats.due_at, stats.now) == (T0 + HOUR, T0 + 2 * HOUR, T0 + HOUR)
        return None

    checks.append(check)
    found = await events_of(memory)
    (made,) = (each for each in found if each.kind == "memory.consolidated")
    assert (made.at, made.payload["ordinal"], made.payload["constants"]["ttl"]["fast"]) == (T0 + HOUR, 0, 60.0)


async def test_a_plan_is_due_at_once_when_a_tier_has_too_many(memory: Memory) -> None:
    await memory.publish(configured(max={"fast": 2}))
    await memory.publish_many([kept(f"e{number}", "fast", importance=0.9 + number / 100) for number in range(2)])
    assert (await memory.react()).items == ()
    await memory.publish(kept("more", "fast"))
    assert [each.kind for each in (await memory.react()).items] == [triggers.DONE]
    assert await tiers_of(memory) == {"e1": "fast", "more": "fast"}
    assert (await memory.react()).items == ()


async def test_an_entry_from_a_fast_clock_does_not_delay_the_plan(memory: Memory) -> None:
    fast = T0.replace(year=2099)
    await memory.publish_many([configured(max={"fast": 1}), kept("e1", "fast"), kept("e2", "fast", fast)])
    assert (await memory.tiers.stats(*A)).due_at == T0 + HOUR
    await memory.publish(kept("e3", "fast", T0 + timedelta(minutes=1)))
    assert (await memory.tiers.stats(*A)).due_at == T0 + timedelta(minutes=1)
    assert [each.kind for each in (await memory.react()).items] == [triggers.DONE]


FAST_CLOCK = T0.replace(year=2099)


def ticked(at: datetime) -> Event:
    return event("clock.ticked", space="s", agent="clock", at=at, payload={})


async def test_a_first_entry_from_a_fast_clock_delays_the_plan_by_a_day_at_most(memory: Memory) -> None:
    await memory.publish_many([kept("e1", "fast", FAST_CLOCK), kept("e2", "fast", T0), configured()])
    assert (await memory.tiers.stats(*A)).due_at == T0 + DAY + HOUR
    await memory.publish(ticked(T0 + 30 * HOUR))
    assert [each.kind for each in (await memory.react()).items] == [triggers.DONE]
    assert (await tiers_of(memory))["e2"] == "medium"


async def test_an_entry_about_the_past_makes_no_plan_due(memory: Memory) -> None:
    # Each of them once made a plan due, by a time years ago: an import aged the entries by a tier for each.
    await memory.publish(kept("e1", "fast"))
    for number in range(3):
        await memory.long_term.retain(*A, f"The mill had {number} floors.", at=T0.replace(year=1900), tier="glacial")
    stats = await memory.tiers.stats(*A)
    assert (stats.now, stats.due_at) == (T0, T0 + HOUR)
    assert (await memory.react()).items == ()
    assert (await tiers_of(memory))["e1"] == "fast"


async def test_a_fast_clock_makes_no_plan(memory: Memory) -> None:
    await memory.publish_many([kept("e1", "fast"), ticked(FAST_CLOCK)])
    assert (await memory.react()).items == ()
    assert (await memory.tiers.stats(*A)).now == T0


async def test_plans_go_on_after_one_at_a_time_far_ahead(memory: Memory) -> None:
    await memory.publish_many([kept("e1", "fast"), kept("e2", "glacial"), read(T0, e2=3)])
    await memory.tiers.consolidate(*A, now=FAST_CLOCK)
    assert await tiers_of(memory) == {"e1": "medium", "e2": "slow"}
    assert (await memory.tiers.stats(*A)).due_at == FAST_CLOCK + HOUR
    await memory.publish(kept("e3", "slow"))
    assert (await memory.tiers.stats(*A)).due_at == T0 + DAY + HOUR
    await memory.publish_many([read(T0, e2=3), ticked(T0 + DAY + HOUR)])
    assert [each.kind for each in (await memory.react()).items] == [triggers.DONE]
    # The promotion "of 2099" keeps none from being promoted for decades.
    assert await tiers_of(memory) == {"e1": "slow", "e2": "medium", "e3": "glacial"}
    assert (await memory.tiers.stats(*A)).due_at == T0 + DAY + 2 * HOUR


async def test_what_the_memory_writes_by_itself_and_clocks_a_little_slow_move_no_plan(memory: Memory) -> None:
    await memory.publish(kept("e1", "fast", T0 + DAY))
    due_at = T0 + DAY + HOUR
    await memory.publish(kept("e2", "slow", T0 + HOUR))
    await memory.publish(closing(triggers.DONE, T0 - 9 * DAY, events=0).model_copy(update={"agent": "a"}))
    assert (await memory.tiers.stats(*A)).due_at == due_at + HOUR
    await memory.publish(read(T0 - 9 * DAY, e1=1))
    assert (await memory.tiers.stats(*A)).due_at == due_at + HOUR


def closing(kind: str, at: datetime, **payload: Any) -> Event:
    trigger = consolidation_of(*A, 0)
    closed = event(kind, space="s", agent="a", at=at, payload={"trigger": trigger.id, **payload})
    return closed.model_copy(update={"id": trigger.answer_id, "causation_id": trigger.id})


async def test_after_a_failed_plan_the_next_one_is_due_an_interval_later(memory: Memory) -> None:
    await memory.publish_many([kept("e", "fast"), closing(triggers.FAILED, T0 + 2 * HOUR, reason="it rained")])
    stats = await memory.tiers.stats(*A)
    assert (stats.due_at, stats.planned_at) == (T0 + 3 * HOUR, None)


async def test_a_plan_that_a_reactor_has_closed_is_not_continued(memory: Memory) -> None:
    await memory.publish_many([kept(f"f{number}", "fast") for number in range(2)])
    down = [{"id": "f0", "from": "fast", "to": "medium", "reason": "ttl"}]
    now = T0 + timedelta(minutes=2)
    await memory.publish_many([plan({"moves": down}, now, part=1, parts=2), closing(triggers.DONE, now, events=1)])
    assert (await memory.tiers.stats(*A)).due_at == now + HOUR
    assert moves(await memory.tiers.consolidate(*A, now=now)) == {"f1": ("medium", "ttl")}


async def test_settings_move_the_next_plan(memory: Memory) -> None:
    await memory.publish_many([kept("e", "fast"), configured(consolidate_every=60)])
    assert (await memory.tiers.stats(*A)).due_at == T0 + timedelta(minutes=1)
    await memory.publish(event("agent.configured", space="s", agent="a", at=T0, payload={"tiers": None}))
    assert (await memory.tiers.stats(*A)).due_at == T0 + HOUR


async def test_a_reactor_summarises_what_a_plan_has_archived(memory: Memory) -> None:
    await memory.publish(configured(max={"slow": 0}))
    await memory.publish_many([kept(f"e{number}", "slow", T0 + number * HOUR) for number in range(3)])
    assert [each.kind for each in (await memory.react()).items] == [triggers.DONE]
    assert len((await memory.react()).items) == 1
    assert (await memory.react()).items == ()
    (summary,) = (await memory.long_term.list(*A)).entries
    assert (summary.type, set(summary.sources), summary.importance) == ("summary", {"e0", "e1", "e2"}, 1.0)
    assert summary.at == T0 + 2 * HOUR


async def test_a_summary_of_private_entries_is_private_where_the_space_shares_entries(memory: Memory) -> None:
    shared = {"shared_kinds": ["memory.retained"]}
    await memory.publish_many(
        [
            event("space.configured", space="s", agent="a", at=T0, payload=shared),
            configured(max={"slow": 0, "glacial": 0}),
            *(kept(f"shared-{number}", "slow") for number in range(2)),
        ]
    )
    await memory.tiers.consolidate(*A, now=T0)
    private = kept("private", "glacial").model_copy(update={"audience": ("a",)})
    await memory.publish_many([private, kept("shared", "glacial")])
    await memory.tiers.consolidate(*A, now=T0)
    hits = (await memory.recall("s", "b", "What private says.", types=["summary"])).hits
    assert [hit.text for hit in hits] == ["2 memories: What shared-0 says. · What shared-1 says."]


async def test_a_summary_is_made_again_when_one_of_its_sources_is_forgotten(memory: Memory) -> None:
    await memory.publish(configured(max={"slow": 0}))
    await memory.publish_many([kept(f"e{number}", "slow") for number in range(3)])
    (summary,) = (await memory.tiers.consolidate(*A, now=T0)).summaries
    await memory.long_term.forget(*A, ["e1"])
    found = (await memory.long_term.get(*A, summary)).entry
    assert found is not None
    assert found.status == "retracted"
    (pending,) = (await memory.pending("s")).items
    assert (pending.kind, pending.events) == (SUMMARY, 2)
    assert len((await memory.react()).items) == 1
    (again,) = (await memory.long_term.list(*A)).entries
    assert (again.sources, again.text) == (("e0", "e2"), "2 memories: What e0 says. · What e2 says.")
    await memory.long_term.retract(*A, summary)
    await memory.long_term.forget(*A, ["e0"])
    assert (await memory.react()).items == ()
    assert (await memory.long_term.list(*A)).entries == ()


async def test_a_summary_of_what_was_forgotten_meanwhile_is_not_written(memory: Memory) -> None:
    await memory.publish(configured(max={"slow": 0}))
    await memory.publish_many([kept(f"e{number}", "slow") for number in range(2)])
    await memory.react()
    await memory.long_term.forget(*A, ["e1"])
    assert [each.text for each in (await memory.react()).items] == ["0 events"]
    assert await tiers_of(memory) == {}


async def test_an_agent_with_many_archived_entries_gets_several_summaries(memory: Memory) -> None:
    await memory.publish(configured(max={"slow": 0}))
    ids = [f"e{number:03d}" for number in range(401)]
    await memory.publish_many([kept(id_, "slow") for id_ in ids])
    made = await memory.tiers.consolidate(*A, now=T0)
    assert [each.id for each in made.archived] == ids
    found = (await memory.long_term.list(*A)).entries
    assert sorted(each.id for each in found) == sorted(made.summaries)
    assert sorted(source for each in found for source in each.sources) == ids
    assert {len(each.sources) for each in found} <= {44, 45, 33, 34}


def test_the_thresholds_are_those_of_the_memory_model() -> None:
    assert rules.TIERS == ("fast", "medium", "slow", "glacial")
    assert [rules.IMPORTANCE[tier] for tier in rules.TIERS] == [0.8, 0.5, 0.3, 0.0]


class Taking(MemoryLedger):
    """Somebody else writes an event with the id that closes the summary of each plan."""

    async def append(self, events: Sequence[Event], appended: Sequence[int] | None = None) -> list[Position]:
        positions = await super().append(events)
        for each in events:
            if each.kind == "memory.consolidated":
                trigger = triggers.caused_by(SUMMARY, each.space, each.agent, "0", each.id)
                await super().append([event(space=each.space, agent="b", id=trigger.answer_id)])
        return positions


@pytest.mark.parametrize("unique_ids", [True, False])
def test_a_foreign_event_with_the_id_of_the_answer_neither_stops_a_plan_nor_its_summary(unique_ids: bool) -> None:
    async def work() -> None:
        ledger = Taking(unique_ids=unique_ids)
        async with Memory(assemble(ledger, lambda namespace: MemoryStore())) as memory:
            await memory.publish(configured(max={"glacial": 0}))
            await memory.publish_many([kept(f"g{number}", "glacial") for number in range(2)])
            made = await memory.tiers.consolidate(*A, now=T0)
            assert len(made.archived) == 2
            (summary,) = made.summaries
            assert await tiers_of(memory) == {summary: None}
            assert not await memory.pending()
            assert not (await memory.react()).items

    run(work())
