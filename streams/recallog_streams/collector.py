"""A pause of the cyclic garbage collector for synchronous stretches of a fold."""

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_pausing = threading.Lock()
"""Held by the thread that has paused the collector."""


@contextmanager
def uncollected() -> Iterator[None]:
    """Pause cyclic garbage collection in the `with` block, which must not await.

    Decoding and folding a batch makes many thousands of objects and no cycles; the collector's walks over them take up
    to 6 of 29 µs an event. A collector that is disabled already stays disabled.

    The collector belongs to the whole process, so the pause holds for all threads. Only one block pauses it at a time:
    a nested block, or one that another thread enters meanwhile, changes nothing. The collector therefore runs whenever
    the thread that paused it awaits, and threads whose blocks overlap cannot keep it paused. A `gc.disable()` of
    another thread during the block does not outlast it.
    """
    pausing = _pausing
    if not gc.isenabled() or not pausing.acquire(blocking=False):
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        pausing.release()


def _resume_in_child() -> None:
    """Resume the collector in a forked child: the thread that paused it does not exist there."""
    global _pausing
    if _pausing.locked():
        gc.enable()
        _pausing = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_resume_in_child)
