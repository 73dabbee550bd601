"""Views after keys of sealed events are destroyed: they are what a fold of the events without their payloads gives."""

import shutil
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from recallog import Memory, Settings
from recallog_projections.rows import Rows
from recallog_projections.stores.memory import MemoryStore
from recallog_schemas import Event, Record, codec
from recallog_schemas.sealing import Unit
from recallog_streams import generations
from recallog_streams.keys.memory import MemoryKeys
from recallog_streams.ledgers.ledger import Ledger
from recallog_streams.ledgers.memory import MemoryLedger
from recallog_streams.projector import Projector
from recallog_streams.sealing import Sealing
from support.events import event, run
from support.folding import dead_letter_offsets, folded, ledger_at, rows_of

pytestmark = pytest.mark.models("all")

ANN = Unit("village", "subject", "ann")
SAID = [
    event(id="e-0", payload={"text": "The oven is hot."}),
    event(id="e-1", payload={"text": "Ann likes rye bread."}, subject="ann"),
    event(id="e-2", payload={"text": "The mill is closed."}, turn=2),
]


def without_payload(sent: Event) -> Event:
    return sent.model_copy(update={"envelope": 2, "payload": {}})


@asynccontextmanager
async def opened(home: Path, **settings: Any) -> AsyncIterator[Memory]:
    async with Memory.open(Settings.valid(home=home, index="off", **settings)) as memory:
        yield memory


def ledger_of(memory: Memory) -> Ledger:
    return memory.admin._components.ledger


async def destroy(memory: Memory, unit: Unit = ANN) -> None:
    await destroy_in(ledger_of(memory), unit)


async def destroy_in(ledger: Ledger, unit: Unit = ANN) -> None:
    keys = ledger.sealing.keys
    ids = await keys.retire([unit])
    payload = {"unit": unit.kind, "names": [unit.name], "keys": ids}
    await ledger.append([event("unit.erased", payload=payload)])
    await keys.destroy(ids, 0)


async def texts(memory: Memory) -> list[str]:
    return [each.text for each in (await memory.episodic("village", "baker")).memories]


# The fold.


def test_a_timeline_shows_that_an_event_is_erased() -> None:
    ledger = ledger_at([codec.encode(each) for each in (SAID[0], without_payload(SAID[1]), SAID[2])])
    projector, generation = folded(ledger)
    assert dead_letter_offsets(projector.store, generation) == []
    rows = rows_of(projector.store, generation, "episodic.own")
    assert [b"[erased]" in data for data in rows.values()] == [False, True, False]


class Heard:
    """Counts the records that it is given, by kind."""

    name = "heard"
    version = 1
    tables = ()

    def __init__(self, kinds: Sequence[str] | None) -> None:
        self.seen: list[str] = []
        if kinds is not None:
            self.kinds = frozenset(kinds)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        self.seen += [record.event.id for record in run]


@pytest.mark.parametrize(("kinds", "seen"), [(None, ["e-0", "e-1", "e-2"]), (["agent.spoke"], ["e-0", "e-2"])])
@pytest.mark.parametrize("batch_records", [1, 10])
def test_for_a_projection_of_certain_kinds_an_erased_event_has_not_happened(
    kinds: Sequence[str] | None, seen: list[str], batch_records: int
) -> None:
    values = [codec.encode(each) for each in (SAID[0], without_payload(SAID[1]), SAID[2])]
    heard = Heard(kinds)
    folded(ledger_at(values, batch_records=batch_records), [heard])
    assert sorted({*heard.seen}) == seen


@pytest.mark.parametrize("first", [SAID[1], without_payload(SAID[1])], ids=["clear", "erased"])
@pytest.mark.parametrize("second", [SAID[1], without_payload(SAID[1])], ids=["clear", "erased"])
def test_on_a_topic_an_event_with_the_id_of_an_erased_one_is_a_repeat(first: Event, second: Event) -> None:
    projector, generation = folded(ledger_at([codec.encode(first), codec.encode(second)], unique_ids=False))
    assert dead_letter_offsets(projector.store, generation) == []
    assert len(rows_of(projector.store, generation, "episodic.own")) == 1


def test_a_sealed_record_without_its_key_is_a_dead_letter() -> None:
    ledger = MemoryLedger()
    ledger.sealing = Sealing(MemoryKeys)
    run(ledger.append(SAID))
    ledger.sealing = Sealing(MemoryKeys)
    projector, generation = folded(ledger)
    assert dead_letter_offsets(projector.store, generation) == [1]


# Generations follow the keys.


def test_views_are_built_again_after_a_key_is_destroyed(tmp_path: Path) -> None:
    async def work() -> tuple[list[str], list[str]]:
        async with opened(tmp_path) as memory:
            await memory.publish_many(SAID)
            before = await texts(memory)
            await destroy(memory)
            return before, await texts(memory)

    before, after = run(work())
    assert before == ["The oven is hot.", "Ann likes rye bread.", "The mill is closed."]
    assert after == ["The oven is hot.", "[erased]", "The mill is closed."]


def test_another_process_sees_that_a_key_is_destroyed(tmp_path: Path) -> None:
    async def work() -> list[str]:
        async with opened(tmp_path) as memory, opened(tmp_path) as another:
            await memory.publish_many(SAID)
            await texts(another)
            await destroy(memory)
            return await texts(another)

    assert run(work())[1] == "[erased]"


def test_the_past_is_without_what_was_erased(tmp_path: Path) -> None:
    async def work() -> list[str]:
        async with opened(tmp_path) as memory:
            positions = (await memory.publish_many(SAID)).items
            await texts(memory)
            await destroy(memory)
            view = await memory.episodic("village", "baker", as_of=positions[1])
            return [each.text for each in view.memories]

    assert run(work()) == ["The oven is hot.", "[erased]"]


def test_the_ledger_and_the_views_are_verified_after_a_key_is_destroyed(tmp_path: Path) -> None:
    async def work() -> bool:
        async with opened(tmp_path) as memory:
            await memory.publish_many(SAID)
            await texts(memory)
            await destroy(memory)
            return (await memory.admin.verify()).clean

    assert run(work())


def test_an_entry_that_was_erased_is_no_entry(tmp_path: Path) -> None:
    async def work() -> int:
        async with opened(tmp_path) as memory:
            kept = await memory.long_term.retain("village", "baker", "Ann likes rye bread.")
            await memory.long_term.retain("village", "baker", "The mill is closed on Mondays.")
            await memory.long_term.list("village", "baker")
            assert kept.id is not None
            await destroy(memory, Unit("village", "entry", kept.id))
            return len((await memory.long_term.list("village", "baker")).entries)

    assert run(work()) == 1


class Destroying(MemoryStore):
    """A store in which a key is destroyed while a generation is built."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self.ledger = ledger
        self.destroys = True

    async def commit(self, *arguments: Any) -> Any:
        outcome = await super().commit(*arguments)
        if self.destroys:
            self.destroys = False
            await destroy_in(self.ledger)
        return outcome


def test_a_generation_that_was_built_while_a_key_was_destroyed_is_not_used() -> None:
    async def work() -> tuple[bool, int]:
        ledger = MemoryLedger()
        ledger.sealing = Sealing(MemoryKeys)
        await ledger.append(SAID)
        projector = Projector(ledger, Destroying(ledger), [Heard(None)])
        await generations.current(projector, 0)
        active = await generations.current(projector, 0)  # up to the event that says so
        return await projector.has_keys(active), active.keys

    fits, keys = run(work())
    assert fits
    assert keys


def test_an_erasure_that_is_written_as_erased_stops_no_fold(tmp_path: Path) -> None:
    async def work() -> list[str]:
        async with opened(tmp_path) as memory:
            await memory.publish_many([*SAID, event("unit.erased", payload={}, envelope=2)])
            return await texts(memory)

    assert run(work())[1] == "Ann likes rye bread."


def test_an_erased_event_of_a_kind_with_rules_can_be_published_again(tmp_path: Path) -> None:
    async def work() -> None:
        async with opened(tmp_path) as memory:
            await memory.publish(event("memory.retained", payload={}, envelope=2))

    run(work())


# Keys that are lost, damaged or restored.


def test_without_the_keys_the_views_keep_what_they_have(tmp_path: Path) -> None:
    async def work(lose: bool) -> list[str]:
        if lose:
            (tmp_path / "sealing.db").unlink()
        async with opened(tmp_path) as memory:
            await memory.publish_many(SAID)
            return await texts(memory)

    assert run(work(lose=False)) == run(work(lose=True))


@pytest.mark.parametrize("damage", [None, b"no keys at all" * 500], ids=["lost", "damaged"])
def test_status_and_verification_name_keys_that_cannot_be_read(damage: bytes | None, tmp_path: Path) -> None:
    async def work() -> tuple[str, str]:
        async with opened(tmp_path) as memory:
            await memory.publish_many(SAID)
            await texts(memory)
        for file in tmp_path.glob("sealing.db*"):
            file.unlink()
        if damage is not None:
            (tmp_path / "sealing.db").write_bytes(damage)
        async with opened(tmp_path) as memory:
            return (await memory.admin.status()).format(), (await memory.admin.verify()).format()

    for text in run(work()):
        assert str(tmp_path / "sealing.db") in text


def test_events_are_in_the_views_again_once_their_keys_are_back(tmp_path: Path) -> None:
    aside = tmp_path / "aside.db"

    async def work() -> tuple[list[str], list[str]]:
        async with opened(tmp_path) as memory:
            await memory.publish_many(SAID)
        shutil.move(tmp_path / "sealing.db", aside)
        async with opened(tmp_path) as memory:
            without = await texts(memory)
        shutil.move(aside, tmp_path / "sealing.db")
        async with opened(tmp_path) as memory:
            await memory.admin.retry_dead_letters()
            return without, await texts(memory)

    without, restored = run(work())
    assert without == ["The oven is hot.", "The mill is closed."]
    assert restored == ["The oven is hot.", "Ann likes rye bread.", "The mill is closed."]


def test_a_copy_of_the_keys_in_which_the_same_are_destroyed_again_changes_nothing(tmp_path: Path) -> None:
    async def work() -> tuple[str | None, str | None, list[str]]:
        async with opened(tmp_path) as memory:
            await memory.publish_many(SAID)
            ids = [key.id for key in await ledger_of(memory).sealing.keys.keys_of([ANN])]
        shutil.copy(tmp_path / "sealing.db", tmp_path / "copy.db")
        async with opened(tmp_path) as memory:
            await destroy(memory)
            await texts(memory)
            before = (await memory.admin.status()).partitions[0].generation
        for file in tmp_path.glob("sealing.db*"):
            file.unlink()
        shutil.move(tmp_path / "copy.db", tmp_path / "sealing.db")
        async with opened(tmp_path) as memory:
            await ledger_of(memory).sealing.keys.destroy(ids, 0)
            seen = await texts(memory)
            return before, (await memory.admin.status()).partitions[0].generation, seen

    before, after, seen = run(work())
    assert before == after
    assert seen[1] == "[erased]"


def test_older_keys_that_are_put_back_take_nothing_from_the_views(tmp_path: Path) -> None:
    async def work() -> tuple[list[str], list[str]]:
        async with opened(tmp_path) as memory:
            await memory.publish_many(SAID)
        shutil.copy(tmp_path / "sealing.db", tmp_path / "older")
        async with opened(tmp_path) as memory:
            await memory.publish(event(id="e-3", payload={"text": "Ben bakes."}, subject="ben"))
            await memory.erase("village", subject="ann")
            before = await texts(memory)
        shutil.copy(tmp_path / "older", tmp_path / "sealing.db")
        async with opened(tmp_path) as memory:
            return before, await texts(memory)

    before, after = run(work())
    assert before == after
    assert "Ben bakes." in after
    assert "[erased]" in after


def test_a_process_that_folds_in_memory_goes_on_after_an_erasure(tmp_path: Path) -> None:
    async def work() -> None:
        settings = Settings.valid(home=tmp_path, index="off", lock_wait_seconds=0.05)
        async with opened(tmp_path) as memory, Memory.open(settings) as another:
            await memory.publish_many(SAID)
            await texts(another)
            with closing(sqlite3.connect(tmp_path / "views.db", isolation_level=None)) as holder:
                holder.execute("BEGIN IMMEDIATE")
                for unit in (ANN, Unit("village", "subject", "ben")):
                    await memory.publish(event(payload={"text": "Ben bakes."}, subject="ben"))
                    assert "Ben bakes." in await texts(another)
                    await destroy(memory, unit)
                    assert "[erased]" in await texts(another)

    run(work())
