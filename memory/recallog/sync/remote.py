"""The synchronous remote memory: `Remote` for scripts, notebooks and programs with threads."""

from typing import Any

from recallog.remote import client as asynchronous
from recallog.sync.deriving import like
from recallog.sync.opened import OpenedFacade


class Remote(OpenedFacade, of=asynchronous.Remote):
    """Event-sourced memory of a server, for programs without an event loop: scripts, notebooks, threads.

    ```python
    with Remote("http://127.0.0.1:8765", "rl_…") as memory:
        memory.publish({"space": "village", "agent": "baker", "kind": "agent.spoke", "payload": {"text": "Bread!"}})
        print(memory.episodic("village", "baker").format())
    ```

    It has the methods, facades and errors of `recallog.remote.Remote`; each call returns its answer. See
    `recallog.sync.Memory` for threads, callbacks and closing.
    """

    @like(asynchronous.Remote.__init__)
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._use(asynchronous.Remote(*args, **kwargs))
