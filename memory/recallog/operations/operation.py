"""The properties of an operation that doors need: its arguments, the required permission, and its needs in
execution."""

import difflib
import inspect
import reprlib
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import takewhile
from typing import Annotated, Any, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model

from recallog_schemas import views
from recallog_schemas.docstrings import paragraphs
from recallog_schemas.errors import InvalidArgument
from recallog_schemas.validation import first_problem, not_text

_EVENTS = frozenset({"event", "events"})
"""The parameters whose values are events."""
_CONFIG = ConfigDict(extra="forbid", strict=True, protected_namespaces=())


class Scope(StrEnum):
    """The permission that a caller needs."""

    READ = "read"
    PUBLISH = "publish"
    FORGET = "forget"
    OPERATE = "operate"


class GenAi(StrEnum):
    """The name of an operation on a memory in OpenTelemetry's conventions for GenAI."""

    CREATE = "create_memory"
    SEARCH = "search_memory"
    UPDATE = "update_memory"
    UPSERT = "upsert_memory"
    DELETE = "delete_memory"


RERANKER, RELEVANCE, TOKENS, EXTERNAL = "reranker", "relevance", "tokens", "external"
"""Parts that a program may provide for operations: a reranker of hits, an index that measures relevance, a counter of
tokens, and external sources. The last ones are used only if the argument `include_external` is set."""


class _InProcess:
    """Marks a parameter that stays in the caller's process, such as a callback. Doors do not send it."""


IN_PROCESS = _InProcess()

CALLED = "__call__"
"""The name of a method that is called through the name of its facade: `memory.beliefs(space, agent)`."""


class _FromFile:
    """Marks a parameter whose value is JSON. A command reads it from a file, or from its standard input."""


FROM_FILE = _FromFile()


class _InBody:
    """Marks a parameter that HTTP sends in the body of a request: a question, a text, a list of ids.

    URLs have a limited length, and servers on the way log them.
    """


IN_BODY = _InBody()


class _NeedsForget:
    """Marks a parameter that only a caller with the permission `Scope.FORGET` may set."""


NEEDS_FORGET = _NeedsForget()


class _MakesRepeatable:
    """Marks a parameter with the id of what a call writes, or with events, which have ids. A call with the same ids can
    be repeated. A client that may have to repeat a call fills in a missing id."""


MAKES_REPEATABLE = _MakesRepeatable()


@dataclass(eq=False)
class CheckedMethod:
    """A method whose arguments are checked when it is called."""

    function: Callable[..., Any]
    """The method as it was written."""

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def qualified_name(self) -> str:
        return self.name

    @cached_property
    def signature(self) -> inspect.Signature:
        """The signature without `self`, with the types' constraints and descriptions, and with `**` flattened."""
        return inspect.Signature(
            _flatten_parameters(self.function), return_annotation=self.function.__annotations__["return"]
        )

    @cached_property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """The parameters that doors send."""
        return {name: each for name, each in self.signature.parameters.items() if name not in self.callbacks}

    @cached_property
    def callbacks(self) -> frozenset[str]:
        """The parameters that stay in the caller's process."""
        parameters = self.signature.parameters.items()
        return frozenset(
            name for name, each in parameters if IN_PROCESS in getattr(each.annotation, "__metadata__", ())
        )

    @cached_property
    def positional(self) -> Sequence[str]:
        """The names of the parameters that may be given by position."""
        return [name for name, each in self.signature.parameters.items() if each.kind is not each.KEYWORD_ONLY]

    @cached_property
    def needing_forget(self) -> Sequence[str]:
        """The parameters that only a caller with the permission `Scope.FORGET` may set."""
        return [
            name
            for name, each in self.parameters.items()
            if NEEDS_FORGET in getattr(each.annotation, "__metadata__", ())
        ]

    @cached_property
    def arguments(self) -> type[BaseModel]:
        """The arguments as a model: types, bounds, defaults and descriptions."""
        fields: dict[str, Any] = {
            name: (each.annotation, ... if each.default is each.empty else each.default)
            for name, each in self.parameters.items()
        }
        title = "".join(word.capitalize() for word in self.qualified_name.replace(".", "_").split("_"))
        return create_model(f"{title}Arguments", __config__=_CONFIG, **fields)

    def of_call(
        self, itself: object, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The validated arguments of a call in Python, and its callbacks."""
        given: dict[str, Any] = {**dict(zip(self.positional, args, strict=False)), **kwargs}
        if len(given) != len(args) + len(kwargs):
            inspect.signature(self.function).bind(itself, *args, **kwargs)  # raises Python's own TypeError
        called = {name: given.pop(name) for name in self.callbacks & given.keys()}
        for name, each in called.items():
            if each is not None and not callable(each):
                raise InvalidArgument(f"{name}: should be a function", path=name, rule="callable_type")
        return self.validate(given, strict=True), called

    def validate(self, given: Mapping[str, Any], *, strict: bool) -> dict[str, Any]:
        """The arguments in the types that the method expects; only those that were given.

        Unless `strict`, a text may represent a number or a truth value, as in the query of a URL. Raises
        `InvalidArgument`, or `InvalidEvent` for an event.
        """
        _check_texts(given)
        try:
            valid = self.arguments.__pydantic_validator__.validate_python(given, strict=strict)
        except ValidationError as error:
            raise self._invalid(error) from None
        fields: dict[str, Any] = valid.__dict__
        given_names = valid.__pydantic_fields_set__
        return {name: value for name, value in fields.items() if name in given_names}

    def _invalid(self, error: ValidationError) -> InvalidArgument:
        problem = first_problem(error, with_value=True)
        message = problem.message
        if problem.rule == "extra_forbidden":
            near = difflib.get_close_matches(problem.path, self.parameters, 1)
            hint = f"did you mean {near[0]}?" if near else f"it takes {', '.join(self.parameters) or 'none'}"
            message = f"{self.name} has no such argument; {hint}"
        elif problem.rule == "missing":
            unknown = [str(each["loc"][0]) for each in error.errors() if each["type"] == "extra_forbidden"]
            message += f"; {self.name} has no argument {unknown[0]!r}" if unknown else ""
        return InvalidArgument(f"{problem.path}: {message}", path=problem.path, rule=problem.rule)


@dataclass(eq=False)
class Operation(CheckedMethod):
    """The properties of one operation that doors need."""

    function: Callable[..., Coroutine[Any, Any, Any]]
    """The method as it was written; `call` validates arguments for it."""
    example: str
    """A command line that works as it is written."""
    scope: Scope
    idempotent: bool
    """Whether repeating the call with the same arguments has no further effect."""
    destructive: bool
    """Whether the call removes something permanently."""
    read_only: bool
    """Whether the call changes nothing."""
    given_command: str | None = None
    """The argument `command`, if it differs from the names."""
    tool: str = ""
    """The name of its MCP tool; "" if it has no tool of its own."""
    uses_index: bool = False
    """Whether the answer may need the semantic index. If a process serves the index, it executes the operation; without
    an index, the operation is executed here."""
    starts_index: Sequence[str] = ()
    """The arguments that are searched in the index. If one of them is given and not blank, the call starts the process
    that serves the index. Other calls use the index if it is served."""
    maintains_index: bool = False
    """Whether the call works on the index itself, unless its argument `what` says otherwise. If a process serves the
    index, only that process executes it."""
    is_patient: bool = False
    """Whether the call may take long, and waits for servers as patiently as a worker."""
    asks: frozenset[str] = frozenset()
    """The parts of the program that the call uses in this process, such as `RERANKER`."""
    shared: bool = False
    """Whether the answer contains only what every agent of the space may see, although no agent is among the
    arguments."""
    gen_ai: GenAi | None = None
    """Its name in telemetry; None if it is not about memories of agents, so that it has no span."""
    records: str | None = ""
    """The field of the answer with the memories that it is about; "" if it is about a single memory, None if their
    number is not known."""
    group: str = ""
    """The attribute of the main facade that has the operation, such as `admin`; "" for the main facade itself."""
    command_group: str = ""
    """The first word of its command; "" if the command has one word."""

    @property
    def name(self) -> str:
        """The name of its method, or of its facade if the facade itself is called."""
        return self.command_group if self.is_facade_called else self.function.__name__

    @property
    def is_facade_called(self) -> bool:
        """Whether the operation is a call of the facade itself, such as `memory.beliefs(…)`."""
        return self.function.__name__ == CALLED

    @property
    def command(self) -> str:
        """The words of its command: its name, or a group and a name. If the last word is an option, such as `--abort`,
        this option of another operation's command selects this operation. "" if it has no command."""
        if self.given_command is not None:
            return self.given_command
        group = "" if self.is_facade_called else self.command_group
        return f"{group} {self.name}".strip().replace("_", "-")

    @property
    def qualified_name(self) -> str:
        """The name with its group: `admin.status`."""
        return f"{self.group}.{self.name}" if self.group and not self.is_facade_called else self.name

    @cached_property
    def repeat_key(self) -> str | None:
        """The parameter that makes the call repeatable: see `MAKES_REPEATABLE`."""
        parameters = self.parameters.items()
        marked = (name for name, each in parameters if MAKES_REPEATABLE in getattr(each.annotation, "__metadata__", ()))
        return next(marked, None)

    @cached_property
    def answer(self) -> type[Any]:
        """The type of the answer."""
        declared = self.function.__annotations__["return"]
        if not isinstance(declared, str):
            return cast("type[Any]", declared)
        # A module of operations imports the types of answers only for type checkers, since no call needs all of them.
        known = vars(sys.modules[self.function.__module__])
        return cast("type[Any]", known[declared] if declared in known else getattr(views, declared))

    @property
    def summary(self) -> str:
        """The first paragraph of the documentation, as one line."""
        return self.description[0]

    @cached_property
    def description(self) -> Sequence[str]:
        """The documentation in paragraphs, each as one line, without the part for callers in Python, which starts with
        the paragraph that begins with "Raises"."""
        return list(takewhile(lambda part: not part.startswith("Raises"), paragraphs(self.function))) or [""]

    def to_json(self, answer: Any) -> bytes:
        """The answer as one JSON document."""
        return self._answers.dump_json(answer)

    def from_json(self, data: bytes) -> Any:
        """The answer from a document of `to_json`."""
        return self._answers.validate_json(data)

    @cached_property
    def _answers(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.answer)


def _check_texts(given: Mapping[str, Any]) -> None:
    """Raise `InvalidArgument` for a text that UTF-8 cannot represent, such as undecodable bytes of a command line.

    Events are checked when they are made, see `codec.make`.
    """
    for name, value in given.items():
        try:
            path = None if name in _EVENTS else not_text(value, name)
        except RecursionError:  # it is nested too deeply, which is checked later
            path = None
        if path is not None:
            raise InvalidArgument(f"{path}: is not valid text: {reprlib.repr(value)}", path=path, rule="string_unicode")


def _flatten_parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a method without `self`, with the keys of `**options: Unpack[TypedDict]` as parameters."""
    parameters = []
    for each in list(inspect.signature(function).parameters.values())[1:]:
        if isinstance(each.annotation, str):
            raise TypeError(
                f"{function.__qualname__}: an operation's annotations are evaluated where it is declared; remove "
                "`from __future__ import annotations`"
            )
        if each.kind is each.VAR_POSITIONAL:
            raise TypeError(f"{function.__qualname__}: an operation takes no *args; declare a sequence")
        if each.kind is each.VAR_KEYWORD:
            (options,) = get_args(each.annotation)
            parameters += [
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
                for name, annotation in options.__annotations__.items()
            ]
        else:
            parameters.append(each)
    return parameters


def plain_type(annotation: Any) -> Any:
    """A type without its constraints and description."""
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
