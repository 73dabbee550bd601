"""What an agent wants to keep of its working memory: which lines qualify, their order, and their parts."""

from typing import Any

import pytest

from recallog_projections.views import migration
from recallog_schemas import limits


@pytest.mark.parametrize(
    ("line", "type_"),
    [
        ("LESSON: a", "lesson"), ("strategy: b", "strategy"), ("Info:c", "info"), ("  INSIGHT:  d  ", "insight"),
        ("nOtE: e", "note"),
    ],
)  # fmt: skip
def test_a_line_with_a_prefix_and_something_behind_it_qualifies(line: str, type_: str) -> None:
    assert list(migration.texts_of("tip", line)) == [("tip", line.strip())]
    assert migration.type_of(line.strip()) == type_


@pytest.mark.parametrize(
    "line",
    [
        "", "noise", "LESSON", "LESSON:", "LESSON: \t", "LESSON a", "LESSON : a", "A LESSON: a", "LESSONS: a",
        "LE\u017fSON: a", "NOTE:\u00a0",
    ],
)  # fmt: skip
def test_other_lines_do_not(line: str) -> None:
    assert list(migration.texts_of("tip", line)) == []


@pytest.mark.parametrize("value", [None, True, 7, 1.5, [], {}, [None, 7]])
def test_only_strings_qualify(value: object) -> None:
    assert list(migration.texts_of("tip", value)) == []


def test_strings_at_any_depth_are_judged_line_by_line_in_the_order_of_their_paths() -> None:
    value: dict[str, Any] = {
        "b": ["noise", "NOTE: 3\nnoise\n  NOTE: 4\n"],
        "a": {"y": "NOTE: 2", "x": "NOTE: 1", "_z": ["NOTE: hidden"]},
        "_c": "NOTE: hidden",
        "c": [[{"d": "NOTE: 5"}]],
    }
    assert list(migration.texts_of("k", value)) == [
        ("k.a.x", "NOTE: 1"), ("k.a.y", "NOTE: 2"), ("k.b.1", "NOTE: 3"), ("k.b.1", "NOTE: 4"),
        ("k.c.0.0.d", "NOTE: 5"),
    ]  # fmt: skip
    assert list(migration.texts_of("_k", value)) == []


def test_a_long_path_is_cut() -> None:
    ((path, _),) = migration.texts_of("k", {"x" * 60_000: {"y" * 1_000: "NOTE: a"}})
    assert len(path) == limits.MIGRATED_PATH_CHARS_MAX


def test_of_equal_texts_the_first_remains() -> None:
    texts = [("a", "NOTE: 1"), ("b", "NOTE: 2"), ("c", "NOTE: 1")]
    assert migration.parts_of(texts) == [[("a", "NOTE: 1"), ("b", "NOTE: 2")]]
    assert migration.parts_of([]) == []


def test_the_texts_are_in_parts_of_200_and_of_128_kib() -> None:
    many = [("k", f"NOTE: {number}") for number in range(401)]
    assert [len(part) for part in migration.parts_of(many)] == [200, 200, 1]
    long = [("k", f"NOTE: {number}{'ä' * 30_000}") for number in range(5)]
    assert [len(part) for part in migration.parts_of(long)] == [2, 2, 1]
    assert [text for part in migration.parts_of(long) for text in part] == long
