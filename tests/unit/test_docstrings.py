"""Docstrings of classes and of their attributes, as the exports show them."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel

from recallog_schemas.docstrings import attribute_docstrings, paragraphs

Item = TypeVar("Item")


class Shelf(BaseModel, Generic[Item]):
    """A shelf
    of a bakery.

    It holds items.
    """

    items: tuple[Item, ...]
    """What is on it, from left
    to right."""
    metres: float
    height: int = 0
    """Its height."""


class Breads(Shelf[str]):
    height: int = 1
    """The height of the loaves."""
    fresh: bool = True
    """Whether they are of today."""


@dataclass
class Oven:
    degrees: int
    """Its temperature."""


def test_a_docstring_is_paragraphs_of_one_line_each() -> None:
    assert paragraphs(Shelf) == ["A shelf of a bakery.", "It holds items."]
    assert paragraphs(Breads) == []


def test_attributes_have_the_docstrings_under_them_and_under_those_of_their_bases() -> None:
    assert attribute_docstrings(Shelf) == {"items": "What is on it, from left to right.", "height": "Its height."}
    assert attribute_docstrings(Breads) == {
        "items": "What is on it, from left to right.",
        "height": "The height of the loaves.",
        "fresh": "Whether they are of today.",
    }
    assert attribute_docstrings(Oven) == {"degrees": "Its temperature."}


def test_a_class_within_a_function_has_them_too() -> None:
    class Local(Oven):
        door: str
        """Whether it is open."""

    assert attribute_docstrings(Local) == {"degrees": "Its temperature.", "door": "Whether it is open."}


def test_a_class_without_source_has_none() -> None:
    found: dict[str, type] = {}
    exec("class Typed:\n    x: int\n    'An x.'", {"__name__": __name__}, found)
    assert attribute_docstrings(found["Typed"]) == {}
