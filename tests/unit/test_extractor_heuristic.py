"""The extractor without a model: which sentences of English and Chinese are facts, and how they read."""

from datetime import UTC, datetime

import pytest

from recallog.models.facts.extractor import ExtractionRequest, Fact, Utterance
from recallog.models.facts.heuristic import HeuristicExtractor
from recallog.models.facts.relative_times import write_dates
from support.events import run

pytestmark = pytest.mark.models("facts")


def facts(text: str, agent: str = "Caroline", **fields: str) -> list[Fact]:
    said = Utterance(text, agent, **{"id": "e-1", "kind": "agent.spoke", **fields})
    return list(run(HeuristicExtractor().extract(ExtractionRequest("village", "baker", [said]))))


def texts(text: str, agent: str = "Caroline", **fields: str) -> list[str]:
    return [fact.text for fact in facts(text, agent, **fields)]


@pytest.mark.parametrize(
    ("text", "fact", "category"),
    [
        ("I live in Berlin.", "Caroline lives in Berlin.", "place"),
        ("Well, I just love my dog Max!", "Caroline loves their dog Max.", "preference"),
        ("I'm a nurse at the town hospital.", "Caroline is a nurse at the town hospital.", "identity"),
        ("I\u2019m allergic to nuts", "Caroline is allergic to nuts.", "health"),
        ("I have two cats.", "Caroline has two cats.", "possession"),
        ("I don't eat meat.", "Caroline doesn't eat meat.", "activity"),
        ("I work at Siemens and teach maths on Fridays.", "Caroline works at Siemens and teaches maths on Fridays.",
         "work"),
        ("I've been to Rome twice.", "Caroline has been to Rome twice.", "event"),
        ("I've been working as a baker for ten years.", "Caroline has been working as a baker for ten years.", "work"),
        ("I moved to Ulm last year.", "Caroline moved to Ulm last year.", "place"),
        ("I was born in Lisbon.", "Caroline was born in Lisbon.", "identity"),
        ("I want to open a bakery.", "Caroline wants to open a bakery.", "plan"),
        ("I'm going to visit Rome in May.", "Caroline is going to visit Rome in May.", "plan"),
        ("I started painting this summer.", "Caroline started painting this summer.", "work"),
        ("My sister Anna is a pilot.", "Caroline's sister Anna is a pilot.", "family"),
        ("My favorite food is sushi.", "Caroline's favorite food is sushi.", "preference"),
        ("Acme Corp prefers React.", "Acme Corp prefers React.", "preference"),
        ("I think so. Beta supplies Gamma.", "Beta supplies Gamma.", "work"),
        ("I'm currently planning a fair.", "Caroline currently is planning a fair.", "plan"),
        ("I'm Craig, a developer from Leeds.", "Caroline is Craig, a developer from Leeds.", "identity"),
        ("I bought a van for 4,000 euros.", "Caroline bought a van for 4,000 euros.", "possession"),
        ("I've been learning Greek since January.", "Caroline has been learning Greek since January.", "education"),
        ("I have developed a video course.", "Caroline has developed a video course.", "event"),
        ("I've danced in Rome, Boston, and Lima!", "Caroline has danced in Rome, Boston, and Lima.", "event"),
        ("I've been looking into law as a career.", "Caroline has been looking into law as a career.", "work"),
        ("My colleague Rob invited me to a yoga class.", "Caroline's colleague Rob invited them to a yoga class.",
         "relation"),
        ("My mom and I made dinner on Monday.", "Caroline's mom and Caroline made dinner on Monday.", "family"),
        ("Some friends and I went camping in Ulm - fun!", "Caroline went camping in Ulm.", "event"),
        ("So much has happened since we spoke - I went to a fair in Ulm.", "Caroline went to a fair in Ulm.", "event"),
        ("Always quote the ticket when I ask about a release.",
         "Caroline says: always quote the ticket when they ask about a release.", "preference"),
    ],
)  # fmt: skip
def test_a_sentence_that_says_something_lasting_is_a_fact_in_the_third_person(
    text: str, fact: str, category: str
) -> None:
    (found,) = facts(text)
    assert (found.text, found.category, found.sources) == (fact, category, ("e-1",))


@pytest.mark.parametrize(
    "text",
    [
        "", "Hello!", "How are you?", "Do I live in Berlin?", "I love it.", "I love you so much", "I'm so happy today!",
        "I'm glad to hear that.", "Maybe I live in Berlin.", "I would love a dog.", "I think I live in Berlin.",
        "If I live in Berlin, fine.", "I have no idea.", "I'm living my dream.", "I'm running into some issues.",
        "I'm learning a ton.", "I got a surge of energy.", "I want to savor the moment.", "I love all the leaves.",
        "I'm a mix of excited and scared.", "Always be yourself!", "My family is my motivation.",
        "I want to show an error page. Can you help me?", "I have a question for the baker.", "I had a great time.",
        "I can help you.", "I'll bring bread.", "It is raining.", "They live in Berlin.", "That sounds great!",
        "Thanks for the advice.", "You are a nurse.", "My pleasure is great.", "- I live in Berlin.",
        "```\nI live in Berlin.\n```", "(I live in Berlin.)", "I live there.", "Everyone likes bread.",
        "Running is a great hobby.", "Monday is a holiday.",
    ],
)  # fmt: skip
def test_questions_guesses_greetings_and_what_cannot_be_understood_alone_are_none(text: str) -> None:
    assert texts(text) == []


def test_a_sentence_with_several_clauses_gives_a_fact_for_each() -> None:
    assert texts("I live in Berlin, but I work in Potsdam and my brother is a smith.") == [
        "Caroline lives in Berlin.", "Caroline works in Potsdam.", "Caroline's brother is a smith.",
    ]  # fmt: skip


def test_a_fact_names_whom_it_is_about() -> None:
    assert [fact.entity for fact in facts("I live in Berlin. My sister Anna is a pilot. Acme Corp prefers React.")] == [
        "Caroline", "Anna", "Acme Corp",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "fact", "category"),
    [
        ("我住在上海。", "小明住在上海。", "place"),
        ("其实我是一名医生", "小明是一名医生。", "identity"),
        ("我很喜欢吃辣，你呢？", "", ""),
        ("我最喜欢爬山！", "小明最喜欢爬山。", "preference"),
        ("我对花生过敏", "小明对花生过敏。", "health"),
        ("我养了两只猫。", "小明养了两只猫。", "possession"),
        ("我妈妈是老师", "小明的妈妈是老师。", "identity"),
        ("我在北京大学读书", "小明在北京大学读书。", "education"),
        ("我打算明年去巴黎", "小明打算明年去巴黎。", "plan"),
    ],
)
def test_chinese_sentences(text: str, fact: str, category: str) -> None:
    found = facts(text, "小明")
    assert [(each.text, each.category) for each in found] == ([(fact, category)] if fact else [])


@pytest.mark.parametrize(
    "text",
    [
        "你好",
        "我是说真的",
        "我喜欢你",
        "我可能住在上海",
        "（我住在上海）",
        "我有点累",
        "我不知道",
        "他是医生",
        "我是的",
    ],
)
def test_chinese_sentences_that_are_none(text: str) -> None:
    assert texts(text, "小明") == []


@pytest.mark.parametrize(
    ("said", "date"),
    [
        ("yesterday", "on 8 June 2023"),
        ("last night", "on 8 June 2023"),
        ("last Friday", "on 2 June 2023"),
        ("last Thurs", "on 8 June 2023"),
        ("last week", "in the week before 9 June 2023"),
        ("last weekend", "on the weekend before 9 June 2023"),
        ("last month", "in May 2023"),
        ("this month", "in June 2023"),
        ("next month", "in July 2023"),
        ("last year", "in 2022"),
        ("two days ago", "on 7 June 2023"),
        ("7 months ago", "in November 2022"),
        ("ten years ago", "in 2013"),
        ("201 years ago", "201 years ago"),
        ("a while ago", "a while ago"),
        ("before last year", "before 2022"),
        ("about three months ago", "about March 2023"),
    ],
)
def test_times_are_dates_if_it_is_known_when_the_text_was_said(said: str, date: str) -> None:
    friday = datetime(2023, 6, 9, 23, tzinfo=UTC)
    assert write_dates(f"Caroline moved to Ulm {said}.", friday) == f"Caroline moved to Ulm {date}."
    assert write_dates(f"Caroline moved to Ulm {said}.", None) == f"Caroline moved to Ulm {said}."


def test_dates_of_facts() -> None:
    new_year = datetime(2023, 1, 1, tzinfo=UTC)
    said = [Utterance("I moved to Ulm yesterday.", "Anna", "e-1", "agent.spoke", new_year)]
    said.append(Utterance("我打算明年去巴黎", "小明", "e-2", "agent.spoke", new_year))
    found = run(HeuristicExtractor().extract(ExtractionRequest("village", "baker", said)))
    assert [fact.text for fact in found] == ["Anna moved to Ulm on 31 December 2022.", "小明打算2024年去巴黎。"]
    first = datetime(1, 1, 1, tzinfo=UTC)
    assert write_dates("Anna moved to Ulm yesterday.", first) == "Anna moved to Ulm yesterday."


@pytest.mark.parametrize(
    "text",
    [
        'You told me: "I live in Oslo."',
        'She told me: "My sister Anna is a pilot."',
        'She said, "Bern is where my sister lives."',
        "He said “I am allergic to nuts.” Then he left.",
    ],
)
def test_what_somebody_else_is_quoted_with_is_not_a_fact_about_the_speaker(text: str) -> None:
    # An assistant that repeated a user's sentence was once said to live where the user lives.
    assert texts(text) == []


def test_quotes_around_the_whole_speech_stay() -> None:
    assert texts('*smiles* "I live in Oslo."') == ["Caroline lives in Oslo."]


def test_speech_without_its_closing_quote_is_read_quickly() -> None:
    long = 'You told me: "' + "I am my " * 30_000
    assert texts(long) == texts(long + "\n")


def test_what_a_tool_answered_gives_no_facts() -> None:
    assert texts("Acme Corp prefers React.", kind="tool.used") == []


def test_a_long_text_gives_few_facts_and_any_text_is_read_quickly() -> None:
    assert len(facts(" ".join(f"I live in Town{number}." for number in range(100)))) == 8
    for text in (
        "I " * 10_000,
        "a.b" * 8_000,
        "(" * 20_000,
        "我" * 20_000,
        "`" * 20_000,
        "My " * 10_000,
        "A " * 15_000,
    ):
        assert facts(text) == []


def test_the_same_texts_give_the_same_facts() -> None:
    text = "I live in Berlin. Acme Corp prefers React. 我住在上海。"
    assert facts(text) == facts(text)


def test_white_space_of_any_length_is_one_blank() -> None:
    blanks = " " * 20_000
    assert texts(f"I live{blanks}in Berlin{blanks}.") == ["Caroline lives in Berlin."]
