"""The cyclic garbage collector: a pause for synchronous stretches of a fold, and a setting for whole processes."""

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_pausing = threading.Lock()
"""Held by the thread that has paused the collector."""


YOUNG_OBJECTS_MAX = 200_000
"""The collector runs when a process of Recallog has made this many more objects than it has freed. Python's default
is 700 (`gc.set_threshold`). A batch of 10,000 records is about as many."""


def collect_rarely() -> None:
    """Make the collector of this process examine young objects at most once per batch.

    A fold into a server awaits its store several times per batch, while the batch's events are alive. With Python's
    default the collector walks over all of them after each await, which takes a third of a worker's CPU time. Only for
    processes that belong to Recallog (the command line and workers): the setting is that of the whole process.
    """
    gc.set_threshold(YOUNG_OBJECTS_MAX, *gc.get_threshold()[1:])


@contextmanager
def pause_collection() -> Iterator[None]:
    """Pause cyclic garbage collection in the `with` block, which should take a second at most.

    Decoding and folding a batch makes many thousands of objects and no cycles; the collector's walks over them take up
    to 6 of 29 µs an event. A collector that is disabled already stays disabled. If a block ends after the objects of
    its batch are freed, nothing is left to walk over.

    The collector belongs to the whole process, so the pause holds for all threads and tasks. Only one block pauses it
    at a time: a nested block, or one that is entered elsewhere meanwhile, changes nothing. So blocks that overlap
    cannot keep it paused. A `gc.disable()` of another thread during the block does not outlast it.
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
