"""What a process sets for the libraries that run models: no telemetry, and memory that is given back."""

import os
from contextlib import suppress
from typing import Any


def imported_onnxruntime() -> Any:
    """The module `onnxruntime`, without its telemetry.

    Its packages send events about each process and session to their makers, and keep the id of a device in the user's
    cache, unless this variable is set before the import (Privacy.md of the package). A program that sets it decides.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime  # type: ignore[import-untyped]  # here, since it takes a third of a second

    return onnxruntime


def release_memory() -> None:
    """Give memory that was freed back to the system. It takes some milliseconds.

    The C library keeps it otherwise: 80 MB after a model is loaded, and 45 MB after long texts were embedded. With its
    settings to return large pieces at once, embedding takes 2.4 times as long.
    """
    import ctypes  # most commands embed nothing

    with suppress(AttributeError):  # only glibc has the function
        ctypes.CDLL(None).malloc_trim(0)
