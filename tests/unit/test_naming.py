"""The check of names: functions that act have verbs, and public class names are unique."""

import pytest

from recallog_tools import names


@pytest.mark.parametrize("name", ["shown", "_checked", "found", "lost", "embedded"])
def test_a_function_that_is_a_bare_participle_is_refused(name: str) -> None:
    (problem,) = names.problems({"a.py": f"def {name}(): ..."})
    assert problem.startswith(f"a.py:1: {name} is a bare participle")


@pytest.mark.parametrize("name", ["show", "find_hits", "is_shown", "read", "put", "need", "embed", "red_lines"])
def test_a_function_with_a_verb_is_accepted(name: str) -> None:
    assert [*names.problems({"a.py": f"def {name}(): ..."})] == []


def test_methods_and_functions_within_functions_are_checked() -> None:
    source = "class A:\n    async def told(self):\n        def given(): ...\n"
    assert [each.split(" is ")[0] for each in names.problems({"a.py": source})] == [
        "a.py:2: A.told",
        "a.py:3: A.told.given",
    ]


def test_a_property_may_be_a_participle() -> None:
    source = "class A:\n    @property\n    def sealed(self): ...\n    @cached_property\n    def made(self): ...\n"
    assert [*names.problems({"a.py": source})] == []


def test_a_public_class_name_in_two_modules_is_refused() -> None:
    sources = {"a.py": "class Plan: ...", "b.py": "def f():\n    class Plan: ...\n", "c.py": "class _Plan: ..."}
    (problem,) = names.problems(sources)
    assert problem.startswith("a.py:1, b.py:2: several classes are named Plan")


def test_private_classes_may_have_equal_names() -> None:
    assert [*names.problems({"a.py": "class _Plan: ...", "b.py": "class _Plan: ..."})] == []


def test_all_that_is_allowed_is_there() -> None:
    sources = names.of_wheel()
    for place in names.ALLOWED_FUNCTIONS:
        path, _, qualified = place.partition(":")
        assert f"def {qualified.rpartition('.')[2]}(" in sources[path]
    for name in names.ALLOWED_CLASSES:
        assert sum(f"\nclass {name}(" in source for source in sources.values()) > 1


def test_the_names_of_the_wheel() -> None:
    assert [*names.problems(names.of_wheel())] == []
