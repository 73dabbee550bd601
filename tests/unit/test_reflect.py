"""Experiences, and answers from facts and experiences."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from recallog import Memory, ModelFailed, Settings
from recallog.extending import Synthesizer
from recallog.views import RecallHit
from recallog_schemas.models.facts import limits as facts_limits
from support.chat_server import ChatServer, completion, status
from support.events import event, recorded, run

pytestmark = pytest.mark.models("facts")

SPACE, AGENT = "village", "baker"


class Stub(Synthesizer):
    def __init__(self, *answers: str) -> None:
        self.answers = iter(answers)
        self.asked: list[tuple[str, list[str]]] = []
        self.closed = 0

    async def synthesize(self, question: str, hits: Sequence[RecallHit]) -> str:
        self.asked.append((question, [hit.text for hit in hits]))
        return next(self.answers)

    async def close(self) -> None:
        self.closed += 1


async def with_memories(memory: Memory) -> list[str]:
    """Two facts and an experience about Acme Corp, and what is of no type that is asked; the ids of the three."""
    kept = memory.long_term
    first = await kept.retain(SPACE, AGENT, "Acme Corp prefers React. It said so twice.")
    second = await kept.retain(SPACE, AGENT, "Acme Corp is based in Berlin")
    third = await kept.record_experience(SPACE, AGENT, "sell", "Offered Acme Corp a shop", outcome="it was bought")
    await kept.retain(SPACE, AGENT, "Acme Corp pays late: ask for money first.", type="lesson")
    await memory.publish(event(payload={"text": "Acme Corp has called."}))
    return [each.id or "" for each in (first, second, third)]


def test_an_experience_is_an_entry_that_says_what_was_done_and_what_came_of_it() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            kept = memory.long_term
            done = await kept.record_experience(
                SPACE, AGENT, "deploy", "Deployed the shop", outcome="it crashed", score=0.2, agent_role="operator",
                model="small", cost=0.01, entry_id="x-1", subject="anna", session="s-1",
            )  # fmt: skip
            assert (done.id, done.outcome) == ("x-1", "stored")
            again = await kept.record_experience(
                SPACE, AGENT, "deploy", "Deployed the shop", outcome="it crashed", score=0.2, agent_role="operator",
                model="small", cost=0.01, entry_id="x-1", subject="anna", session="s-1",
            )  # fmt: skip
            assert again.position == done.position
            entry = (await kept.get(SPACE, AGENT, "x-1")).entry
            assert entry is not None
            assert (entry.type, entry.text, entry.subject) == ("experience", "Deployed the shop → it crashed", "anna")
            assert entry.metadata == {
                "action_type": "deploy", "score": 0.2, "agent_role": "operator", "model": "small", "cost": 0.01,
            }  # fmt: skip
            twice = await kept.record_experience(SPACE, AGENT, "deploy", "Deployed the shop", outcome="it crashed")
            assert twice.outcome == "stored"
            stats = await kept.stats(SPACE, AGENT)
            assert (stats.experience_count, stats.fact_count, stats.lesson_count) == (2, 0, 0)
            await kept.forget(SPACE, AGENT, ["x-1"])
            assert (await kept.stats(SPACE, AGENT)).experience_count == 1

    run(work())


def test_a_question_is_answered_from_facts_and_experiences_and_nothing_is_written() -> None:
    async def work() -> None:
        stub = Stub("It prefers React.\n\n It sits in Berlin.\x00")
        async with Memory.in_memory(synthesizer=stub) as memory:
            ids = await with_memories(memory)
            before = await memory.admin.ledger_ends()
            answer = await memory.long_term.reflect(SPACE, AGENT, "What do I know about Acme Corp?")
            assert answer.answer == "It prefers React.\n\nIt sits in Berlin."
            assert sorted(answer.sources) == sorted(ids)
            assert answer.stored is None
            assert [len(texts) for _, texts in stub.asked] == [3]
            assert await _counted(memory, before)
        assert stub.closed == 1

    run(work())


async def _counted(memory: Memory, before: list[int]) -> bool:
    """Whether no event but counts of reads was written since."""
    events = await recorded(memory)
    return {each.kind for each in events[sum(before) :]} <= {"memory.accessed"}


def test_an_answer_that_is_stored_is_an_insight_made_from_its_memories() -> None:
    async def work() -> None:
        async with Memory.in_memory(synthesizer=Stub("It prefers React.", "Once more.")) as memory:
            ids = await with_memories(memory)
            answer = await memory.long_term.reflect(SPACE, AGENT, "What do I know about Acme Corp?", store=True)
            assert answer.stored is not None
            insight = (await memory.long_term.get(SPACE, AGENT, answer.stored.id or "")).entry
            assert insight is not None
            assert (insight.type, insight.text) == ("insight", "It prefers React.")
            assert set(insight.sources) == set(ids)
            await memory.long_term.forget(SPACE, AGENT, [ids[0]])
            assert [each.type for each in (await memory.long_term.list(SPACE, AGENT, type="insight")).entries] == []
            found = await memory.long_term.reflect(SPACE, AGENT, "What do I know about Acme Corp?")
            assert set(found.sources) == set(ids[1:])

    run(work())


def test_in_a_space_that_shares_its_entries_a_stored_answer_is_for_its_agent_alone() -> None:
    async def work() -> None:
        async with Memory.in_memory(synthesizer=Stub("It prefers React.")) as memory:
            await memory.publish(event("space.configured", payload={"shared_kinds": ["memory.retained"]}))
            await memory.long_term.retain(SPACE, AGENT, "Acme Corp prefers React.", audience=(AGENT,))
            answer = await memory.long_term.reflect(SPACE, AGENT, "What does Acme Corp prefer?", store=True)
            assert answer.stored is not None
            assert answer.stored.outcome == "stored"
            assert len((await memory.recall(SPACE, AGENT, "Acme React", types=["fact", "insight"])).hits) == 1  # once
            assert (await memory.recall(SPACE, "miller", "Acme React", types=["fact", "insight"])).hits == ()

    run(work())


def test_without_memories_nobody_is_asked_and_nothing_is_stored() -> None:
    async def work() -> None:
        stub = Stub()
        async with Memory.in_memory(synthesizer=stub) as memory:
            await memory.long_term.retain(SPACE, "miller", "Acme Corp prefers React.")
            answer = await memory.long_term.reflect(SPACE, AGENT, "What does Acme Corp prefer?", store=True)
            assert (answer.answer, answer.sources, answer.stored) == ("No memories to reflect on.", (), None)
            assert answer.format() == "No memories to reflect on."
        assert stub.asked == []

    run(work())


def test_what_has_nothing_to_do_with_the_question_is_quoted_by_none_and_shown_to_a_model_alone() -> None:
    async def work() -> None:
        question = "Who owns the mill by the river?"
        async with Memory.in_memory() as memory:
            await with_memories(memory)
            answer = await memory.long_term.reflect(SPACE, AGENT, question, store=True)
            assert (answer.answer, answer.sources, answer.stored) == ("No memories to reflect on.", (), None)
            mill = await memory.long_term.retain(SPACE, AGENT, "The smith owns the mill by the river.")
            answer = await memory.long_term.reflect(SPACE, AGENT, question)
            assert (answer.answer, answer.sources) == ("1 memory: The smith owns the mill by the river.", (mill.id,))
        stub = Stub("I do not know.")
        async with Memory.in_memory(synthesizer=stub) as memory:
            ids = await with_memories(memory)
            answer = await memory.long_term.reflect(SPACE, AGENT, question)
            assert (answer.answer, sorted(answer.sources)) == ("I do not know.", sorted(ids))

    run(work())


def test_the_offline_synthesizer_quotes_the_first_sentences_of_the_best_memories() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await with_memories(memory)
            answer = await memory.long_term.reflect(SPACE, AGENT, "What does Acme Corp prefer?")
            assert answer.answer.startswith("3 memories: ")
            for quote in (
                "Acme Corp prefers React.",
                "Acme Corp is based in Berlin.",
                "Offered Acme Corp a shop → it was bought.",
            ):
                assert quote in answer.answer
            assert "twice" not in answer.answer
            again = await memory.long_term.reflect(SPACE, AGENT, "What does Acme Corp prefer?")
            assert again.answer == answer.answer

    run(work())


def test_a_model_is_asked_with_the_memories_as_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")

    async def work() -> None:
        with ChatServer(completion("React."), completion(" "), completion("x" * 10_000), *[status(500)] * 3) as server:
            settings = Settings.valid(home=tmp_path, index="off", ledger=None, views=None, model=f"{server.url}#small")
            async with Memory.open(settings) as memory:
                await with_memories(memory)
                reflect = memory.long_term.reflect
                assert (await reflect(SPACE, AGENT, "What does Acme Corp prefer?")).answer == "React."
                lines = server.requests[0].lines
                assert lines[0] == {"question": "What does Acme Corp prefer?"}
                assert {line["type"] for line in lines[1:]} == {"fact", "experience"}
                long = await reflect(SPACE, AGENT, "What does Acme Corp prefer?")  # an empty answer is asked again
                assert len(long.answer) == facts_limits.SYNTHESIS_CHARS_MAX
                with pytest.raises(ModelFailed, match="500"):
                    await reflect(SPACE, AGENT, "What does Acme Corp prefer?")

    run(work())
