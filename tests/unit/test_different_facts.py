"""Different facts stay different, equal ones are kept once, and a later value supersedes the earlier one."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from recallog import Memory
from recallog.models.long_term.agreement import agree
from recallog_projections.models.long_term import texts
from recallog_schemas.errors import InvalidArgument, Refused
from support.events import event, run

pytestmark = pytest.mark.models("long_term", "prompt")

A, B = ("s", "a"), ("s", "b")
MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
PAIRS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "pairs-of-facts.jsonl").read_text(encoding="utf-8").splitlines()
]
DIFFERENT = [
    ("Invoice 1041 was paid on 3 March.", "Invoice 1042 was paid on 3 March."),
    ("The database server is 10.0.0.4.", "The database server is 10.0.0.5."),
    ("The user likes sushi.", "The user does not like sushi."),
    ("Alice owes Bob 10 dollars.", "Bob owes Alice 10 dollars."),
    ("Deploy succeeded in staging.", "Deploy failed in staging."),
    ("Rye dough rests for one hour.", "Rye dough rests for two hours."),
]
NEVER_MERGED = [
    ("She is a doctor.", "She is the doctor."),
    ("Bob has a few friends.", "Bob has few friends."),
    ("No, cash is accepted.", "No cash is accepted."),
    ("The user may visit Tokyo.", "The user is allowed to visit Tokyo."),
    ("Bob owes Alice and Tom owes Jim.", "Bob owes Tom and Alice owes Jim."),
    ("The Monday meeting moved to Friday.", "The Friday meeting moved to Monday."),
    ("The report was written for Tom by Ann.", "The report was written by Tom for Ann."),
    ("Dogs are animals.", "Animals are dogs."),
    ("Bob likes red wine and beer.", "Bob likes red beer and wine."),
    ("The version is 1.5.", "The version is 1.50."),
    ("Rooms 101,102 are free.", "Rooms 101102 are free."),
    ("The user does not have to pay.", "The user must not pay."),
    ("Call at 3:00.", "Call at 3 am."),
    ("5 Mb of data are used.", "5 MB of data are used."),
    ("李四被张三打了。", "张三被李四打了。"),
    ("他没说他不来。", "他说他不来。"),
    ("用户喜欢红茶和咖啡。", "用户喜欢红咖啡和茶。"),
    ("预算一万五。", "预算一万零五。"),
    ("Der Hund beißt den Mann.", "Den Hund beißt der Mann."),
]


def are_equal(one: str, other: str) -> bool:
    ours, theirs = texts.normal_form_of(one), texts.normal_form_of(other)
    return ours.key == theirs.key and texts.are_equal("normalised", ours, theirs)


async def kept(memory: Memory, agent: Sequence[str] = A) -> list[str]:
    return [each.text for each in (await memory.long_term.list(*agent)).entries]


@pytest.mark.parametrize("entry_type", ["fact", "lesson"])
@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_both_of_two_different_texts_are_kept_in_either_order(one: str, other: str, entry_type: str) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            for agent, said in ((A, (one, other)), (B, (other, one))):
                outcomes = [(await memory.long_term.retain(*agent, text, type=entry_type)).outcome for text in said]
                assert outcomes == ["stored", "stored"]
                assert sorted(await kept(memory, agent)) == sorted(said)

    run(work())


@pytest.mark.parametrize(("one", "other"), [*DIFFERENT, *NEVER_MERGED])
def test_texts_that_differ_in_one_detail_are_neither_equal_nor_do_they_agree(one: str, other: str) -> None:
    assert not are_equal(one, other)
    assert not agree(one, other)
    assert not agree(other, one)


def test_of_the_frozen_pairs_no_different_one_is_lost_and_most_of_the_same_are_recognised() -> None:
    recognised = [pair for pair in PAIRS if are_equal(pair["a"], pair["b"]) or agree(pair["a"], pair["b"])]
    assert [pair for pair in recognised if not pair["same"]] == []
    assert len(recognised) >= 0.6 * sum(pair["same"] for pair in PAIRS)


def test_agreement_does_not_depend_on_which_text_comes_first() -> None:
    assert all(agree(pair["a"], pair["b"]) == agree(pair["b"], pair["a"]) for pair in PAIRS)


@pytest.mark.parametrize(
    ("dedup", "entry_type", "outcomes"),
    [
        (None, "fact", ["skipped", "skipped"]),
        (None, "note", ["skipped", "stored"]),
        ("exact", "fact", ["skipped", "stored"]),
        ("normalised", "note", ["skipped", "skipped"]),
        ("off", "fact", ["stored", "stored"]),
    ],
)
def test_dedup_says_which_texts_are_the_same(dedup: Any, entry_type: str, outcomes: list[str]) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.long_term.retain(*A, "The parcel weighs 2 kg.", type=entry_type, dedup=dedup)
            again = [
                (await memory.long_term.retain(*A, text, type=entry_type, dedup=dedup)).outcome
                for text in ("The parcel weighs  2 kg.", "the parcel weighs two kilograms")
            ]
            assert again == outcomes

    run(work())


def test_types_that_record_what_happened_are_never_compared() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            with pytest.raises(InvalidArgument, match="dedup"):
                await memory.long_term.retain(*A, "All is well.", type="summary", dedup="exact")

    run(work())


def test_an_entry_that_was_kept_twice_on_purpose_can_be_pinned() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.long_term.retain(*A, "Rye is dear.")
            second = await memory.long_term.retain(*A, "Rye is dear.", dedup="off")
            assert second.id is not None
            assert (await memory.long_term.update(*A, second.id, priority="pinned")).changed

    run(work())


# A later value supersedes the earlier one.


def test_a_later_value_supersedes_the_earlier_one_which_says_since_when_it_is_past() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            said = (("e-1", "Ann lives in Rome."), ("e-2", "Ann lives in Oslo."), ("e-3", "Ann lives in Kyiv."))
            for day, (id_, text) in enumerate(said):
                at = MONDAY + timedelta(days=day)
                await memory.publish(
                    event("memory.retained", space="s", agent="a", id=id_, at=at, payload={"text": text})
                )
            rome, oslo, kyiv = [(await memory.long_term.get(*A, id_)).entry for id_, _ in said]
            assert rome is not None
            assert oslo is not None
            assert kyiv is not None
            assert (rome.superseded_by, rome.valid_until) == ("e-3", MONDAY + timedelta(days=1))
            assert (oslo.superseded_by, oslo.valid_until, oslo.supersedes) == (
                "e-3",
                MONDAY + timedelta(days=2),
                ("e-1",),
            )
            assert (kyiv.superseded_by, kyiv.valid_until, kyiv.supersedes) == (None, None, ("e-2",))

    run(work())


def test_the_answer_names_what_is_superseded() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.long_term.retain(*A, "Rye dough rests for one hour.", type="lesson", entry_id="l-1")
            foreseen = await memory.long_term.compare(*A, "Rye dough rests for two hours.", type="lesson")
            assert foreseen.supersedes == ("l-1",)
            for _ in range(2):  # a repeat has the same answer
                answer = await memory.long_term.retain(
                    *A, "Rye dough rests for two hours.", type="lesson", entry_id="l-2"
                )
                assert (answer.outcome, answer.id, answer.supersedes) == ("stored", "l-2", ("l-1",))
                assert answer.format() == "stored l-2, supersedes l-1"
            again = await memory.long_term.retain(*A, "rye dough rests for 2 hours", type="lesson")
            assert again.format() == "duplicate of l-2 (equal)"
            lessons = await memory.long_term.lessons(*A, "How long does rye dough rest, one hour?")
            assert [each.entry.id for each in lessons.lessons] == ["l-2", "l-1"]
            assert "[past since " in lessons.format()

    run(work())


def test_recall_finds_the_present_value_first_and_the_context_says_which_one_is_past() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.long_term.retain(*A, "The server of the shop is 10.0.0.4.", entry_id="old")
            await memory.long_term.retain(*A, "The server of the shop is 10.0.0.5.", entry_id="new")
            question = "Is the server of the shop 10.0.0.4?"
            for options in ({}, {"preset": "four_channel"}):
                hits = (await memory.recall(*A, question, **options)).hits
                assert [(hit.event.id, hit.superseded_by) for hit in hits] == [("new", None), ("old", "new")]
                assert hits[1].valid_until is not None
            assert [hit.event.id for hit in (await memory.recall(*A, question, top_k=1)).hits] == ["new"]
            prompt = (await memory.context(*A, query=question)).text
            assert "[past since " in next(line for line in prompt.splitlines() if line.endswith("10.0.0.4."))
            assert "[past since " not in next(line for line in prompt.splitlines() if line.endswith("10.0.0.5."))
            assert "past since" in (await memory.search(*A, "10.0.0.4")).format()

    run(work())


def test_a_value_that_holds_again_is_stored_again() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            for id_, text in (
                ("e-1", "Ann lives in Rome."),
                ("e-2", "Ann lives in Oslo."),
                ("e-3", "Ann lives in Rome."),
            ):
                assert (await memory.long_term.retain(*A, text, entry_id=id_)).outcome == "stored"
            shown = {each.id: each.superseded_by for each in (await memory.long_term.list(*A)).entries}
            assert shown == {"e-1": "e-3", "e-2": "e-3", "e-3": None}

    run(work())


def test_a_value_holds_again_when_the_later_one_is_retracted() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.long_term.retain(*A, "Ann lives in Rome.", entry_id="e-1")
            await memory.long_term.retain(*A, "Ann lives in Oslo.", entry_id="e-2")
            await memory.long_term.retract(*A, "e-2", reason="it was Bob")
            entry = (await memory.long_term.get(*A, "e-1")).entry
            assert entry is not None
            assert (entry.superseded_by, entry.valid_until) == (None, None)

    run(work())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ann paid 10 dollars.", "Ann paid 20 dollars."),
        ("Ann lives in Rome.", "Ann lives in Rome with Bob."),
        ("Ann likes tea.", "Ann likes coffee."),
        ("Ann was born in Rome.", "Ann was born in 1990."),
        ("A dog is called Rex.", "A dog is called Bello."),
        ("Invoice 1041 costs 5 dollars.", "Invoice 1042 costs 6 dollars."),
        ("Does Ann live in Rome?", "Ann lives in Oslo."),
        ("Ann may live in Rome.", "Ann may live in Oslo."),
        ("小明昨天付了10元。", "小明昨天付了20元。"),
    ],
)
def test_two_facts_that_may_both_be_true_supersede_nothing(one: str, other: str) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.long_term.retain(*A, one)
            assert (await memory.long_term.retain(*A, other)).supersedes == ()

    run(work())


def test_an_event_of_an_earlier_rule_supersedes_nothing() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            for number, (rule, city) in enumerate(((2, "Rome"), (2, "Oslo"), (None, "Kyiv"))):
                payload = {"text": f"Ann lives in {city}.", "rule": rule}
                await memory.publish(event("memory.retained", space="s", agent="a", id=f"e-{number}", payload=payload))
            shown = {each.id: each.superseded_by for each in (await memory.long_term.list(*A)).entries}
            assert shown == {"e-0": "e-2", "e-1": "e-2", "e-2": None}

    run(work())


@pytest.mark.parametrize("least", ["tool", "import"])
def test_a_less_trusted_fact_contradicts_an_own_one_and_does_not_supersede_it(least: str) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            trust = {"trust": least}
            await memory.long_term.retain(*A, "Ann lives in Rome.", entry_id="own")
            answer = await memory.long_term.retain(*A, "Ann lives in Oslo.", entry_id="read", metadata=trust)
            assert answer.supersedes == ()
            shown = {each.id: each for each in (await memory.long_term.list(*A)).entries}
            assert [shown["own"].superseded_by, shown["own"].contradicts] == [None, ("read",)]
            answer = await memory.long_term.retain(*A, "Ann lives in Kyiv.", entry_id="moved")
            assert {*answer.supersedes} == {"own", "read"}

    run(work())


def test_an_own_fact_that_equals_a_less_trusted_one_is_kept_and_not_the_other_way_round() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            trust = {"trust": "import"}
            await memory.long_term.retain(*A, "Ann lives in Rome.", entry_id="read", metadata=trust)
            own = await memory.long_term.retain(*A, "Ann lives in Rome.", entry_id="own")
            again = await memory.long_term.retain(*A, "Ann lives in Rome.", entry_id="read-again", metadata=trust)
            assert (own.outcome, again.outcome) == ("stored", "skipped")
            hits = (await memory.recall(*A, "Where does Ann live?", filter={"trust": {"$gte": "agent"}})).hits
            assert [hit.event.id for hit in hits] == ["own"]

    run(work())


def test_facts_of_two_agents_that_disagree_are_told_as_contradicting() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish(event("space.configured", space="s", payload={"shared_kinds": ["memory.retained"]}))
            await memory.long_term.retain(*A, "The deadline is 1 July.", entry_id="of-a")
            answer = await memory.long_term.retain(*B, "The deadline is 2 July.", entry_id="of-b")
            assert answer.supersedes == ()
            hits = (await memory.recall(*A, "When is the deadline?")).hits
            assert {hit.event.id: hit.contradicts for hit in hits} == {"of-a": ("of-b",), "of-b": ("of-a",)}
            prompt = (await memory.context(*A, query="When is the deadline?")).text
            assert ("[of-a contradicts of-b] " in prompt, "[of-b contradicts of-a] " in prompt) == (True, True)

    run(work())


def test_lessons_that_disagree_are_told_as_contradicting() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish(event("space.configured", space="s", payload={"shared_kinds": ["memory.retained"]}))
            await memory.long_term.retain(*A, "Rye dough rests for one hour.", type="lesson", entry_id="of-a")
            await memory.long_term.retain(*B, "Rye dough rests for two hours.", type="lesson", entry_id="of-b")
            found = await memory.long_term.lessons(*A, "rye dough")
            assert {each.entry.id: each.entry.contradicts for each in found.lessons} == {
                "of-a": ("of-b",),
                "of-b": ("of-a",),
            }

    run(work())


def test_facts_of_one_agent_for_different_readers_contradict_each_other() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.long_term.retain(*A, "The deadline is 1 July.", entry_id="told", audience=["b"])
            await memory.long_term.retain(*A, "The deadline is 2 July.", entry_id="private")
            listed = (await memory.long_term.list(*A)).entries
            assert {each.id: each.contradicts for each in listed} == {"told": ("private",), "private": ("told",)}

    run(work())


# Answers say what happened to which id.


def test_an_update_and_a_restoration_name_what_they_supersede() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.long_term.retain(*A, "Ann lives in Rome.", entry_id="rome")
            await memory.long_term.retain(*A, "Rye keeps long.", entry_id="rye")
            updated = await memory.long_term.update(*A, "rye", text="Ann lives in Oslo.")
            assert (updated.supersedes, updated.format()) == (("rome",), "1 changed: rye\nsupersedes rome")
            assert (await memory.long_term.archive(*A, "rye")).supersedes == ()
            assert (await memory.long_term.restore(*A, "rye")).supersedes == ("rome",)
            assert (await memory.long_term.update(*A, "rye", priority="low")).supersedes == ()

    run(work())


def test_a_change_that_would_make_a_duplicate_is_refused_with_the_id_of_the_other_entry() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.long_term.retain(*A, "Ann buys rye.", entry_id="e-1")
            await memory.long_term.retain(*A, "Bob buys rye.", entry_id="e-2")
            with pytest.raises(Refused, match="the entry e-1 of a has this text already"):
                await memory.long_term.update(*A, "e-2", text="ann buys rye")
            await memory.long_term.archive(*A, "e-1")
            await memory.long_term.retain(*A, "Ann buys rye.", entry_id="e-3")
            with pytest.raises(Refused, match="the entry e-3 of a has this text already"):
                await memory.long_term.restore(*A, "e-1")

    run(work())


# What was merged can be restored.


def test_an_archived_entry_is_restored() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            for id_, text in (("e-1", "Ann buys rye."), ("e-2", "Ann purchases rye.")):
                await memory.long_term.retain(*A, text, entry_id=id_)
            payload = {"entry": "e-1", "duplicate_of": "e-2"}
            await memory.publish(event("memory.archived", space="s", agent="a", payload=payload))
            merged = (await memory.long_term.get(*A, "e-1")).entry
            assert merged is not None
            assert (merged.status, merged.duplicate_of) == ("archived", "e-2")
            assert (await memory.long_term.restore(*A, "e-1")).changed
            restored = (await memory.long_term.get(*A, "e-1")).entry
            assert restored is not None
            assert (restored.status, restored.duplicate_of, restored.at) == ("live", None, merged.at)
            assert (await memory.long_term.restore(*A, "e-1")).refused == {"e-1": "live"}
            with pytest.raises(Refused):
                await memory.long_term.restore(*B, "e-1")
            operations = [each.operation for each in (await memory.long_term.audit(*A, "e-1")).changes]
            assert operations == ["retained", "archived", "restored"]

    run(work())


def test_an_entry_is_not_restored_beside_one_with_its_text() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.long_term.retain(*A, "Ann buys rye.", entry_id="e-1")
            await memory.publish(event("memory.archived", space="s", agent="a", payload={"entry": "e-1"}))
            await memory.long_term.retain(*A, "Ann buys rye.", entry_id="e-2")
            with pytest.raises(Refused, match="has this text already"):
                await memory.long_term.restore(*A, "e-1")
            assert await kept(memory) == ["Ann buys rye."]

    run(work())
