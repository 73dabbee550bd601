"""`memory.erase`: what a unit contained is nowhere readable afterwards, and everything else is as it was."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from recallog import InvalidArgument, Memory, Position
from recallog.commands import erasing
from recallog.composition import assemble
from recallog.settings import Settings
from recallog_projections.concurrency import cancel_all
from recallog_projections.stores.memory import MemoryStore
from recallog_schemas import Event, codec
from recallog_schemas.errors import SourcesErased, StorageUnavailable
from recallog_schemas.sealing import Unit
from recallog_schemas.views import ErasureReport
from recallog_streams.keys.memory import MemoryKeys
from recallog_streams.ledgers.ledger import Times
from recallog_streams.ledgers.memory import MemoryLedger
from recallog_streams.live import LiveProjector, ProjectedViews
from recallog_streams.sealing import Sealing
from support.cli import recallog
from support.events import event, run
from support.group_in_memory import InMemoryGroup

SPACE, ALICE, BAKER = "village", "alice", "baker"
MARKER = "xylophone"
"""A word that occurs in what Alice has said, and nowhere else."""

Work = Callable[[Memory], Awaitable[None]]


def said(id_: str, text: str, subject: str | None = None, **fields: Any) -> Event:
    return event("agent.spoke", id=id_, agent=ALICE, payload={"text": text}, **fields).model_copy(
        update={"space": SPACE, "subject": subject}
    )


def by_alice(id_: str = "a-1", text: str = f"I play the {MARKER}.") -> Event:
    return said(id_, text, ALICE)


@asynccontextmanager
async def sealed(*, unique_ids: bool = True, keys: MemoryKeys | None = None) -> AsyncIterator[Memory]:
    """A memory whose ledger is sealed; without unique ids it counts repeats as a cluster does."""
    ledger, store = MemoryLedger(unique_ids=unique_ids), keys or MemoryKeys()
    ledger.sealing = Sealing(lambda: store)
    async with Memory(assemble(ledger, lambda namespace: MemoryStore())) as memory:
        yield memory


@pytest.fixture(params=[True, False], ids=["unique ids", "repeats"])
def told(request: pytest.FixtureRequest) -> Callable[[Work], None]:
    """Runs a test on a sealed memory of each kind of ledger."""

    def in_memory(work: Work) -> None:
        async def whole() -> None:
            async with sealed(unique_ids=request.param) as memory:
                await work(memory)

        run(whole())

    return in_memory


async def texts(memory: Memory, agent: str = ALICE, **at: Any) -> list[str]:
    return [each.text for each in (await memory.episodic(SPACE, agent, **at)).memories]


def counted(report: ErasureReport, field: str = "kinds") -> dict[str, int]:
    return {each.kind: each.events for each in getattr(report, field)}


def files_with(folder: Path, word: str) -> list[str]:
    return sorted(each.name for each in folder.rglob("*") if each.is_file() and word.encode() in each.read_bytes())


# What is erased


def test_an_erased_event_keeps_its_place_and_loses_its_words(told: Callable[[Work], None]) -> None:
    async def work(memory: Memory) -> None:
        first, *_ = await memory.publish_many([by_alice(), said("b-1", "Bread!"), by_alice("a-2")])
        report = await memory.erase(SPACE, subject=ALICE, reason="asked to")
        assert (report.erased, counted(report), report.unsealed) == (2, {"agent.spoke": 2}, ())
        shown = (await memory.episodic(SPACE, ALICE)).memories
        assert [each.text for each in shown] == ["[erased]", "Bread!", "[erased]"]
        assert (shown[0].position, shown[0].event.id, shown[0].event.payload) == (first, "a-1", {})

    told(work)


def test_no_file_of_the_folder_contains_a_word_of_it(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many([by_alice(), said("b-1", "Bread!")])
            assert await texts(memory) == [by_alice().text, "Bread!"]
            assert any(name.startswith("views.db") for name in files_with(tmp_path, MARKER))
            await memory.erase(SPACE, subject=ALICE)
            assert files_with(tmp_path, "Bread!")
        assert files_with(tmp_path, MARKER) == []

    run(work())


def test_a_trial_says_what_would_go_and_changes_nothing(told: Callable[[Work], None]) -> None:
    async def work(memory: Memory) -> None:
        await memory.publish(by_alice())
        ends = await memory.admin.ledger_ends()
        trial = await memory.erase(SPACE, subject=ALICE, dry_run=True)
        assert (trial.erased, trial.dry_run, trial.position) == (1, True, None)
        assert await memory.admin.ledger_ends() == ends
        assert await texts(memory) == [by_alice().text]
        assert (await memory.erase(SPACE, subject=ALICE)).erased == 1

    told(work)


def test_repeated_it_erases_nothing_and_writes_nothing(told: Callable[[Work], None]) -> None:
    async def work(memory: Memory) -> None:
        await memory.publish(by_alice())
        await memory.erase(SPACE, subject=ALICE)
        ends = await memory.admin.ledger_ends()
        again = await memory.erase(SPACE, subject=ALICE)
        assert (again.erased, again.position, again.kinds) == (0, None, ())
        assert await memory.admin.ledger_ends() == ends

    told(work)


def test_a_repeat_of_an_erased_event_is_no_conflict_and_does_not_revive_it(told: Callable[[Work], None]) -> None:
    async def work(memory: Memory) -> None:
        position = await memory.publish(by_alice())
        await memory.erase(SPACE, subject=ALICE)
        again = await memory.publish(by_alice(text="I never played it."))
        assert memory._components.ledger.unique_ids is False or again == position
        assert await texts(memory) == ["[erased]"]
        assert (await memory.admin.dead_letters()).items == ()

    told(work)


def test_what_a_person_says_afterwards_is_kept_until_it_is_erased_too(told: Callable[[Work], None]) -> None:
    async def work(memory: Memory) -> None:
        await memory.publish(by_alice())
        await memory.erase(SPACE, subject=ALICE)
        await memory.publish(by_alice("a-2", "I am back."))
        assert await texts(memory) == ["[erased]", "I am back."]
        assert (await memory.erase(SPACE, subject=ALICE)).erased == 1
        assert await texts(memory) == ["[erased]", "[erased]"]

    told(work)


def test_a_whole_space_is_erased_as_far_as_it_is_sealed(told: Callable[[Work], None]) -> None:
    async def work(memory: Memory) -> None:
        await memory.publish_many([by_alice(), said("c-1", "Rye.", "carol"), said("b-1", "Bread!")])
        elsewhere = by_alice().model_copy(update={"space": "town"})
        await memory.publish(elsewhere)
        report = await memory.erase(SPACE, all=True)
        assert (report.erased, counted(report, "unsealed"), report.ok) == (2, {"agent.spoke": 1}, False)
        assert "recallog copy TARGET --seal all" in report.format()
        assert await texts(memory) == ["[erased]", "[erased]", "Bread!"]
        assert (await memory.episodic("town", ALICE)).memories[0].text == elsewhere.text

    told(work)


def test_events_that_are_not_sealed_are_counted_and_stay(told: Callable[[Work], None]) -> None:
    async def work(memory: Memory) -> None:
        sealing, memory._components.ledger.sealing = memory._components.ledger.sealing, Sealing(MemoryKeys, "off")
        await memory.publish(by_alice())
        memory._components.ledger.sealing = sealing
        await memory.publish(by_alice("a-2"))
        report = await memory.erase(SPACE, subject=ALICE)
        assert (report.erased, counted(report, "unsealed")) == (1, {"agent.spoke": 1})
        assert await texts(memory) == [by_alice().text, "[erased]"]

    told(work)


@pytest.mark.parametrize("given", [{}, {"subject": ALICE, "entry": "e"}, {"subject": ALICE, "all": True}])
def test_a_call_names_one_unit(given: dict[str, Any]) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            with pytest.raises(InvalidArgument, match="one of them"):
                await memory.erase(SPACE, **given)

    run(work())


def test_the_event_that_records_it_has_no_word_of_it(told: Callable[[Work], None]) -> None:
    async def work(memory: Memory) -> None:
        await memory.publish(by_alice())
        report = await memory.erase(SPACE, subject=ALICE, reason="asked to", by="clerk")
        batches = [batch async for batch in memory.admin.records(report.position)]
        (data,) = [data for batch in batches for _, data in batch.records]
        assert MARKER.encode() not in data
        recorded = codec.decode(data)
        assert (recorded.kind, recorded.agent, recorded.payload["reason"]) == ("unit.erased", "clerk", "asked to")

    told(work)


# The past, and what else reads the ledger


def test_the_past_shows_it_erased(told: Callable[[Work], None]) -> None:
    async def work(memory: Memory) -> None:
        position = await memory.publish(by_alice())
        await memory.publish(said("b-1", "Bread!"))
        await memory.erase(SPACE, subject=ALICE)
        assert await texts(memory, as_of=position) == ["[erased]"]

    told(work)


def test_verification_and_a_rebuild_agree_afterwards(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many([by_alice(), said("b-1", "Bread!"), by_alice("a-2")])
            digests = [each.format() for each in (await memory.admin.digest()).items]
            await memory.erase(SPACE, subject=ALICE)
            assert (await memory.admin.verify()).ok
            shown = (await memory.episodic(SPACE, ALICE)).format()
            await memory.admin.rebuild()
            assert (await memory.episodic(SPACE, ALICE)).format() == shown
            assert (await memory.admin.verify(digests=digests)).ok

    run(work())


def test_recall_does_not_find_it(told: Callable[[Work], None]) -> None:
    async def work(memory: Memory) -> None:
        await memory.publish_many([by_alice(), said("b-1", "Bread was erased from the list.")])
        assert (await memory.recall(SPACE, ALICE, MARKER)).hits[0].event.id == "a-1"
        await memory.erase(SPACE, subject=ALICE)
        found = (await memory.recall(SPACE, ALICE, f"{MARKER} erased")).hits
        assert [hit.event.id for hit in found] == ["b-1"]

    told(work)


def test_a_copy_of_the_ledger_has_it_erased_too(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path / "from") as memory:
            await memory.publish_many([by_alice(), said("b-1", "Bread!")])
            await memory.erase(SPACE, subject=ALICE)
            await memory.admin.copy(str(tmp_path / "to"))
        async with Memory.open(tmp_path / "to") as copy:
            assert await texts(copy) == ["[erased]", "Bread!"]

    run(work())


@pytest.mark.models("beliefs")
def test_in_a_copy_what_was_made_from_an_event_is_erased_with_it_too(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path / "from") as memory:
            await memory.configure_agent(SPACE, ALICE, reflection_threshold=2)
            await memory.publish_many([by_alice(), said("b-1", "Bread!")])
            await memory.react(SPACE)
            await memory.admin.copy(str(tmp_path / "to"))
        async with Memory.open(tmp_path / "to") as copy:
            assert MARKER in (await copy.beliefs(SPACE, ALICE)).beliefs[0].text
            report = await copy.erase(SPACE, subject=ALICE)
            assert counted(report, "made_from") == {"agent.reflected": 1}
            assert (await copy.beliefs(SPACE, ALICE)).beliefs == ()

    run(work())


# Crashes


class Crash(Exception):
    """Ends an erasure between two of its steps."""


class CrashingKeys(MemoryKeys):
    """Keys whose destruction fails once."""

    crashes = True

    async def destroy(self, ids: Any, partition: int) -> int:
        if self.crashes:
            raise Crash
        return await super().destroy(ids, partition)


def test_whoever_folds_the_event_destroys_keys_that_a_crash_has_left() -> None:
    async def work() -> None:
        keys = CrashingKeys()
        async with sealed(keys=keys) as memory:
            await memory.publish_many([by_alice(), said("b-1", "Bread!")])
            assert await texts(memory) == [by_alice().text, "Bread!"]
            with pytest.raises(Crash):
                await memory.erase(SPACE, subject=ALICE)
            keys.crashes = False
            assert await texts(memory) == ["[erased]", "Bread!"]
            assert sum((await keys.state()).destroyed.values()) > 0

    run(work())


def test_keys_that_a_backup_brings_back_are_destroyed_by_the_next_fold() -> None:
    async def work() -> None:
        keys = MemoryKeys()
        async with sealed(keys=keys) as memory:
            await memory.publish(by_alice())
            backup = dict(keys._secrets)
            await memory.erase(SPACE, subject=ALICE)
            keys._secrets.update(backup)
            await memory.admin.rebuild()
            assert await texts(memory) == ["[erased]"]
            assert await keys.read(backup) == dict.fromkeys(keys._secrets, b"")

    run(work())


def test_a_reader_of_the_old_views_cannot_get_beyond_the_event(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory, Memory.open(tmp_path) as other:
            await memory.publish(by_alice())
            assert await texts(other) == [by_alice().text]
            await memory.erase(SPACE, subject=ALICE)
            assert await texts(other) == ["[erased]"]
            await other.publish(by_alice("a-2", "Again."))
            assert await texts(memory) == ["[erased]", "Again."]

    run(work())


def test_erasing_while_others_publish_about_the_same_person_loses_nothing_else() -> None:
    async def work() -> None:
        async with sealed() as memory:
            await memory.publish_many([by_alice(f"a-{number}") for number in range(20)])

            async def publish() -> None:
                for number in range(20):
                    await memory.publish(said(f"b-{number}", f"Loaf {number}."))
                    await memory.publish(by_alice(f"late-{number}", "Late."))

            await asyncio.gather(publish(), memory.erase(SPACE, subject=ALICE))
            shown = await texts(memory, window=100)
            assert len(shown) == 60
            assert [text for text in shown if text.startswith("Loaf")] == [f"Loaf {number}." for number in range(20)]
            assert {text for text in shown if not text.startswith("Loaf")} <= {"[erased]", "Late."}
            assert (await memory.admin.dead_letters()).items == ()

    run(work())


# What was made from it


@pytest.mark.models("long_term")
def test_an_entry_about_a_person_goes_with_that_person_and_all_its_texts(told: Callable[[Work], None]) -> None:
    async def work(memory: Memory) -> None:
        await memory.long_term.retain(SPACE, BAKER, f"Alice plays the {MARKER}.", subject=ALICE, entry_id="e-1")
        await memory.long_term.update(SPACE, BAKER, "e-1", text=f"Alice has sold her {MARKER}.")
        await memory.long_term.retain(SPACE, BAKER, "The miller owes nine sacks.", entry_id="e-2")
        assert (await memory.erase(SPACE, subject=ALICE)).erased == 2
        assert [each.id for each in (await memory.long_term.list(SPACE, BAKER)).entries] == ["e-2"]

    told(work)


@pytest.mark.models("long_term")
def test_one_entry_is_erased_alone(told: Callable[[Work], None]) -> None:
    async def work(memory: Memory) -> None:
        await memory.publish(by_alice())
        for id_ in ("e-1", "e-2"):
            await memory.long_term.retain(SPACE, BAKER, f"Alice plays the {MARKER} {id_}.", subject=ALICE, entry_id=id_)
        report = await memory.erase(SPACE, entry="e-1")
        assert (report.erased, report.unit, report.names) == (1, "entry", ("e-1",))
        assert [each.id for each in (await memory.long_term.list(SPACE, BAKER)).entries] == ["e-2"]
        assert await texts(memory) == [by_alice().text]

    told(work)


@pytest.mark.models("long_term")
def test_an_entry_goes_with_each_of_its_sources(told: Callable[[Work], None]) -> None:
    async def work(memory: Memory) -> None:
        await memory.publish_many([by_alice(), said("c-1", "Rye.", "carol")])
        await memory.long_term.retain(SPACE, BAKER, "They met.", based_on=["a-1", "c-1"], entry_id="e-1")
        report = await memory.erase(SPACE, subject="carol")
        assert counted(report, "made_from") == {"memory.retained": 1}
        assert (await memory.long_term.list(SPACE, BAKER)).entries == ()
        assert await texts(memory) == [by_alice().text, "[erased]"]

    told(work)


@pytest.mark.models("long_term")
def test_nothing_is_made_from_an_erased_event(told: Callable[[Work], None]) -> None:
    async def work(memory: Memory) -> None:
        await memory.publish(by_alice())
        await memory.erase(SPACE, subject=ALICE)
        with pytest.raises(SourcesErased):
            await memory.long_term.retain(SPACE, BAKER, "They met.", based_on=["a-1"])

    told(work)


@pytest.mark.models("facts", "conversations")
def test_facts_of_a_turn_are_drawn_again_without_what_is_erased(told: Callable[[Work], None]) -> None:
    async def work(memory: Memory) -> None:
        await memory.configure_agent(SPACE, BAKER, extract_facts=True)
        talk = [
            {"role": "user", "name": ALICE, "content": f"I live in {MARKER.capitalize()}ton."},
            {"role": "user", "name": "bob", "content": "I live in Paris."},
        ]
        await memory.conversation.add(SPACE, BAKER, "s-1", talk)
        await memory.conversation.end_turn(SPACE, BAKER, "s-1")
        await memory.react(SPACE)
        facts = [each.text for each in (await memory.long_term.list(SPACE, BAKER)).entries]
        assert any(MARKER.capitalize() in text for text in facts)
        await memory.erase(SPACE, subject=ALICE)
        assert (await memory.long_term.list(SPACE, BAKER)).entries == ()
        await memory.react(SPACE)
        left = [each.text for each in (await memory.long_term.list(SPACE, BAKER)).entries]
        assert left == [text for text in facts if "Paris" in text]

    told(work)


@pytest.mark.models("beliefs")
def test_a_belief_goes_with_what_it_was_made_from(told: Callable[[Work], None]) -> None:
    async def work(memory: Memory) -> None:
        await memory.configure_agent(SPACE, ALICE, reflection_threshold=2)
        await memory.publish_many([by_alice(), said("b-1", "Bread!")])
        await memory.react(SPACE)
        assert MARKER in (await memory.beliefs(SPACE, ALICE)).beliefs[0].text
        report = await memory.erase(SPACE, subject=ALICE)
        assert counted(report, "made_from") == {"agent.reflected": 1}
        assert (await memory.beliefs(SPACE, ALICE)).beliefs == ()

    told(work)


@pytest.mark.models("conversations")
def test_a_compaction_goes_with_its_messages_and_the_others_show_again(told: Callable[[Work], None]) -> None:
    async def work(memory: Memory) -> None:
        talk: list[dict[str, Any]] = []
        for number in range(15):
            talk.append({"role": "user", "name": ALICE, "content": f"{MARKER} {number}?"})
            talk.append({"role": "assistant", "content": f"Loaf {number}."})
        await memory.conversation.add(SPACE, BAKER, "s-1", talk)
        assert (await memory.conversation.compact(SPACE, BAKER, "s-1")).compacted
        await memory.erase(SPACE, subject=ALICE)
        left = (await memory.conversation.messages(SPACE, BAKER, "s-1")).messages
        assert [each["content"] for each in left] == [f"Loaf {number}." for number in range(15)]

    told(work)


@pytest.mark.models("workspace")
def test_lines_of_the_daily_log_go_with_what_they_quote(told: Callable[[Work], None]) -> None:
    async def work(memory: Memory) -> None:
        asked = [
            {"role": "user", "name": ALICE, "content": f"Please tune the {MARKER} {number} for me by tomorrow."}
            for number in range(8)
        ]
        await memory.configure_agent(SPACE, BAKER, daily={"enabled": True})
        await memory.conversation.add(SPACE, BAKER, "s-1", asked)
        await memory.conversation.end_turn(SPACE, BAKER, "s-1")
        await memory.react(SPACE)
        listed = (await memory.items.list(SPACE, BAKER)).items
        assert any(MARKER in str(each.value) for each in listed)
        await memory.erase(SPACE, subject=ALICE)
        await memory.react(SPACE)
        assert not [each for each in (await memory.items.list(SPACE, BAKER)).items if MARKER in str(each.value)]

    told(work)


# Single messages and items


@pytest.mark.models("conversations")
def test_messages_are_erased_one_by_one_if_each_has_a_key(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(Settings.valid(home=tmp_path, seal="each", index="off")) as memory:
            talk = [{"role": "user", "content": f"{word} {number}"} for number, word in enumerate([MARKER, "bread"])]
            added = await memory.conversation.add(SPACE, BAKER, "s-1", talk)
            removed = await memory.conversation.remove(SPACE, BAKER, "s-1", [added.ids[0]], erase=True)
            assert removed.erasure is not None
            assert counted(removed.erasure) == {"user.injected": 1}
            assert [each.text for each in (await memory.episodic(SPACE, BAKER)).memories] == ["[erased]", "bread 1"]
        assert files_with(tmp_path, MARKER) == []

    run(work())


@pytest.mark.models("conversations")
def test_messages_without_keys_of_their_own_are_named(told: Callable[[Work], None]) -> None:
    async def work(memory: Memory) -> None:
        talk = [{"role": "user", "name": ALICE, "content": MARKER}]
        await memory.conversation.add(SPACE, BAKER, "s-1", talk)
        removed = await memory.conversation.clear(SPACE, BAKER, "s-1", erase=True)
        assert removed.erasure is not None
        assert (removed.erasure.erased, counted(removed.erasure, "unsealed")) == (0, {"user.injected": 1})
        assert "RECALLOG_SEAL=each" in removed.format()

    told(work)


@pytest.mark.models("items")
def test_all_values_of_an_item_are_erased(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(Settings.valid(home=tmp_path, seal="each", index="off")) as memory:
            await memory.items.put(SPACE, BAKER, "notes", "alice", f"{MARKER} one")
            await memory.items.put(SPACE, BAKER, "notes", "alice", f"{MARKER} two")
            await memory.items.put(SPACE, BAKER, "notes", "miller", "nine sacks")
            deleted = await memory.items.delete(SPACE, BAKER, "notes", "alice", erase=True)
            assert deleted.erasure is not None
            assert counted(deleted.erasure)["item.put"] == 2
            assert [each.key for each in (await memory.items.list(SPACE, BAKER, "notes")).items] == ["miller"]
        assert files_with(tmp_path, MARKER) == []

    run(work())


# The door


def test_the_command_says_what_it_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECALLOG_HOME", str(tmp_path))

    async def publish() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish(by_alice())

    run(publish())
    assert recallog("erase", SPACE, "--subject", ALICE, "--dry-run").out.startswith(
        "subject alice of village: would erase 1 event"
    )
    assert recallog("erase", SPACE, "--subject", ALICE).out == (
        "subject alice of village: erased 1 event\n  1 agent.spoke\n"
    )
    assert recallog("erase", SPACE, "--all").out == ("space village: erased 0 events; 1 event had been erased before\n")


def test_the_command_refuses_a_misspelt_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECALLOG_HOME", str(tmp_path))

    async def publish() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish(by_alice())

    run(publish())
    found = recallog("erase", "vilage", "--subject", ALICE)
    assert (found.code, "did you mean 'village'?" in found.err) == (1, True)
    assert recallog("erase", SPACE, "--subject", ALICE).out.startswith("subject alice of village: erased 1 event")
    again = recallog("erase", SPACE, "--subject", ALICE)
    assert (again.code, again.out) == (0, "subject alice of village: erased 0 events; 1 event had been erased before\n")
    assert recallog("erase", SPACE, "--subject", "alic").out == (
        "subject alic of village: erased 0 events: no event of village names this subject; "
        "check its name with recallog search\n"
    )


def test_the_key_of_a_unit_follows_from_its_place_in_records_if_the_store_has_forgotten_it() -> None:
    async def work() -> None:
        keys = MemoryKeys()
        async with sealed(keys=keys) as memory:
            await memory.publish(by_alice())
            keys._present.clear()
            memory._components.ledger.sealing._ciphers.clear()
            await memory.publish(by_alice("a-2"))
            report = await erasing.erase(memory._access, [Unit(SPACE, "subject", ALICE)], "clerk", None)
            assert report.erased == 2
            assert isinstance(report.position, Position)

    run(work())


def test_a_person_whose_key_is_missing_is_erased_before_a_copy_of_the_keys_is_put_back() -> None:
    async def work() -> None:
        keys = MemoryKeys()
        async with sealed(keys=keys) as memory:
            await memory.publish(by_alice())
            copy = {**keys._secrets}
            keys._secrets.clear()
            keys._present.clear()
            memory._components.ledger.sealing._secrets.clear()
            assert (await memory.erase(SPACE, subject=ALICE)).erased == 1
            keys._secrets.update(copy | {id_: secret for id_, secret in keys._secrets.items() if not secret})
            assert await texts(memory) == ["[erased]"]

    run(work())


class Interrupted(MemoryLedger):
    """Fails once, before it writes the event of an erasure."""

    is_first = True

    async def append(self, events: Sequence[Event], appended: Times = None) -> list[Position]:
        if self.is_first and events[0].kind == "unit.erased":
            self.is_first = False
            raise StorageUnavailable("killed")
        return await super().append(events, appended)


def test_a_single_event_can_be_erased_after_its_erasure_was_interrupted() -> None:
    async def work() -> None:
        ledger, keys = Interrupted(), MemoryKeys()
        ledger.sealing = Sealing(lambda: keys, "each")
        async with Memory(assemble(ledger, lambda namespace: MemoryStore())) as memory:
            await memory.publish(by_alice())
            with pytest.raises(StorageUnavailable):
                await memory.erase(SPACE, entry="a-1")
            assert (await memory.erase(SPACE, entry="a-1")).erased == 1
            assert await texts(memory) == ["[erased]"]

    run(work())


# Where workers maintain the views


class FoldedByWorkers(MemoryLedger):
    """A ledger whose views a worker maintains, as on a cluster."""

    folded_by_workers: ClassVar[bool] = True


def test_workers_build_the_views_again_and_the_call_waits_for_them() -> None:
    async def work() -> None:
        ledger, keys = FoldedByWorkers(unique_ids=False), MemoryKeys()
        ledger.sealing = Sealing(lambda: keys)
        components = assemble(ledger, lambda namespace: MemoryStore())
        live = LiveProjector(ProjectedViews(components.views.builder), InMemoryGroup(ledger))
        worker = asyncio.create_task(live.run())
        try:
            async with Memory(components) as memory:
                await memory.publish_many([by_alice(), said("b-1", "Bread!")])
                await memory.catch_up()
                assert await texts(memory) == [by_alice().text, "Bread!"]
                assert (await memory.erase(SPACE, subject=ALICE)).erased == 1
                assert await texts(memory) == ["[erased]", "Bread!"]
                last = await memory.publish(by_alice("a-2", "Again."))
                assert await texts(memory, after=last) == ["[erased]", "Bread!", "Again."]
        finally:
            await cancel_all(worker)

    run(work())
