"""Calls of tools that become entries: which, how many a minute, what the entry has, and what its id stands for."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recallog import Memory, OutOfRange
from recallog_projections.models.long_term import tables
from recallog_schemas import Event, codec
from recallog_schemas.models.long_term import limits as long_term_limits
from support.events import event, run
from support.folding import folded, ledger_at, rows_of

pytestmark = pytest.mark.models("long_term")

START = datetime(2026, 3, 1, tzinfo=UTC)
OF_ISSUE = {"enabled": True, "tools": ["Read", "Edit", "Bash"], "skip": ["Grep", "Glob"]}


def ended(work: Callable[[Memory], Awaitable[Any]]) -> None:
    """`work(memory)` on a memory without files."""

    async def within() -> None:
        async with Memory.in_memory() as memory:
            await work(memory)
            assert (await memory.admin.dead_letters()).items == ()
            assert (await memory.admin.verify("views")).ok

    run(within())


def capturing(agent: str = "baker", **capture: Any) -> Event:
    return event("agent.configured", agent=agent, payload={"capture": {"enabled": True} | capture})


def called(tool: str = "Read", seconds: float = 0, **fields: Any) -> Event:
    payload = fields.pop("payload", {"result": "flour"}) | {"tool": tool}
    return event("tool.used", at=START + timedelta(seconds=seconds), payload=payload, **fields)


async def captured(memory: Memory, agent: str = "baker") -> list[str]:
    """The ids of an agent's entries, oldest first, which a rebuild does not change."""
    found = await memory.long_term.list("village", agent, type="tool_usage", limit=1_000)
    await memory.admin.rebuild("views")
    again = await memory.long_term.list("village", agent, type="tool_usage", limit=1_000)
    assert again.entries == found.entries
    return [entry.id for entry in reversed(found.entries)]


@pytest.mark.parametrize(
    ("capture", "tools"),
    [
        (OF_ISSUE, ["Read", "read"]),
        ({"skip": ["Grep"]}, ["Read", "read", "Write"]),
        ({"tools": ["Grep"], "skip": ["Grep"]}, ["Grep", "gREP"]),
        ({"tools": ["Read"], "case_sensitive": True}, ["Read"]),
        ({"skip": ["Grep"], "case_sensitive": True}, ["Read", "read", "Write", "gREP"]),
        ({"tools": []}, []),
        ({"max_per_minute": 0}, []),
        ({"max_per_minute": -1}, []),
        ({"enabled": False}, []),
    ],
)
def test_the_settings_name_the_tools_whose_calls_are_captured(capture: Mapping[str, Any], tools: list[str]) -> None:
    async def work(memory: Memory) -> None:
        await memory.publish(capturing(**capture))
        await memory.publish_many([called(tool, id=tool) for tool in ("Read", "read", "Write", "Grep", "gREP")])
        assert await captured(memory) == tools

    ended(work)


def test_without_the_setting_and_for_other_agents_nothing_is_captured() -> None:
    async def work(memory: Memory) -> None:
        await memory.publish_many([called(id="before"), capturing(), called(id="then"), called(id="m", agent="miller")])
        await memory.publish(event("agent.configured", payload={"capture": None}))
        await memory.publish(called(id="after"))
        assert await captured(memory) == ["then"]
        assert await captured(memory, "miller") == []

    ended(work)


def test_the_121st_call_within_a_minute_is_dropped_also_after_a_rebuild_under_other_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work(memory: Memory) -> None:
        await memory.publish(capturing())
        calls = [called(id=f"c-{number}", seconds=number * 0.1) for number in range(120)]
        rest = [called(id="c-120", seconds=59.9), called(id="c-121", seconds=60), called(id="c-122", seconds=60.05)]
        await memory.publish_many([*calls, *rest])
        expected = [*(each.id for each in calls), "c-121"]
        assert await captured(memory) == expected
        monkeypatch.setenv("RECALLOG_CAPTURE_MAX_PER_MINUTE", "3")
        monkeypatch.setenv("ARAGORA_MEMORY_CAPTURE_ENABLED", "0")
        assert await captured(memory) == expected

    ended(work)


def test_no_minute_has_more_calls_in_whatever_order_they_arrive() -> None:
    async def work(memory: Memory) -> None:
        await memory.publish(capturing(max_per_minute=2))
        seconds = (100, 90, 80, 41, 40.5, 30, 159.9, 150, 3_000_000_000, 101)
        await memory.publish_many([called(id=f"at {at}", seconds=at) for at in seconds])
        assert await captured(memory) == ["at 100", "at 90", "at 30", "at 159.9", "at 3000000000"]

    ended(work)


def test_a_minute_is_counted_until_a_call_is_captured_a_multiple_of_61_minutes_away() -> None:
    async def work(memory: Memory) -> None:
        await memory.publish(capturing(max_per_minute=1))
        minutes = (0, 200, 139, 140, 61, 200, 139)
        calls = [called(id=f"{number}", seconds=minute * 60) for number, minute in enumerate(minutes)]
        await memory.publish_many(calls)
        # 200 and 139 take each other's row; 140 is captured a minute after 139, at the same second.
        assert await captured(memory) == ["0", "1", "2", "3", "4", "5", "6"]
        await memory.publish_many([called(id="late", seconds=0.5), called(id="again", seconds=140 * 60)])
        assert await captured(memory) == ["0", "1", "2", "3", "4", "5", "6", "late"]

    ended(work)


def test_the_rows_that_count_calls_are_bounded() -> None:
    events = [capturing(max_per_minute=2), *(called(seconds=60 * minute) for minute in range(200))]
    projector, generation = folded(ledger_at([codec.encode(each) for each in events]))
    assert len(rows_of(projector.store, generation, tables.CAPTURED.name)) == long_term_limits.CAPTURED_MINUTES


def test_agents_are_counted_apart_and_a_dropped_call_does_not_count() -> None:
    async def work(memory: Memory) -> None:
        await memory.publish_many([capturing(max_per_minute=1), capturing("miller", max_per_minute=1)])
        seconds = (0, 30, 61)
        calls = [called(id=f"{agent} {at}", agent=agent, seconds=at) for at in seconds for agent in ("baker", "miller")]
        await memory.publish_many(calls)
        assert await captured(memory) == ["baker 0", "baker 61"]
        assert await captured(memory, "miller") == ["miller 0", "miller 61"]

    ended(work)


def test_no_agent_captures_more_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_term_limits, "CAPTURED_PER_MINUTE_MAX", 2)

    async def work(memory: Memory) -> None:
        await memory.publish(capturing(max_per_minute=2**62))
        await memory.publish_many([called(id=f"c-{number}") for number in range(3)])
        assert await captured(memory) == ["c-0", "c-1"]

    ended(work)


@pytest.mark.models("tiers")
def test_the_entry_has_what_its_event_has_and_what_the_settings_say() -> None:
    async def work(memory: Memory) -> None:
        await memory.publish(capturing(importance=1, tier="slow", max_detail_chars=1_000))
        fields = {"arguments": {"path": "a.txt"}, "result": "x" * 2_000, "importance": "none", "sources": 7}
        sent = called(id="c-1", payload=fields, subject="user-1", audience=["miller"], session="s-1", turn=3, seconds=5)
        position = await memory.publish(sent)
        entry = (await memory.long_term.get("village", "miller", "c-1")).entry
        assert entry is not None
        assert entry.text == f"Read(path=a.txt): {'x' * (1_000 - len('Read(path=a.txt): '))}..."
        shown = (entry.type, entry.tier, entry.importance, entry.confidence, entry.priority, entry.subject)
        assert shown == ("tool_usage", "slow", 1.0, 1.0, "normal", "user-1")
        assert (entry.owner, entry.at, entry.position, entry.metadata) == ("baker", sent.at, position, {"tool": "Read"})
        assert (await memory.long_term.get("village", "smith", "c-1")).entry is None
        audit = (await memory.long_term.audit("village", "baker")).changes
        assert [(change.operation, change.id, change.actor) for change in audit] == [("retained", "c-1", "baker")]

    ended(work)


@pytest.mark.models("tiers")
def test_a_captured_call_ages_in_its_tier() -> None:
    async def work(memory: Memory) -> None:
        await memory.publish_many([capturing(), called(id="c-1")])
        later = START + timedelta(seconds=61)
        moved = await memory.tiers.consolidate("village", "baker", now=later)
        assert [(move.id, move.origin, move.to) for move in moved.moves] == [("c-1", "fast", "medium")]
        assert (await memory.long_term.get("village", "baker", "c-1")).entry.tier == "medium"  # type: ignore[union-attr]

    ended(work)


@pytest.mark.models("tiers")
def test_the_defaults_are_those_of_the_document() -> None:
    async def work(memory: Memory) -> None:
        await memory.publish_many([capturing(), called(id="c-1", payload={"result": "x" * 2_000})])
        entry = (await memory.long_term.get("village", "baker", "c-1")).entry
        assert entry is not None
        assert (entry.tier, entry.importance, len(entry.text), entry.text[-4:]) == ("fast", 0.4, 803, "x...")

    ended(work)


def test_a_space_that_shares_calls_shares_the_entries() -> None:
    async def work(memory: Memory) -> None:
        shared = event("space.configured", payload={"shared_kinds": ["tool.used"]})
        retained = event("space.configured", payload={"shared_kinds": ["memory.retained"]})
        await memory.publish_many([capturing(), shared, called(id="c-1"), retained, called(id="c-2")])
        found = [(await memory.long_term.get("village", "smith", id_)).entry for id_ in ("c-1", "c-2")]
        assert [entry is not None for entry in found] == [True, False]

    ended(work)


def test_a_captured_call_costs_nothing_and_equal_ones_are_kept() -> None:
    async def work(memory: Memory) -> None:
        await memory.publish_many([capturing(), event("memory.metered", payload={"units": 1})])
        await memory.publish_many([called(id="c-1"), called(id="c-2")])
        assert await captured(memory) == ["c-1", "c-2"]
        stats = await memory.long_term.stats("village", "baker")
        assert (stats.balance, stats.types) == (1.0, {"tool_usage": 2})

    ended(work)


@pytest.mark.models("prompt")
def test_it_answers_a_question_once_as_its_event_and_forgetting_it_removes_the_entry() -> None:
    async def work(memory: Memory) -> None:
        await memory.publish_many([capturing(), called("Read", id="c-1"), called("Edit", id="c-2", subject="user-1")])
        await memory.long_term.retain("village", "baker", "Rye needs water.", entry_id="l-1")
        for forgotten in (None, ["c-1"]):
            if forgotten is not None:
                assert (await memory.long_term.forget("village", "baker", forgotten)).changed
            hits = (await memory.recall("village", "baker", "read flour")).hits
            found = {hit.event.id: hit.event.kind for hit in hits}
            assert found == {"c-1": "tool.used", "c-2": "tool.used", "l-1": "memory.retained"}
            assert len(hits) == 3
            shown = (await memory.entries("village", "baker", ["c-1", "l-1"])).entries
            assert [(each.event.kind, each.text) for each in shown] == [
                ("tool.used", "Read: flour"), ("memory.retained", "Rye needs water."),
            ]  # fmt: skip
            assert (await memory.around("village", "baker", "c-1")).anchor.kind == "tool.used"
            assert (await memory.explain("village", "baker", "c-1")).verdict == "remembered"
        assert await captured(memory) == ["c-2"]
        assert (await memory.long_term.get("village", "baker", "c-1")).entry is None
        assert (await memory.long_term.forget("village", "baker", subject="user-1")).ids == ("c-2",)

    ended(work)


def test_who_is_given_a_captured_call_finds_the_entry_and_its_agent_the_event() -> None:
    async def work(memory: Memory) -> None:
        await memory.publish_many([capturing(), called(id="c-1")])
        with pytest.raises(OutOfRange):
            await memory.around("village", "miller", "c-1")
        await memory.long_term.transfer("village", "baker", "miller", ["c-1"])
        for agent, kind in (("miller", "memory.retained"), ("baker", "tool.used")):
            (hit,) = (await memory.recall("village", agent, "read flour")).hits
            (shown,) = (await memory.entries("village", agent, ["c-1"])).entries
            assert (hit.event.kind, shown.event.kind) == (kind, kind)

    ended(work)


def test_a_past_has_the_entries_of_then() -> None:
    async def work(memory: Memory) -> None:
        await memory.publish_many([capturing(), called(id="c-1"), called(id="c-2", seconds=3_600)])
        past = await memory.long_term.list("village", "baker", as_of=START + timedelta(minutes=1))
        assert [entry.id for entry in past.entries] == ["c-1"]

    ended(work)
