"""The HTTP routes of operations, as the server and its clients derive them from the declarations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any
from urllib.parse import quote

import msgspec

from recallog.operations.facade import Facade, all_operations
from recallog.operations.operation import IN_BODY, Operation, plain_type

PREFIX = "/v1"
SPACE = "/spaces/{space}"
AGENT = "/agents/{agent}"
JOBS = f"{PREFIX}/admin/jobs"
"""The path of the jobs of long operations."""
WARNING = "Recallog-Warning"
"""The header of an answer to a call with a name that is probably misspelt, in ASCII."""

_SEGMENTS = {"space": SPACE, "agent": AGENT}
"""The arguments in a path, each only after the one before it. Ids of events are not among them: an id may be any text,
even `..`, which clients and proxies remove from paths."""


@dataclass(frozen=True)
class Route:
    """How one operation is called over HTTP.

    An operation that only reads is a GET with its arguments in the query, unless one of them belongs into a body; all
    others are a POST with a JSON object of arguments. Required arguments named `space` and `agent` are in the path,
    each one segment, whose special characters are percent-encoded: a `/` in a name is `%2F`. Read-only operations of
    operators are not under `/admin`, and no name repeats the `agent` of its path.
    """

    operation: Operation

    @cached_property
    def method(self) -> str:
        """GET or POST."""
        operation = self.operation
        in_body = any(IN_BODY in getattr(each.annotation, "__metadata__", ()) for each in operation.parameters.values())
        return "GET" if operation.read_only and not in_body and not operation.callbacks else "POST"

    @cached_property
    def is_job(self) -> bool:
        """Whether the answer is a job, which continues after the response. Jobs are long operations that report their
        progress."""
        return bool(self.operation.callbacks) and "agent" not in self.operation.parameters

    @cached_property
    def in_path(self) -> Sequence[str]:
        """The names of the arguments in the path."""
        required = {name for name, each in self.operation.parameters.items() if each.default is each.empty}
        return tuple(takewhile(required.__contains__, _SEGMENTS))

    @cached_property
    def path(self) -> str:
        """The path, with the names of arguments in braces."""
        segments = "".join(_SEGMENTS[name] for name in self.in_path)
        name = self.operation.qualified_name
        if self.method == "GET":
            name = name.removeprefix("admin.")
        if "agent" in self.in_path:
            name = name.removeprefix("agent_")
        return f"{PREFIX}{segments}/{name.replace('_', '-').replace('.', '/')}"

    @cached_property
    def lists(self) -> frozenset[str]:
        """The names of the arguments that are lists: in a query each item is a field of this name."""
        return frozenset(
            name for name, each in self.operation.parameters.items() if "Sequence[" in str(plain_type(each.annotation))
        )

    def request(self, arguments: Mapping[str, Any]) -> tuple[str, list[tuple[str, str]], dict[str, Any] | None]:
        """The path, the query and the body of a request with `arguments`, which are JSON values.

        The body is None for a GET, whose arguments that are None are left out.
        """
        filled = {name: quote(str(arguments[name]), safe="") for name in self.in_path}
        rest = {name: value for name, value in arguments.items() if name not in filled}
        path = self.path.format(**filled)
        if self.method == "POST":
            return path, [], rest
        return path, [(name, text) for name, value in rest.items() for text in _texts(value)], None


def routes(facade: type[Facade]) -> dict[str, Route]:
    """The routes of the operations of a facade and of its inner facades, by qualified name."""
    return {name: Route(each) for name, each in all_operations(facade).items()}


def _texts(value: Any) -> Sequence[str]:
    """The texts of a value in a query: one for each item of a list, and an empty one for a list without items."""
    match value:
        case None:
            return ()
        case list() | tuple():
            return [text for item in value for text in _texts(item)] or [""]
        case bool():
            return ("true" if value else "false",)
        case {"partition": partition, "offset": offset}:
            return (f"{partition}:{offset}",)
        case dict():
            return (msgspec.json.encode(value).decode(),)
        case _:
            return (str(value),)
