"""A memory model: the parts that it adds to a memory, and when the kernel uses them.

The built-in models are listed in `recallog_schemas.models`; those of installed packages are found by the entry points
`recallog.models`. A program may give others to `Memory.open(models=[…])`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, cast

from recallog.operations.facade import Facade
from recallog_projections import plugins
from recallog_schemas import kinds, models
from recallog_schemas.errors import SettingsError

if TYPE_CHECKING:
    from recallog.access import Candidates, FacadePart, MemoryAccess, Observer, Section
    from recallog.queries.difference import Inventory
    from recallog.reactors.reactor import Reactor
    from recallog.reading.time_travel import Erase
    from recallog_projections.index.documents import DocumentMaker
    from recallog_projections.projection import Projection
    from recallog_schemas.kinds import Kind

_BUILT_IN = frozenset(models.BUILT_IN)


def _no_reactors(access: "MemoryAccess") -> "Sequence[Reactor]":
    return ()


@dataclass(frozen=True, kw_only=True)
class Model:
    """The parts of one memory model.

    Fields that are functions are called when their result is first needed, so that a program imports only the modules
    that it uses.
    """

    name: str
    """The name of the model, in lower case, unique among the models of a memory."""
    after: Sequence[str] = ()
    """The names of the models on which it is built."""
    kinds: "Sequence[Kind]" = ()
    """Its kinds of events, which the process then knows. The catalogue finds those of a built-in model by itself."""
    operations: "type[FacadePart] | None" = None
    """The class of its facade: a memory has an instance as an attribute, see `FacadePart.attribute`. A facade without
    an attribute adds its operations to those of the memory, which has an instance of each of its `facades`."""
    projections: "Callable[[], Sequence[Projection]]" = tuple
    """Makes its projections. Each has a separate store, unless the model is built in."""
    reactors: "Callable[[MemoryAccess], Sequence[Reactor]]" = _no_reactors
    """Makes the reactors that answer its triggers."""
    documents: "Callable[[], DocumentMaker] | None" = None
    """Makes its `DocumentMaker`, for its texts in the index. A built-in model has a module `documents` instead."""
    candidates: "Candidates | None" = None
    """Makes its `CandidateSource`, which recall asks for its texts. A built-in model has a module `candidates` instead.
    """
    prompt: "Section | None" = None
    """Makes its section of the prompt of an agent."""
    inventory: "Callable[[], Inventory] | None" = None
    """Makes the inventory of what an agent knows through the model, for the difference between two moments."""
    erase: "Erase | None" = None
    """Finds in a past that a query reads the content that is erased now, see `reading.time_travel.Erase`. It is called
    for each store that has projections of the model."""
    observer: "Callable[[MemoryAccess], Observer] | None" = None
    """Makes the observer of answers, for a memory that counts reads."""

    @property
    def is_built_in(self) -> bool:
        return self.name in _BUILT_IN


def facades(models: "Sequence[Model]") -> "Mapping[str, type[FacadePart]]":
    """The facades of models, by the attributes that hold them."""
    own = [each for of in _operations(models) for each in (of, *of.facades.values())]
    return {each.attribute: cast("type[FacadePart]", each) for each in own if each.attribute}


def main_facade(models: "Sequence[Model]") -> "type[Facade]":
    """The base class of a memory, with the operations of models that do not have a separate facade."""
    bases = [each for each in _operations(models) if not each.attribute]
    return type("MainFacade", (*bases, Facade), {"__doc__": main_facade.__doc__})


def _operations(models: "Sequence[Model]") -> "list[type[FacadePart]]":
    return [each.operations for each in models if each.operations is not None]


def documents(given: "Sequence[Model] | None" = None) -> "dict[str, DocumentMaker]":
    """The document makers of models that are not built in, by the names of the models. See `choose_models`."""
    return {each.name: each.documents() for each in choose_models(given) if each.documents is not None}


@cache
def built_in() -> "tuple[Model, ...]":
    """The built-in models, each after the models on which it is built."""
    return tuple(import_module(f"recallog.models.{name}.model").MODEL for name in models.BUILT_IN)


@cache
def load_installed() -> "tuple[Model, ...]":
    """The built-in models, and those of installed packages. Raises `SettingsError` for a model that cannot be
    imported."""
    return check_models([*built_in(), *plugins.load_all(plugins.MODELS)])


def choose_models(given: "Sequence[Model] | None") -> "tuple[Model, ...]":
    """The models of a memory: those that a program gives, else all installed ones. Raises the errors of
    `check_models`."""
    return load_installed() if given is None else check_models(given)


def check_models(given: "Sequence[Model]") -> "tuple[Model, ...]":
    """`given`, each model after the models on which it is built. Their kinds are registered.

    Raises `SettingsError` for two models with one name, for a model without one on which it is built, and for a kind
    that cannot be registered.
    """
    found: dict[str, Model] = {}
    for each in given:
        if each.name in found:
            raise SettingsError(f"two memory models are named {each.name}; leave one out, or rename it")
        missing = [name for name in each.after if name not in found]
        if missing:
            raise SettingsError(
                f"the memory model {each.name} is built on {' and '.join(missing)}; name it first in the list of models"
            )
        found[each.name] = each
    for each in found.values():
        if each.kinds:
            kinds.register(each.name, each.kinds)
    return tuple(found.values())


if TYPE_CHECKING:
    MODELS: tuple[Model, ...]
    """The built-in memory models."""
else:

    def __getattr__(name: str) -> object:
        if name == "MODELS":  # the modules of models import this one
            return built_in()
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
