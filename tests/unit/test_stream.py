"""`memory.stream`: what belongs to it, how it scores, its insights, and summaries of a span."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from recallog import InvalidArgument, Memory
from recallog_schemas import Event, limits
from support.cli import recallog
from support.events import event, run

pytestmark = pytest.mark.models("stream")

START = datetime(2026, 3, 1, tzinfo=UTC)
VILLAGE = ("village", "baker")


def ended(work: Callable[[Memory], Awaitable[Any]]) -> None:
    """`work(memory)` on a memory without files."""

    async def within() -> None:
        async with Memory.in_memory() as memory:
            await work(memory)
            assert (await memory.admin.verify("views")).ok

    run(within())


def said(text: str, hours: float = 0, kind: str = "agent.spoke", **fields: Any) -> Event:
    return event(kind, at=START + timedelta(hours=hours), payload={"text": text}, **fields)


def reflected(belief: str, hours: float = 0, **fields: Any) -> Event:
    payload = {"belief": belief} | {name: fields.pop(name) for name in ("insights",) if name in fields}
    return event("agent.reflected", at=START + timedelta(hours=hours), payload=payload, **fields)


async def recalled(memory: Memory, query: str | None = None, agent: str = "baker", **how: Any) -> list[tuple[str, Any]]:
    """The texts and scores of what the stream recalls, which a rebuild does not change."""
    found = await memory.stream.recall("village", agent, query, **how)
    await memory.admin.rebuild("views")
    again = await memory.stream.recall("village", agent, query, **how)
    assert again.memories == found.memories
    return [(each.text, each.score) for each in found.memories]


# What belongs to the stream.


def test_the_stream_has_what_the_agent_did_and_what_is_addressed_to_it() -> None:
    async def work(memory: Memory) -> None:
        await memory.publish_many(
            [
                said("mine"),
                said("theirs", agent="miller"),
                said("to me", agent="miller", audience=["baker"]),
                said("seen by all", kind="world.observed", agent="narrator"),
                said("my observation", kind="world.observed"),
                reflected("theirs too", agent="miller"),
                event("session.started", payload={"title": "a title"}),
                event("memory.retained", payload={"text": "an entry"}),
                said(" "),
            ]
        )
        texts = {text for text, _ in await recalled(memory)}
        assert texts == {"mine", "to me", "my observation"}
        assert {text for text, _ in await recalled(memory, agent="miller")} == {"theirs", "to me", "theirs too"}

    ended(work)


def test_it_has_the_newest_that_the_views_retain_and_64_reflections_whoever_else_speaks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work(memory: Memory) -> None:
        await memory.publish(reflected("an old belief"))
        await memory.publish_many([said(f"noise {n}", kind="world.observed", agent="narrator") for n in range(2_100)])
        assert [text for text, _ in await recalled(memory)] == ["an old belief"]
        await memory.publish_many([said(f"own {n}") for n in range(limits.LOG_EVENTS_KEPT)])
        texts = [text for text, _ in await recalled(memory, limit=1_000)]
        assert "an old belief" not in texts
        assert "own 1999" in texts

    ended(work)


# Scores.


def test_the_score_is_recency_class_and_relevance() -> None:
    async def work(memory: Memory) -> None:
        await memory.publish_many(
            [
                said("Nine sacks of rye", 0),
                reflected("The miller owes nine sacks.\nINSIGHT: Count the sacks twice", 24),
                said("The sun shines", 48),
            ]
        )
        found = await memory.stream.recall(*VILLAGE, "nine SACKS nine")
        assert [(each.type, each.score) for each in found.memories] == [
            ("reflection", 0.76), ("observation", 0.625), ("insight", 0.62), ("observation", 0.45),
        ]  # fmt: skip
        by_text = {each.text: each for each in found.memories}
        first = by_text["Nine sacks of rye"]
        assert (first.recency, first.importance, first.relevance, first.score) == (0.25, 0.5, 1.0, 0.625)
        insight = by_text["Count the sacks twice"]
        assert (insight.type, insight.recency, insight.importance, insight.relevance) == ("insight", 0.5, 0.9, 0.5)
        assert insight.score == 0.62
        assert found.now == START + timedelta(hours=48)

    ended(work)


def test_without_a_query_relevance_is_a_half_and_ties_are_newest_first() -> None:
    async def work(memory: Memory) -> None:
        await memory.publish_many([said("one"), said("two"), reflected("three")])
        assert await recalled(memory) == [("three", 0.71), ("two", 0.65), ("one", 0.65)]
        assert await recalled(memory, limit=1) == [("three", 0.71)]

    ended(work)


def test_now_is_that_of_the_question_or_of_the_newest_event_that_the_agent_sees() -> None:
    async def work(memory: Memory) -> None:
        ended = event("turn.ended", at=START + timedelta(hours=24), payload={})
        await memory.publish_many([said("one"), ended, said("later", 72, agent="miller")])
        assert await recalled(memory) == [("one", 0.5)]
        assert await recalled(memory, now=START + timedelta(hours=48)) == [("one", 0.425)]
        assert await recalled(memory, now=START - timedelta(hours=48)) == [("one", 0.65)]
        assert await recalled(memory, as_of="0:0") == [("one", 0.65)]

    ended(work)


def test_an_unknown_agent_has_an_empty_stream() -> None:
    async def work(memory: Memory) -> None:
        found = await memory.stream.recall(*VILLAGE)
        assert (found.memories, found.known, found.now, found.format()) == ((), False, None, "(nothing)")
        assert (await memory.stream.insights(*VILLAGE)).insights == ()
        with pytest.raises(InvalidArgument, match="query"):
            await memory.stream.recall(*VILLAGE, "  ")

    ended(work)


# Insights.


def test_marked_lines_and_listed_sentences_are_insights_each_once() -> None:
    belief = "I see.\n  INSIGHT: Rye needs time \ninsight: Count twice\nAn INSIGHT: no\nINSIGHT:\nINSIGHT: Count twice"

    async def work(memory: Memory) -> None:
        await memory.publish(reflected(belief, insights=["Rye needs time", " Pay late ", ""], id="r-1", turn=3))
        await memory.publish(said("INSIGHT: not a reflection"))
        found = await memory.stream.insights(*VILLAGE)
        assert [each.text for each in found.insights] == ["Rye needs time", "Count twice", "Pay late"]
        assert {(each.id, each.type, each.turn) for each in found.insights} == {("r-1", "insight", 3)}
        assert found.format().splitlines()[0] == "[turn 003][insight] Rye needs time"
        assert [each.text for each in (await memory.stream.insights(*VILLAGE, limit=1)).insights] == ["Pay late"]
        assert (await memory.stream.insights("village", "miller")).insights == ()

    ended(work)


def test_the_views_retain_the_newest_64_insights() -> None:
    async def work(memory: Memory) -> None:
        await memory.publish_many([reflected(f"INSIGHT: number {n}") for n in range(70)])
        found = (await memory.stream.insights(*VILLAGE)).insights
        assert [each.text for each in found] == [f"number {n}" for n in range(6, 70)]

    ended(work)


@pytest.mark.parametrize("belief", ["I see.", "INSIGHT: I see."])
def test_every_own_answer_resets_the_count_of_reflections(belief: str) -> None:
    async def work(memory: Memory) -> None:
        await memory.publish(event("agent.configured", payload={"reflection_threshold": 3}))
        await memory.publish_many([said("one"), said("two")])
        await memory.publish(reflected(belief))
        assert (await memory.reflection(*VILLAGE)).events == 0
        await memory.publish(reflected(belief, agent="miller"))
        assert (await memory.reflection(*VILLAGE)).events == 1

    ended(work)


# Summaries.


def test_a_summary_has_the_number_of_memories_and_the_most_important_sentences_oldest_first() -> None:
    async def work(memory: Memory) -> None:
        await memory.publish_many(
            [
                said("Before.", -1, id="before"),
                said("I saw the mill burn. It was dark.", 0, kind="clue.found", id="e-1"),
                said("Rain.", 1, kind="agent.thought", id="e-2"),
                said("Who was it?", 2, id="e-3"),
                reflected("It was arson.", 3, id="e-4"),
                said("After.", 4, id="after"),
            ]
        )
        span = (START, START + timedelta(hours=4))
        found = await memory.stream.summarize(*VILLAGE, *span)
        assert found.text == "4 memories: I saw the mill burn. · Who was it? · It was arson."
        assert (found.memories, found.sources) == (4, ("e-1", "e-2", "e-3", "e-4"))
        assert (found.kept_from, found.stored, found.format()) == (None, None, found.text)
        assert (await memory.stream.summarize(*VILLAGE)).memories == 6
        assert (await memory.stream.summarize(*VILLAGE, START, START)).text == ""
        assert (await memory.long_term.list(*VILLAGE)).entries == ()

    ended(work)


def test_of_equally_important_memories_a_summary_has_the_first_sentences_that_say_most() -> None:
    async def work(memory: Memory) -> None:
        texts = (
            "My sister bought a grey horse. Wow.",
            "Hi.",
            "Oh. A mill burned down.",
            "She rides to the market.",
            "Bye.",
        )
        await memory.publish_many([said(text, 0, id=f"e-{number}") for number, text in enumerate(texts)])
        found = await memory.stream.summarize(*VILLAGE)
        assert found.text == "5 memories: My sister bought a grey horse. · She rides to the market. · Bye."

    ended(work)


def test_a_stored_summary_is_an_entry_that_names_its_span_and_sources() -> None:
    async def work(memory: Memory) -> None:
        await memory.publish_many([said("One.", 0, id="e-1"), said("Two.", 1, id="e-2")])
        for _ in range(2):  # a repeat with the same id is one entry
            found = await memory.stream.summarize(*VILLAGE, START, store=True, entry_id="s-1")
            assert found.stored is not None
            assert (found.stored.outcome, found.stored.id, found.ok) == ("stored", "s-1", True)
        (entry,) = (await memory.long_term.list(*VILLAGE)).entries
        assert (entry.type, entry.text, entry.tier) == ("summary", "2 memories: One. · Two.", None)
        assert entry.sources == ("e-1", "e-2")
        assert entry.metadata == {"range": {"since": START.isoformat(), "until": None}, "memories": 2}
        nothing = await memory.stream.summarize("village", "stranger", store=True)
        assert (nothing.stored, nothing.text, nothing.ok) == (None, "", True)

    ended(work)


def test_a_stored_summary_is_for_its_agent_alone_where_the_space_shares_entries() -> None:
    async def work(memory: Memory) -> None:
        await memory.publish(event("space.configured", payload={"shared_kinds": ["memory.retained"]}))
        await memory.publish(said("The key is under the mat.", 0))
        assert (await memory.stream.summarize(*VILLAGE, store=True)).stored is not None
        assert len((await memory.recall(*VILLAGE, "key", types=["summary"])).hits) == 1
        assert (await memory.recall("village", "stranger", "key", types=["summary"])).hits == ()

    ended(work)


def test_a_summary_names_at_most_64_sources_the_most_important_ones() -> None:
    async def work(memory: Memory) -> None:
        clue = said("A clue.", 0, kind="clue.found", id="clue")
        await memory.publish_many([clue, *(said(f"Text {n}.", id=f"e-{n}") for n in range(100))])
        found = await memory.stream.summarize(*VILLAGE, store=True)
        assert (found.memories, len(found.sources), found.sources[0]) == (101, 64, "clue")
        assert found.sources[1:] == tuple(f"e-{n}" for n in range(37, 100))
        assert found.stored is not None
        assert found.stored.ok

    ended(work)


def test_a_forgotten_call_of_a_tool_is_in_no_summary_and_takes_one_along() -> None:
    async def work(memory: Memory) -> None:
        await memory.publish(event("agent.configured", payload={"capture": {"enabled": True}}))
        calls = [event("tool.used", id=f"c-{n}", payload={"tool": "Read", "result": f"page {n}."}) for n in range(2)]
        await memory.publish_many(calls)
        before = await memory.stream.summarize(*VILLAGE, store=True, entry_id="s-1")
        assert before.text == "2 memories: Read: page 0. · Read: page 1."
        await memory.long_term.forget(*VILLAGE, ["c-0"])
        assert (await memory.long_term.get(*VILLAGE, "s-1")).entry.status == "retracted"  # type: ignore[union-attr]
        after = await memory.stream.summarize(*VILLAGE, store=True)
        assert (after.text, after.sources, after.ok) == ("1 memory: Read: page 1.", ("c-1",), True)

    ended(work)


def test_the_summary_says_from_where_the_views_are_complete(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many([said(f"Text {n}.") for n in range(limits.LOG_EVENTS_KEPT + 3)])
            found = await memory.stream.summarize(*VILLAGE)
            assert (found.memories, str(found.kept_from)) == (limits.LOG_EVENTS_KEPT, "0:3")

    run(work())


def test_the_commands(tmp_path: Path) -> None:
    home = {"RECALLOG_HOME": str(tmp_path)}

    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many([said("Bread!", turn=2), reflected("INSIGHT: Bread sells.", 1, turn=3)])

    run(work())
    shown = recallog("stream", "recall", *VILLAGE, "bread sells.", "--limit", "1", **home)
    assert (shown.code, shown.out) == (0, "[turn 003][insight] Bread sells.\n")
    assert recallog("stream", "insights", *VILLAGE, **home).out == "[turn 003][insight] Bread sells.\n"
    span = ("2026-03-01T00:00:00Z", "2026-03-01T00:30:00Z")
    stored = recallog("stream", "summarize", *VILLAGE, *span, "--store", "--entry-id", "s-1", **home)
    assert (stored.code, stored.out) == (0, "1 memory: Bread!\nstored s-1\n")
