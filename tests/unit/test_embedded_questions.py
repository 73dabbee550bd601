"""The embeddings of the last questions."""

import asyncio
from collections.abc import Sequence

import pytest

from recallog.index import questions
from recallog.index.questions import EmbeddedQuestions
from recallog_projections.index.embedders.embedder import Embedding, Passage
from support.events import run
from support.toy_embedder import ToyEmbedder


class Counting(ToyEmbedder):
    """A toy embedder that keeps what it was asked for."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.asked: list[Passage] = []

    def embed(self, passages: Sequence[Passage]) -> list[Embedding]:
        self.asked += passages
        return super().embed(passages)


class Failing(ToyEmbedder):
    """A toy embedder that fails until `fails` is false."""

    fails = True

    def embed(self, passages: Sequence[Passage]) -> list[Embedding]:
        if self.fails:
            raise OSError("no memory")
        return super().embed(passages)


def test_a_question_is_embedded_once_for_each_model() -> None:
    kept, one, other = EmbeddedQuestions(), Counting("one"), Counting("other")

    async def scenario() -> None:
        for name, embedder in (("one", one), ("other", other)) * 2:
            for text in ("Who burned the mill?", "Who owes flour?"):
                found = await kept.embedding(embedder, text)
                (expected,) = ToyEmbedder(name).embed([Passage(text, is_query=True)])
                assert found.vector.tolist() == expected.vector.tolist()

    run(scenario())
    assert [passage.text for passage in one.asked] == ["Who burned the mill?", "Who owes flour?"]
    assert [passage.text for passage in other.asked] == ["Who burned the mill?", "Who owes flour?"]
    assert all(passage.is_query for passage in one.asked)


def test_the_question_that_was_not_asked_for_longest_is_forgotten() -> None:
    kept, embedder = EmbeddedQuestions(), Counting("one")
    texts = [str(number) for number in range(questions.QUESTIONS_KEPT)]

    async def scenario() -> None:
        for text in [*texts, texts[0], "one more", texts[0], texts[1]]:
            await kept.embedding(embedder, text)

    run(scenario())
    assert [passage.text for passage in embedder.asked] == [*texts, "one more", texts[1]]


def test_a_question_that_was_begun_is_embedded_once_also_for_several_queries() -> None:
    kept, embedder = EmbeddedQuestions(), Counting("one")

    async def scenario() -> None:
        kept.begin(embedder, "Who owes flour?")
        kept.begin(embedder, "Who owes flour?")
        first, second = await asyncio.gather(*(kept.embedding(embedder, "Who owes flour?") for _ in range(2)))
        assert first is second

    run(scenario())
    assert [passage.text for passage in embedder.asked] == ["Who owes flour?"]


def test_a_begun_question_for_which_nobody_waits_is_kept() -> None:
    kept, embedder = EmbeddedQuestions(), Counting("one")

    async def begin() -> None:
        kept.begin(embedder, "Who owes flour?")

    async def ask() -> None:
        await kept.embedding(embedder, "Who owes flour?")

    run(begin())  # the loop waits for its threads before it ends
    run(ask())
    assert [passage.text for passage in embedder.asked] == ["Who owes flour?"]


def test_a_begun_question_that_could_not_be_embedded_is_embedded_again() -> None:
    kept, embedder = EmbeddedQuestions(), Failing("one")

    async def scenario() -> None:
        kept.begin(embedder, "Who owes flour?")
        with pytest.raises(OSError, match="no memory"):
            await kept.embedding(embedder, "Who owes flour?")
        embedder.fails = False
        await kept.embedding(embedder, "Who owes flour?")

    run(scenario())


def test_an_embedder_on_another_machine_is_called_when_the_question_is_asked() -> None:
    kept, embedder = EmbeddedQuestions(), Counting("one")
    embedder.leaves_machine = True

    async def scenario() -> None:
        kept.begin(embedder, "Who owes flour?")
        await asyncio.to_thread(lambda: None)
        assert not embedder.asked
        await kept.embedding(embedder, "Who owes flour?")

    run(scenario())
    assert [passage.text for passage in embedder.asked] == ["Who owes flour?"]
