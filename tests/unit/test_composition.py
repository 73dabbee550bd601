"""Composition: components from settings by URL scheme, and memories of components built in code."""

import asyncio
from pathlib import Path

import pytest

from recallog import Event, Memory, Settings
from recallog.composition import assemble, compose
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.sqlite import SqliteStore
from recallog_schemas.errors import SettingsError
from recallog_streams.ledgers.memory import MemoryLedger

SAID = Event(space="village", agent="baker", kind="world.observed", turn=1, payload={"text": "The mill burned."})


async def used(memory: Memory) -> None:
    """Publish, query, travel in time, rebuild and verify."""
    async with memory:
        position = await memory.publish(SAID)
        assert [shown.event.id for shown in (await memory.episodic("village", "miller", after=position)).memories] == [
            SAID.id
        ]
        assert len((await memory.episodic("village", "miller", as_of=position)).memories) == 1
        assert [hit.event.id for hit in (await memory.recall("village", "miller", "who burned the mill?")).hits] == [
            SAID.id
        ]
        assert [report.records for report in await memory.admin.rebuild()] == [1]
        assert (await memory.admin.verify()).clean


def test_a_memory_in_memory_needs_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asyncio.run(used(Memory.in_memory()))
    assert list(tmp_path.iterdir()) == []


def test_two_memories_in_memory_share_nothing() -> None:
    async def work() -> None:
        async with Memory.in_memory() as one, Memory.in_memory() as other:
            await one.publish(SAID)
            assert (await one.episodic("village", "baker")).memories
            assert not (await other.episodic("village", "baker")).memories

    asyncio.run(work())


def test_a_memory_takes_components_that_were_built_in_code(tmp_path: Path) -> None:
    asyncio.run(used(Memory(assemble(MemoryLedger(), lambda namespace: MemoryStore()))))
    folder = tmp_path / "views"
    asyncio.run(used(Memory(assemble(MemoryLedger(), lambda namespace: SqliteStore(folder / f"{namespace}.db")))))
    assert (folder / ".db").exists()


@pytest.mark.parametrize(
    ("given", "absent", "url"),
    [
        ("RECALLOG_LEDGER", "RECALLOG_VIEWS", "kafka://127.0.0.1:9092/t"),
        ("RECALLOG_VIEWS", "RECALLOG_LEDGER", "redis://127.0.0.1:6379/0"),
        ("RECALLOG_LEDGER", "RECALLOG_VIEWS", "memory://"),
    ],
)
def test_half_a_cluster_is_refused_and_the_missing_half_named(given: str, absent: str, url: str) -> None:
    setting = given.removeprefix("RECALLOG_").lower()
    with pytest.raises(SettingsError, match=f"{given} is set and {absent} is not"):
        compose(Settings(**{setting: url}))


def test_views_of_a_ledger_on_kafka_are_not_kept_in_a_folder(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot share a folder"):
        compose(Settings(ledger="kafka://127.0.0.1:9092/t", views=str(tmp_path)))


def test_views_may_lie_in_a_folder_of_their_own(tmp_path: Path) -> None:
    asyncio.run(used(Memory.open(Settings(home=tmp_path / "ledger", views=str(tmp_path / "views")))))
    assert (tmp_path / "ledger" / "ledger.db").exists()
    assert (tmp_path / "views" / "views.db").exists()


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"ledger": "nosuch://here", "views": "memory://"}, "recallog.ledgers"),
        ({"views": "nosuch://here"}, "recallog.stores"),
        ({"index": "nosuch://here"}, "recallog.engines"),
    ],
)
def test_an_unknown_scheme_is_refused_and_the_entry_points_named(settings: dict[str, str], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        compose(Settings(**settings))
