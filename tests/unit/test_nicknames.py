"""Nicknames that people give themselves, and names in another script, decide whose memories a question is about."""

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog import Memory
from recallog.retrieval.names import find_named, find_possible
from recallog.settings import Settings
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_schemas import Event
from support.events import event, run
from support.indexing import indexed, indexing_of, memory_with

CONVERSATIONS = json.loads((Path(__file__).parents[1] / "data" / "nicknames.json").read_text("utf-8"))
SPACE, ASKER = "village", "bob"
EVERYBODY = ("lucia", "ludwig", "lubna", "luigi", ASKER)
BEGIN = datetime(2026, 3, 1, tzinfo=UTC)


def by_words(home: Path) -> Memory:
    return Memory.open(Settings(home=home, index="off"))


def by_index(home: Path) -> Memory:
    return memory_with(home, lambda ledger: indexing_of(ledger, EdgeEngine(home / "engine")))


BOTH = pytest.mark.parametrize("opened", [by_words, by_index])


def said(agent: str, text: str, day: int = 0, **fields: Any) -> Event:
    """What an agent says to all others."""
    fields = {"space": SPACE, "audience": EVERYBODY, "payload": {"text": text}, **fields}
    return event(agent=agent, turn=day, at=BEGIN + timedelta(days=day), **fields)


async def find_meant(memory: Memory, question: str, asker: str = ASKER, space: str = SPACE, **options: Any) -> set[str]:
    """The authors of the hits that a question names. All agents of `EVERYBODY` have said something about bread."""
    found = await memory.recall(space, asker, question, top_k=50, **options)
    return {hit.event.agent for hit in found.hits if "author" in hit.parts}


def meant_after(
    home: Path, opened: Callable[[Path], Memory], events: Iterable[Event], question: str, **options: Any
) -> set[str]:
    async def work() -> set[str]:
        async with opened(home) as memory:
            await memory.publish_many([*(said(agent, "I like bread.") for agent in EVERYBODY), *events])
            await indexed(memory)
            return await find_meant(memory, question, **options)

    return run(work())


@BOTH
def test_the_person_with_the_nickname_is_meant_in_many_languages(
    tmp_path: Path, opened: Callable[[Path], Memory]
) -> None:
    async def work() -> None:
        async with opened(tmp_path) as memory:
            for number, each in enumerate(CONVERSATIONS):
                turns = enumerate(each["turns"])
                await memory.publish_many(
                    [said(*turn, at, space=f"s-{number}", audience=each["agents"]) for at, turn in turns]
                )
            await indexed(memory)
            for number, each in enumerate(CONVERSATIONS):
                for asker in each["agents"]:
                    found = await memory.recall(f"s-{number}", asker, each["question"], top_k=1)
                    assert found.hits[0].text == each["turns"][each["answer"]][1], each["language"]

    run(work())


@BOTH
def test_a_nickname_names_the_agent_that_has_it(tmp_path: Path, opened: Callable[[Path], Memory]) -> None:
    events = [said("lucia", "Everyone calls me Lulu."), said("ludwig", "Hello Lulu!")]
    assert meant_after(tmp_path, opened, events, "Which bread does Lulu like?") == {"lucia"}


NOT_CLAIMED = {
    "another-agent-says-it": said("ludwig", "Everyone calls her Lulu."),
    "a-quotation": said("ludwig", 'Lucia wrote: "Call me Lulu."'),
    "a-quotation-within-a-sentence": said("ludwig", "He always says 'call me Lulu' to guests."),
    "quoted-lines": said("ludwig", "She wrote this:\n> Call me Lulu.\n> Bye!"),
    "a-refusal": said("ludwig", "Please don't call me Lulu!"),
    "a-refusal-of-all": said("ludwig", "Nobody ever calls me Lulu."),
    "a-quotation-that-begins-earlier": said("ludwig", 'She says "hi, just call me Lulu" to guests.'),
    "a-request-to-somebody": said("ludwig", "You can call me, Lulu."),
    "a-friend-of-the-person": said("ludwig", "They call me Lulu's friend."),
    "a-longer-name": said("ludwig", "Call me Lulubelle."),
    "the-output-of-a-tool": said("ludwig", "", kind="tool.used", payload={"tool": "web", "result": "Call me Lulu."}),
    "words-from-outside": said("ludwig", "Call me Lulu.", kind="oracle.spoke"),
    "an-import": said("ludwig", "Call me Lulu.", payload={"text": "Call me Lulu.", "trust": "import"}),
    "an-entry": said("ludwig", "", kind="memory.retained", payload={"type": "note", "text": "Call me Lulu."}),
    "another-space": said("ludwig", "Call me Lulu.", space="town"),
    "words-that-the-asker-does-not-see": said("ludwig", "Call me Lulu.", audience=("lubna",)),
}


@BOTH
def test_nobody_else_is_given_a_nickname(tmp_path: Path, opened: Callable[[Path], Memory]) -> None:
    async def work() -> None:
        async with opened(tmp_path) as memory:
            for space, claim in NOT_CLAIMED.items():
                own = claim if claim.space == "town" else claim.model_copy(update={"space": space})
                await memory.publish_many([*(said(agent, "I like bread.", space=space) for agent in EVERYBODY), own])
            await indexed(memory)
            for space in NOT_CLAIMED:
                assert await find_meant(memory, "Which bread does Lulu like?", space=space) == set(), space

    run(work())


@pytest.mark.parametrize(
    ("text", "question", "named"),
    [
        ("我叫妈妈来接我。", "妈妈喜欢什么面包？", False),
        ("老板叫我看看。", "看看什么面包？", False),
        ("大家都叫我姐姐吧。", "姐姐喜欢什么面包？", True),
        ("みんなは妹をルルと呼んでいます。", "ルルさんの好きなパンは？", False),
        ("彼は「ルルって呼んで」と言った。", "ルルさんの好きなパンは？", False),
        ("私のことを「ルル」って呼んで。", "ルルさんの好きなパンは？", True),
        ("다들 동생을 룰루라고 불러.", "룰루가 좋아하는 빵은?", False),
        ("다들 나를 룰루라고 불러.", "룰루가 좋아하는 빵은?", True),
        ("मेरा नाम क्या है?", "लूलू को क्या पसंद है?", False),
        ("मेरा नाम लूलूवती है।", "लूलू को क्या पसंद है?", False),
        ("मेरा नाम रामा है।", "राम को क्या पसंद है?", False),
        ("No, nobody minds, call me 'Lulu'.", "Which bread does Lulu like?", True),
        ("It is not on my badge but all call me Lulu.", "Which bread does Lulu like?", True),
    ],
)
def test_words_after_a_phrase_are_a_nickname_only_if_they_end_it(
    tmp_path: Path, text: str, question: str, named: bool
) -> None:
    assert meant_after(tmp_path, by_words, [said("lucia", text)], question) == ({"lucia"} if named else set())


@BOTH
def test_a_nickname_of_several_agents_names_all_of_them_as_a_part_of_a_name_does(
    tmp_path: Path, opened: Callable[[Path], Memory]
) -> None:
    events = [said(agent, "Call me Lu.") for agent in EVERYBODY[:4]]
    assert meant_after(tmp_path / "three", opened, events[:3], "Which bread does Lu like?") == set(EVERYBODY[:3])
    assert meant_after(tmp_path / "four", opened, events, "Which bread does Lu like?") == set()


@BOTH
def test_the_past_knows_no_later_nickname(tmp_path: Path, opened: Callable[[Path], Memory]) -> None:
    async def work() -> None:
        async with opened(tmp_path) as memory:
            await memory.publish(said("lucia", "I like bread."))
            before = await memory.publish(said("ludwig", "I like bread too.", 1))
            after = await memory.publish(said("lucia", "Call me Lulu.", 2))
            await indexed(memory)
            moments = [before, after, BEGIN + timedelta(days=1.5), BEGIN + timedelta(days=2)]
            meant = [await find_meant(memory, "Which bread does Lulu like?", as_of=moment) for moment in moments]
            assert meant == [set(), {"lucia"}, set(), {"lucia"}]

    run(work())


@BOTH
def test_a_pronoun_is_the_subject_before_a_nickname(tmp_path: Path, opened: Callable[[Path], Memory]) -> None:
    events = [said("lucia", "Call me Lulu.")]
    assert meant_after(tmp_path, opened, events, "Which bread did I give Lulu?") == set()


def test_an_erased_nickname_names_nobody(tmp_path: Path) -> None:
    async def work() -> None:
        async with by_words(tmp_path) as memory:
            await memory.publish(said("lucia", "I like bread."))
            await memory.publish(said("lucia", "Call me Lulu.", subject="lucia"))
            assert await find_meant(memory, "Which bread does Lulu like?") == {"lucia"}
            await memory.erase(SPACE, subject="lucia")
            assert await find_meant(memory, "Which bread does Lulu like?") == set()

    run(work())


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("what did lulu paint?", []),
        ("What did we paint on Monday?", []),
        ("What did Lulu's brother paint in March?", ["Lulu"]),
        ("Lulu painted what?", []),
        ("Lulu喜欢什么？", ["Lulu"]),
        ("小明和露露去了哪里？", ["小明", "露露"]),
        ("昨天我们去了哪里？", []),
        ("룰루는 어디에 있어?", ["룰루"]),
        ("ルルちゃんはどこ？", ["ルル"]),
        ("أين لولو؟", ["لولو"]),
        ("लूलू का नाम क्या है?", ["लूलू", "नाम"]),
        ("大家天天看看书，谢谢", []),
    ],
)
def test_words_of_a_question_that_may_be_names(question: str, words: list[str]) -> None:
    assert [word for _, _, word in find_possible(question)] == words


OTHER_SCRIPTS = {
    "Melanie": "Мелани мелани! メラニー 멜라니 梅兰妮 梅蘭妮 ميلاني मेलानी",
    "Caroline": "Каролина Каролину キャロライン 캐롤라인 卡罗琳 كارولين",
    "bob-smith": "Смит 스미트",
    "Анна": "Anna Ana",
}


@pytest.mark.parametrize("agent", OTHER_SCRIPTS)
def test_a_name_in_another_script_names_an_agent(agent: str) -> None:
    for word in OTHER_SCRIPTS[agent].split():
        named = find_named(f"So {word}?", [*OTHER_SCRIPTS, "worker-1"])
        assert set(named) == (set() if word.islower() else {agent}), word


def test_another_word_in_another_script_names_nobody() -> None:
    agents = ["Melanie", "Caroline", "bob-smith", "Thomas"]
    for question in ("Когда мы ездили в Минск?", "昨日コーヒーを飲みましたか", "昨天安排了什么", "오늘 점심은 뭐야?"):
        assert find_named(question, agents) == {}


@pytest.mark.parametrize(
    ("agent", "question"),
    [
        ("blake", "Wo ist die Brücke?"),
        ("casey", "Wer kauft Käse?"),
        ("kay", "राहुल क्या चाहता है?"),
        ("kai", "राहुल का घर कहाँ है?"),
        ("hal", "هل وصل القطار؟"),
        ("karl", "كل يوم؟"),
        ("ali", "우리 어디 가?"),
        ("maya", "妈妈去哪里了？"),
    ],
)
def test_an_ordinary_word_that_sounds_like_a_short_name_names_nobody(agent: str, question: str) -> None:
    assert find_named(question, [agent]) == {}


def test_a_name_in_the_same_script_is_not_compared_by_its_sound() -> None:
    assert find_named("Who met Karolin?", ["Caroline"]) == {}
    assert find_named("Где Онна?", ["Анна"]) == {}


def test_without_the_package_a_name_in_another_script_names_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from recallog.retrieval import names, spellings

    monkeypatch.setitem(sys.modules, "anyascii", None)
    names._sort_by_sound.cache_clear()
    spellings.find_consonants.cache_clear()
    assert find_named("Где Мелани?", ["Melanie"]) == {}
    monkeypatch.undo()
    names._sort_by_sound.cache_clear()
    spellings.find_consonants.cache_clear()
    assert set(find_named("Где Мелани?", ["Melanie"])) == {"Melanie"}


CLAIMS = st.tuples(
    st.sampled_from(EVERYBODY),
    st.sampled_from(
        ["Call me Lulu.", "Hello Lulu!", "Don't call me Lulu.", "Everyone calls me Bear.", "My name is Lulu"]
    ),
    st.sampled_from(["all", "some", "tool"]),
)


@settings(max_examples=25, deadline=None)
@given(claims=st.lists(CLAIMS, max_size=8), asker=st.sampled_from(EVERYBODY))
def test_a_nickname_names_those_who_said_so_where_the_asker_heard_it(
    claims: Sequence[tuple[str, str, str]], asker: str
) -> None:
    audiences = {"all": EVERYBODY, "some": ("lubna",), "tool": EVERYBODY}
    events = [
        said(agent, text, audience=audiences[how], kind="oracle.spoke" if how == "tool" else "agent.spoke")
        for agent, text, how in claims
    ]
    having = {
        agent
        for agent, text, how in claims
        if text in ("Call me Lulu.", "My name is Lulu")
        and how != "tool"
        and (how == "all" or asker in (agent, "lubna"))
    }

    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many([*(said(agent, "I like bread.") for agent in EVERYBODY), *events])
            meant = await find_meant(memory, "Which bread does Lulu like?", asker)
            assert meant == (having if len(having) <= 3 else set())

    run(work())
