"""The memory models, one package each, and their views. CONTRIBUTING.md has the map."""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

BUILT_IN = (
    "beliefs",
    "consensus",
    "items",
    "conversations",
    "long_term",
    "facts",
    "working",
    "workspace",
    "tiers",
    "stream",
    "prompt",
)
"""The names of the built-in models, each after those that it is built on. All layers find them by this list."""


@cache
def import_parts(layer: str, name: str) -> tuple[ModuleType, ...]:
    """The modules `name` of the built-in models in a layer, such as `recallog_projections`, in the order of the list.

    A model without such a module is left out.
    """
    packages = [f"{layer}.models.{model}" for model in BUILT_IN]
    there = [each for each in packages if find_spec(each) is not None and find_spec(f"{each}.{name}") is not None]
    return tuple(import_module(f"{each}.{name}") for each in there)
