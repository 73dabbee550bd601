"""The declaration of operations: the decorator, and the classes whose methods are operations."""

import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import update_wrapper
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeVar, cast

from recallog.operations.operation import CALLED, CheckedMethod, GenAi, Operation, Scope, plain_type
from recallog.operations.pipeline import Call, Host, perform

Self_ = TypeVar("Self_")
Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")
Method = Callable[Concatenate[Self_, Parameters], Coroutine[Any, Any, Answer]]

_HERE = Host()
_INTERNAL = frozenset({"attribute", "facades", "operations"})
"""Attributes of a facade for doors, which callers do not need."""


def operation(
    *,
    example: str,
    scope: Scope = Scope.READ,
    idempotent: bool | None = None,
    destructive: bool = False,
    read_only: bool | None = None,
    command: str | None = None,
    tool: str = "",
    uses_index: bool = False,
    starts_index: Sequence[str] = (),
    maintains_index: bool = False,
    is_patient: bool | None = None,
    asks: frozenset[str] = frozenset(),
    shared: bool = False,
    gen_ai: GenAi | None = None,
    records: str | None = "",
) -> Callable[[Method[Self_, Parameters, Answer]], Method[Self_, Parameters, Answer]]:
    """Declare a method of a `Facade` as an operation. The method keeps its type, and checks its arguments when it is
    called.

    Its arguments are JSON values, and callbacks marked with `IN_PROCESS`; it returns a view. `example` is a command
    line. `read_only` defaults to whether the scope is READ, `idempotent` to `read_only`, and `command` to the names of
    the facade's attribute and of the method, with dashes. With `tool` it is a tool of that name for the models of MCP
    clients. With `uses_index` the process that serves the index may execute it, so that its callbacks are called with
    (done, total). `is_patient` defaults to whether the scope is OPERATE. The other arguments are the fields of
    `Operation` with these names. Without `shared`, a key for one agent may not call an operation without an agent among
    its arguments.
    """

    def declare(function: Method[Self_, Parameters, Answer]) -> Method[Self_, Parameters, Answer]:
        reads = scope is Scope.READ if read_only is None else read_only
        declared = Operation(
            function=function,
            example=example,
            scope=scope,
            idempotent=reads if idempotent is None else idempotent,
            destructive=destructive,
            read_only=reads,
            given_command=command,
            tool=tool,
            uses_index=uses_index,
            starts_index=starts_index,
            maintains_index=maintains_index,
            is_patient=scope is Scope.OPERATE if is_patient is None else is_patient,
            asks=asks,
            shared=shared,
            gen_ai=gen_ai,
            records=records,
        )
        signature = inspect.signature(function)

        async def call(self: Self_, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Answer:
            valid, called = declared.of_call(self, args, kwargs)
            return cast("Answer", await perform(Call(declared, cast("Facade", self), valid, called)))

        update_wrapper(call, function)
        vars(call)["__signature__"] = _as_shown(signature, declared.signature)
        vars(call)["operation"] = declared
        return call

    return declare


def check_arguments(
    function: Callable[Concatenate[Self_, Parameters], Answer],
) -> Callable[Concatenate[Self_, Parameters], Answer]:
    """Check the arguments of a method that is not an operation like those of an operation. The method keeps its
    type."""
    method = CheckedMethod(function)

    def call(self: Self_, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Answer:
        valid, called = method.of_call(self, args, kwargs)
        return cast("Callable[..., Answer]", function)(self, **valid, **called)

    update_wrapper(call, function)
    vars(call)["__signature__"] = _as_shown(inspect.signature(function), method.signature)
    return call


class Facade:
    """A class whose methods are operations. Each subclass collects its own operations and those of all its bases."""

    attribute: ClassVar[str] = ""
    """The attribute of a memory that holds the facade; "" if the memory itself has the operations.

    A model that is built on another one may extend its facade: a subclass with the same attribute takes its place. If
    it declares `__call__` as an operation, `memory.<attribute>(…)` is that operation.
    """
    operations: ClassVar[Mapping[str, Operation]] = {}
    """The operations by name."""
    facades: ClassVar[Mapping[str, type["Facade"]]] = {}
    """Inner facades, by the attribute that holds them."""

    @property
    def _host(self) -> Host:
        """The host that executes the operations, or delegates them."""
        return _HERE

    @property
    def _own_parts(self) -> frozenset[str]:
        """The parts of the program that operations use in this process: see `Operation.asks`."""
        return frozenset()

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        own = {name: vars(value)["operation"] for name, value in vars(cls).items() if "operation" in _attributes(value)}
        for each in own.values():
            each.command_group = each.command_group or cls.attribute  # a remote facade has the groups of the local one
        inherited: dict[str, Operation] = {}
        for base in reversed(cls.__mro__[1:]):
            inherited |= vars(base).get("operations", {})
        for name in vars(cls).keys() & inherited.keys() - own.keys():
            # Otherwise doors would call the operation, and Python this attribute.
            raise TypeError(f"{cls.__qualname__}.{name} replaces an operation: declare it with @operation")
        cls.operations = {**inherited, **own}
        for group, facade in cls.facades.items():
            for each in facade.operations.values():
                each.group = group


def all_operations(facade: type[Facade]) -> dict[str, Operation]:
    """The operations of a facade and of its inner facades, by qualified name, in the order of their declaration."""
    return {each.qualified_name: each for of in (facade, *facade.facades.values()) for each in of.operations.values()}


def public_names(of: type[Facade]) -> Sequence[str]:
    """The public methods and attributes of a facade, in the order of their declaration."""
    bases = of.__mro__[: of.__mro__.index(Facade)]
    names = dict.fromkeys(name for base in reversed(bases) for name in vars(base))
    return [name for name in names if name == CALLED or (not name.startswith("_") and name not in _INTERNAL)]


def find_operation(name: str, facade: type[Facade], group: str) -> Operation | None:
    """The operation that the documentation of the facade `group` refers to as `name`; None if there is none.

    A plain name is an operation of the facade `group`, or of the main one, `facade`, or of exactly one other. A name
    with a dot is a qualified one: `items.put`.
    """
    operations = all_operations(facade)
    own = operations.get(f"{group}.{name}") or operations.get(name)
    if own is not None:
        return own
    others = [each for each in operations.values() if each.name == name]
    return others[0] if len(others) == 1 else None


def _attributes(value: object) -> Mapping[str, Any]:
    return vars(value) if inspect.isfunction(value) else {}


def _as_shown(written: inspect.Signature, flattened: inspect.Signature) -> inspect.Signature:
    """The flattened signature as `help` shows it: with `self`, and with the types that callers write."""
    itself = next(iter(written.parameters.values()))
    shown = [each.replace(annotation=plain_type(each.annotation)) for each in flattened.parameters.values()]
    return flattened.replace(parameters=[itself, *shown])
