"""The garbage collector of the process while events are folded."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """No cyclic garbage collection in the `with` block, which must not await: the rest of the process has its collector
    whenever it runs.

    Decoding and folding a batch makes many thousands of objects and no cycles; the collector's walks over them take up
    to 6 of 29 µs an event. Where the user has disabled the collector, it stays disabled.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
