"""An embedder whose calls run one at a time, in a thread of their own."""

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, cast

from recallog_projections.index.embedders.embedder import Embedder, Embedding, Passage


def in_own_thread(embedder: Embedder, niceness: int = 0) -> Embedder:
    """An embedder that may be called from several threads at once. Its thread has a priority of its own.

    Closing it waits for the call in progress. Closing it again does nothing.
    """
    thread = ThreadPoolExecutor(
        1, thread_name_prefix="recallog-embedding", initializer=_set_priority, initargs=(niceness,)
    )
    return cast("Embedder", _InOwnThread(embedder, thread))


class _InOwnThread:
    def __init__(self, embedder: Embedder, thread: ThreadPoolExecutor) -> None:
        self._embedder = embedder
        self.multilingual = _InOwnThread(embedder.multilingual, thread) if embedder.multilingual else None
        self._closing = threading.Lock()
        self._closed = False
        self._thread = thread

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def embed(self, passages: Sequence[Passage]) -> list[Embedding]:
        return self._thread.submit(self._embedder.embed, passages).result()

    def close(self) -> None:
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._thread.shutdown()
            self._embedder.close()


def _set_priority(niceness: int) -> None:
    """Set the thread's priority. Indexing has a low one: publishing, folding and queries come first."""
    with suppress(AttributeError, OSError):  # only Linux has priorities of threads
        if niceness:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)
