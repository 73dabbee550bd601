"""Whom "I" and "you" of a question mean: the subject of the question by language, and the agents of a space."""

import pytest

from recallog import Event, Memory
from recallog.operations.parameters import At
from recallog.retrieval.persons import PRESUMED, Person, find_meant, subject
from recallog.retrieval.query import RecallQuery
from recallog.retrieval.recall import recall
from recallog_projections.views.outline import Participant
from support.events import run

SUBJECTS: list[tuple[str, Person | None]] = [
    ("What did I tell you about my mother?", "first"),
    ("what did i say about tea", "first"),
    ("What's my dog's name?", "first"),
    ("What book did you recommend me?", "second"),
    ("Can you tell me what I said about tea?", "first"),
    ("Could you list the films that you recommended to me?", "second"),
    ("Do you remember my birthday?", "first"),
    ("I forgot which film you liked", "second"),
    ("What did Melanie paint?", None),
    ("Can you show how a login works?", None),
    ("Which vitamin, I. or II., is in lemons?", None),
    ("我妈妈叫什么名字？", "first"),
    ("你推荐给我的书是什么？", "second"),
    ("你还记得我推荐的书吗？", "first"),
    ("你能告诉我您推荐的电影吗？", "second"),
    ("我们第一次聊天时你说了什么？", "second"),
    ("自我介绍怎么写？", None),
    ("¿Qué libro me recomendaste?", "second"),
    ("¿Qué te dije de mi madre?", "first"),
    ("¿Cómo se llama mi perro?", "first"),
    ("Quel livre m'as-tu recommandé ?", "second"),
    ("Qu'est-ce que je t'ai dit de ma mère ?", "first"),
    ("Welches Buch hast du mir empfohlen?", "second"),
    ("Was haben Sie mir empfohlen?", "second"),
    ("Was habe ich dir über meine Mutter erzählt?", "first"),
    ("Was haben sie gebacken?", None),
    ("私が勧めた本は何ですか？", "first"),
    ("勧めてくれた本は何ですか？", "second"),
    ("내가 추천한 책은?", "first"),
    ("Что я тебе рассказал?", "first"),
    ("O que você recomendou?", "second"),
    ("मैंने क्या बताया?", "first"),
]


@pytest.mark.parametrize(("question", "person"), SUBJECTS, ids=[question for question, _ in SUBJECTS])
def test_the_subject_of_a_question_is_its_first_subject_pronoun(question: str, person: Person | None) -> None:
    found = subject(question)
    assert (found.person if found else None) == person


def agents(*names: str, visitors: tuple[str, ...] = ()) -> list[Participant]:
    return [Participant(name, name in visitors) for name in (*names, *visitors)]


@pytest.mark.parametrize(
    ("participants", "asker", "i", "you"),
    [
        (agents("user", "assistant"), "user", {"user"}, {"assistant"}),
        (agents("user", "assistant"), "assistant", {"user"}, {"assistant"}),
        (agents("human", "support-bot"), "support-bot", {"human"}, {"support-bot"}),
        (agents("assistant", visitors=("ada",)), "assistant", {"ada"}, {"assistant"}),
        (agents("ada", "gpt-4"), "gpt-4", {"ada"}, {"gpt-4"}),
        (agents("narrator", "hal", visitors=("ada",)), "ada", {"ada"}, {"hal"}),
        (agents("assistant", visitors=("ada", "bob")), "bob", {"bob"}, {"assistant"}),
        (agents("Caroline", "Melanie"), "Caroline", {"Caroline"}, {"Melanie"}),
        (agents("baker", "miller", "smith"), "baker", {"baker"}, set()),
        (agents("baker", "miller"), "stranger", set(), set()),
    ],
)
def test_pronouns_mean_the_sides_of_a_dialogue(
    participants: list[Participant], asker: str, i: set[str], you: set[str]
) -> None:
    assert find_meant("What did I say?", asker, (), participants) == dict.fromkeys(i, 1.0)
    assert find_meant("What did you say?", asker, (), participants) == dict.fromkeys(you, 1.0)


def test_a_question_about_nobody_is_presumed_to_be_about_the_user() -> None:
    assert find_meant("Where is the key?", "bot", (), agents("human", "bot")) == {"human": PRESUMED}
    assert find_meant("Where is the key of the bot?", "bot", {"bot"}, agents("human", "bot")) == {}
    assert find_meant("Where is the key?", "Caroline", (), agents("Caroline", "Melanie")) == {}


def test_an_object_pronoun_does_not_count_beside_a_name() -> None:
    two = agents("Caroline", "Melanie")
    assert find_meant("What did Melanie give me?", "Caroline", {"Melanie"}, two) == {}
    assert find_meant("What did I give Melanie?", "Caroline", {"Melanie"}, two) == {"Caroline": 1.0}


def said(number: int, agent: str, text: str, kind: str = "agent.spoke") -> Event:
    return Event(id=f"e-{number}", space="chat", agent=agent, kind=kind, payload={"text": text})


def test_recall_ranks_the_turns_of_the_side_that_a_question_is_about_first() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many([
                said(1, "ada", "A book on bread would be nice, the one with recipes.", "user.injected"),
                said(2, "assistant", "A good book on bread with recipes is Tartine."),
                said(3, "ada", "Rye flour keeps for a year.", "user.injected"),
            ])  # fmt: skip
            for question, best in (
                ("Which book on bread did you recommend?", "e-2"),
                ("Which book on bread did I ask for?", "e-1"),
            ):
                hits = (await memory.recall("chat", "assistant", question)).hits
                assert hits[0].event.id == best
                assert hits[0].parts["person"] == pytest.approx(0.3)
                assert all("person" not in hit.parts for hit in hits if hit.event.agent != hits[0].event.agent)

    run(work())


def test_a_scene_asks_nobody() -> None:
    """Its "you" is the reader of the scene, and its "today" is not that of a question."""

    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many([
                said(1, "ada", "A book on bread would be nice.", "user.injected"),
                said(2, "assistant", "A good book on bread is Tartine."),
            ])  # fmt: skip
            for asked in (True, False):
                query = RecallQuery.from_text("chat", "assistant", "Today you bake bread.", None, asked=asked)
                view = await memory._access.of_agent("chat", "assistant", At(), recall, query, 100)
                parts = {name for hit in view.hits for name in hit.parts}
                assert {"person", "when"} & parts == ({"person", "when"} if asked else set())

    run(work())
