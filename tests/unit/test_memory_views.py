"""Views: equal after deletion and rebuild, verified against the ledger, and bound to it."""

import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from recallog import Event, Memory, Position
from recallog_demo.tampering import tamper
from recallog_projections.views.episodic import Episodic
from recallog_schemas import kinds
from recallog_schemas.errors import LedgerMismatch
from recallog_schemas.kinds import catalogue
from recallog_schemas.views import EpisodicView, Status
from support.events import event, run

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
AGENTS = ["baker", "miller", "narrator", "late"]


def village() -> list[Event]:
    """300 events of many kinds."""
    cycle = ["agent.spoke", "agent.thought", "world.observed", "image.generated"]
    events = [
        event(
            cycle[n % 4],
            id=f"e-{n}",
            agent=AGENTS[n % 3],
            turn=n,
            session=f"s-{n // 100}",
            payload={"text": f"the right one is {n}"},
            audience=["late"] if n % 7 == 0 else None,
        )
        for n in range(300)
    ]
    events[100] = event("space.configured", id="e-100", payload={"shared_kinds": ["agent.spoke"]})
    events[200] = event("agent.configured", id="e-200", payload={"window": 30})
    return events


async def answers(memory: Memory) -> dict[str, object]:
    """The memories of all agents, without the name of the generation."""
    found: dict[str, object] = {}
    for agent in AGENTS:
        view = await memory.episodic("village", agent)
        page = await memory.timeline("village", agent, limit=1000)
        found[agent] = (view.memories, view.window, view.checkpoint, page.items, page.kept_from)
    found["space"] = (await memory.space("village")).model_dump(
        exclude={"generation": True, "activity": {"generation"}}
    )
    found["spaces"] = [space.model_dump(exclude={"generation"}) for space in await memory.spaces()]
    return found


def delete_views(home: Path) -> None:
    for path in home.glob("views*"):
        path.unlink()


# Deletion and rebuild.


def test_memories_are_equal_after_the_views_were_deleted_and_rebuilt(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many(village())
            before, digest = await answers(memory), (await memory.admin.verify()).digest
        delete_views(tmp_path)
        async with Memory.open(tmp_path) as memory:
            assert await answers(memory) == before
            assert (await memory.admin.verify()).digest == digest

    run(work())


def test_a_rebuild_gives_equal_memories_in_a_new_generation(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many(village())
            before = await answers(memory)
            generation = (await memory.episodic("village", "baker")).generation
            (report,) = await memory.admin.rebuild()
            assert (report.replaced, report.records, report.joined) == (generation, 300, False)
            assert (await memory.episodic("village", "baker")).generation == report.generation != generation
            assert await answers(memory) == before

    run(work())


def test_events_folded_one_by_one_and_all_at_once_give_the_same_views(tmp_path: Path) -> None:
    async def digest(home: Path, at_once: int) -> tuple[str, dict[str, object]]:
        async with Memory.open(home) as memory:
            events = village()
            for start in range(0, 300, at_once):
                await memory.publish_many(
                    [each.model_copy(update={"at": NOON}) for each in events[start : start + at_once]]
                )
                await memory.episodic("village", "baker")
            return (await memory.admin.verify()).digest, await answers(memory)

    assert run(digest(tmp_path / "one", 1)) == run(digest(tmp_path / "many", 300))


def test_the_views_file_may_be_deleted_while_it_is_open(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many(village())
            before = await answers(memory)
            for suffix in ("", "-wal", "-shm"):
                (tmp_path / f"views.db{suffix}").unlink(missing_ok=True)
            assert await answers(memory) == before

    run(work())


def test_two_memories_continue_after_the_views_file_was_deleted(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as one, Memory.open(tmp_path) as two:
            await one.publish_many(village())
            before = await answers(one)
            assert await answers(two) == before
            delete_views(tmp_path)
            assert await answers(one) == before
            assert await answers(two) == before
            assert (await one.episodic("village", "baker")) == (await two.episodic("village", "baker"))

    run(work())


# Verification.


def test_fresh_views_are_clean(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            assert (await memory.admin.verify()).clean
            await memory.publish_many(village())
            report = await memory.admin.verify()
            assert report.clean
            assert report.records == 300
            assert sum(table.rows for table in report.tables if table.table.startswith("episodic")) > 200

    run(work())


def test_one_changed_memory_is_found_by_verification_and_repaired_by_a_rebuild(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many(village())
            clean = await memory.admin.verify()
            tamper(tmp_path / "views.db", "village", "miller")
            assert "wrong" in (await memory.timeline("village", "miller", limit=1000)).model_dump_json()
            report = await memory.admin.verify()
            (found,) = [table.difference for table in report.tables if table.difference]
            assert found.address().startswith("episodic.own / village / miller / ")
            assert "wrong" in str(found.found)
            assert "right" in str(found.expected)
            assert report.digest != clean.digest
            await memory.admin.rebuild()
            assert (await memory.admin.verify()).digest == clean.digest

    run(work())


# The identity of the ledger.


async def two_folders(home: Path) -> tuple[Path, Path]:
    for name in ("mine", "yours"):
        async with Memory.open(home / name) as memory:
            await memory.publish_many(village())
            await memory.episodic("village", "baker")
    return home / "mine", home / "yours"


def test_another_ledger_under_the_same_views_is_refused_with_a_remedy(tmp_path: Path) -> None:
    async def work() -> None:
        mine, yours = await two_folders(tmp_path)
        shutil.copy(yours / "ledger.db", mine / "ledger.db")
        async with Memory.open(mine) as memory:
            for question in (memory.episodic("village", "baker"), memory.admin.rebuild(), memory.admin.verify()):
                with pytest.raises(LedgerMismatch, match=r"another ledger.*drop the views: recallog rebuild --drop"):
                    await question
        delete_views(mine)
        async with Memory.open(mine) as memory:
            assert len((await memory.episodic("village", "baker")).memories) == 30

    run(work())


def test_an_older_copy_of_the_ledger_is_refused_with_a_remedy(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many(village()[:100])
        shutil.copy(tmp_path / "ledger.db", tmp_path / "backup.db")
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many(village()[100:])
            await memory.episodic("village", "baker")
        shutil.copy(tmp_path / "backup.db", tmp_path / "ledger.db")
        async with Memory.open(tmp_path) as memory:
            with pytest.raises(LedgerMismatch, match=r"0:299.*missing.*drop the views: recallog rebuild --drop"):
                await memory.episodic("village", "baker")

    run(work())


def test_after_a_mismatch_nothing_was_written(tmp_path: Path) -> None:
    async def work() -> tuple[bytes, bytes]:
        mine, yours = await two_folders(tmp_path)
        shutil.copy(yours / "ledger.db", mine / "ledger.db")
        before = (mine / "views.db").read_bytes()
        async with Memory.open(mine) as memory:
            with pytest.raises(LedgerMismatch):
                await memory.episodic("village", "baker")
        return before, (mine / "views.db").read_bytes()

    before, after = run(work())
    assert before == after


# Status.


def test_status_reports_the_lag_of_the_views_and_folds_nothing(tmp_path: Path) -> None:
    async def work() -> tuple[Status, Status, EpisodicView]:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many(village())
            behind = await memory.admin.status()
            view = await memory.episodic("village", "baker")
            return behind, await memory.admin.status(), view

    behind, there, view = run(work())
    (before,), (after,) = behind.partitions, there.partitions
    assert (before.end, before.checkpoint, before.lag, before.generation) == (300, -1, 300, None)
    assert (after.end, after.checkpoint, after.lag, after.generation) == (300, 299, 0, view.generation)
    assert (there.spaces, there.agents, there.sessions) == (1, 3, 3)
    assert there.ledger_bytes > 10_000
    assert there.views_bytes > 10_000


def test_progress_is_reported_while_a_query_builds_the_views(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    async def work() -> None:
        async with Memory.open(tmp_path, progress=lambda done, total: seen.append((done, total))) as memory:
            await memory.publish_many(village())
            await memory.episodic("village", "baker")

    run(work())
    assert seen[-1] == (300, 300)


def test_records_are_read_from_any_position(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many([*village()[:5], event(space="town")])
            batches = [batch async for batch in memory.admin.records(Position(0, 3))]
            assert [offset for batch in batches for offset, _ in batch.records] == [3, 4, 5]
            batches = [batch async for batch in memory.admin.records(space="town")]
            assert [offset for batch in batches for offset, _ in batch.records] == [5]

    run(work())


# Upgrades.


def _forget_catalogue() -> None:
    """Clear what was computed from the catalogue, as a registration of kinds does."""
    for clear in catalogue._cached:
        clear()


@pytest.mark.models("prompt")
def test_views_without_arguments_and_actions_are_rebuilt_by_the_next_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code from before: the text of a tool call was its result, and actions had no log of their own."""
    looked = event("tool.used", payload={"tool": "bash", "arguments": {"command": "ls"}, "result": "oven.py"})

    async def prompt() -> str:
        async with Memory.open(tmp_path) as memory:
            await memory.publish(looked)
            return (await memory.context("village", "baker")).text

    def of_then(payload: Mapping[str, Any]) -> str:
        return f"{payload['tool']}: {payload['result']}"

    with monkeypatch.context() as before:
        before.setitem(kinds.CATALOGUE, "tool.used", replace(kinds.CATALOGUE["tool.used"], text=of_then, version=0))
        before.setattr(kinds, "ACTION", "unknown")
        before.setattr(Episodic, "version", Episodic.version - 1)
        _forget_catalogue()
        then = run(prompt())
    _forget_catalogue()
    assert "[tool.used][tool] «bash: oven.py»" in then
    assert "ACTION HISTORY" not in then
    assert "ACTION HISTORY\n[turn 000][tool.used][tool] «bash(ls): oven.py»" in run(prompt())
