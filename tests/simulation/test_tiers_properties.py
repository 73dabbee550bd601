"""Random lives of entries with tiers: each plan is that of an oracle, made at once, twice, or in parts."""

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog import Event, Memory
from support.entries_oracle import ExpectedEntries, Fields, expect, micros
from support.events import run
from support.plans_oracle import ExpectedPlan, expected_plan

pytestmark = pytest.mark.models("tiers")

T0 = datetime(2001, 3, 1, tzinfo=UTC)  # the lives that follow end before today
TIERS = ("fast", "medium", "slow", "glacial")
SEEDS = st.integers(0, 2**32)


def random_settings(rng: random.Random) -> Fields:
    chosen: Fields = {
        "max": {tier: rng.randrange(6) for tier in TIERS if rng.random() < 0.5},
        "ttl": {tier: rng.choice((30, 7_200, 200_000)) for tier in TIERS if rng.random() < 0.3},
        "half_life": {tier: rng.choice((0.5, 30, 500)) for tier in TIERS if rng.random() < 0.3},
        "promotion_access": rng.choice((1, 3, 10)),
    }
    return {name: value for name, value in chosen.items() if rng.random() < 0.6}


class Life:
    """The events of some entries, in the order of time except for some clocks that are behind."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.now, self.ids = rng, T0, ["never"]

    def event(self, kind: str, **payload: Any) -> Event:
        late = timedelta(seconds=self.rng.choice((0, 0, 0, 5_000)))
        return Event(space="s", agent="a", kind=kind, at=self.now - late, payload=payload)

    def next(self) -> list[Event]:
        rng = self.rng
        self.now += timedelta(seconds=rng.choice((1, 50, 3_000, 30_000, 400_000)), microseconds=rng.randrange(1_000))
        return [self.one() for _ in range(rng.randrange(1, 12))]

    def one(self) -> Event:
        rng, ids = self.rng, self.rng.choices(self.ids, k=3)
        draw = rng.random()
        if draw < 0.5:
            made = self.event("memory.retained", text=f"Entry {len(self.ids)}.", importance=rng.random())
            payload = made.payload | {"tier": rng.choice((*TIERS, None)), "red_line": rng.random() < 0.1}
            self.ids.append(made.id)
            return made.model_copy(update={"payload": payload})
        if draw < 0.7:
            return self.event("memory.accessed", counts=dict.fromkeys(ids, rng.choice((1, 2))), hits=1)
        if draw < 0.9:
            success = rng.choice((True, True, False, None))
            return self.event("memory.outcome_reported", entries=ids, predicted=0, actual=rng.random(), success=success)
        if draw < 0.95:
            return self.event("memory.tier_changed", entry=ids[0], to=rng.choice(TIERS))
        return self.event("memory.updated", entry=ids[0], importance=rng.random(), red_line=rng.random() < 0.2)


async def expected_of(memory: Memory) -> ExpectedEntries:
    values = [data async for batch in memory.admin.records() for _, data in batch.records]
    return expect([json.loads(data) for data in values])


async def check_tiers(memory: Memory, expected: ExpectedEntries) -> None:
    shown = (await memory.long_term.list("s", "a", limit=1_000)).entries
    live = {entry.id: entry for entry in expected.live("s", "a")}
    assert {each.id: each.tier for each in shown} == {
        id_: row.tier if (row := expected.tiers.rows.get(("s", id_))) is not None else None for id_ in live
    }


async def check_summaries(memory: Memory, plan: ExpectedPlan, summaries: tuple[str, ...]) -> None:
    """There is one summary of what was archived, if that was more than one entry."""
    gone = [id_ for id_, _ in plan.archived]
    assert len(summaries) == (len(gone) > 1)
    for id_ in summaries:
        entry = (await memory.long_term.get("s", "a", id_)).entry
        assert entry is not None
        assert (entry.type, entry.tier, list(entry.sources)) == ("summary", None, gone)


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_plans_equal_those_of_the_oracle(seed: int) -> None:
    rng = random.Random(seed)
    life, given_settings = Life(rng), random_settings(rng)

    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish(life.event("agent.configured", tiers=given_settings))
            for _ in range(rng.randrange(1, 12)):
                await memory.publish_many(life.next())
                before = await expected_of(memory)
                at = life.now + timedelta(seconds=rng.choice((0, 0, -100_000, 90_000)))
                plan = expected_plan(before, "s", "a", micros(at.isoformat()), given_settings)
                made = await memory.tiers.consolidate("s", "a", now=at)
                assert {move.id: (move.to, move.reason) for move in made.moves} == plan.moves
                assert [(each.id, each.reason) for each in made.archived] == plan.archived
                await check_summaries(memory, plan, made.summaries)
                await check_tiers(memory, await expected_of(memory))
            events = len([record async for batch in memory.admin.records() for record in batch.records])
            assert (await memory.admin.rebuild("views")).ok
            await check_tiers(memory, await expected_of(memory))
            assert events == len([record async for batch in memory.admin.records() for record in batch.records])

    run(work())


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_a_plan_in_parts_or_made_twice_has_the_effect_of_one(seed: int) -> None:
    """Some parts of the plan are written, as by a process that died. The next call writes the rest."""
    rng = random.Random(seed)
    life, given_settings = Life(rng), random_settings(rng)

    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish(life.event("agent.configured", tiers=given_settings))
            for _ in range(rng.randrange(1, 8)):
                await memory.publish_many(life.next())
            expected = await expected_of(memory)
            now = life.now.isoformat()
            plan = expected_plan(expected, "s", "a", micros(now), given_settings)
            tier_of = {key[1]: row.tier for key, row in expected.tiers.rows.items()}
            known = {
                key[1]: row.changes + expected.uses.get(key, (0, 0, 0))[0] for key, row in expected.tiers.rows.items()
            }
            moves = [
                {"id": id_, "from": tier_of[id_], "to": to, "reason": why, "changes": known[id_]}
                for id_, (to, why) in plan.moves.items()
            ]
            archived = [{"id": id_, "reason": why, "changes": known[id_]} for id_, why in plan.archived]
            some = {"moves": [move for move in moves if rng.random() < 0.5]}
            some["archived"] = [each for each in archived if rng.random() < 0.5]
            head = {"now": now, "ordinal": 0, "part": 1, "parts": 2}
            part = life.event("memory.consolidated", **head, **some)
            for _ in range(rng.choice((1, 2))):  # by two processes
                await memory.publish(part.model_copy(update={"id": f"{rng.random()}"}))
            await memory.tiers.consolidate("s", "a", now=life.now)
            after = await expected_of(memory)
            for id_, (to, _) in plan.moves.items():
                assert after.tiers.rows["s", id_].tier == to
            gone = {each.id for each in after.entries.values() if each.status == "archived"}
            assert gone == {id_ for id_, _ in plan.archived}
            untouched = tier_of.keys() - plan.moves.keys() - gone
            assert all(after.tiers.rows["s", id_].tier == tier_of[id_] for id_ in untouched)
            await check_tiers(memory, after)

    run(work())
