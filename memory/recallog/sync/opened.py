"""What synchronous memories have in common: a thread of their own, from the first call until they are closed."""

from typing import TYPE_CHECKING, Any, Self

from recallog.sync.deriving import SyncFacade
from recallog.sync.loop_thread import LoopThread

if TYPE_CHECKING:
    from types import TracebackType


class OpenedFacade(SyncFacade):
    """Base of synchronous facades that are opened and closed, of asynchronous ones that are a context manager."""

    def _use(self, facade: Any) -> None:
        self._facade = self._context = facade
        self._thread = LoopThread(facade.close)

    def __enter__(self) -> Self:
        """Begin what the memory does in the background, such as answering triggers."""
        self._thread.run(self._context.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        """Close the memory."""
        self.close()

    def close(self) -> None:
        """Close files and connections, and stop what runs in the background. Nothing is lost if it is never called.

        Calls of other threads that are under way are cancelled: they raise `StorageError`. Raises `StorageError` if
        something under way does not end in time.
        """
        self._thread.close()
