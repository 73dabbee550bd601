"""A question in traditional Chinese characters and memories in simplified ones, and the reverse."""

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from contract.test_index_entries import retained
from recallog import Memory
from recallog.retrieval.query import query_terms
from recallog.settings import Settings
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_projections.index.language import character_forms
from recallog_projections.index.language.character_forms import find_other_forms, without_unused_forms
from recallog_schemas import limits
from support.events import event, run
from support.indexing import indexed, indexing_of, memory_with

pytestmark = pytest.mark.models("all")

A = ("village", "baker")
SIMPLIFIED = ("我的头发是在河边剪的。", "磨坊昨天烧毁了。", "面包卖九个铜钱。", "医生住在桥后面。")
TRADITIONAL = ("我的頭髮是在河邊剪的。", "磨坊昨天燒毀了。", "麵包賣九個銅錢。", "醫生住在橋後面。")
QUESTIONS = [
    ("头发在哪里剪的？", "頭髮在哪裡剪的？", 0),
    ("面包多少铜钱？", "麵包多少銅錢？", 2),
    ("医生住哪里？", "醫生住哪裡？", 3),
]


def by_words(home: Path) -> Memory:
    return Memory.open(Settings(home=home, index="off"))


def by_index(home: Path) -> Memory:
    """The embedder of this index cannot read Chinese."""
    return memory_with(home, lambda ledger: indexing_of(ledger, EdgeEngine(home / "engine")))


@asynccontextmanager
async def told(memory: Memory, *texts: str) -> AsyncIterator[Memory]:
    async with memory:
        for turn, text in enumerate(texts):
            await memory.publish(event(payload={"text": text}, session=f"s-{turn}", turn=turn))
        await indexed(memory)
        yield memory


@pytest.mark.parametrize("opened", [by_words, by_index])
@pytest.mark.parametrize("stored", [SIMPLIFIED, TRADITIONAL], ids=["simplified", "traditional"])
@pytest.mark.parametrize(("simplified", "traditional", "number"), QUESTIONS)
def test_a_question_in_either_form_has_the_same_answer(
    tmp_path: Path,
    opened: Callable[[Path], Memory],
    stored: tuple[str, ...],
    simplified: str,
    traditional: str,
    number: int,
) -> None:
    async def work() -> None:
        async with told(opened(tmp_path), *stored) as memory:
            one, other = [await memory.recall(*A, question, top_k=1) for question in (simplified, traditional)]
            assert one.hits[0].text == other.hits[0].text == stored[number]
            assert one.hits[0].score == pytest.approx(other.hits[0].score)
            assert not one.hits[0].weak
            assert not other.hits[0].weak

    run(work())


def test_a_memory_that_is_newer_than_the_index_is_found_in_the_other_form(tmp_path: Path) -> None:
    async def work() -> None:
        async with told(by_index(tmp_path), *SIMPLIFIED) as memory:
            await memory.publish(event(payload={"text": TRADITIONAL[2]}, session="s-9", turn=9))
            for question in QUESTIONS[1][:2]:
                found = await memory.recall(*A, question)
                assert {hit.text for hit in found.hits[:2]} == {SIMPLIFIED[2], TRADITIONAL[2]}

    run(work())


@pytest.mark.parametrize("opened", [by_words, by_index])
def test_entries_are_found_in_the_other_form(tmp_path: Path, opened: Callable[[Path], Memory]) -> None:
    async def work() -> None:
        async with opened(tmp_path) as memory:
            entries = [retained(text, id=f"m{at}", type="lesson") for at, text in enumerate(SIMPLIFIED)]
            await memory.publish_many(entries)
            await indexed(memory)
            await memory.publish(retained(TRADITIONAL[1], id="m9"))
            for simplified, traditional, number in QUESTIONS:
                for question in (simplified, traditional):
                    found = await memory.recall(*A, question, preset="hybrid")
                    assert found.hits[0].text == SIMPLIFIED[number]
                    if opened is by_words:
                        tiers = await memory.tiers.retrieve(*A, question)
                        assert tiers.hits[0].entry.text == SIMPLIFIED[number]
                        lessons = await memory.long_term.lessons(*A, question)
                        assert lessons.lessons[0].entry.text == SIMPLIFIED[number]
            burned = await memory.recall(*A, "磨坊燒毀", preset="hybrid", top_k=2)
            assert {hit.text for hit in burned.hits} == {SIMPLIFIED[1], TRADITIONAL[1]}

    run(work())


def test_each_form_of_a_character_gives_a_term() -> None:
    assert set(find_other_forms("头发")) == {"頭發", "頭髮"}
    assert find_other_forms("頭髮") == ("头发",)
    assert {"麵包", "麪包"} <= set(find_other_forms("面包"))
    assert "後面" in find_other_forms("后面")  # 面 is also a traditional character
    assert "群發" in find_other_forms("群发")  # 群 is written for 羣
    assert find_other_forms("昨日") == ()
    assert find_other_forms("ab") == ()
    assert find_other_forms("一頭髮") == ()


def test_a_question_without_chinese_characters_has_the_terms_of_its_words() -> None:
    found = query_terms("Which instrument does Lucía's brother play, ピアノ?", ())
    assert found.terms == ("instrument", "lucia", "brother", "play", "ピア", "アノ")
    assert len(found.term_spans) == len(found.terms)


def test_the_terms_of_a_long_question_come_before_their_other_forms() -> None:
    question = "".join(map("".join, SIMPLIFIED)) * 9
    found = query_terms(question, ()).terms
    assert {"头", "发", "医"} <= set(found)
    assert len(found) == len(set(found)) <= 4 * limits.RECALL_TERMS_MAX


def test_an_unused_term_counts_unless_another_form_of_it_does() -> None:
    assert without_unused_forms(["头发", "頭髮", "bread"], {"頭髮"}) == ["頭髮", "bread"]
    assert without_unused_forms(["头发", "頭髮", "bread"], {"头发", "頭髮"}) == ["头发", "頭髮", "bread"]
    assert without_unused_forms(["头发", "頭髮", "頭發", "bread"], set()) == ["头发", "bread"]


@pytest.fixture
def no_tables() -> Iterator[None]:
    caches = character_forms._tables, find_other_forms
    for cached in caches:
        cached.cache_clear()
    yield
    sys.modules.pop("opencc", None)
    for cached in caches:
        cached.cache_clear()


@pytest.mark.usefixtures("no_tables")
@pytest.mark.parametrize("package", [None, "another"])
def test_without_the_package_terms_have_no_other_forms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str | None
) -> None:
    (tmp_path / "opencc").mkdir()
    (tmp_path / "opencc" / "__init__.py").touch()
    monkeypatch.delitem(sys.modules, "opencc", raising=False)
    if package is None:
        monkeypatch.setitem(sys.modules, "opencc", None)
    else:
        monkeypatch.syspath_prepend(tmp_path)
    assert find_other_forms("头发") == ()
