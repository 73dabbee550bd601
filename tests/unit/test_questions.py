"""Questions of every script are recognised, with and without a question mark."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallog_projections.index.language.questions import is_question


@pytest.mark.parametrize(
    "text",
    [
        "Who?",
        "Who? ",
        "Who? [shares a photo of a mill]",
        "Really?? [a] ",
        "Wer?\n[one\ntwo]",
        "?",
        "Who?)",
        "Who?!",
        "How are you? :)",
        "How are you? 😊❤️",
        "Do you like it? (I do.)",
        "(Are you there?)",
        '"Who is there?"',
        "¿Quién?",
        "Qui ? ",
        "你是谁？",
        "（转过头）你是谁？（皱眉）",
        "你还好吗？【图片】",
        "你吃饭了吗",
        "你吃飯了嗎。",
        "「誰ですか？」",
        "もう食べましたか。",
        "밥 먹었어요?",
        "어디에 갑니까",
        "같이 갈까요",
        "กินข้าวหรือยัง",
        "ไปไหมครับ",
        "ما اسمك؟",
        "نام تو چیست؟",
        "Ποιος είναι;",
        "Ո՞վ է նա։",
        "क्या तुम आओगे?",
        "ስምህ ማን ነው፧",
    ],
)
def test_a_question_is_recognised(text: str) -> None:
    assert is_question(text)


@pytest.mark.parametrize(
    "text",
    [
        "Who? I.",
        "[is it a photo?]",
        "",
        " ",
        "He asked [who?]",
        "Yes. [photo]",
        "He asked (who?)",
        "I did; you did;",
        "I know :)",
        "你好。",
        "（你是谁？）我知道。",
        "没什么",
        "食べました。",
        "비가 오니까",
        "ไม่ไป",
        "Да.",
        "Ο μύλος κάηκε.",
        "Ո՞վ է նա։ Չգիտեմ։",
    ],
)
def test_a_statement_is_no_question(text: str) -> None:
    assert not is_question(text)


@given(st.text(st.sampled_from("a?？吗)(（）[]*😊 か;\u055e니까")))
def test_every_text_is_a_question_or_not(text: str) -> None:
    assert is_question(text) in {True, False}
    assert is_question(text + "?")


def test_a_long_text_of_brackets_and_spaces_is_read_in_linear_time() -> None:
    assert not is_question("(" * 100_000 + " " * 100_000 + ")" * 100_000)
