"""The memory models, one package each, and their views. CONTRIBUTING.md has the map."""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

from recallog_schemas.lazy_exports import lazy_exports

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

# For type checkers, which read no list.
if TYPE_CHECKING:
    from recallog_schemas.models.beliefs.views import *
    from recallog_schemas.models.consensus.views import *
    from recallog_schemas.models.conversations.views import *
    from recallog_schemas.models.facts.views import *
    from recallog_schemas.models.items.views import *
    from recallog_schemas.models.long_term.views import *
    from recallog_schemas.models.prompt.views import *
    from recallog_schemas.models.stream.views import *
    from recallog_schemas.models.tiers.views import *
    from recallog_schemas.models.working.views import *
    from recallog_schemas.models.workspace.views import *
else:
    __getattr__, __dir__ = lazy_exports(__name__, [f"{__name__}.{each}" for each in BUILT_IN])


@cache
def import_parts(layer: str, name: str) -> tuple[ModuleType, ...]:
    """The modules `name` of the built-in models in a layer, such as `recallog_projections`, in the order of the list.

    A model without such a module is left out.
    """
    packages = [f"{layer}.models.{model}" for model in BUILT_IN]
    there = [each for each in packages if find_spec(each) is not None and find_spec(f"{each}.{name}") is not None]
    return tuple(import_module(f"{each}.{name}") for each in there)
