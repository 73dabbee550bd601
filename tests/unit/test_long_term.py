"""`memory.long_term`: what is retained, refused, changed and forgotten, through rebuilds and repeated deliveries."""

import asyncio
import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from recallog import IdConflict, InvalidArgument, Memory, Refused
from recallog.operations import pipeline
from recallog.settings import Settings
from recallog_schemas import Event
from recallog_schemas.models.long_term import limits as long_term_limits
from support.cli import recallog
from support.events import event, run
from support.twice import Check, events_of
from support.twice import memory as memory

pytestmark = pytest.mark.models("long_term")

A = ("s", "a")
B = ("s", "b")


@pytest.fixture
def checks() -> list[Check]:
    """What a test adds."""
    return []


async def told(memory: Memory, agent: str = "a", **options: Any) -> list[tuple[str, str]]:
    """The ids and texts of the list of an agent."""
    return [(each.id, each.text) for each in (await memory.long_term.list("s", agent, **options)).entries]


def retained(id_: str, text: str, agent: str = "a", **payload: Any) -> Event:
    return event("memory.retained", space="s", agent=agent, id=id_, payload={"text": text, **payload})


def changed(kind: str, agent: str = "a", **payload: Any) -> Event:
    return event(f"memory.{kind}", space="s", agent=agent, payload=payload)


def granted(units: float) -> Event:
    return changed("metered", units=units)


# Retaining.


async def test_a_lesson_costs_once_and_reading_is_free(memory: Memory, checks: list[Check]) -> None:
    await memory.publish(granted(10))
    first = await memory.long_term.retain(*A, "LESSON: sift the flour", type="lesson")
    assert (first.outcome, first.similarity, first.reason) == ("stored", None, None)
    assert (await memory.long_term.stats(*A)).balance == 9
    again = await memory.long_term.retain(*A, " LESSON:  sift the flour ", type="lesson")
    assert (again.id, again.outcome, again.similarity, again.reason) == (first.id, "skipped", 1.0, "equal")
    assert again.position is None
    assert (await memory.long_term.stats(*A)).balance == 9
    lessons = await memory.long_term.lessons(*A, "sift flour")
    assert [each.entry.id for each in lessons.lessons] == [first.id]
    assert (await memory.search(*A, "sift flour")).hits[0].id == first.id

    async def check(memory: Memory) -> object:
        stats = await memory.long_term.stats(*A)
        assert (stats.balance, stats.spent, stats.lesson_count, stats.types) == (9, 1, 1, {"lesson": 1})
        return await told(memory)

    checks.append(check)
    assert [each.kind for each in await events_of(memory)] == ["memory.metered", "memory.retained"]


@pytest.mark.models("tiers")
async def test_an_entry_says_all_that_was_retained(memory: Memory, checks: list[Check]) -> None:
    await memory.publish(retained("base", "Flour is dear."))
    answer = await memory.long_term.retain(
        *A,
        "Alice likes rye.",
        entry_id="rye",
        entity="Alice",
        category="taste",
        source="a talk",
        topic="bread",
        importance=0.9,
        confidence=0.5,
        tier="slow",
        priority="critical",
        red_line=True,
        metadata='{"n": 1}',
        based_on=["base"],
        subject="alice",
        audience=["b"],
        session="x1",
    )
    assert (answer.id, answer.outcome) == ("rye", "stored")

    async def check(memory: Memory) -> object:
        entry = (await memory.long_term.get(*A, "rye")).entry
        assert entry is not None
        shown = entry.model_dump(exclude={"at", "updated_at"})
        shown["position"] = str(entry.position) in ("0:1", "0:2")
        assert shown == {
            "id": "rye", "text": "Alice likes rye.", "type": "fact", "version": 1, "status": "live", "owner": "a",
            "priority": "critical", "tier": "slow", "importance": 0.9, "confidence": 0.5, "entity": "Alice",
            "category": "taste", "source": "a talk", "topic": "bread", "metadata": {"n": 1}, "sources": ("base",),
            "subject": "alice", "red_line": True, "preseeded": False, "position": True,
            "superseded_by": None, "valid_until": None, "contradicts": (), "supersedes": (), "duplicate_of": None,
        }  # fmt: skip
        assert entry.updated_at == entry.at
        assert (entry.label, entry.format()) == ("[critical]", "rye fact [critical] Alice likes rye.")
        assert (await memory.long_term.get(*B, "rye")).entry == entry
        assert (await memory.long_term.get("s", "c", "rye")).entry is None
        return entry

    checks.append(check)
    assert (await events_of(memory))[1].session == "x1"


async def test_a_repeat_with_the_same_id_answers_the_same(memory: Memory, checks: list[Check]) -> None:
    first = await memory.long_term.retain(*A, "Rye.", entry_id="rye")
    again = await memory.long_term.retain(*A, "Rye.", entry_id="rye")
    assert (again.id, again.outcome, again.reason) == (first.id, "stored", None)
    await memory.publish(changed("erased", entries=["rye"]))
    late = await memory.long_term.retain(*A, "Rye.", entry_id="rye")
    assert (late.id, late.outcome, late.reason) == ("rye", "stored", "erased")
    checks.append(told)
    assert [each.kind for each in await events_of(memory)] == ["memory.retained", "memory.erased"]


def test_an_id_that_names_another_event_is_a_conflict() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.long_term.retain(*A, "Rye.", entry_id="rye")
            with pytest.raises(IdConflict):
                await memory.long_term.retain(*A, "Wheat.", entry_id="rye")
            assert await told(memory) == [("rye", "Rye.")]

    run(work())


async def test_what_exceeds_the_balance_is_refused_and_writes_nothing(memory: Memory, checks: list[Check]) -> None:
    await memory.publish(granted(1))
    refused = await memory.long_term.retain(*A, "Dear.", cost=2)
    assert (refused.id, refused.outcome, refused.reason, refused.ok) == (None, "refused", "balance", False)
    assert refused.format() == "refused (balance)"
    assert (await memory.long_term.retain(*A, "Cheap.", cost=0.5)).outcome == "stored"
    checks.append(told)
    assert len(await events_of(memory)) == 2


async def test_the_quality_gate_rejects_what_says_too_little(memory: Memory, checks: list[Check]) -> None:
    retain = memory.long_term.retain
    assert (await retain(*A, "ACTION: baked")).outcome == "stored"
    await memory.publish(event("agent.configured", space="s", agent="a", payload={"quality": {"enabled": True}}))
    for text, reason in (
        ("action: baked bread for the miller", "action"),
        ("LESSON: bread bread bread", "min_terms"),
        ("LESSON: the of it", "min_terms"),
    ):
        rejected = await retain(*A, text, type="lesson")
        assert (rejected.outcome, rejected.reason, rejected.position, rejected.id) == (
            "rejected",
            reason,
            None,
            None,
        )
    assert (await retain(*A, "LESSON: sift coarse flour", type="lesson")).outcome == "stored"
    assert (await retain(*B, "Short")).outcome == "stored"
    checks.append(told)
    assert len(await events_of(memory)) == 4


def test_a_call_that_may_be_sent_twice_has_one_id() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            given = {"space": A[0], "agent": A[1], "text": "Rye."}
            call = pipeline.of_memory(memory, memory.long_term.operations["retain"], given)
            call.make_repeatable()
            chosen = call.arguments["entry_id"]
            call.make_repeatable()
            assert [(await call.execute()).id, (await call.execute()).id] == [chosen, chosen]
            named = pipeline.of_memory(memory, call.operation, {**given, "entry_id": "rye"})
            named.make_repeatable()
            assert named.arguments["entry_id"] == "rye"

    run(work())


# Pins.


async def test_at_most_five_entries_are_pinned(memory: Memory, checks: list[Check]) -> None:
    for n in range(5):
        assert (await memory.long_term.retain(*A, f"pin {n}", priority="pinned", entry_id=f"p{n}")).reason is None
    with pytest.raises(Refused, match=r"pinned 5 entries.*p0, p1, p2, p3, p4") as caught:
        await memory.long_term.retain(*A, "pin 5", priority="pinned")
    assert caught.value.reason == "pins"
    await memory.publish_many([retained(f"raw {n}", f"raw {n}", priority="pinned") for n in (6, 7)])
    assert {entry.id: entry.priority for entry in (await memory.long_term.list(*A, limit=2)).entries} == {
        "raw 6": "normal",
        "raw 7": "normal",
    }
    with pytest.raises(Refused, match="pinned 5 entries"):
        await memory.long_term.update(*A, "raw 6", priority="pinned")
    assert (await memory.long_term.update(*A, "p0", priority=None)).ids == ("p0",)
    assert (await memory.long_term.update(*A, "raw 6", priority="pinned")).changed

    async def check(memory: Memory) -> object:
        assert (await memory.long_term.stats(*A)).pinned == ("p1", "p2", "p3", "p4", "raw 6")
        return (await memory.long_term.list(*A, order="priority")).entries

    checks.append(check)
    assert len(await events_of(memory)) == 5 + 2 + 2


def test_without_a_question_priority_ranks_by_place_and_boost() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            for priority in ("normal", "low", "critical", "pinned"):
                await memory.long_term.retain(*A, priority, priority=priority, entry_id=priority)  # type: ignore[arg-type]
            page = await memory.long_term.list(*A, order="priority")
            assert [each.id for each in page.entries] == ["pinned", "critical", "low", "normal"]
            assert [each.label for each in page.entries] == ["[pinned]", "[critical]", "[low]", ""]
            first = await memory.long_term.list(*A, order="priority", limit=3)
            rest = await memory.long_term.list(*A, order="priority", limit=3, cursor=first.next)
            assert [*first.entries, *rest.entries] == [*page.entries]
            assert rest.next is None

    run(work())


async def test_of_two_pins_at_the_same_moment_one_is_stored_with_priority_normal(
    memory: Memory, checks: list[Check]
) -> None:
    for n in range(4):
        await memory.long_term.retain(*A, f"pin {n}", priority="pinned")
    answers = await asyncio.gather(
        *(memory.long_term.retain(*A, f"late {n}", priority="pinned") for n in range(2)), return_exceptions=True
    )
    late = [each for each in answers if isinstance(each, Refused) or getattr(each, "reason", None) == "pins"]
    assert len(late) == 1

    async def check(memory: Memory) -> object:
        pinned = (await memory.long_term.stats(*A)).pinned
        assert len(pinned) == 5
        return pinned

    checks.append(check)


# Changing.


async def test_an_update_makes_a_version_and_null_a_default(memory: Memory, checks: list[Check]) -> None:
    await memory.long_term.retain(*A, "Rye.", entry_id="rye", entity="bread", importance=0.9)
    change = await memory.long_term.update(*A, "rye", text="Rye is dark.", entity=None, event_id="change")
    assert (change.changed, change.ids, change.count, change.format()) == (True, ("rye",), 1, "1 changed: rye")
    again = await memory.long_term.update(*A, "rye", text="Rye is dark.", entity=None, event_id="change")
    assert (again.changed, again.ids) == (True, ("rye",))

    async def check(memory: Memory) -> object:
        entry = (await memory.long_term.get(*A, "rye")).entry
        assert entry is not None
        assert (entry.text, entry.version, entry.entity, entry.importance) == ("Rye is dark.", 2, None, 0.9)
        return entry

    checks.append(check)
    assert len(await events_of(memory)) == 2


async def test_only_its_owner_changes_an_entry(memory: Memory, checks: list[Check]) -> None:
    await memory.long_term.retain(*A, "Rye.", entry_id="rye")
    for change in (
        memory.long_term.update(*B, "rye", text="Wheat."),
        memory.long_term.forget(*B, ["rye"]),
        memory.long_term.retract(*B, "rye"),
        memory.long_term.transfer(*B, "c", ["rye"]),
        memory.long_term.update(*B, "unknown", text="Wheat."),
        memory.long_term.forget(*B, ["unknown"]),
    ):
        with pytest.raises(Refused, match="b owns no entry") as caught:
            await change
        assert caught.value.reason == "not_owner"
    await memory.publish_many(
        [
            changed("updated", "b", entry="rye", text="Wheat."),
            changed("erased", "b", entries=["rye"]),
        ]
    )

    async def check(memory: Memory) -> object:
        assert await told(memory) == [("rye", "Rye.")]
        return (await memory.long_term.audit(*A)).changes

    checks.append(check)
    assert len(await events_of(memory)) == 3


async def test_a_refused_update_says_why_and_changes_nothing(memory: Memory, checks: list[Check]) -> None:
    for id_, text in (("rye", "Rye."), ("oats", "Oats."), ("old", "Old.")):
        await memory.long_term.retain(*A, text, entry_id=id_)
    await memory.long_term.retract(*A, "old")
    for id_, reason in (("rye", "equal"), ("old", "retracted")):
        with pytest.raises(Refused) as caught:
            await memory.long_term.update(*A, id_, text="Oats.")
        assert caught.value.reason == reason
    with pytest.raises(InvalidArgument, match="at least one field"):
        await memory.long_term.update(*A, "rye")
    checks.append(told)
    assert len(await events_of(memory)) == 4


async def test_a_retracted_entry_is_read_by_its_id_alone(memory: Memory, checks: list[Check]) -> None:
    await memory.long_term.retain(*A, "Rye.", entry_id="rye", audience=["b"])
    assert (await memory.long_term.retract(*A, "rye", reason="it was wheat")).changed
    again = await memory.long_term.retract(*A, "rye")
    assert (again.changed, again.position, again.refused, again.ok) == (False, None, {"rye": "retracted"}, False)

    async def check(memory: Memory) -> object:
        found = await memory.long_term.get(*A, "rye")
        assert found.entry is not None
        assert (found.entry.status, (await memory.long_term.get(*B, "rye")).entry) == ("retracted", None)
        assert await told(memory) == []
        audit = (await memory.long_term.audit(*A, "rye")).changes
        assert [(each.operation, each.reason) for each in audit] == [
            ("retained", None),
            ("retracted", "it was wheat"),
        ]
        return found.entry

    checks.append(check)
    assert len(await events_of(memory)) == 2


async def test_transferred_entries_are_their_receivers(memory: Memory, checks: list[Check]) -> None:
    retain = memory.long_term.retain
    await retain(*A, "Rye.", entry_id="rye", priority="pinned", audience=["c"])
    await retain(*A, "Oats.", entry_id="oats")
    await retain(*B, "Oats.", entry_id="theirs")
    moved = await memory.long_term.transfer(*A, "b", ["rye", "oats", "rye"])
    assert (moved.ids, moved.refused) == (("rye",), {"oats": "equal"})
    with pytest.raises(InvalidArgument, match=r"^to: "):
        await memory.long_term.transfer(*A, "a", ["oats"])

    async def check(memory: Memory) -> object:
        assert await told(memory) == [("oats", "Oats.")]
        entry = (await memory.long_term.get(*B, "rye")).entry
        assert entry is not None
        assert (entry.owner, entry.priority) == ("b", "normal")
        assert [(await memory.long_term.get("s", each, "rye")).entry for each in ("a", "c")] == [None, None]
        assert [each.operation for each in (await memory.long_term.audit(*B, "rye")).changes] == ["received"]
        return await told(memory, "b")

    checks.append(check)
    assert len(await events_of(memory)) == 4


# Forgetting.


@pytest.mark.models("prompt")
async def test_what_is_forgotten_is_absent_everywhere(memory: Memory, checks: list[Check]) -> None:
    await memory.long_term.retain(*A, "The rye burned.", type="lesson", entry_id="rye")
    before = (await memory.long_term.get(*A, "rye")).checkpoint
    forgotten = await memory.long_term.forget(*A, ["rye"], reason="asked to")
    assert (forgotten.changed, forgotten.count) == (True, 1)
    again = await memory.long_term.forget(*A, ["rye"])
    assert (again.changed, again.count, again.position) == (False, 0, None)
    assert again.format() == "nothing changed\nrye: erased"
    anew = await memory.long_term.retain(*A, "The oats burned.", type="lesson")
    assert anew.outcome == "stored"

    async def check(memory: Memory) -> object:
        for at in ({}, {"as_of": before}):
            assert "rye" not in dict(await told(memory, **at))
            assert (await memory.long_term.get(*A, "rye", **at)).entry is None  # type: ignore[arg-type]
            assert (await memory.entries(*A, ["rye"], **at)).missing == ("rye",)  # type: ignore[arg-type]
            for answer in (
                await memory.recall(*A, "the rye burned", **at),  # type: ignore[arg-type]
                await memory.context(*A, query="the rye burned", **at),  # type: ignore[arg-type]
                await memory.long_term.lessons(*A, "the rye burned", **at),  # type: ignore[arg-type]
                await memory.long_term.audit(*A, **at),  # type: ignore[arg-type]
                await memory.long_term.erasures(*A, **at),  # type: ignore[arg-type]
            ):
                assert "rye burned" not in answer.model_dump_json().replace('"query":"the rye burned"', "")
        (erasure,) = (await memory.long_term.erasures(*A)).erasures
        assert (erasure.id, erasure.actor, erasure.reason) == ("rye", "a", "asked to")
        audit = (await memory.long_term.audit(*A)).changes
        assert [each.operation for each in audit] == ["retained", "erased", "retained"]
        return erasure

    checks.append(check)
    assert len(await events_of(memory)) == 3


async def test_a_forgotten_text_that_is_retained_later_is_a_new_entry(memory: Memory, checks: list[Check]) -> None:
    first = await memory.long_term.retain(*A, "Rye.")
    assert first.id is not None
    await memory.long_term.forget(*A, [first.id])
    anew = await memory.long_term.retain(*A, "Rye.")
    assert (anew.outcome, anew.id != first.id) == ("stored", True)
    checks.append(told)
    assert len(await events_of(memory)) == 3


async def test_all_about_a_person_is_forgotten_and_counted(memory: Memory, checks: list[Check]) -> None:
    for n in range(2):
        await memory.long_term.retain(*A, f"Likes {n}.", subject="alice")
    await memory.long_term.retain(*A, "Likes 3.", subject="alice/b", entry_id="other")
    await memory.long_term.retain(*A, "Old.", subject="alice", entry_id="old")
    await memory.long_term.retract(*A, "old")
    assert (await memory.long_term.forget(*A, subject="alice")).count == 3
    again = await memory.long_term.forget(*A, subject="alice")
    assert (again.count, again.changed, again.position) == (0, False, None)
    checks.append(told)
    events = await events_of(memory)
    assert len(events) == 6


def test_more_entries_about_a_person_than_one_event_names() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many(
                [retained(f"e{n}", f"text {n}").model_copy(update={"subject": "alice"}) for n in range(450)]
            )
            assert (await memory.long_term.forget(*A, subject="alice")).count == 450
            assert await told(memory) == []
            assert len(await events_of(memory)) == 453

    run(work())


def test_what_is_forgotten_is_named_by_ids_or_by_a_person() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            for given in ({}, {"entry_ids": ["e"], "subject": "alice"}, {"entry_ids": []}):
                with pytest.raises(InvalidArgument, match=r"^entry_ids: "):
                    await memory.long_term.forget(*A, **given)

    run(work())


# Lists and lessons.


async def test_pages_show_each_live_entry_once(memory: Memory, checks: list[Check]) -> None:
    await memory.publish_many([retained(f"e{n}", f"text {n}", type="fact" if n % 3 else "lesson") for n in range(10)])

    async def check(memory: Memory) -> object:
        for entry_type in (None, "lesson", "note"):
            shown, cursor = [], None
            while True:
                page = await memory.long_term.list(*A, type=entry_type, limit=3, cursor=cursor)
                assert len(page.entries) <= 3
                shown += [each.id for each in page.entries]
                cursor = page.next
                if cursor is None:
                    break
            wanted = {None: range(9, -1, -1), "lesson": (9, 6, 3, 0), "note": ()}[entry_type]
            assert shown == [f"e{n}" for n in wanted]
        return None

    with pytest.raises(InvalidArgument, match="cursor: is not the `next`"):
        await memory.long_term.list(*A, cursor="x")
    assert (await memory.long_term.list(*B)).format() == "(nothing)"
    checks.append(check)


def test_pinned_lessons_come_first_and_boosts_lift_others() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            for id_, text, priority in (
                ("far", "Oil the hinges.", "pinned"),
                ("close", "Knead dough slowly, twice.", "normal"),
                ("lifted", "Knead everything.", "important"),
                ("low", "Knead dough slowly, thrice.", "low"),
            ):
                await memory.long_term.retain(*A, text, type="lesson", priority=priority, entry_id=id_)  # type: ignore[arg-type]
            await memory.long_term.retain(*A, "Knead dough slowly: a fact.")
            found = await memory.long_term.lessons(*A, "knead dough slowly")
            assert found.relevance_by == "words"
            assert [(each.entry.id, each.score) for each in found.lessons] == [
                ("far", 1.0), ("close", 1.0), ("low", 0.9), ("lifted", 0.483333),
            ]  # fmt: skip
            assert found.format().splitlines()[0] == "- [pinned] Oil the hinges."
            assert (await memory.long_term.lessons(*A, "knead", limit=2)).lessons[0].entry.id == "far"
            assert (await memory.long_term.lessons(*B, "knead")).lessons == ()

    run(work())


def test_an_old_lesson_is_found_below_a_thousand_facts() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            old = retained("old", "Knead dough slowly.", type="lesson")
            shared = retained("shared", "Knead with wet hands.", type="lesson", agent="b")
            facts = [
                retained(f"f{n}", f"The miller owes {n} sacks.") for n in range(long_term_limits.RECALL_ENTRIES + 1)
            ]
            await memory.publish_many([old, *facts, shared.model_copy(update={"audience": ("a",)})])
            found = await memory.long_term.lessons(*A, "knead")
            assert {each.entry.id for each in found.lessons} == {"old", "shared"}
            for order in ("newest", "priority"):
                page = await memory.long_term.list(*A, order=order, type="lesson")  # type: ignore[arg-type]
                assert ([each.id for each in page.entries], page.next) == (["old"], None)

    run(work())


# Seeding.


async def test_seeding_twice_is_once(memory: Memory, checks: list[Check]) -> None:
    first, second = [await memory.long_term.seed(*A) for _ in range(2)]
    assert (len(first.ids), first.written, second.written, second.position) == (5, 5, 0, None)
    assert first.ids == second.ids

    async def check(memory: Memory) -> object:
        entries = (await memory.long_term.list(*A)).entries
        assert [(each.preseeded, each.type) for each in entries] == [(True, "lesson")] * 5
        return entries

    checks.append(check)
    assert len(await events_of(memory)) == 5


def seed(home: str) -> None:
    async def work() -> None:
        async with Memory.open(Settings(home=Path(home), index="off")) as memory:
            assert len((await memory.long_term.seed(*A)).ids) == 5

    run(work())


def test_two_processes_that_seed_at_once_write_five_events(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=seed, args=(str(tmp_path),)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0

    async def work() -> None:
        async with Memory.open(Settings(home=tmp_path, index="off")) as memory:
            assert len(await told(memory)) == len(await events_of(memory)) == 5

    run(work())


def test_seeding_with_texts_of_ones_own() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            seeded = await memory.long_term.seed(*A, ["Rye.", "Oats.", "Rye."], type="fact")
            assert (len(seeded.ids), seeded.written, seeded.format()) == (2, 2, "2 entries, 2 written")
            assert [text for _, text in await told(memory)] == ["Oats.", "Rye."]
            with pytest.raises(InvalidArgument, match=r"^texts"):
                await memory.long_term.seed(*A, [" "])

    run(work())


# The command line.


def test_the_commands_of_long_term_memory(tmp_path: Path) -> None:
    home = {"RECALLOG_HOME": str(tmp_path / "home"), "RECALLOG_INDEX": "off"}

    def ran(*words: str) -> Any:
        return recallog("long-term", *words, **home)

    written = ran("retain", "s", "a", "Sift the flour.", "--type", "lesson", "--entry-id", "l-1", "--json")
    assert (written.code, written.json["outcome"], written.json["id"]) == (0, "stored", "l-1")
    again = ran("retain", "s", "a", "Sift the flour.", "--type", "lesson")
    assert (again.code, again.out) == (0, "duplicate of l-1 (equal)\n")
    assert ran("update", "s", "a", "l-1", "--priority", "critical").out == "1 changed: l-1\n"
    assert ran("list", "s", "a").out == "l-1 lesson [critical] Sift the flour.\n"
    assert ran("lessons", "s", "a", "flour").out == "- [critical] Sift the flour.\n"
    assert "text: Sift the flour." in ran("get", "s", "a", "l-1").out
    assert ran("stats", "s", "a", "--json").json["lesson_count"] == 1
    refused = ran("forget", "s", "b", "l-1")
    assert (refused.code, refused.out) == (1, "")
    assert "b owns no entry l-1" in refused.err
    assert ran("transfer", "s", "a", "b", "l-1").out == "1 changed: l-1\n"
    assert ran("retract", "s", "b", "l-1").out == "1 changed: l-1\n"
    assert ran("forget", "s", "b", "l-1", "--reason", "asked to").out == "1 changed: l-1\n"
    once_more = ran("forget", "s", "b", "l-1")
    assert (once_more.code, once_more.out) == (1, "nothing changed\nl-1: erased\n")
    assert [line.split()[1:] for line in ran("erasures", "s", "b").out.splitlines()] == [
        ["erased", "l-1", "by", "b", "(asked", "to)"]
    ]
    assert [line.split()[1] for line in ran("audit", "s", "b").out.splitlines()] == ["received", "retracted", "erased"]
    assert ran("seed", "s", "a").out == "5 entries, 5 written\n"
    first = ran("list", "s", "a", "--limit", "3")
    assert (len(first.out.splitlines()), first.err.split()[:2]) == (3, ["more:", "--cursor"])
    rest = ran("list", "s", "a", "--limit", "3", *first.err.split()[1:])
    assert (len(rest.out.splitlines()), rest.err) == (2, "")
    assert recallog("publish", "s", "a", "memory.metered", "--payload", '{"units": 0}', **home).code == 0
    unpaid = ran("retain", "s", "a", "Too dear.")
    assert (unpaid.code, unpaid.out) == (1, "refused (balance)\n")
    assert "memory.metered grants some" in unpaid.err
    without_index = ran("deduplicate", "s", "a")
    assert (without_index.code, without_index.out) == (2, "")
    assert "Leave RECALLOG_INDEX unset" in without_index.err
    assert ran("retain", "s", "a", "x", "--metadata", "no json").code == 2


@pytest.mark.parametrize(
    "command", sorted(str(each.command) for each in Memory.facades["long_term"].operations.values())
)
def test_each_command_has_help_with_an_example(command: str) -> None:
    shown = recallog(*command.split(), "--help")
    assert shown.code == 0
    assert f"Example: recallog {command}" in shown.out
