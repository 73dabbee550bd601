"""The choice of texts that a summary without a model quotes."""

from hypothesis import given
from hypothesis import strategies as st

from recallog.reactors.telling import Quotable, choose_telling

WORDS = ("mill", "river", "bread", "coin", "the", "fire")
TEXTS = st.lists(
    st.builds(Quotable, st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join), st.sampled_from([0.0, 0.5, 0.9])),
    max_size=8,
)


def choose(*texts: str, count: int = 2) -> list[str]:
    """The chosen ones of equally important texts."""
    return [texts[number] for number in choose_telling([Quotable(text, 0.5) for text in texts], count)]


def choose_naively(texts: list[Quotable], count: int) -> list[int]:
    """As `choose_telling`, from its definition; the terms of `WORDS` are the words without "the"."""
    chosen: list[int] = []
    while len(chosen) < count:
        said = {word for number in chosen for word in texts[number].text.split()}
        ranked = [
            (each.importance, len({*each.text.split()} - said - {"the"}), number)
            for number, each in enumerate(texts)
            if not any(
                other.text == each.text and (place in chosen or (other.importance, place) > (each.importance, number))
                for place, other in enumerate(texts)
            )
        ]
        if not ranked:
            break
        chosen.append(max(ranked)[2])
    return sorted(chosen)


def test_of_equally_important_texts_those_that_say_most_are_chosen_oldest_first() -> None:
    assert choose("Hey!", "The mill burned down last night.", "Wow.", "I owe the miller three coins.", "Bye!") == [
        "The mill burned down last night.",
        "I owe the miller three coins.",
    ]


def test_a_text_that_repeats_what_is_chosen_gives_way_to_one_that_says_something_else() -> None:
    assert choose("Mill, river, bread and coins.", "Mill, river and bread.", "A fire.") == [
        "Mill, river, bread and coins.",
        "A fire.",
    ]


def test_the_newer_of_texts_that_say_equally_much_is_chosen() -> None:
    assert choose("A fire.", "A mill.", "A river.", count=1) == ["A river."]


def test_importance_comes_before_what_a_text_says() -> None:
    texts = [Quotable("Rain.", 0.9), Quotable("The mill burned down last night.", 0.5)]
    assert choose_telling(texts, 1) == [0]


@given(TEXTS, st.integers(0, 4))
def test_the_choice_is_that_of_its_definition(texts: list[Quotable], count: int) -> None:
    assert choose_telling(texts, count) == choose_naively(texts, count)
