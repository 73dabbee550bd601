"""Which agents a question names: as a whole, by a part, or misspelt."""

import pytest

from recallog import Event, Memory
from recallog.retrieval.names import find_named
from recallog.retrieval.query import query_terms
from support.events import run

AGENTS = ["Melanie", "bob-smith", "RobertJones", "jones", "ada.king@example.com", "team/lee", "worker-1", "narrator"]

NAMED: list[tuple[str, set[str]]] = [
    ("What did Melanie paint?", {"Melanie"}),
    ("what did melanie paint?", {"Melanie"}),
    ("What is Melanie\u2019s hobby?", {"Melanie"}),
    ("Melanie喜欢什么？", {"Melanie"}),
    ("What did Melany paint?", {"Melanie"}),
    ("What did Melnaie paint?", {"Melanie"}),
    ("What did Mel paint?", {"Melanie"}),
    ("What did Rob and Mel say?", {"RobertJones", "Melanie"}),
    ("What is Mel's hobby?", {"Melanie"}),
    ("What does mel mean?", set()),
    ("When did we fly to Mel Bay?", set()),
    ("Mel asked for what?", set()),
    ("What did Bob Smith sell?", {"bob-smith"}),
    ("What did bob-smith sell?", {"bob-smith"}),
    ("What did Bob sell?", {"bob-smith"}),
    ("what did bob sell?", {"bob-smith"}),
    ("What did Mr. Smith sell?", {"bob-smith"}),
    ("What did Robert say?", {"RobertJones"}),
    ("What did Robert Jones say?", {"RobertJones"}),
    ("What did jones say?", {"jones"}),
    ("Where does Ada live?", {"ada.king@example.com"}),
    ("What did Lee plan?", {"team/lee"}),
    ("What did worker 1 do?", {"worker-1"}),
    ("What did the worker do?", set()),
    ("Which example did the team give?", set()),
    ("Which melanin is in hair?", set()),
    ("Melanies are flowers?", set()),
    ("Who is Melania Trumpet-Jonson?", {"Melanie"}),
    ("Where is Smithfield?", set()),
]


@pytest.mark.parametrize(("question", "agents"), NAMED, ids=[question for question, _ in NAMED])
def test_a_question_names_agents(question: str, agents: set[str]) -> None:
    assert set(find_named(question, AGENTS)) == agents


@pytest.mark.parametrize(
    ("question", "agent"),
    [("张伟喜欢什么？", "张伟"), ("Was hat Jürgen gesagt?", "Jürgen"), ("Что сказала Анна вчера?", "Анна"),
     ("What does Project X need?", "Project X"), ("What did auth0|65f2 ask?", "auth0|65f2"),
     ("민수는 어디에 있어?", "민수")],
)  # fmt: skip
def test_a_question_in_any_script_names_an_agent(question: str, agent: str) -> None:
    assert set(find_named(question, ["张伟", "Jürgen", "Анна", "Project X", "auth0|65f2", "민수", *AGENTS])) == {agent}


def test_a_part_that_many_agents_have_names_none_of_them() -> None:
    bakers = [f"{name}-baker" for name in ("ada", "bob", "cyd")]
    assert set(find_named("What did Baker say?", bakers)) == set(bakers)
    assert find_named("What did Baker say?", [*bakers, "dan-baker"]) == {}


def test_a_short_form_of_several_names_or_of_a_time_names_nobody() -> None:
    assert find_named("What did Mel paint?", ["Melanie", "Melissa"]) == {}
    assert find_named("What happened in Mar and April?", ["Martha"]) == {}
    assert find_named("What did we do on Sun?", ["Sunita"]) == {}


@pytest.mark.parametrize(
    ("question", "agent", "names"),
    [
        ("Hast du einen Bus gesehen?", "Busra", False),
        ("Was kostet eine Rose?", "Rosemary", False),
        ("Wer saß im Bus?", "Busra", False),
        ("I was late. Mark it for me?", "Markus", False),
        ("Is that so? Hope so.", "Hopewell", False),
        ("Was hat Bus gesagt?", "Busra", True),
        ("Hast du mit Mel gesprochen?", "Melanie", True),
        ("Was hat die Mel gesagt?", "Melanie", True),
        ("Who was late, Mel or Ann?", "Melanie", True),
        ("I was late. What did Mel say?", "Melanie", True),
    ],
)
def test_a_word_that_begins_a_sentence_or_follows_an_article_without_names_is_not_short_for_one(
    question: str, agent: str, names: bool
) -> None:
    assert (agent in find_named(question, [agent])) is names


def test_a_name_is_no_term_of_its_question() -> None:
    assert query_terms("What did Bob Smith sell?", AGENTS).terms == ("sell",)
    assert query_terms("What did Melany sell?", AGENTS).terms == ("sell",)
    assert query_terms("What did Robert's brother sell?", AGENTS).terms == ("brother", "sell")


def test_a_part_in_small_letters_may_be_a_word_and_stays_a_term() -> None:
    found = query_terms("Who is the king?", AGENTS)
    assert (found.authors, found.terms) == ({"ada.king@example.com"}, ("king",))


def test_a_short_form_may_be_a_word_and_stays_a_term() -> None:
    found = query_terms("When did the Mill burn?", ["miller"])
    assert (found.authors, found.terms) == ({"miller"}, ("mill", "burn"))


def test_the_memories_of_the_agent_that_is_named_by_a_part_come_first() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            for agent, flour in (("ann-miller", "rye"), ("bob-smith", "corn")):
                payload = {"text": f"I baked a cake of {flour}."}
                await memory.publish(
                    Event(space="village", agent=agent, kind="agent.spoke", payload=payload, audience=("bob-smith",))
                )
            for question, best in (("What did Ann bake?", "ann-miller"), ("What did Bob bake?", "bob-smith")):
                (first, *_) = (await memory.recall("village", "bob-smith", question)).hits
                assert (first.event.agent, "author" in first.parts) == (best, True)

    run(work())
