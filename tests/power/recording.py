"""Compiles the shim and runs the workload under it."""

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from power import trace
from power.disk import Disk
from power.trace import Entry

MEMORY = Path("programs", "memory")
"""The folder of the memory, below one that the program makes too."""
_SHIM = Path(__file__).with_name("shim.c")
_TESTS = Path(__file__).parents[1]
_COMPILER = "cc"


@dataclass(frozen=True)
class Recording:
    """A recorded run: its files as they are at the end, and all that happened to them."""

    root: Path
    entries: Sequence[Entry]

    @property
    def home(self) -> Path:
        return self.root / MEMORY

    def disk(self) -> Disk:
        """The disk before the first record."""
        return Disk(self.root)

    def acknowledgements(self) -> Sequence[int]:
        """The moments after which something was acknowledged: how many records there are then."""
        return [number for number, each in enumerate(self.entries, 1) if each.op == "a"]

    def said(self, until: int) -> list[dict[str, Any]]:
        """What was acknowledged in the first `until` records."""
        printed = (each.first for each in self.entries[:until] if each.op == "a")
        return [json.loads(line) for line in b"".join(printed).splitlines()]


_MEMORY = Path("/dev/shm")


def new_folder() -> Path:
    """A folder for a run, in memory if that can be: what is safe follows from the records, not from the disk."""
    return Path(tempfile.mkdtemp(prefix="recallog-power-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None))


def what_is_missing() -> str:
    """Why nothing can be recorded on this machine; "" if it can."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        return "the shim is for Linux on x86-64"
    return "" if shutil.which(_COMPILER) else f"there is no C compiler ({_COMPILER}): install gcc or clang"


def record(folder: Path) -> Recording:
    """Run the workload in `folder`, which must be new, under the shim. A folder of an earlier run is only read."""
    root, traced, shim = folder / "files", folder / "trace", folder / "shim.so"
    if not traced.exists():
        root.mkdir(parents=True)
        subprocess.run([_COMPILER, "-shared", "-fPIC", "-O1", "-o", shim, _SHIM, "-ldl", "-pthread"], check=True)
        watched = {"LD_PRELOAD": shim, "POWER_ROOT": root, "POWER_TRACE": traced, "PYTHONPATH": _TESTS}
        environment = os.environ | {name: str(value) for name, value in watched.items()}
        command = [sys.executable, "-m", "power.workload", str(root / MEMORY)]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    return Recording(root, list(trace.read(traced)))
