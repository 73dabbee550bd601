"""The routes of the application, indexed by the last name in their paths."""

from collections.abc import Sequence
from typing import Any

from starlette.routing import BaseRoute, Route, Router
from starlette.types import Receive, Scope, Send


class Routes:
    """An ASGI application that behaves like a `Router` of all routes.

    A router compares a path with one route after the other, which takes longer than most answers if there are a hundred
    routes. This class compares only routes that end with the same name as the path, or with a parameter.
    """

    def __init__(self, routes: Sequence[BaseRoute], **settings: Any) -> None:
        """`settings` are those of `Router`."""
        ends = [(each, _end(each)) for each in routes]
        self._others = Router([each for each, end in ends if end is None], **settings)
        self._by_end = {
            name: Router([each for each, end in ends if end in (name, None)], **settings)
            for name in {end for _, end in ends if end is not None}
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        router = self._by_end.get(_last_name(scope.get("path", "")), self._others)
        await router(scope, receive, send)


def _end(route: BaseRoute) -> str | None:
    """The name with which all paths of a route end; None if the end varies."""
    name = _last_name(route.path) if isinstance(route, Route) else "{}"
    return None if "{" in name else name


def _last_name(path: str) -> str:
    return path.rpartition("/")[2]
