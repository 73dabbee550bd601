"""Recall by words of conversations in Chinese: at least a minimum of the evidence is found."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from recallog import Memory
from recallog_eval import locomo, locomo_questions, result
from recallog_eval.metrics import HITS
from recallog_eval.result import Hit, Summary
from recallog_service.ingest import ingest
from support.events import run

DATA = Path(__file__).parents[1] / "data"


async def by_words(text: bytes) -> Summary:
    async with Memory.in_memory() as memory:
        done = await ingest(memory, locomo.read(text), unit="conversation", batch=500)
        assert not done.problems

        async def ask(space: str, agent: str, question: str) -> Sequence[Hit]:
            view = await memory.recall(space, agent, question, top_k=HITS)
            return [Hit(hit.event.id, hit.weak) for hit in view.hits]

        return result.summary_of(await result.answers_of(locomo_questions.read(text).asked, ask))


@pytest.mark.parametrize(
    ("file", "questions", "at_10", "at_20"),
    [("chinese-tuning.json", 56, 0.92, 0.95), ("chinese-held-out.json", 54, 0.75, 0.86)],
)
def test_recall_by_words_finds_at_least_this_share_of_the_evidence(
    file: str, questions: int, at_10: float, at_20: float
) -> None:
    figures = run(by_words((DATA / file).read_bytes())).overall
    assert figures is not None
    assert figures.questions == questions
    assert figures.recall_at_10 >= at_10
    assert figures.recall_at_20 >= at_20


@pytest.mark.parametrize("file", ["chinese-tuning.json", "chinese-held-out.json"])
def test_every_question_has_evidence(file: str) -> None:
    questions = locomo_questions.read((DATA / file).read_bytes())
    assert (questions.skipped, questions.unresolved) == (0, 0)
    assert len({(question.space, question.text) for question in questions.asked}) == len(questions.asked)
