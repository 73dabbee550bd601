"""Words as numbers: comparing the numbers equals comparing the words."""

import random
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallog_projections.views import words
from recallog_projections.views.words import Vocabulary, words_of
from recallog_schemas import limits

TEXTS = st.lists(st.sampled_from(["the", "The", "mill", "MILL", "straße", "İ", "a", "a\u00a0b", "\t", "x" * 300])).map(
    " ".join
)


@given(TEXTS, st.lists(TEXTS))
def test_the_overlap_of_two_texts_equals_that_of_their_words(query: str, texts: list[str]) -> None:
    vocabulary = Vocabulary()
    wanted = vocabulary.learn(query)
    for text in [*texts, *texts]:
        learned = vocabulary.make_bag(text)
        assert (learned.bits & wanted.bits).bit_count() == len(words_of(text) & words_of(query))
        assert (learned.size, wanted.size) == (len(words_of(text)), len(words_of(query)))


def test_a_vocabulary_that_has_grown_too_large_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CACHED_TEXTS_MAX", 3)
    old = words.vocabulary()
    for n in range(5):
        old.make_bag(f"text {n}")
    assert words.vocabulary() is not old
    assert words.vocabulary() is words.vocabulary()


def test_two_threads_never_give_one_number_to_two_words() -> None:
    vocabulary = Vocabulary()
    spoken = [[f"word-{n}-{thread % 2}" for n in range(2_000)] for thread in range(4)]

    def learn(learned: list[str]) -> None:
        random.Random(len(learned)).shuffle(learned)
        for word in learned:
            vocabulary.learn(word)

    threads = [threading.Thread(target=learn, args=(learned,)) for learned in spoken]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bits = {word: vocabulary.learn(word).bits for learned in spoken for word in learned}
    assert len(set(bits.values())) == len(bits) == 4_000
