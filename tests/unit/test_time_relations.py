"""How questions relate to the times that they name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallog.retrieval import time_relations

DATES = [
    ("What did I say since March?", "since March", "since"),
    ("What did I buy before 3 May 2023?", "before 3 May 2023", "before"),
    ("What did I buy after October?", "after October", "after"),
    ("What did I buy until 2022?", "until 2022", "until"),
    ("What did I buy in March?", "in March", "within"),
    ("¿Qué compré desde octubre?", "desde octubre", "since"),
    ("¿Qué compré antes de octubre?", "antes de octubre", "before"),
    ("Was habe ich seit Oktober gekauft?", "seit Oktober", "since"),
    ("Was habe ich nach dem 3. Mai gekauft?", "nach dem 3. Mai", "after"),
    ("Was habe ich vor zwei Wochen gekauft?", "vor zwei Wochen", "within"),
    ("Qu'ai-je acheté depuis mars ?", "depuis mars", "since"),
    ("Qu'ai-je acheté avant octobre ?", "avant octobre", "before"),
    ("3月以来我说了什么？", "3月以来", "since"),
    ("3月之前我说了什么？", "3月之前", "before"),
    ("三天前我说了什么？", "三天前", "within"),
    ("What happened from 3 May to 10 May?", "3 May to 10 May", "since"),
    ("3月到5月我做了什么？", "3月到5月", "since"),
    ("What did I buy two weeks before 11 August?", "two weeks before 11 August", "before"),
    ("What did I do last weekend before 10 April?", "last weekend before 10 April", "before"),
]
EVENTS = [
    ("What has changed since the migration?", "the migration", "since"),
    ("Before the trip to Rome, what did I buy?", "the trip to Rome", "before"),
    ("What did Ada do after she moved to Rome?", "she moved to Rome", "after"),
    ("What did Ada see during her holidays?", "her holidays", "during"),
    ("How did it go since starting the course?", "starting the course", "since"),
    ("¿Qué ha cambiado desde la migración?", "la migración", "since"),
    ("¿Qué compré antes de la mudanza?", "la mudanza", "before"),
    ("Was ist seit dem Umzug passiert?", "dem Umzug passiert", "since"),
    ("Was habe ich getan, nachdem ich umgezogen bin?", "ich umgezogen bin", "after"),
    ("Qu'ai-je acheté après le voyage à Rome ?", "le voyage à Rome", "after"),
    ("搬家之后我买了什么？", "搬家", "after"),
    ("自从搬家以来我做了什么？", "搬家", "since"),
    ("引っ越しの前に何を買いましたか？", "引っ越し", "before"),
]


@pytest.mark.parametrize(("question", "words", "relation"), DATES)
def test_a_relation_belongs_to_the_date_beside_it(question: str, words: str, relation: str) -> None:
    (found,) = time_relations.find(question)
    assert (found.words, found.relation, found.event) == (words, relation, "")


@pytest.mark.parametrize(("question", "event", "relation"), EVENTS)
def test_a_relation_without_a_date_is_about_an_event(question: str, event: str, relation: str) -> None:
    (found,) = time_relations.find(question)
    assert (found.event, found.relation, found.expressions) == (event, relation, ())


@pytest.mark.parametrize(
    "question",
    [
        "Who looks after the dog?",
        "Who was he named after?",
        "What does Ada do before bed?",
        "Have I used it before?",
        "Since when do I know Ada?",
        "Wer kommt nach Hause?",
        "What did she say?",
    ],
)
def test_some_words_of_relations_relate_to_no_time(question: str) -> None:
    assert time_relations.find(question) == []


def test_a_question_has_a_bounded_number_of_times() -> None:
    """Each event costs a recall, and each time searches."""
    events = ", ".join(f"since the trip {number}" for number in range(time_relations.TIMES_MAX + 1))
    assert len(time_relations.find(events)) == time_relations.TIMES_MAX
    assert len(time_relations.find("today and yesterday, " * 100)) == time_relations.TIMES_MAX


WORDS = ["before", "the", "trip", "since", "March", ",", "3月", "之后", "from", "3", "May", "to", "前", "搬家", "?"]


@given(st.lists(st.sampled_from(WORDS), max_size=12))
def test_every_time_is_a_part_of_its_question(words: list[str]) -> None:
    question = " ".join(words)
    for one in time_relations.find(question):
        assert question[one.start : one.start + len(one.words)] == one.words


@pytest.mark.parametrize(
    "question",
    [
        "What did we talk about yesterday?",
        "What has changed since the migration?",
        "¿De qué hablamos ayer?",
        "Was ist gestern passiert?",
        "Was war im Oktober?",
        "Was gab es letzte Woche?",
        "Worüber haben wir gestern gesprochen?",
        "¿Qué hubo ayer?",
        "Qu'avons-nous dit hier ?",
        "昨天我们聊了什么？",
    ],
)
def test_a_question_may_ask_for_nothing_but_a_time(question: str) -> None:
    from recallog.retrieval.query import query_terms

    rest = time_relations.beyond_times(question, time_relations.find(question))
    assert query_terms(rest, ()).terms == ()


def test_a_noun_that_is_a_verb_of_another_language_is_asked_for() -> None:
    from recallog.retrieval.query import query_terms

    question = "What did we say about the war last week?"  # not German "war"
    rest = time_relations.beyond_times(question, time_relations.find(question))
    assert query_terms(rest, ()).terms == ("war",)
