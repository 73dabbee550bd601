"""Archived entries come back: by `long_term.restore`, by `tiers.change`, and by events of other writers."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from recallog import Event, InvalidArgument, Memory, Position, Refused
from recallog.composition import assemble
from recallog_projections.stores.memory import MemoryStore
from recallog_schemas import codec
from recallog_schemas.models.long_term.views import EntryView
from recallog_streams.ledgers.memory import MemoryLedger
from support.events import run
from support.twice import Check, events_of
from support.twice import memory as memory
from unit.test_tiers import DAY, HOUR, T0, A, changed, kept, outcome, read, tiers_of
from unit.test_tiers import checks as checks

pytestmark = pytest.mark.models("tiers")

WEEK = 7 * DAY


async def of_now(memory: Memory, id_: str) -> EntryView | None:
    return (await memory.long_term.get(*A, id_)).entry


async def status(memory: Memory, id_: str) -> str | None:
    found = await of_now(memory, id_)
    return None if found is None else found.status


def back(id_: str, at: datetime = T0, **payload: Any) -> Event:
    return changed("restored", at, entry=id_, **payload)


async def test_a_restored_entry_is_live_in_its_former_form(memory: Memory, checks: list[Check]) -> None:
    made = await memory.long_term.retain(*A, "Rye rests.", type="lesson", priority="pinned", metadata={"from": "mill"})
    id_ = made.id or ""
    await memory.long_term.update(*A, id_, text="Rye rests for an hour.")
    before = await of_now(memory, id_)
    assert (await memory.long_term.archive(*A, id_, reason="summer")).ids == (id_,)
    assert (await status(memory, id_), await tiers_of(memory)) == ("archived", {})
    assert (await memory.recall(*A, "rye")).hits == ()
    restored = await memory.long_term.restore(*A, id_, reason="winter")
    assert (restored.changed, restored.ids, restored.refused) == (True, (id_,), {})
    assert await of_now(memory, id_) == before
    assert [hit.text for hit in (await memory.recall(*A, "rye")).hits] == ["Rye rests for an hour."]
    assert (await memory.long_term.stats(*A)).pinned == (id_,)
    noted = [(each.operation, each.reason) for each in (await memory.long_term.audit(*A)).changes]
    assert noted[-2:] == [("archived", "summer"), ("restored", "winter")]
    checks.append(lambda memory: of_now(memory, id_))


async def test_what_needs_no_change_writes_nothing(memory: Memory) -> None:
    await memory.publish(kept("e", "slow"))
    live = await memory.long_term.restore(*A, "e")
    assert (live.changed, live.refused, live.position) == (False, {"e": "live"}, None)
    await memory.long_term.archive(*A, "e")
    again = await memory.long_term.archive(*A, "e")
    assert (again.changed, again.refused, again.position) == (False, {"e": "archived"}, None)
    await memory.tiers.change(*A, "e", "fast")
    same = await memory.tiers.change(*A, "e", "fast")
    assert (same.changed, same.refused, same.position) == (False, {"e": "same_tier"}, None)
    assert len(await events_of(memory)) == 3


async def test_a_call_with_an_id_can_be_repeated(memory: Memory) -> None:
    await memory.publish(kept("e", "slow"))
    calls: Sequence[Callable[[], Awaitable[Any]]] = (
        lambda: memory.long_term.archive(*A, "e", event_id="1"),
        lambda: memory.long_term.restore(*A, "e", event_id="2"),
        lambda: memory.tiers.change(*A, "e", "medium", event_id="3"),
        lambda: memory.tiers.report_outcome(*A, ["e"], success=True, event_id="4"),
        lambda: memory.long_term.grant(*A, 5, event_id="5"),
    )
    for call in calls:
        first, second = await call(), await call()
        shown = {"position", "checkpoint"}
        assert first.model_dump(exclude=shown) == second.model_dump(exclude=shown)
    assert (await memory.long_term.stats(*A)).balance == 5
    assert len(await events_of(memory)) == 6


@pytest.mark.parametrize(
    ("events", "reason", "why"),
    [
        ([changed("retracted", entry="e")], "retracted", "retain a new one"),
        ([changed("archived", entry="e"), changed("erased", entries=["e"])], "erased", "retain a new one"),
        ([changed("archived", entry="e"), kept("twin", None, text="What e says.")], "equal", "archive or retract"),
        (
            [
                changed("updated", entry="e", priority="pinned"),
                changed("archived", entry="e"),
                *(kept(f"pin-{n}", None, priority="pinned") for n in range(5)),
            ],
            "pins",
            "Give one of them another priority first",
        ),
        (
            [kept("made", None, sources=["e"]), changed("archived", entry="made"), changed("erased", entries=["e"])],
            "source_erased",
            "was made from one that is erased",
        ),
        (
            [changed("transferred", entries=["e"], to="b"), changed("archived", entry="e", agent="b")],
            "not_owner",
            "owns no",
        ),
    ],
    ids=["retracted", "erased", "equal", "pins", "source_erased", "not_owner"],
)
@pytest.mark.parametrize("by", ["restore", "change"])
async def test_what_cannot_be_restored_is_refused_and_stays_as_it_is(
    memory: Memory, checks: list[Check], events: Sequence[Event], reason: str, why: str, by: str
) -> None:
    await memory.publish_many([kept("e", None), *events])
    id_ = "made" if reason == "source_erased" else "e"
    before = await of_now(memory, id_)
    with pytest.raises(Refused, match=why) as caught:
        await (memory.long_term.restore(*A, id_) if by == "restore" else memory.tiers.change(*A, id_, "fast"))
    assert caught.value.reason == reason
    assert await of_now(memory, id_) == before
    checks.append(lambda memory: of_now(memory, id_))
    assert len(await events_of(memory)) == 1 + len(events)


async def test_a_restored_entry_has_its_tier_and_does_not_expire_at_once(memory: Memory) -> None:
    await memory.publish_many(
        [kept("e", "slow"), changed("tier_changed", entry="e", to="glacial"), outcome("e", actual=1)]
    )
    planned = await memory.tiers.consolidate(*A, now=T0 + WEEK + HOUR)
    assert [(each.id, each.reason) for each in planned.archived] == [("e", "expired")]
    later = T0 + 2 * WEEK
    await memory.publish(back("e", later))
    found = (await memory.tiers.entry(*A, "e", now=later)).found
    assert found is not None
    assert (found.entry.tier, found.importance, found.surprise, found.reports) == ("glacial", 1.0, 0.15, 0)
    assert (await memory.tiers.consolidate(*A, now=later + HOUR)).archived == ()
    assert (await memory.tiers.stats(*A)).tier_counts["glacial"] == 1
    expired = await memory.tiers.consolidate(*A, now=later + WEEK + HOUR)
    assert [each.id for each in expired.archived] == ["e"]


async def test_an_entry_that_its_owner_gave_a_tier_has_that_one_again(memory: Memory) -> None:
    await memory.publish_many([kept("e", None), changed("tier_changed", entry="e", to="medium")])
    await memory.publish_many([changed("archived", entry="e"), back("e")])
    assert await tiers_of(memory) == {"e": "medium"}


async def test_a_change_of_the_tier_brings_an_archived_entry_back_in_that_tier(memory: Memory) -> None:
    await memory.publish_many([kept("aging", "slow"), kept("plain", None)])
    await memory.publish_many([changed("archived", entry="aging"), changed("archived", entry="plain")])
    await memory.publish(changed("tier_changed", T0 + DAY, entry="aging", to="fast"))
    assert (await memory.tiers.change(*A, "plain", "slow", reason="needed")).ids == ("plain",)
    assert await tiers_of(memory) == {"aging": "fast", "plain": "slow"}
    found = (await memory.tiers.entry(*A, "aging", now=T0 + DAY)).found
    assert found is not None
    assert found.promoted_at == T0 + DAY
    noted = [(each.operation, each.id, each.reason) for each in (await memory.long_term.audit(*A)).changes]
    assert noted[-2:] == [("restored", "aging", None), ("restored", "plain", "needed")]


def test_an_event_that_states_no_rule_restores_nothing_as_it_did_when_it_was_written() -> None:
    async def work() -> None:
        ledger = MemoryLedger()
        old = changed("tier_changed", entry="e", to="fast")
        async with Memory(assemble(ledger, lambda _: MemoryStore())) as memory:
            await ledger.append([kept("e", "slow"), changed("archived", entry="e"), old])
            assert await status(memory, "e") == "archived"
            assert (await memory.long_term.audit(*A)).changes[-1].operation == "archived"
            await memory.publish(old)  # a repeat: the first one counts
            assert await tiers_of(memory) == {}

    run(work())


async def test_a_plan_that_was_made_before_leaves_a_restored_entry_as_it_is(memory: Memory) -> None:
    await memory.publish_many([kept("e", "slow"), changed("archived", entry="e"), back("e")])
    move = {"id": "e", "from": "slow", "to": "glacial", "reason": "ttl", "changes": 1}
    plan: dict[str, Any] = {"now": (T0 + DAY).isoformat(), "ordinal": 0, "moves": [move]}
    await memory.publish(changed("consolidated", T0 + DAY, **plan))
    assert await tiers_of(memory) == {"e": "slow"}


async def test_what_it_was_read_and_reported_counts_when_it_is_restored(memory: Memory) -> None:
    await memory.publish_many([kept("e", "slow"), read(T0, e=2), outcome("e", success=False)])
    await memory.publish_many([changed("archived", entry="e"), read(T0, e=5), back("e")])
    found = (await memory.tiers.entry(*A, "e", now=T0)).found
    assert found is not None
    assert (found.accesses, found.accesses_since_move, found.undecayed) == (2, 0, 0.9)


async def test_the_past_has_the_entry_as_it_was_then(memory: Memory) -> None:
    events = [kept("e", "slow"), changed("archived", T0 + HOUR, entry="e"), back("e", T0 + 2 * HOUR)]
    positions = [await memory.publish(each) for each in events]

    async def shown(as_of: Position | datetime) -> list[str]:
        hits = (await memory.recall(*A, "What e says", as_of=as_of)).hits
        return [hit.event.id for hit in hits]

    assert [await shown(as_of) for as_of in positions] == [["e"], [], ["e"]]
    assert await shown(T0 + timedelta(minutes=90)) == []


async def test_an_erased_entry_is_absent_from_the_past_in_which_it_was_restored(memory: Memory) -> None:
    await memory.publish_many([kept("e", "slow"), changed("archived", entry="e")])
    restored = await memory.publish(back("e"))
    await memory.long_term.forget(*A, ["e"])
    assert (await memory.recall(*A, "What e says", as_of=restored)).hits == ()
    await memory.publish(back("e"))
    assert await tiers_of(memory) == {}


async def test_an_outcome_is_reported_for_entries_that_age(memory: Memory) -> None:
    await memory.publish_many(
        [kept("e", "slow", importance=0.5), kept("plain", None), kept("theirs", "slow", agent="b")]
    )
    ids = ["e", "plain", "theirs", "nosuch"]
    reported = await memory.tiers.report_outcome(*A, ids, success=True, actual=0.9, cause="it rose")
    assert (reported.changed, reported.ids) == (True, ("e",))
    assert reported.refused == {"plain": "no_tier", "theirs": "unknown", "nosuch": "unknown"}
    found = (await memory.tiers.entry(*A, "e", now=T0)).found
    assert found is not None
    assert (found.undecayed, found.successes, found.surprise) == (0.55, 1, 0.12)
    assert len(await events_of(memory)) == 4


@pytest.mark.parametrize(("ids", "reason"), [(["plain"], "no_tier"), (["nosuch", "plain"], "unknown")])
async def test_an_outcome_that_would_change_nothing_is_refused(memory: Memory, ids: Sequence[str], reason: str) -> None:
    await memory.publish_many([kept("e", "slow"), kept("plain", None)])
    with pytest.raises(Refused) as caught:
        await memory.tiers.report_outcome(*A, ids, success=True)
    assert caught.value.reason == reason
    with pytest.raises(InvalidArgument, match="confidence: "):
        await memory.tiers.report_outcome(*A, ["e"], success=True, confidence=0.49)
    assert len(await events_of(memory)) == 2


async def test_a_grant_is_what_an_agent_may_spend(memory: Memory) -> None:
    assert (await memory.long_term.stats(*A)).balance is None
    assert (await memory.long_term.grant(*A, 2, reason="December")).balance == 2
    await memory.long_term.retain(*A, "Rye rests.")
    taken = await memory.long_term.grant(*A, -0.5)
    assert (taken.balance, taken.spent) == (0.5, 1.5)
    assert (await memory.long_term.retain(*A, "Wheat does not.")).reason == "balance"


def test_publishing_states_the_rule_of_events_that_restore() -> None:
    async def work() -> list[int | None]:
        async with Memory.in_memory() as memory:
            moved = changed("tier_changed", entry="e", to="fast")
            await memory.publish_many([kept("e", "slow"), changed("archived", entry="e"), back("e"), moved])
            found = [data async for batch in memory.admin.records() for _, data in batch.records]
            return [codec.decode(data).payload.get("rule") for data in found]

    assert run(work()) == [3, None, 3, 3]
