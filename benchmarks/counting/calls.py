"""Counting calls: those of the functions of Recallog, and those that they make, also into C."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import CodeType, FrameType

_ROOT = Path(__file__).parents[2]
_OURS = tuple(str(_ROOT / layer) for layer in ("schemas", "projections", "streams", "memory"))


class CallCounter:
    """Counts calls of this thread, and of threads that start while it is `counting`.

    Calls between functions of libraries, and those of the event loop, are not counted: their number depends on
    versions and on time.
    """

    def __init__(self) -> None:
        self._python, self._c = count(), count()  # `next` of them is atomic
        self._taken = 0
        self._ours: dict[CodeType, bool] = {}

    @contextmanager
    def counting(self) -> Iterator[None]:
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]

    def total(self) -> tuple[int, int]:
        """The calls so far: of Python functions by or of Recallog, and of C functions by Recallog.

        Each step of a generator or coroutine is a call.
        """
        totals = next(self._python) - self._taken, next(self._c) - self._taken
        self._taken += 1
        return totals

    def _profile(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "c_call":
            if self._is_ours(frame.f_code):
                next(self._c)
        elif event == "call":
            caller = frame.f_back
            if self._is_ours(frame.f_code) or (caller is not None and self._is_ours(caller.f_code)):
                next(self._python)

    def _is_ours(self, code: CodeType) -> bool:
        found = self._ours.get(code)
        if found is None:
            found = self._ours[code] = code.co_filename.startswith(_OURS)
        return found
