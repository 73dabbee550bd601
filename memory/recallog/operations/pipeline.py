"""The path of a call, in the order in which it runs: validate, authorise, trace, delegate, execute, count.

Every call through a door passes through `call`. Every call of a method in Python passes through `perform`, after the
method has validated its arguments. docs/architecture.md follows one call through the code.
"""

from collections.abc import Awaitable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import uuid_utils

from recallog.operations.operation import EXTERNAL, Operation
from recallog_projections.patience import patient
from recallog_schemas import views
from recallog_schemas.errors import RecallogError

if TYPE_CHECKING:
    from recallog_streams.tracing import Tracing

_NO_CALLBACKS: Mapping[str, Any] = {}


class Performer(Protocol):
    """An object whose methods are operations: a `Facade`."""

    @property
    def _host(self) -> "Host":
        """The host that executes the operations, or delegates them."""

    @property
    def _own_parts(self) -> frozenset[str]:
        """The parts of the program that operations use in this process: see `Operation.asks`."""


@dataclass(slots=True)
class Call:
    """A call of an operation, with validated arguments."""

    operation: Operation
    facade: "Performer"
    """The object whose method is called."""
    arguments: Mapping[str, Any]
    """The arguments that were given."""
    callbacks: Mapping[str, Any]
    """Arguments that stay in this process, by name."""

    def execute(self) -> Awaitable[Any]:
        """Call the method."""
        return self.operation.function(self.facade, **self.arguments, **self.callbacks)

    @property
    def own_parts(self) -> frozenset[str]:
        """The parts of the program that the call uses in this process."""
        parts = self.operation.asks & self.facade._own_parts
        return parts if self.arguments.get("include_external") else parts - {EXTERNAL}

    @property
    def starts_index(self) -> bool:
        """Whether the call starts the process that serves the index."""
        return any(str(self.arguments.get(name) or "").strip() for name in self.operation.starts_index)

    def make_repeatable(self) -> None:
        """Fill in a missing id of what the call writes. The call may be sent twice, and both must have the same
        effect."""
        key = self.operation.repeat_key
        if key is not None and not self.operation.idempotent and self.arguments.get(key) is None:
            self.arguments = {**self.arguments, key: str(uuid_utils.uuid7())}


class Host:
    """Executes the operations of a facade, or delegates them. This class executes all of them in this process."""

    tracing: "Tracing | None" = None
    """Makes the spans of calls; None if telemetry is off."""

    def delegate(self, call: Call, /) -> Awaitable[Any] | None:
        """The answer of another process; None if this process executes the call."""

    async def count(self, call: Call, answer: Any, /) -> None:
        """Note that a call was answered."""


class Guard(Protocol):
    """The permissions of one caller of a door."""

    def admit_arguments(self, operation: Operation, given: Mapping[str, Any], /) -> Mapping[str, Any]:
        """The arguments as they came, with those that are fixed for the caller. Raises `Forbidden` for an operation
        that the caller may not use with any arguments."""

    def bound_arguments(self, operation: Operation, valid: Mapping[str, Any], /) -> Mapping[str, Any]:
        """The validated arguments, with those that are fixed for the caller. Raises `Forbidden`."""

    def perform(self, call: Call, /) -> Awaitable[Any]:
        """Perform a call, once or for each needed page. Returns the part of the answer that the caller may see."""

    def translate_error(self, call: Call, error: RecallogError, /) -> RecallogError:
        """The error that the caller gets."""

    async def filter_answer(self, call: Call, answer: Any, /) -> Any:
        """The answer for the caller."""


async def call(
    memory: "Performer",
    operation: Operation,
    given: Mapping[str, Any],
    callbacks: Mapping[str, Any] = _NO_CALLBACKS,
    guard: Guard | None = None,
) -> Any:
    """The answer for a door: `memory` is the main facade, and `given` has the arguments as they came.

    Raises the errors of `Operation.validated`, of the guard, and of the operation.
    """
    if guard is None:
        return await perform(of_memory(memory, operation, operation.validate(given, strict=False), callbacks))
    valid = operation.validate(guard.admit_arguments(operation, given), strict=False)
    made = of_memory(memory, operation, guard.bound_arguments(operation, valid), callbacks)
    try:
        answer = await guard.perform(made)
    except RecallogError as error:
        raise guard.translate_error(made, error) from None
    return _fit_answer(await guard.filter_answer(made, answer))


def of_memory(
    memory: "Performer", operation: Operation, valid: Mapping[str, Any], callbacks: Mapping[str, Any] = _NO_CALLBACKS
) -> Call:
    """The call of an operation of the main facade, or of one of its inner facades."""
    return Call(operation, getattr(memory, operation.group) if operation.group else memory, valid, callbacks)


async def perform(made: Call) -> Any:
    """The answer to a call with validated arguments, with the items that fit."""
    operation, host = made.operation, made.facade._host
    if host.tracing is None or operation.gen_ai is None:
        return await _execute_call(made, host)
    with host.tracing.span(operation.gen_ai, _trace_attributes(made)) as span:
        answer = await _execute_call(made, host)
        if (count := _records(operation, answer)) is not None:
            span.set_attribute("gen_ai.memory.record.count", count)
        return answer


async def _execute_call(made: Call, host: Host) -> Any:
    found = await answer(made)
    await host.count(made, found)
    return found


async def answer(made: Call) -> Any:
    """The answer to a call that is not counted, since it is a part of another one."""
    delegated = made.facade._host.delegate(made)
    if delegated is not None:
        return _fit_answer(await delegated)
    with patient() if made.operation.is_patient else nullcontext():
        return _fit_answer(await made.execute())


def _trace_attributes(made: Call) -> dict[str, str]:
    """The attributes of the span of a call: only names, and nothing that agents have said."""
    valid = made.arguments
    events = [valid["event"]] if "event" in valid else valid.get("events", ())
    spaces = {event.space for event in events} or {valid.get("space")}
    space = spaces.pop() if len(spaces) == 1 else None
    store = {} if space is None else {"gen_ai.memory.store.id": space}
    operation = made.operation
    return {"gen_ai.operation.name": str(operation.gen_ai), "recallog.operation": operation.qualified_name, **store}


def _fit_answer(answer: Any) -> Any:
    return answer.fit() if isinstance(answer, views.View) else answer


def _records(operation: Operation, answer: Any) -> int | None:
    """The number of memories that the answer to an operation is about; None if it is not known."""
    if not operation.records:
        return None if operation.records is None else 1
    found = getattr(answer, operation.records)
    return len(found) if isinstance(found, tuple) else int(found is not None)
