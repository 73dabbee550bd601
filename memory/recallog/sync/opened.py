"""The common part of synchronous memories: a separate thread, from the first call until they are closed."""

from typing import TYPE_CHECKING, Any, Self

from recallog.sync.deriving import SyncFacade
from recallog.sync.loop_thread import LoopThread

if TYPE_CHECKING:
    from types import TracebackType


class OpenedFacade(SyncFacade):
    """Base of synchronous facades that are opened and closed. Their asynchronous facades are context managers."""

    def _use(self, facade: Any) -> None:
        self._facade = self._context = facade
        self._thread = LoopThread(facade.close)

    def __enter__(self) -> Self:
        """Begin the background work of the memory, such as answering triggers."""
        self._thread.run(self._context.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        """Close the memory."""
        self.close()

    def close(self) -> None:
        """Close files and connections, and stop the background work. Nothing is lost if it is never called.

        Calls of other threads in progress are cancelled: they raise `StorageError`. Raises `StorageError` if a call in
        progress does not end in time.
        """
        self._thread.close()
