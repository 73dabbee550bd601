"""The pages of facades: each operation with its parameters, then the other methods."""

import inspect
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from pydantic.fields import FieldInfo

from recallog.operations import schemas
from recallog.operations.facade import Facade, find_operation
from recallog.operations.operation import Operation
from recallog_tools.reference.markdown import block, bounds, code, docstring, sections, table
from recallog_tools.reference.signatures import signature_text, type_text, value_text

MAIN = "memory"
"""What the page of the main facade is named for."""
SCHEMAS = "../../schemas/json"
_GUIDES: Mapping[str, tuple[str, str]] = {
    "memory": ("Build an agent", "build-an-agent.md"),
    "memory.long_term": ("Long-term memory", "long-term-memory.md"),
    "memory.conversation": ("Conversations", "conversations.md"),
    "memory.workspace": ("The workspace", "workspace.md"),
    "memory.working": ("Working memory and items", "working-memory.md"),
    "memory.items": ("Working memory and items", "working-memory.md"),
    "memory.tiers": ("Tiers", "tiers.md"),
    "memory.consensus": ("What agents agree on", "consensus.md"),
    "memory.stream": ("The stream of an agent", "stream.md"),
}
"""By title of a page: the title and the address of its guide in `docs`."""


def pages(facade: type[Facade]) -> Mapping[str, str]:
    """File name to text: a page for the facade, and one for each of its inner facades."""
    others = {f"{group}.md": _page(f"{MAIN}.{group}", each, facade) for group, each in facade.facades.items()}
    return {f"{MAIN}.md": _page(MAIN, facade, facade, _constructor(facade)), **others}


def link(operation: Operation) -> str:
    """A link from another page to the section of an operation."""
    return f"[{code(path(operation))}]({_target(operation)})"


def _target(operation: Operation) -> str:
    return f"{operation.group or MAIN}.md#{operation.name}"


def path(operation: Operation) -> str:
    """How a program reaches an operation: `memory.admin.status`."""
    return f"{MAIN}.{operation.qualified_name}"


def _page(title: str, facade: type[Facade], main: type[Facade], *constructor: str) -> str:
    operations = [_operation(each, main) for each in facade.operations.values()]
    methods = [*constructor, *_methods(facade)]
    return sections(
        (
            f"# {title}",
            docstring(facade),
            _guide(title),
            *(("## Operations", *operations) if operations else ()),
            *(("## Other methods and attributes", *methods) if methods else ()),
        )
    )


def _guide(title: str) -> str:
    """The line that leads to the guide of a page; "" if it has none."""
    if title not in _GUIDES:
        return ""
    name, address = _GUIDES[title]
    return f"Guide: [{name}](../{address})."


def _operation(operation: Operation, main: type[Facade]) -> str:
    answer = type_text(operation.signature.return_annotation)
    facts = [
        f"Answer: [{code(answer)}](views.md#{answer.lower()}).",
        f"Scope: [{operation.scope.value}](README.md#scopes).",
        "Idempotent." if operation.idempotent else "",
        "Destructive." if operation.destructive else "",
        f"MCP tool: {code(operation.tool)}." if operation.tool else "",
        f"[JSON Schema]({SCHEMAS}/operations/{operation.qualified_name}.json).",
    ]
    return sections(
        (
            f"### {operation.name}",
            block("python", signature_text(f"async def {operation.name}", operation.signature)),
            _linked(operation, main),
            _parameters(operation),
            " ".join(fact for fact in facts if fact),
            block("shell", operation.example),
        )
    ).rstrip()


def _linked(operation: Operation, main: type[Facade]) -> str:
    """The documentation of an operation, with links where it names others."""

    def word(found: re.Match[str]) -> str:
        named = find_operation(found[1], main, operation.group)
        is_other = named not in (None, operation) and found[1] not in operation.signature.parameters
        return f"[{found[0]}]({_target(named)})" if named is not None and is_other else found[0]

    return re.sub(r"`([\w.]+)`", word, docstring(operation.function))


def _parameters(operation: Operation) -> str:
    properties = schemas.arguments(operation)["properties"]
    rows = [
        (
            code(name),
            code(type_text(each.annotation)),
            "required" if each.default is each.empty else code(value_text(each.default)),
            bounds(properties.get(name, {})),
            description(each),
        )
        for name, each in operation.signature.parameters.items()
    ]
    return table(("parameter", "type", "default", "bounds", "description"), rows) if rows else ""


def description(parameter: inspect.Parameter) -> str:
    """The description in the annotation of a parameter; "" if there is none."""
    metadata = getattr(parameter.annotation, "__metadata__", ())
    return next((each.description for each in metadata if isinstance(each, FieldInfo) and each.description), "")


def _methods(facade: type[Facade]) -> Iterator[str]:
    """The sections of the public methods and attributes that are not operations."""
    found: dict[str, Any] = {}
    for base in reversed(facade.__mro__[: facade.__mro__.index(Facade)]):
        found |= vars(base)
    for name, value in found.items():
        if name.startswith("_"):
            continue
        if isinstance(value, property | cached_property):
            getter = value.fget if isinstance(value, property) else value.func
            returns = type_text(inspect.signature(getter).return_annotation) if getter else ""
            yield _method(name, f"{name}: {returns}", getter)
        elif isinstance(value, classmethod):
            signature = inspect.signature(getattr(facade, name))
            yield _method(name, f"@classmethod\n{signature_text(f'def {name}', signature)}", value)
        elif inspect.isfunction(value) and name not in facade.operations:
            yield _method(name, signature_text(f"{_keyword(value)}{name}", inspect.signature(value)), value)


def _method(name: str, signature: str, documented: object) -> str:
    return sections((f"### {name}", block("python", signature), docstring(documented))).rstrip()


def _keyword(function: Any) -> str:
    is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    return "async def " if is_async else "def "


def _constructor(facade: type[Facade]) -> str:
    shown = signature_text(
        facade.__name__, inspect.signature(facade).replace(return_annotation=inspect.Signature.empty)
    )
    return _method("Constructor", shown, inspect.getattr_static(facade, "__init__"))
