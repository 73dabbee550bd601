"""Which texts are the same for the fold of entries: a pair that differs in any detail is never one entry."""

import unicodedata
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallog import Memory
from recallog_projections.models.long_term import texts
from recallog_schemas.models.long_term import limits as long_term_limits
from support.events import event, run

pytestmark = pytest.mark.models("long_term")

BAKER = ("village", "baker")

SAME = [
    ("Tom is allergic to peanuts", "Tom is allergic to peanuts."),
    ("Tom is allergic to peanuts.", "Tom is allergic to peanuts!!"),
    ("Tom is allergic to peanuts", "  Tom  is\tallergic to peanuts\n"),
    ("Tom is allergic to peanuts", "Tom is allergic\nto peanuts"),
    ("Tom is allergic to peanuts", "tom is allergic to peanuts"),
    ("Tom is allergic to peanuts", "TOM IS ALLERGIC TO PEANUTS"),
    ("tom is allergic to peanuts", "TOM IS ALLERGIC TO PEANUTS!"),
    ("Ivan reports to Chen", "ivan reports to chen"),
    ("The Louvre is in Paris", "the Louvre is in Paris"),
    ("A baker came", "a baker came"),
    ("Well-known fact", "well-known fact"),
    ("The review is at 18:40 in Room 5", "the review is at 18:40 in room 5"),
    ("He came. She left.", "He came.\nShe left."),
    ("It costs 5", "It costs 5."),
    ("It rose by 50%", "It rose by 50%."),
    ("Tom likes C++", "Tom likes C++."),
    ("Tom waits...", "Tom waits\u2026"),
    ("Tom's caf\u00e9", "Tom\u2019s cafe\u0301"),
    ('He said "no" twice', "He said \u201cno\u201d twice"),
    ("Tom is 5", "\uff34\uff4f\uff4d\u3000\uff49\uff53\u3000\uff15"),
    ("The file is open", "The \ufb01le is open"),
    ("Tom and Ann", "Tom\u00a0and\u2009Ann"),
    ("They cooperate", "They co\u00adoperate\u200b"),
    ("Tom ist in K\u00f6ln", "Tom ist in Ko\u0308ln"),
    ("\u6c64\u59c6\u5bf9\u82b1\u751f\u8fc7\u654f", "\u6c64\u59c6\u5bf9\u82b1\u751f\u8fc7\u654f\u3002"),
    ("\u6c64\u59c6\u6765\u5417?", "\u6c64\u59c6\u6765\u5417\uff1f"),
    ("\u6c64\u59c6,\u4f60\u597d", "\u6c64\u59c6\uff0c\u4f60\u597d"),
    ("\u6211\u559c\u6b22Python\u7f16\u7a0b", "\u6211\u559c\u6b22 Python \u7f16\u7a0b"),
    ("\u30ac\u30a4\u30c9", "\uff76\uff9e\uff72\uff84\uff9e"),
    (
        "\u041c\u043e\u0441\u043a\u0432\u0430 \u0431\u043e\u043b\u044c\u0448\u0430\u044f",
        "\u043c\u043e\u0441\u043a\u0432\u0430 \u0431\u043e\u043b\u044c\u0448\u0430\u044f.",
    ),
    (
        "\u039a\u03b1\u03bb\u03b7\u03bc\u03ad\u03c1\u03b1 \u03c3\u03b5 \u03cc\u03bb\u03bf\u03c5\u03c2",
        "\u03ba\u03b1\u03bb\u03b7\u03bc\u03ad\u03c1\u03b1 \u03c3\u03b5 \u03cc\u03bb\u03bf\u03c5\u03c2",
    ),
]
DIFFERENT = [
    # words, and their order
    ("Tom is allergic to peanuts", "Tom is not allergic to peanuts"),
    ("Ivan reports to Chen", "Chen reports to Ivan"),
    ("Deploy 7 passed", "Deploy 7 failed"),
    ("\u6c64\u59c6\u5bf9\u82b1\u751f\u8fc7\u654f", "\u6c64\u59c6\u5bf9\u82b1\u751f\u4e0d\u8fc7\u654f"),
    ("r\u00e9sum\u00e9", "resume"),
    ("Die Ma\u00dfe stimmen", "Die Masse stimmen"),
    # numbers, signs and units
    ("The train leaves at 18:40", "The train leaves at 19:40"),
    ("OPS-17 is open", "OPS-71 is open"),
    ("It is -5 outside", "It is 5 outside"),
    ("It is .5", "It is 5"),
    ("It is 1.5", "It is 15"),
    ("It costs 3,000", "It costs 3.000"),
    ("It costs $5", "It costs \u20ac5"),
    ("It rose by 50%", "It rose by 50"),
    ("Reply within 5 ms", "Reply within 5 Ms"),
    ("The fuse has 5 mA", "The fuse has 5 MA"),
    ("5 ma", "5 MA"),
    ("The disk has 3 Mb", "The disk has 3 MB"),
    ("Use \u00bd cup", "Use 1/2 cup"),
    ("The area is x\u00b2", "The area is x2"),
    ("Step \u2460", "Step 1"),
    ("The result is 5!", "The result is 5"),
    # identifiers, paths and code
    ("The host is 10.0.0.4", "The host is 10.0.0.5"),
    ("OPS-17 is open", "OPS 17 is open"),
    ("Tom likes C++", "Tom likes C"),
    ("Tom likes C#", "Tom likes C"),
    ("The branch is a/b", "The branch is ab"),
    ("Look into /Home/tom", "Look into /home/tom"),
    ("See https://example.org/A", "See https://example.org/a"),
    ("Call getUser first", "Call getuser first"),
    ("The password is Secret", "The password is secret"),
    ("the password is Secret", "the password is secret"),
    ("import Foo", "import foo"),
    ("X = 5", "x = 5"),
    ("x < y", "x > y"),
    ("x <= y", "x < y"),
    ("Set it to !important", "Set it to important"),
    ("Mail Tom@example.org", "Mail tom@example.org"),
    ("Go to .", "Go to .."),
    ("if x:\n  a()\n  b()", "if x:\n  a()\nb()"),
    # capitals that say something
    ("He told us", "He told US"),
    ("he told us", "he told US"),
    ("He works in IT", "He works in it"),
    ("He likes Turkey", "He likes turkey"),
    ("Give him vitamin K", "Give him vitamin k"),
    # punctuation, line breaks and signs
    ("Is Tom here?", "Is Tom here."),
    ("Let's eat, grandma", "Let's eat grandma"),
    ("\u4e0d\u53ef\u4ee5", "\u4e0d\uff0c\u53ef\u4ee5"),
    ("\u82f9\u679c \u624b\u673a", "\u82f9\u679c\u624b\u673a"),
    ("Tom\nAnn Lee", "Tom Ann\nLee"),
    ("Tom likes tea \U0001f600", "Tom likes tea \U0001f621"),
    ('He said "no"', "He said no"),
]


def are_same(one: str, other: str) -> bool:
    ours, theirs = texts.normal_form_of(one), texts.normal_form_of(other)
    assert texts.are_equal("normalised", ours, theirs) == texts.are_equal("normalised", theirs, ours)
    return ours.key == theirs.key and texts.are_equal("normalised", ours, theirs)


@pytest.mark.parametrize(("one", "other"), SAME)
def test_one_text_in_two_forms_is_the_same(one: str, other: str) -> None:
    assert are_same(one, other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_texts_that_differ_in_one_detail_are_different(one: str, other: str) -> None:
    assert not are_same(one, other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_an_entry_is_kept_for_each_of_two_texts_that_differ(one: str, other: str) -> None:
    """Through every way in: `retain`, an event of a program, the end of a session, and a change of another entry."""

    async def work() -> None:
        async with Memory.in_memory() as memory:
            entries = memory.long_term
            assert [(await entries.retain(*BAKER, text)).outcome for text in (one, other)] == ["stored", "stored"]
            near = {"id": "l-1", "version": 1, "similarity": 0.9999, "model": "m"}
            for id_, text in (("l-1", one), ("l-2", other)):
                payload = {"text": text, "type": "lesson", "nearest": near}
                await memory.publish(event("memory.retained", id=id_, payload=payload))
            await entries.seed(*BAKER, [one, other], type="note")
            await entries.retain(*BAKER, "to be corrected", type="info", entry_id="i-1")
            await entries.retain(*BAKER, one, type="info")
            assert (await entries.update(*BAKER, "i-1", text=other)).changed
            kept = [(each.type, each.text) for each in (await entries.list(*BAKER, limit=100)).entries]
            types = ("fact", "lesson", "note", "info")
            assert sorted(kept) == sorted((each, text) for each in types for text in (one, other))

    run(work())


@pytest.mark.parametrize(("one", "other"), SAME)
def test_one_text_in_two_forms_is_one_entry(one: str, other: str) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            first = await memory.long_term.retain(*BAKER, one)
            again = await memory.long_term.retain(*BAKER, other)
            assert (again.outcome, again.id, again.reason) == ("skipped", first.id, "equal")
            (entry,) = (await memory.long_term.list(*BAKER)).entries
            assert (entry.text, entry.version) == (one, 1)

    run(work())


def test_a_rule_that_is_stated_decides() -> None:
    """Two texts that rule 1 found different stay two entries where their events state it."""

    async def work() -> None:
        async with Memory.in_memory() as memory:
            for id_, rule in (("e-1", 1), ("e-2", 1), ("e-3", None), ("e-4", 2)):
                text = "Bread is dear." if id_ == "e-1" else "bread is dear"
                await memory.publish(event("memory.retained", id=id_, payload={"text": text, "rule": rule}))
            assert [each.id for each in (await memory.long_term.list(*BAKER)).entries] == ["e-2", "e-1"]

    run(work())


def test_of_more_texts_than_are_listed_under_one_key_the_further_ones_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(long_term_limits, "ENTRY_TWINS_MAX", 20)
    words = ["day", "the", "miller", "buys", "rye", "from", "old", "ann"]
    forms = product(*((word, word.capitalize()) for word in words))
    wanted = [f"On {' '.join(form)}" for form in forms if form != tuple(words)] + ["On monday"]
    assert len({texts.normal_form_of(text).key for text in wanted}) == 2

    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many([event("memory.retained", payload={"text": text}) for text in wanted])
            assert (await memory.long_term.stats(*BAKER)).fact_count == len(wanted)

    run(work())


@given(st.text(min_size=1, max_size=60))
def test_texts_that_rule_1_finds_equal_have_one_key(text: str) -> None:
    """Only texts with one key are compared, by whichever rule."""
    other = "  ".join(unicodedata.normalize("NFD", f" {text}\n").split(" "))
    ours, theirs = texts.form_of(text), texts.form_of(other)
    assert ours.exact == theirs.exact
    assert ours.key == theirs.key


@given(st.text(alphabet="xXbB5 .,-!?'\n", max_size=20), st.text(alphabet="xXbB5 .,-!?'\n", max_size=20))
def test_only_capitals_white_space_and_the_last_stop_are_ignored_in_plain_texts(one: str, other: str) -> None:
    def rest(text: str) -> str:
        return " ".join(text.lower().split()).rstrip(".!")

    if are_same(one, other):
        assert rest(one) == rest(other)
