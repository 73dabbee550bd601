"""onnxruntime, which runs the models."""

import os
from typing import Any


def imported_onnxruntime() -> Any:
    """The module `onnxruntime`, without its telemetry.

    Its packages send events about each process and session to their makers, and keep the id of a device in the user's
    cache, unless this variable is set before the import (Privacy.md of the package). A program that sets it decides.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime  # type: ignore[import-untyped]  # here, since it takes a third of a second

    return onnxruntime
