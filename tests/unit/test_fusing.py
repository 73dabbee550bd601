"""`recallog.fuse`: one ranking from several."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallog import fuse
from recallog.errors import InvalidArgument


def rounded(found: list[tuple[str, float]]) -> list[tuple[str, float]]:
    return [(item, round(score, 6)) for item, score in found]


def test_items_of_several_rankings_come_first() -> None:
    found = fuse([["a", "b", "c"], ["b", "a"], ["c"], ["c", "b", "a"]])
    assert rounded(found) == [("c", 0.048660), ("b", 0.048652), ("a", 0.048395)]


def test_without_rankings_there_is_nothing() -> None:
    assert fuse([]) == []
    assert fuse([[], []]) == []


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        (0.6, [("m2", 0.016235), ("m1", 0.009836), ("m3", 0.006452)]),
        (0.3, [("m2", 0.016314), ("m3", 0.011290), ("m1", 0.004918)]),
    ],
)
def test_weights_count_for_their_rankings(weight: float, expected: list[tuple[str, float]]) -> None:
    assert rounded(fuse([["m1", "m2"], ["m2", "m3"]], weights=[weight, 1 - weight])) == expected


def test_equal_scores_keep_the_order_of_first_appearance() -> None:
    assert [item for item, _ in fuse([["a", "b"], ["b", "a"]])] == ["a", "b"]
    assert [item for item, _ in fuse([["b", "a"], ["a", "b"]])] == ["b", "a"]


def test_a_repeated_item_has_its_better_rank() -> None:
    assert fuse([["a", "a", "b"]]) == [("a", 1 / 61), ("b", 1 / 62)]


def test_a_smaller_constant_prefers_first_ranks() -> None:
    assert fuse([["a", "b"]], k=0) == [("a", 1.0), ("b", 0.5)]


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"k": -1}, "k"),
        ({"k": float("nan")}, "k"),
        ({"weights": [1.0]}, "weights"),
        ({"weights": [1.0, -1.0]}, "weights.1"),
        ({"weights": [float("inf"), 1.0]}, "weights.0"),
    ],
)
def test_invalid_arguments_are_named(arguments: dict[str, object], path: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        fuse([["a"], ["b"]], **arguments)  # type: ignore[arg-type]
    assert refused.value.path == path


@given(st.lists(st.lists(st.integers(0, 9), unique=True), max_size=5), st.randoms(use_true_random=False))
def test_scores_do_not_depend_on_the_order_of_the_rankings(rankings: list[list[int]], chance: random.Random) -> None:
    shuffled = chance.sample(rankings, len(rankings))
    assert dict(fuse(rankings)) == dict(fuse(shuffled))
    scores = [score for _, score in fuse(rankings)]
    assert scores == sorted(scores, reverse=True)
    assert {item for item, _ in fuse(rankings)} == {item for ranking in rankings for item in ranking}
