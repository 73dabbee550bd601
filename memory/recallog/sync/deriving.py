"""Synchronous facades, derived from the asynchronous ones: they have the same methods, which return the answers."""

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar, cast

from recallog.operations.facade import Facade, public_names
from recallog.operations.operation import IN_PROCESS
from recallog.sync.call import in_thread_of_caller
from recallog.sync.loop_thread import LoopThread

Function = TypeVar("Function", bound=Callable[..., Any])

MODULE = "recallog.sync"
_PROGRESS = "progress"
"""A callback of `Memory.open`, which is not declared as an operation."""


class SyncFacade:
    """Base of synchronous facades. `class X(SyncFacade, of=Y)` has the public methods and attributes of the facade `Y`.

    A coroutine function becomes a method that returns its result, an asynchronous iterator becomes an iterator, and an
    inner facade a synchronous one. Attributes that the class and its bases define are not replaced.
    """

    facades: ClassVar[Mapping[str, type["SyncFacade"]]] = {}
    """The classes of its inner facades, by the attribute that holds them."""

    _thread: LoopThread
    _facade: Facade

    def __init_subclass__(cls, of: type[Facade] | None = None, **more: Any) -> None:
        super().__init_subclass__(**more)
        if of is None:
            return
        # mypy takes the `__hash__` of the instances of a class for that of the class.
        cls.facades = {name: synchronous(part) for name, part in of.facades.items()}  # type: ignore[arg-type]
        for name in public_names(of):
            if not any(name in vars(base) for base in cls.__mro__):  # `type` has a `__call__` too
                setattr(cls, name, cls._derive_member(of, name))
        if cls.__doc__ is None:
            cls.__doc__ = _without_await(inspect.cleandoc(of.__doc__ or ""))

    @classmethod
    def _derive_member(cls, of: type[Facade], name: str) -> Any:
        attribute = inspect.getattr_static(of, name)
        if name in cls.facades:
            return _part(name, cls.facades[name], attribute)
        if isinstance(attribute, classmethod):
            return _constructor(of, name, attribute)
        if inspect.isfunction(attribute):
            return _method(attribute)
        raise TypeError(f"{of.__qualname__}.{name} is neither a method nor a facade: a synchronous one cannot have it")


@functools.cache
def synchronous(of: type[Facade]) -> type[SyncFacade]:
    """The synchronous class of a facade. A facade that local and remote memories share has one class."""
    return cast("type[SyncFacade]", type(of.__name__, (SyncFacade,), {"__module__": MODULE}, of=of))


def like(function: Callable[..., Any]) -> Callable[[Function], Function]:
    """Give a function the name, the documentation and the signature of an asynchronous one, without `await`."""

    def describe(call: Function) -> Function:
        call.__name__, call.__qualname__, call.__module__ = function.__name__, function.__qualname__, MODULE
        call.__doc__ = _without_await(inspect.getdoc(function) or "")
        signature = inspect.signature(function)
        answer = signature.return_annotation
        if isinstance(answer, str):
            answer = answer.replace("AsyncIterator[", "Iterator[")
        vars(call)["__signature__"] = signature.replace(return_annotation=answer)
        return call

    return describe


def with_callbacks(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with callbacks that the thread of the caller executes."""
    parameters = inspect.signature(inspect.unwrap(function)).parameters.items()
    names = [name for name, each in parameters if name == _PROGRESS or IN_PROCESS in _metadata(each)]
    if not names:
        return function
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call_method(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError:
            return function(*args, **kwargs)  # raises an error that says what is wrong
        for name in names:
            if callable(given.arguments.get(name)):
                given.arguments[name] = in_thread_of_caller(given.arguments[name])
        return function(*given.args, **given.kwargs)

    return call_method


def _metadata(parameter: inspect.Parameter) -> Any:
    return getattr(parameter.annotation, "__metadata__", ())


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    called = with_callbacks(function)

    @like(function)
    def call(self: SyncFacade, /, *args: Any, **kwargs: Any) -> Any:
        return self._thread.run(called, self._facade, *args, **kwargs)

    return call


def _constructor(of: type[Facade], name: str, attribute: "classmethod[Any, Any, Any]") -> Any:
    called = with_callbacks(getattr(of, name))

    @like(attribute.__func__)
    def call(cls: type[Any], /, *args: Any, **kwargs: Any) -> Any:
        return cls._of(called(*args, **kwargs))

    return classmethod(call)


def _part(name: str, part: type[SyncFacade], attribute: Any) -> Any:
    def facade(self: SyncFacade) -> SyncFacade:
        made = part.__new__(part)
        made._thread, made._facade = self._thread, getattr(self._facade, name)
        return made

    facade.__doc__, facade.__annotations__ = attribute.__doc__, {"return": part}
    found = functools.cached_property(facade)
    found.__set_name__(part, name)
    return found


def _without_await(text: str) -> str:
    """Documentation with the wording for a program without an event loop."""
    text = re.sub(r"\(await (\w[\w.]*\([^()]*\))\)", r"\1", text)
    return text.replace("async with", "with").replace("await ", "")
