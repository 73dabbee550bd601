"""The synchronous memory: `Memory` for scripts, notebooks and programs with threads."""

from typing import Any, Self

from recallog import memory as asynchronous
from recallog.sync.deriving import like, with_callbacks
from recallog.sync.opened import OpenedFacade


class Memory(OpenedFacade, of=asynchronous.Memory):
    """Event-sourced memory of any number of agents, for programs without an event loop: scripts, notebooks, threads.

    ```python
    with Memory.open("./memory") as memory:
        memory.publish({"space": "village", "agent": "baker", "kind": "agent.spoke", "payload": {"text": "Bread!"}})
        print(memory.episodic("village", "baker").format())
    ```

    It has the methods, facades and errors of `recallog.Memory`; each call returns its answer. Any number of processes
    may open one folder, and any number of threads may use one memory, even where an event loop runs, as in a notebook.

    A separate thread executes the calls. Callbacks such as `progress` are executed by the thread that calls, and cannot
    call the memory themselves. Reactors, reflectors and other objects that `open` takes are asynchronous; the memory's
    thread executes them, so they must not block. Ctrl-C cancels a call, and the memory can be used afterwards. In a
    forked child a memory that the parent has used cannot be used: open it again there.

    `close`, or the end of `with`, closes it. A memory that is not closed gives a `ResourceWarning`; nothing is lost.
    """

    @like(asynchronous.Memory.__init__)
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._use(with_callbacks(asynchronous.Memory)(*args, **kwargs))

    @classmethod
    def _of(cls, memory: asynchronous.Memory) -> Self:
        of = type(memory)
        if not of.facades.keys() <= cls.facades.keys():  # it was opened with models that are not installed
            cls = type(cls.__name__, (cls,), {"__doc__": cls.__doc__, "__module__": cls.__module__}, of=of)
        made = cls.__new__(cls)
        made._use(memory)
        return made
