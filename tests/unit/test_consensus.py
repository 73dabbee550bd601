"""`memory.consensus`: topics, strengths, similar ones, dissents, what supersedes what, and who sees it."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from recallog import InvalidArgument, Memory, Refused
from recallog_projections.models.consensus import projection as view
from recallog_schemas import Event
from support.cli import recallog
from support.events import event, run

pytestmark = pytest.mark.models("consensus")

VILLAGE = ("village", "baker")
FIVE = ("a", "b", "c", "d", "e")
DESIGN = "rate limiter design"


def ended(work: Callable[[Memory], Awaitable[Any]]) -> int:
    """`work(memory)` on a memory without files, then a rebuild; the number of events."""

    async def within() -> int:
        async with Memory.in_memory() as memory:
            await work(memory)
            before = await _count(memory)
            await memory.admin.rebuild("views")
            assert await _count(memory) == before
            assert (await memory.admin.verify("views")).ok
            return before

    return run(within())


async def _count(memory: Memory) -> int:
    return len([data async for batch in memory.admin.records() for _, data in batch.records])


async def record(memory: Memory, topic: str = DESIGN, **fields: Any) -> Any:
    fields = {"confidence": 0.5, "participating": FIVE, "agreeing": ("a", "b", "c")} | fields
    agent = fields.pop("agent", "baker")
    return await memory.consensus.record("village", agent, topic, fields.pop("conclusion", "a bucket"), **fields)


async def similar(memory: Memory, topic: str, agent: str = "baker", **fields: Any) -> list[tuple[str, float]]:
    found = await memory.consensus.find_similar("village", agent, topic, **fields)
    return [(each.consensus.id, each.similarity) for each in found.found]


async def after_rebuild(memory: Memory, ask: Callable[[], Awaitable[Any]]) -> Any:
    """The answer of `ask`, which a rebuild does not change."""
    answer = await ask()
    await memory.admin.rebuild("views")
    assert await ask() == answer
    return answer


# Topics and strengths.


def test_three_of_five_agree_on_a_topic_and_it_is_found_by_its_words_in_any_order_and_case() -> None:
    async def work(memory: Memory) -> None:
        recorded = await record(memory, event_id="c-1")
        assert (recorded.topic_hash, recorded.strength, recorded.agreement) == ("6f7757575adb75d6", "moderate", 0.6)
        assert (recorded.id, recorded.supersedes, recorded.superseded_by) == ("c-1", (), None)
        assert await after_rebuild(memory, lambda: similar(memory, "Design RATE limiter")) == [("c-1", 1.0)]
        assert await after_rebuild(memory, lambda: similar(memory, "rate limiter testing")) == [("c-1", 0.5)]
        found = await memory.consensus.find_similar(*VILLAGE, "Design RATE limiter")
        assert (found.topic_hash, found.found[0].consensus) == ("6f7757575adb75d6", recorded)
        assert found.format() == "1.00 c-1 moderate rate limiter design: a bucket"

    assert ended(work) == 1


@pytest.mark.parametrize(
    ("agreeing", "of", "strength"),
    [(5, 5, "unanimous"), (9, 10, "strong"), (4, 5, "moderate"), (3, 5, "moderate"), (1, 2, "weak"), (2, 5, "split"),
     (0, 3, "split"), (0, 0, "split")],
)  # fmt: skip
def test_the_strength_follows_from_the_share_that_agrees(agreeing: int, of: int, strength: str) -> None:
    async def work(memory: Memory) -> None:
        names = [f"agent-{number}" for number in range(of)]
        recorded = await record(memory, participating=names, agreeing=names[:agreeing])
        assert (recorded.strength, recorded.agreement) == (strength, round(agreeing / of, 4) if of else 0.0)

    ended(work)


def test_a_strength_that_is_given_is_shown_as_it_is_and_agents_count_once() -> None:
    async def work(memory: Memory) -> None:
        assert (await record(memory, strength="contested")).strength == "contested"
        twice = await record(memory, participating=["a", "a", "b"], agreeing=["a", "a", "stranger"])
        assert (twice.agreement, twice.strength) == (0.5, "weak")

    ended(work)


def test_all_fields_come_back() -> None:
    given: dict[str, Any] = {
        "dissenting": ("d",), "key_claims": ("bursts are rare",), "cruxes": ("traffic",), "domain": "systems",
        "tags": ("api",), "rounds": 3, "conclusion": "Use a\nbucket", "confidence": 1,
    }  # fmt: skip

    async def work(memory: Memory) -> None:
        recorded = await record(memory, **given)
        assert {name: getattr(recorded, name) for name in given} == given
        assert (recorded.participating, recorded.agreeing) == (FIVE, ("a", "b", "c"))
        shown = (await memory.timeline(*VILLAGE)).items[0]
        assert (shown.event.kind, shown.text) == ("consensus.recorded", "rate limiter design: Use a\nbucket")

    ended(work)


# Similar topics.


def test_five_words_that_share_one_of_nine_are_similar_and_one_of_ten_are_not() -> None:
    async def work(memory: Memory) -> None:
        await record(memory, "one two three four five", event_id="nine")
        await record(memory, "one six seven eight nine ten", event_id="ten")
        assert await after_rebuild(memory, lambda: similar(memory, "five a b c d")) == [("nine", 0.1111)]
        assert await after_rebuild(memory, lambda: similar(memory, "ten a b c d")) == []

    ended(work)


def test_the_most_similar_come_first_then_the_newest_and_confidence_filters() -> None:
    async def work(memory: Memory) -> None:
        await record(memory, "design of a limiter", confidence=0.9, event_id="c-1")
        await record(memory, DESIGN, confidence=0.49, event_id="c-2")
        await record(memory, "limiter RATE design rate", confidence=0.5, event_id="c-3")
        await record(memory, "unrelated", event_id="c-4")
        assert await similar(memory, DESIGN) == [("c-3", 1.0), ("c-2", 1.0), ("c-1", 0.4)]
        assert await similar(memory, DESIGN, limit=1) == [("c-3", 1.0)]
        assert await similar(memory, DESIGN, min_confidence=0.5) == [("c-3", 1.0), ("c-1", 0.4)]
        assert await similar(memory, DESIGN, as_of="0:1") == [("c-2", 1.0), ("c-1", 0.4)]

    ended(work)


def test_topics_of_many_words_of_one_long_word_and_of_other_scripts() -> None:
    long = " ".join(f"w{number}" for number in range(600))
    topics = [long, "x" * 5_000, "速率 限制"]

    async def work(memory: Memory) -> None:
        payload = {"conclusion": "c", "confidence": 1, "participating": [], "agreeing": []}
        for number, topic in enumerate(topics):
            raw = event("consensus.recorded", id=f"c-{number}", payload=payload | {"topic": topic})
            await memory.publish(raw)
        assert (await memory.admin.dead_letters()).items == ()
        assert await similar(memory, long) == [("c-0", 1.0)]
        assert await similar(memory, "x" * 5_000) == [("c-1", 1.0)]
        assert await similar(memory, "限制 速率") == [("c-2", 1.0)]

    ended(work)


@pytest.mark.parametrize("topic", ["", "  ", "\n\t", "\x1c", "\u2003\x1f"])
def test_a_topic_without_words_is_refused_everywhere(topic: str) -> None:
    """All of them would be one topic: that of no words."""

    async def work(memory: Memory) -> None:
        asked: list[Callable[[], Awaitable[Any]]] = [
            lambda: record(memory, topic),
            lambda: similar(memory, topic),
            lambda: dissents(memory, topic),
            lambda: dissent(memory, "no", topic=topic),
        ]
        for ask in asked:
            with pytest.raises(InvalidArgument, match="topic: ") as caught:
                await ask()
            assert "give the topic in at least one word" in str(caught.value) or not topic
        payload = {"topic": topic, "conclusion": "c", "confidence": 1, "participating": [], "agreeing": []}
        with pytest.raises(ValueError, match=r"payload\.topic"):
            event("consensus.recorded", payload=payload)

    assert ended(work) == 0


def test_signs_between_white_space_are_words_of_a_topic() -> None:
    async def work(memory: Memory) -> None:
        await record(memory, "!!!", event_id="c-1")
        assert await similar(memory, "!!!") == [("c-1", 1.0)]
        assert await similar(memory, "???") == []

    ended(work)


def test_an_unknown_space_has_nothing() -> None:
    async def work(memory: Memory) -> None:
        found = await memory.consensus.find_similar(*VILLAGE, DESIGN)
        assert (found.found, found.known) == ((), False)
        assert found.format().startswith("No consensus has a topic with enough of these words. Try fewer words")
        assert (await memory.consensus.dissents(*VILLAGE, DESIGN)).dissents == ()

    ended(work)


# Dissents.


async def dissent(memory: Memory, content: str, agent: str = "miller", **fields: Any) -> Any:
    fields = {"type": "risk_warning", "confidence": 0.5} | fields
    return await memory.consensus.dissent("village", agent, content, **fields)


async def dissents(memory: Memory, topic: str = DESIGN, agent: str = "baker", **fields: Any) -> list[Any]:
    found = await memory.consensus.dissents("village", agent, topic, **fields)
    return [(each.content, each.consensus) for each in found.dissents]


def test_dissents_are_found_by_topic_by_hash_and_by_type_the_most_confident_first() -> None:
    async def work(memory: Memory) -> None:
        await record(memory, event_id="c-1")
        made = await dissent(memory, "bursts", confidence=0.7, consensus_id="c-1", reasoning="seen", acknowledged=True)
        assert (made.consensus, made.reasoning, made.acknowledged, made.rebuttal) == ("c-1", "seen", True, None)
        assert made.format() == "miller risk_warning (0.7): bursts"
        await dissent(memory, "names", confidence=0.9, type="minor_quibble", topic="design limiter RATE")
        await dissent(memory, "costs", confidence=0.7, topic=DESIGN)
        await dissent(memory, "other", confidence=1, topic="flour")
        expected = [("names", "c-1"), ("costs", "c-1"), ("bursts", "c-1")]
        assert await after_rebuild(memory, lambda: dissents(memory)) == expected
        assert await dissents(memory, "6f7757575adb75d6") == expected
        assert await dissents(memory, type="risk_warning") == expected[1:]
        assert await dissents(memory, limit=1) == expected[:1]
        assert await dissents(memory, type="abstention") == []
        assert await dissents(memory, as_of="0:1") == [("bursts", "c-1")]

    ended(work)


def test_a_dissent_by_topic_attaches_once_that_topic_has_a_consensus() -> None:
    async def work(memory: Memory) -> None:
        assert (await dissent(memory, "early", topic=DESIGN)).consensus is None
        assert await dissents(memory) == [("early", None)]
        await record(memory, event_id="c-1")
        assert await after_rebuild(memory, lambda: dissents(memory)) == [("early", "c-1")]
        await record(memory, event_id="c-2")
        assert (await dissent(memory, "late", topic=DESIGN)).consensus == "c-2"
        assert await dissents(memory) == [("late", "c-2"), ("early", "c-1")]

    ended(work)


def test_a_dissent_that_precedes_the_consensus_that_it_names_is_found_under_its_topic() -> None:
    async def work(memory: Memory) -> None:
        payload = {"type": "abstention", "content": "before", "confidence": 1, "consensus": "c-1"}
        await memory.publish(event("dissent.recorded", agent="miller", payload=payload))
        await memory.publish(event("dissent.recorded", agent="smith", payload=payload | {"topic": DESIGN}))
        assert await dissents(memory) == [("before", None)]
        await record(memory, event_id="c-1")
        assert await after_rebuild(memory, lambda: dissents(memory)) == [("before", "c-1"), ("before", "c-1")]

    ended(work)


def test_a_dissent_names_a_topic_or_a_consensus_that_its_agent_sees() -> None:
    async def work(memory: Memory) -> None:
        with pytest.raises(InvalidArgument, match="consensus_id"):
            await dissent(memory, "none")
        with pytest.raises(Refused, match="miller sees no consensus c-9") as caught:
            await dissent(memory, "none", consensus_id="c-9")
        assert caught.value.reason == "unknown"

    assert ended(work) == 0


# What supersedes what.


async def links(memory: Memory, id_: str, agent: str = "baker") -> tuple[tuple[str, ...], str | None]:
    found = await memory.consensus.find_similar("village", agent, DESIGN, limit=100)
    (one,) = [each.consensus for each in found.found if each.consensus.id == id_]
    return one.supersedes, one.superseded_by


@pytest.mark.parametrize("how", ["record", "supersede"])
def test_superseding_links_both_ways(how: str) -> None:
    async def work(memory: Memory) -> None:
        await record(memory, event_id="c-1")
        if how == "record":
            assert (await record(memory, event_id="c-2", supersedes="c-1")).supersedes == ("c-1",)
        else:
            await record(memory, event_id="c-2")
            replaced = await memory.consensus.supersede(*VILLAGE, "c-1", "c-2")
            assert (replaced.id, replaced.superseded_by) == ("c-1", "c-2")
        assert await after_rebuild(memory, lambda: links(memory, "c-1")) == ((), "c-2")
        assert await after_rebuild(memory, lambda: links(memory, "c-2")) == (("c-1",), None)
        count = await _count(memory)
        assert (await memory.consensus.supersede(*VILLAGE, "c-1", "c-2")).superseded_by == "c-2"
        assert await _count(memory) == count

    ended(work)


def test_what_is_superseded_neither_supersedes_nor_is_superseded_again() -> None:
    async def work(memory: Memory) -> None:
        for id_ in ("c-1", "c-2", "c-3"):
            await record(memory, event_id=id_)
        await memory.consensus.supersede(*VILLAGE, "c-1", "c-2")
        for pair, reason in ((("c-2", "c-1"), "superseded"), (("c-1", "c-3"), "superseded"), (("c-2", "c-2"), "own"),
                             (("c-9", "c-2"), "unknown"), (("c-2", "c-9"), "unknown")):  # fmt: skip
            with pytest.raises(Refused) as caught:
                await memory.consensus.supersede(*VILLAGE, *pair)
            assert caught.value.reason == reason
        with pytest.raises(Refused):
            await record(memory, event_id="c-4", supersedes="c-1")
        await memory.consensus.supersede(*VILLAGE, "c-2", "c-3")
        assert await links(memory, "c-2") == (("c-1",), "c-3")

    assert ended(work) == 5


def test_of_two_that_supersede_one_at_the_same_moment_the_first_in_the_ledger_counts() -> None:
    async def work(memory: Memory) -> None:
        for id_ in ("c-1", "c-2", "c-3"):
            await record(memory, event_id=id_)
        answers = await asyncio.gather(
            *(memory.consensus.supersede(*VILLAGE, "c-1", by) for by in ("c-2", "c-3")), return_exceptions=True
        )
        refused = [each for each in answers if isinstance(each, Refused)]
        (found,) = [each for each in answers if not isinstance(each, BaseException)]
        assert len(refused) == 1
        assert (await links(memory, "c-1"))[1] == found.superseded_by

    ended(work)


def test_of_two_that_are_recorded_as_successors_at_the_same_moment_both_stand_and_the_first_is_linked() -> None:
    agreed = {"topic": DESIGN, "conclusion": "c", "confidence": 1, "participating": [], "agreeing": []}

    async def work(memory: Memory) -> None:
        await record(memory, event_id="c-1")
        after = agreed | {"supersedes": "c-1"}
        await memory.publish_many([event("consensus.recorded", id=id_, payload=after) for id_ in ("c-2", "c-3")])
        assert await links(memory, "c-1") == ((), "c-2")
        assert await links(memory, "c-2") == (("c-1",), None)
        assert await links(memory, "c-3") == ((), None)
        with pytest.raises(Refused, match="the consensus c-1 is already superseded"):
            await record(memory, supersedes="c-1")

    ended(work)


def test_a_raw_event_that_may_not_supersede_changes_nothing() -> None:
    async def work(memory: Memory) -> None:
        await record(memory, event_id="c-1", audience=["miller"])
        await record(memory, event_id="c-2")

        def superseded(agent: str, **payload: str) -> Event:
            return event("consensus.superseded", agent=agent, payload=payload)

        await memory.publish(superseded("smith", consensus="c-1", by="c-2"))
        await memory.publish(superseded("smith", consensus="c-2", by="c-1"))
        await memory.publish(superseded("baker", consensus="c-1", by="c-9"))
        await memory.publish(superseded("baker", consensus="c-1", by="c-1"))
        assert await links(memory, "c-1") == await links(memory, "c-2") == ((), None)
        await memory.publish(superseded("miller", consensus="c-2", by="c-1"))
        assert await links(memory, "c-1") == await links(memory, "c-2") == ((), None)
        await memory.publish(superseded("miller", consensus="c-1", by="c-2"))
        assert await links(memory, "c-2") == (("c-1",), None)

    ended(work)


def test_one_consensus_supersedes_at_most_64() -> None:
    async def work(memory: Memory) -> None:
        for number in range(66):
            await record(memory, event_id=f"c-{number}")
        for number in range(64):
            await memory.consensus.supersede(*VILLAGE, f"c-{number}", "c-65")
        with pytest.raises(Refused) as caught:
            await memory.consensus.supersede(*VILLAGE, "c-64", "c-65")
        assert caught.value.reason == "full"

    ended(work)


# Who sees it.


def test_an_agent_finds_only_what_it_could_see() -> None:
    async def work(memory: Memory) -> None:
        await record(memory, event_id="c-1")
        await record(memory, event_id="c-2", audience=["miller"])
        await dissent(memory, "to all", agent="baker", consensus_id="c-2")
        await dissent(memory, "to some", agent="baker", topic=DESIGN, audience=["miller"])
        for agent in ("baker", "miller"):
            assert [id_ for id_, _ in await similar(memory, DESIGN, agent)] == ["c-2", "c-1"]
            assert await dissents(memory, agent=agent) == [("to some", "c-2"), ("to all", "c-2")]
        for ask in ("rate limiter", DESIGN):
            assert [id_ for id_, _ in await similar(memory, ask, "smith")] == ["c-1"]
        assert await dissents(memory, agent="smith") == []
        with pytest.raises(Refused, match="smith sees no consensus c-2"):
            await memory.consensus.supersede("village", "smith", "c-1", "c-2")
        with pytest.raises(Refused):
            await dissent(memory, "no", agent="smith", consensus_id="c-2")
        with pytest.raises(Refused):
            await record(memory, agent="smith", supersedes="c-2")

    ended(work)


@pytest.mark.parametrize("how", ["record", "supersede", "raw"])
def test_who_sees_a_consensus_sees_its_successor(how: str) -> None:
    """Else it would show by what is refused that there is one, and block those that do not see it."""

    async def work(memory: Memory) -> None:
        await record(memory, event_id="c-1")
        if how == "record":
            with pytest.raises(Refused, match="not all agents that see c-1 see c-2") as caught:
                await record(memory, event_id="c-2", audience=["miller"], supersedes="c-1")
            assert caught.value.reason == "hidden"
        await record(memory, event_id="c-2", audience=["miller"])
        if how == "supersede":
            with pytest.raises(Refused) as caught:
                await memory.consensus.supersede(*VILLAGE, "c-1", "c-2")
            assert caught.value.reason == "hidden"
        if how == "raw":
            superseded = event("consensus.superseded", payload={"consensus": "c-1", "by": "c-2"})
            await memory.publish(superseded)
        assert await after_rebuild(memory, lambda: links(memory, "c-1")) == ((), None)
        await record(memory, event_id="c-3")
        replaced = await memory.consensus.supersede("village", "smith", "c-1", "c-3")
        assert replaced.superseded_by == "c-3"

    ended(work)


def test_a_successor_has_at_least_the_readers_of_what_it_supersedes() -> None:
    async def work(memory: Memory) -> None:
        await record(memory, event_id="c-1", audience=["miller"])
        await record(memory, event_id="c-2", audience=["smith"])
        with pytest.raises(Refused):
            await memory.consensus.supersede(*VILLAGE, "c-1", "c-2")
        await record(memory, event_id="c-3", audience=["smith", "miller"], supersedes="c-1")
        await record(memory, event_id="c-4", supersedes="c-3")
        await memory.publish(event("space.configured", payload={"shared_kinds": []}))
        with pytest.raises(Refused, match="not all agents that see c-4"):
            await record(memory, supersedes="c-4")
        assert await after_rebuild(memory, lambda: links(memory, "c-3", "miller")) == (("c-1",), "c-4")
        assert await links(memory, "c-3", "smith") == ((), "c-4")

    ended(work)


def test_the_kinds_that_the_space_shared_then_decide() -> None:
    async def work(memory: Memory) -> None:
        await memory.publish(event("space.configured", payload={"shared_kinds": ["agent.spoke"]}))
        await record(memory, event_id="c-1")
        await memory.publish(event("space.configured", payload={"shared_kinds": None}))
        await record(memory, event_id="c-2")
        assert [id_ for id_, _ in await similar(memory, DESIGN, "smith")] == ["c-2"]
        assert [id_ for id_, _ in await similar(memory, DESIGN, "baker")] == ["c-2", "c-1"]

    ended(work)


def test_other_spaces_have_nothing_of_it() -> None:
    async def work(memory: Memory) -> None:
        await record(memory, event_id="c-1")
        await dissent(memory, "no", consensus_id="c-1")
        assert (await memory.consensus.find_similar("city", "baker", DESIGN)).found == ()
        assert (await memory.consensus.dissents("city", "baker", DESIGN)).dissents == ()

    ended(work)


# Repeats and doors.


def test_a_repeated_call_with_one_event_id_is_one_event() -> None:
    async def work(memory: Memory) -> None:
        await record(memory, event_id="c-1")
        found = [await record(memory, event_id="c-2", supersedes="c-1") for _ in range(2)]
        objected = [await dissent(memory, "no", consensus_id="c-2", event_id="d-1") for _ in range(2)]
        assert found[0] == found[1]
        assert objected[0] == objected[1]

    assert ended(work) == 3


def test_the_commands(tmp_path: Path) -> None:
    home = {"RECALLOG_HOME": str(tmp_path)}
    made = recallog(
        "consensus", "record", *VILLAGE, DESIGN, "Use a bucket.", "--confidence", "0.8", "--participating", "baker",
        "--participating", "miller", "--agreeing", "baker", "--crux", "bursts", "--event-id", "c-1", **home,
    )  # fmt: skip
    assert (made.code, made.out) == (0, "c-1 weak rate limiter design: Use a bucket.\n")
    about = ("--topic", DESIGN, "--type", "risk_warning", "--confidence", "0.7")
    assert recallog("consensus", "dissent", "village", "miller", "Bursts.", *about, **home).code == 0
    shown = recallog("consensus", "dissents", *VILLAGE, DESIGN, **home)
    assert (shown.code, shown.out) == (0, "miller risk_warning (0.7): Bursts.\n")
    found = recallog("consensus", "find-similar", *VILLAGE, "limiter", **home)
    assert found.out == "0.33 c-1 weak rate limiter design: Use a bucket.\n"
    refused = recallog("consensus", "supersede", *VILLAGE, "c-1", "c-2", **home)
    assert (refused.code, "sees no consensus c-2" in refused.err) == (1, True)


def test_the_words_and_the_similarity_of_topics() -> None:
    assert view.topic_hash("Design RATE\tlimiter design") == view.topic_hash(DESIGN) == "6f7757575adb75d6"
    assert view.similarity(view.topic_words("a b"), view.topic_words("B c")) == 1 / 3
    assert view.similarity((), ()) == 0.0


def test_the_consensuses_that_an_agent_may_see_are_listed_page_by_page() -> None:
    async def work(memory: Memory) -> None:
        for number in range(5):
            audience = {"audience": ["baker", "widow"]} if number == 2 else {}
            await record(memory, f"topic {number}", event_id=f"c-{number}", **audience)
        first = await memory.consensus.list("village", "baker", limit=3)
        second = await memory.consensus.list("village", "baker", limit=3, cursor=first.next)
        assert [[each.id for each in page.consensuses] for page in (first, second)] == [
            ["c-4", "c-3", "c-2"],
            ["c-1", "c-0"],
        ]
        assert second.next is None
        of_another = await memory.consensus.list("village", "miller")
        assert [each.id for each in of_another.consensuses] == ["c-4", "c-3", "c-1", "c-0"]

    ended(work)
