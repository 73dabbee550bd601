"""Facades of a remote memory: the facades of `recallog.Memory`, with operations that a server executes."""

import inspect
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from recallog.operations.facade import Facade, public_names

if TYPE_CHECKING:
    from recallog.remote.connection import ServerConnection

MODULE = "recallog.remote"


class RemoteFacade(Facade):
    """Base of remote facades. `class X(RemoteFacade, of=Y)` has the operations and inner facades of `Y`."""

    def __init__(self, connection: "ServerConnection") -> None:
        self._connection = connection

    def __init_subclass__(cls, of: type[Facade] | None = None, **more: Any) -> None:
        if of is not None:
            cls.facades = {name: remote(part) for name, part in of.facades.items()}
            for name in of.operations:
                setattr(cls, name, inspect.getattr_static(of, name))
            for name, part in cls.facades.items():
                setattr(cls, name, _part(name, part, inspect.getattr_static(of, name)))
        super().__init_subclass__(**more)

    @property
    def _host(self) -> "ServerConnection":
        return self._connection


def remote(of: type[Facade]) -> type[Facade]:
    """The class of a facade of a remote memory: the facade itself if it has only operations.

    Otherwise it is a class with only its operations, such as `RemoteAdmin` for `Admin`.
    """
    if of.operations.keys() >= set(public_names(of)):
        return of
    members = {"__module__": MODULE, "__doc__": of.__doc__}
    return cast("type[Facade]", type(f"Remote{of.__name__}", (RemoteFacade,), members, of=of))


def _part(name: str, part: Any, attribute: Any) -> Any:
    def facade(self: RemoteFacade) -> Facade:
        return cast("Facade", part(self._connection))

    facade.__doc__, facade.__annotations__ = attribute.__doc__, {"return": part}
    found = cached_property(facade)
    found.__set_name__(part, name)
    return found
