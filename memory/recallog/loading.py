"""Loads users' objects that an option or a setting names: `--reactors module:name`, `RECALLOG_PROJECTIONS`."""

import importlib
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from recallog_projections.projection import Projection
from recallog_schemas.errors import SettingsError

if TYPE_CHECKING:
    from recallog.reactors.reactor import Reactor
    from recallog.retrieval.external import ExternalSource


def reactors(names: Sequence[str]) -> "list[Reactor]":
    """The reactors with these names, each `module:name`. See `_load_named`. Each kind of triggers must have one
    reactor."""
    found = [each for name in names for each in _load_named("--reactors", name, "reactor", _is_reactor)]
    for kind, count in Counter(kind for reactor in found for kind in reactor.kinds).items():
        if count > 1:
            raise SettingsError(f"--reactors: {count} of them answer {kind}; each kind of trigger has one reactor")
    return found


def projections(names: str | None) -> list[Projection]:
    """The projections with these names, each `module:name`, separated by commas. See `_load_named`."""
    listed = [name.strip() for name in (names or "").split(",") if name.strip()]
    return [each for name in listed for each in _load_named("RECALLOG_PROJECTIONS", name, "projection", _is_projection)]


def external(spec: str) -> "dict[str, ExternalSource]":
    """The external sources that a setting names: `name=module:function`, separated by commas."""
    named = [each.strip().partition("=") for each in spec.split(",") if each.strip()]
    if not all(of for _, _, of in named):
        raise SettingsError(f"RECALLOG_EXTERNAL {spec}: should be name=module:function, separated by commas")
    return {name: _load_named("RECALLOG_EXTERNAL", of, "function", callable)[0] for name, _, of in named}


def _load_named(option: str, spec: str, what: str, is_one: Callable[[object], bool]) -> Sequence[Any]:
    """The objects that `spec` names: a class or a function, which is called without arguments, an object, or a list of
    these.

    The module may also be in the working directory. Raises `SettingsError`.
    """
    module, _, name = spec.partition(":")
    if not module or not name:
        raise SettingsError(f"{option} {spec}: should be module:name, for example village.reactors:greeter")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: Any = importlib.import_module(module)
        for attribute in name.split("."):
            found = getattr(found, attribute)
        made = [_call_factory(each, is_one) for each in (found if isinstance(found, list | tuple) else [found])]
    except Exception as error:  # code of users may raise anything
        raise SettingsError(f"{option} {spec}: {type(error).__name__}: {error}") from error
    flat = [each for one in made for each in (one if isinstance(one, list | tuple) else [one])]
    for each in flat:
        if not is_one(each):
            raise SettingsError(f"{option} {spec}: {each!r} is not a {what}")
    return flat


def _call_factory(found: Any, is_one: Callable[[object], bool]) -> Any:
    return found() if isinstance(found, type) or (callable(found) and not is_one(found)) else found


def _is_reactor(found: object) -> bool:
    from recallog.reactors.reactor import Reactor

    return isinstance(found, Reactor)


def _is_projection(found: object) -> bool:
    return not isinstance(found, type) and callable(getattr(found, "apply", None))
