"""The embeddings of the last questions."""

from collections.abc import Sequence

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
